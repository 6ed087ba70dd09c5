//! Call stacks, for executions that are described in a report.

use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicBool;
use core::sync::atomic::Ordering::Relaxed;

use crate::threads::{NO_THREAD, become_thread, me};

/// The maximal number of callers that are recorded for an operation.
const DEEPEST: u32 = 32;

unsafe extern "C" {
    fn _Unwind_Backtrace(
        each: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

struct Walk<'w> {
    each: &'w mut dyn FnMut(u32, usize),
    nth: u32,
}

extern "C" fn visit(context: *mut c_void, data: *mut c_void) -> c_int {
    const CONTINUE: c_int = 0;
    const STOP: c_int = 5;
    // SAFETY: `walk` passes its own value, which outlives the call.
    let walk = unsafe { &mut *data.cast::<Walk<'_>>() };
    // SAFETY: the unwinder passes a valid context.
    let pc = unsafe { _Unwind_GetIP(context) };
    (walk.each)(walk.nth, pc);
    walk.nth += 1;
    if walk.nth == DEEPEST || pc == 0 { STOP } else { CONTINUE }
}

/// Calls `each` with the number and the return address of every caller, innermost first. A call
/// from within a walk does nothing.
pub fn walk(mut each: impl FnMut(u32, usize)) {
    static WALKS: AtomicBool = AtomicBool::new(false);
    if WALKS.swap(true, Relaxed) {
        return;
    }
    let slot = me();
    // The unwinder may lock its own mutexes, which are not the program's.
    let mut pcs = [0; DEEPEST as usize];
    become_thread(NO_THREAD);
    let mut record = |nth: u32, pc: usize| pcs[nth as usize] = pc;
    let mut walk = Walk { each: &mut record, nth: 0 };
    // SAFETY: the function and its data fit each other.
    unsafe { _Unwind_Backtrace(visit, (&raw mut walk).cast()) };
    let found = walk.nth;
    become_thread(slot);
    (0..found).for_each(|nth| each(nth, pcs[nth as usize]));
    WALKS.store(false, Relaxed);
}
