/* Twin of corpus/peterson/model.pre: every read of the waiting loop is a step of its own. */
bool interested[2];
byte turn = 0;
bool inside[2];

active [2] proctype process() {
    do
    :: interested[_pid] = true;
       turn = 1 - _pid;
again:
       if
       :: interested[1 - _pid] ->
          if
          :: turn == 1 - _pid -> goto again
          :: turn != 1 - _pid
          fi
       :: !interested[1 - _pid]
       fi;
       inside[_pid] = true;
       d_step { inside[_pid] = false; interested[_pid] = false }
    od
}
