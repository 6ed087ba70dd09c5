/* Twin of corpus/indexer: THREADS threads put four messages each into a hash table; a step is one attempt at a slot. */
#ifndef THREADS
#define THREADS 6
#endif
#define SIZE 128
#define MAX 4

byte table[SIZE];

active [THREADS] proctype worker() {
    byte m = 1, h = ((11 + _pid) * 7) % SIZE;
end:
    do
    :: d_step {
        m <= MAX ->
        if
        :: table[h] == 0 ->
            table[h] = 11 * m + _pid;
            m = m + 1;
            if
            :: m <= MAX -> h = ((11 * m + _pid) * 7) % SIZE
            :: else -> h = 0
            fi
        :: else -> h = (h + 1) % SIZE
        fi
       }
    od
}
