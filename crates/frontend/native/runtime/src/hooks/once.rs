//! One-time initialisation, of POSIX and of C11.
//!
//! A caller enters, performs the initialisation if it is not done yet, and leaves; while one thread
//! is inside, the others wait. A caller that finds it done enters and leaves too: it observes what
//! the initialisation wrote, so it must be ordered after it.
//!
//! If the initialisation unwinds, by a C++ exception or by `pthread_exit`, it is not done: the
//! thread leaves, and the next one that enters performs it again.

use core::ffi::c_int;

use crate::block::{ObjectKind, Op};
use crate::schedule::{Next, objects, point};
use crate::sys::P;
use crate::thread::ThreadId;
use crate::threads::me;

/// The value that glibc stores in a `pthread_once_t` or `once_flag` after the initialisation.
const DONE: c_int = 2;

/// A thread inside the initialisation, which it leaves when this is dropped. A destructor runs also
/// if the initialisation unwinds.
struct Inside {
    address: u64,
    pc: usize,
}

impl Drop for Inside {
    fn drop(&mut self) {
        point(Next::on(Op::LeaveOnce, self.address, self.pc));
    }
}

fn run_once(control: P, initialise: extern "C-unwind" fn(), pc: usize) -> c_int {
    let address = control as u64;
    let object = objects().at(ObjectKind::Once, address, || 0);
    if object.is_owned_by(ThreadId::new(me())) {
        // The initialisation itself calls this function. Like the C library, it waits for itself.
        point(Next::on(Op::EnterOnce, address, pc));
        return 0;
    }
    point(Next::on(Op::EnterOnce, address, pc));
    let inside = Inside { address, pc };
    let done = control.cast::<c_int>();
    // SAFETY: the program passes a valid control; only the thread that is inside accesses it.
    unsafe {
        if *done != DONE {
            initialise();
            *done = DONE;
        }
    }
    drop(inside);
    0
}

hook!(fn pthread_once(control: P, initialise: extern "C-unwind" fn(); pc) -> c_int {
    run_once(control, initialise, pc)
});
hook!(fn call_once(control: P, initialise: extern "C-unwind" fn(); pc) -> () {
    run_once(control, initialise, pc);
});
