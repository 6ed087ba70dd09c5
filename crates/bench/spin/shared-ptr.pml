/* Twin of corpus/shared-ptr: the pointer is 0 for none, 1 for x, 2 for y. */
#define N 100

byte x = 3, y = 4, p = 0;
short sum_x = 0, sum_y = 0;

active proctype first() {
    byte i = 0;
    p = 2;
    do
    :: d_step { i < N -> sum_x = sum_x + x; i = i + 1 }
    :: i == N ->
       d_step {
        if
        :: p == 1 -> x = x + 3
        :: p == 2 -> y = y + 3
        fi
       }
       break
    od;
end:
    false
}

active proctype second() {
    byte i = 0;
    p = 1;
    do
    :: d_step { i < N -> sum_y = sum_y + y; i = i + 1 }
    :: i == N ->
       d_step {
        if
        :: p == 1 -> x = x + 2
        :: p == 2 -> y = y + 2
        fi
       }
       break
    od;
end:
    false
}
