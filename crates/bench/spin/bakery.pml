/* Twin of corpus/bakery/model.pre: local work belongs to the step before it, and a process that leaves a loop records that in its next step. */
#ifndef N
#define N 2
#endif
#ifndef CAP
#define CAP 3
#endif
#if N == 2
#define SHORT (ticket[0] < CAP && ticket[1] < CAP)
#elif N == 3
#define SHORT (ticket[0] < CAP && ticket[1] < CAP && ticket[2] < CAP)
#endif

bool choosing[N];
byte ticket[N];
bool inside[N];

active [N] proctype customer() {
    byte highest = 0, j = 0, other = 0, mine = 0;
    do
    :: SHORT;
       d_step { choosing[_pid] = true; highest = 0; j = 0 }
       do
       :: d_step {
            j < N ->
            other = ticket[j];
            if
            :: other > highest -> highest = other
            :: else
            fi;
            j = j + 1;
            if
            :: j == N && highest < CAP -> mine = highest + 1
            :: else
            fi
          }
       :: d_step { j == N && highest < CAP -> ticket[_pid] = mine }
          d_step { choosing[_pid] = false; j = (_pid == 0 -> 1 : 0) }
          do
          :: j < N && !choosing[j] ->
             d_step {
                ticket[j] == 0 || ticket[j] > mine || (ticket[j] == mine && j > _pid) ->
                j = j + 1;
                if
                :: j == _pid -> j = j + 1
                :: else
                fi
             }
          :: d_step { j == N -> inside[_pid] = true }
             d_step { inside[_pid] = false; ticket[_pid] = 0 }
             break
          od;
          break
       :: d_step { j == N && highest >= CAP -> choosing[_pid] = false }
          break
       od
    od
}
