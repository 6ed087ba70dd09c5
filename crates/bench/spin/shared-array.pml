/* Twin of corpus/shared-array: the end of the array is recorded in the step that adds to the counter. Elements are counted in steps of
 * two, so that both threads begin at 0. The assertion reads the array: SPIN would drop variables that are never read. */
#define N 64

byte a[N];
byte half[2];
#define IDX(t) (2 * half[t] + t)
byte counter = 1;

active [2] proctype filler() {
    do
    :: d_step { IDX(_pid) < N -> a[IDX(_pid)] = counter + IDX(_pid); half[_pid] = half[_pid] + 1 }
    :: d_step { IDX(_pid) >= N -> assert(a[0] < 200); counter = counter + 1 + IDX((1 - _pid)) }
       break
    od;
end:
    false
}
