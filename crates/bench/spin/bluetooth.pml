/* Twin of corpus/bluetooth/fixed.pre: a user increments the counter first and checks the flag afterwards. */
#ifndef ADDERS
#define ADDERS 2
#endif

byte pending_io = 1;
bool stopping = false, no_pending_io = false, stopped = false;

inline decrement() {
    if
    :: d_step { pending_io == 1 -> pending_io = 0 }
       no_pending_io = true
    :: d_step { pending_io != 1 -> pending_io = pending_io - 1 }
    fi
}

active [ADDERS] proctype adder() {
    pending_io = pending_io + 1;
    if
    :: stopping -> decrement()
    :: !stopping -> !stopped; decrement()
    fi;
end:
    false
}

active proctype stopper() {
    stopping = true;
    decrement();
    no_pending_io;
    stopped = true;
end:
    false
}
