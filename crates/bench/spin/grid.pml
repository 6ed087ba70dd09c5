/* Twin of corpus/bench/grid.pre: N threads count to K in their own and in a common counter. */
#ifndef N
#define N 7
#endif
#ifndef K
#define K 10
#endif

byte x = 0;

active [N] proctype counter() {
    byte i = 0;
end:
    do
    :: d_step { i < K -> i = i + 1; x = x + 1 }
    od
}
