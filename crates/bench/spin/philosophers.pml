/* Twin of corpus/philosophers/model.pre: the higher fork first; a fork is a bit, since the position of a philosopher determines which forks it holds. */
#ifndef N
#define N 3
#endif

bool taken[N];

active [N] proctype phil() {
    byte first = (_pid == 0 -> N - 1 : _pid), second = (_pid == 0 -> 0 : _pid - 1);
    do
    :: d_step { !taken[first] -> taken[first] = true }
       d_step { !taken[second] -> taken[second] = true }
       skip;
       taken[first] = false;
       taken[second] = false
    od
}
