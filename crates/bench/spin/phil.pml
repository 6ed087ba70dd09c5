/* Twin of corpus/bench/phil.pre: N philosophers, forks as bytes; they deadlock. */
#ifndef N
#define N 15
#endif

bool taken[N];

active [N] proctype phil() {
    do
    :: d_step { taken[_pid] == 0 -> taken[_pid] = 1 }
       d_step { taken[(_pid + 1) % N] == 0 -> taken[(_pid + 1) % N] = 1 }
       taken[_pid] = 0;
       taken[(_pid + 1) % N] = 0
    od
}
