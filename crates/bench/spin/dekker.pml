/* Twin of corpus/dekker/model.pre. */
bool wants[2];
byte favoured = 0;
bool inside[2];

active [2] proctype process() {
    do
    :: wants[_pid] = true;
       do
       :: wants[1 - _pid] ->
          if
          :: favoured != _pid ->
             wants[_pid] = false;
             favoured == _pid;
             wants[_pid] = true
          :: favoured == _pid
          fi
       :: !wants[1 - _pid] -> break
       od;
       inside[_pid] = true;
       d_step { inside[_pid] = false; favoured = 1 - _pid }
       wants[_pid] = false
    od
}
