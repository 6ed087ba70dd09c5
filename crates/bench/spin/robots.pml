/* Twin of corpus/robots: ROBOTS robots bounce on a square grid forever; a robot leaves its field, moves, marks its field. */
#ifndef ROBOTS
#define ROBOTS 3
#endif
#define SIDE 12

bool occupied[SIDE * SIDE];

active [ROBOTS] proctype robot() {
    short dx = 1, dy = 1;
    byte x = (_pid == 0 -> 0 : (_pid == 1 -> 4 : 7)), y = 0;
    do
    :: occupied[x * SIDE + y] = false;
       d_step {
        x = x + dx;
        y = y + dy;
        if
        :: x == 0 || x == SIDE - 1 -> dx = -dx
        :: else
        fi;
        if
        :: y == 0 || y == SIDE - 1 -> dy = -dy
        :: else
        fi
       }
       d_step {
        assert(!occupied[x * SIDE + y] || x == 9 || x == 2);
        occupied[x * SIDE + y] = true
       }
    od
}
