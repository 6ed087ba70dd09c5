/* Twin of corpus/cmis: seven nodes of a tree sort N elements by merging, ranges of at most C by insertion. A branch on
 * local variables is not a step there, so it is part of a step here. The array cannot be initialised in its declaration: init
 * does that in one step, which adds one state. */
#ifndef C
#define C 2
#endif
#ifndef N
#define N 8
#endif

byte a[N];
byte draft[N];
bool made[7];
byte from[7];
byte to[7];
bool done[7];

#define SORTED for (x : p .. r - 1) { assert(a[x] <= a[x + 1]) } x = 0

proctype node(byte k) {
    byte p, r, q, j, m, key, x;
    short i;
    bool left;
    if
    :: d_step { made[k] && to[k] - from[k] + 1 <= C -> p = from[k]; r = to[k]; j = p + 1 }
       do
       :: d_step { j <= r -> key = a[j]; i = j - 1 }
          do
          :: i > p - 1 && a[i] > key;
             a[i + 1] = a[i];
             i = i - 1
          :: !(i > p - 1 && a[i] > key);
             d_step { a[i + 1] = key; j = j + 1 }
             break
          od
       :: d_step { j > r -> SORTED }
          break
       od
    :: d_step { made[k] && to[k] - from[k] + 1 > C -> p = from[k]; r = to[k] }
       d_step {
        q = (p + r) / 2;
        made[2 * k + 1] = true;
        from[2 * k + 1] = p;
        to[2 * k + 1] = q;
        made[2 * k + 2] = true;
        from[2 * k + 2] = q + 1;
        to[2 * k + 2] = r
       }
       done[2 * k + 1] && done[2 * k + 2];
       i = p;
       do
       :: i <= r;
          d_step { draft[i] = a[i]; i = i + 1 }
       :: i > r;
          d_step { i = p; j = q + 1; m = p }
          break
       od;
       do
       :: i > q || j > r -> break
       :: !(i > q || j > r);
          left = (draft[i] <= draft[j]);
          if
          :: d_step { left -> a[m] = draft[i]; m = m + 1; i = i + 1 }
          :: d_step { !left -> a[m] = draft[j]; m = m + 1; j = j + 1 }
          fi
       od;
       do
       :: i <= q;
          d_step { a[m] = draft[i]; m = m + 1; i = i + 1 }
       :: i > q;
          d_step { SORTED }
          break
       od
    fi;
    done[k] = true;
end:
    false
}

init {
    byte x;
    atomic {
        for (x : 0 .. N - 1) {
            a[x] = N - 1 - x
        }
        made[0] = true;
        to[0] = N - 1;
        for (x : 0 .. 6) {
            run node(x)
        }
        x = 0
    }
end:
    false
}
