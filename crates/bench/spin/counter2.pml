/* Twin of corpus/bench/counter2.pre: N threads, K rounds of two steps, read, then write and count. */
#ifndef N
#define N 4
#endif
#ifndef K
#define K 5
#endif

byte x = 0;

active [N] proctype adder() {
    byte i = 0, t = 0;
end:
    do
    :: d_step { i < K -> t = x }
       d_step { x = t + 1; i = i + 1; t = 0 }
    od
}
