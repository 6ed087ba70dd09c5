//! The execution to which the running code belongs, if any.

use std::cell::Cell;
use std::panic::Location as Site;
use std::ptr::null_mut;

use corosensei::Yielder;
use preempt_replay::{NO_OBJECT, Op, OpKind};
use preempt_system::{Action, Kind};

use super::coroutine::{suspend_by, suspend_watched};
use super::identity::Identity;
use super::{Runtime, Stage, site};

thread_local! {
    static CURRENT: Cell<*mut Runtime> = const { Cell::new(null_mut()) };
    /// The number of borrows of the runtime and of texts for reports that are being made.
    /// Allocations meanwhile are not the program's. One number for both, since every allocation and
    /// every free of a test reads it.
    static LENT: Cell<u32> = const { Cell::new(0) };
}

/// Counts the start of a borrow.
#[inline(always)]
fn lend() {
    LENT.set(LENT.get().wrapping_add(1));
}

#[inline(always)]
fn take_back() {
    LENT.set(LENT.get().wrapping_sub(1));
}

/// Marks this OS thread as running a coroutine of an execution, until it is dropped.
pub(super) struct Entered;

impl Entered {
    pub(super) fn new(runtime: *mut Runtime) -> Entered {
        CURRENT.set(runtime);
        // A panic may have skipped the end of a borrow.
        LENT.set(0);
        Entered
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(null_mut());
    }
}

/// Whether a coroutine runs.
#[inline]
pub(crate) fn is_set() -> bool {
    !CURRENT.get().is_null()
}

/// Whether the code is part of an execution, and operations are to be scheduled.
#[inline]
pub(crate) fn inside() -> bool {
    let runtime = CURRENT.get();
    // SAFETY: the pointer is valid while it is set.
    !runtime.is_null() && unsafe { (*runtime).stage == Stage::Running }
}

/// Whether frees are recorded: in an execution, and while values that outlive its threads are
/// dropped.
#[inline]
pub(crate) fn accounts() -> bool {
    inside() || is_set() && with(|runtime| runtime.stage == Stage::Ending)
}

/// Calls `f` with the running execution. `f` must not call the program's code or suspend the
/// thread.
#[inline]
pub(crate) fn with<T>(f: impl FnOnce(&mut Runtime) -> T) -> T {
    let runtime = CURRENT.get();
    assert!(!runtime.is_null(), "only code of an execution may access it");
    lend();
    // SAFETY: the pointer is valid while it is set; there is no other reference, since `f` neither
    // runs the program nor suspends, and code that resumes a coroutine ends its own reference
    // before.
    let result = f(unsafe { &mut *runtime });
    take_back();
    result
}

/// Calls `f` with a shared reference to the running execution. `f` must not allocate either.
#[inline]
pub(crate) fn look<T>(f: impl FnOnce(&Runtime) -> T) -> T {
    let runtime = CURRENT.get();
    assert!(!runtime.is_null(), "only code of an execution may access it");
    // SAFETY: as in `with`.
    f(unsafe { &*runtime })
}

/// Whether allocations now are the program's, and the execution is not borrowed.
#[inline]
pub(crate) fn allocates() -> bool {
    inside() && LENT.get() == 0
}

/// Like [`with`], where [`allocates`] is true. `f` must not allocate either, so that the borrow
/// need not be counted: every allocation of a test calls this.
#[inline(always)]
pub(crate) fn with_quietly<T>(f: impl FnOnce(&mut Runtime) -> T) -> T {
    debug_assert!(allocates(), "the execution is not borrowed");
    // SAFETY: `allocates` implies that the pointer is set and that there is no other reference, and
    // `f` cannot make one: it neither allocates, nor runs the program, nor suspends.
    f(unsafe { &mut *CURRENT.get() })
}

/// Runs code of the runtime outside [`with`], so that its allocations do not count as the
/// program's.
pub(crate) fn unobserved<T>(f: impl FnOnce() -> T) -> T {
    lend();
    let result = f();
    take_back();
    result
}

/// Runs code as if it were outside all executions: mirrors behave like std's types, and its
/// allocations are not the program's. The code must not use objects of the execution, and must not
/// wait.
pub(crate) fn outside<T>(f: impl FnOnce() -> T) -> T {
    struct Restore(*mut Runtime);
    impl Drop for Restore {
        fn drop(&mut self) {
            CURRENT.set(self.0);
        }
    }
    let _restore = Restore(CURRENT.replace(null_mut()));
    f()
}

/// Whether the running code is the program's own, in the middle of an execution. For handlers of
/// signals.
pub(crate) fn is_interruptible() -> bool {
    LENT.get() == 0 && inside()
}

/// Whether the running code is the program's own, including destructors of values that outlive its
/// threads.
pub(crate) fn is_programs_own() -> bool {
    LENT.get() == 0 && is_set()
}

/// Makes an operation at a source position.
#[inline(always)]
pub(crate) fn op(
    kind: OpKind,
    object: u32,
    verb: &'static str,
    site: &'static Site<'static>,
) -> Op {
    Op::new(kind, object, verb, site::id(site))
}

/// A scheduling point: suspends the running thread before an operation, and returns when the search
/// lets it perform the operation. Returns the reply of the object.
#[inline]
pub(crate) fn point(mut op: Op) -> i64 {
    if look(|runtime| runtime.compares_states) {
        return point_watched(op);
    }
    let yielder = leave(&mut op);
    suspend_by(yielder);
    look(|runtime| runtime.reply)
}

/// The part before a suspension. Suspending saves and restores all registers of its function, and
/// this one needs few.
#[inline(never)]
fn leave(op: &mut Op) -> *const Yielder<(), ()> {
    with(|runtime| {
        runtime.arrive(op);
        runtime.coroutines.leave(runtime.current)
    })
}

/// Like [`point`], in executions whose states are compared.
#[cold]
#[inline(never)]
fn point_watched(op: Op) -> i64 {
    arrive_apart(op);
    scrub();
    suspend_watched();
    look(|runtime| runtime.reply)
}

/// Not inlined, so that the runtime leaves no data in a frame of the program.
#[cold]
#[inline(never)]
fn arrive_apart(mut op: Op) {
    with(|runtime| runtime.arrive(&mut op));
}

/// Clears what the runtime has left on the stack below the caller: it counts operations, and a
/// frame that comes there next need not write to all of its bytes.
#[cold]
#[inline(never)]
fn scrub() {
    std::hint::black_box([0_u64; 128]);
}

/// A scheduling point for an action on a mirror.
#[inline]
pub(crate) fn act(
    identity: &Identity,
    kind: Kind,
    noun: &'static str,
    action: Action,
    verb: &'static str,
    site: &'static Site<'static>,
) -> i64 {
    let object = identity.locate(Some(kind), noun, site);
    let reply = point(op(OpKind::Object(action), object, verb, site));
    identity.is_there(object, noun, site);
    reply
}

/// A scheduling point at which the running thread yields.
#[track_caller]
pub(crate) fn pause(verb: &'static str) {
    let site = Site::caller();
    if with(|runtime| runtime.yields(site)) {
        // It accesses no object, but other threads must get a chance to run.
        point(op(OpKind::Yield, NO_OBJECT, verb, site));
    }
}

/// Records a description of an operation, if the step is narrated.
#[inline]
pub(crate) fn describe(words: impl FnOnce() -> String) {
    if look(|runtime| runtime.notes.step.is_some()) {
        describe_apart(words);
    }
}

/// Not inlined, so that the text leaves no data in a frame of the program, which is part of
/// compared states.
#[cold]
#[inline(never)]
fn describe_apart(words: impl FnOnce() -> String) {
    let words = unobserved(words);
    with(|runtime| runtime.notes.step.as_mut().expect("the step is narrated").push(words));
}

/// Records the value of an object after an operation, if the step is narrated.
#[inline]
pub(crate) fn show(object: &Identity, value: impl FnOnce() -> String) {
    if look(|runtime| runtime.notes.step.is_some()) {
        show_apart(object, value);
    }
}

#[cold]
#[inline(never)]
fn show_apart(object: &Identity, value: impl FnOnce() -> String) {
    let object = object.number().expect("the operation has named the object");
    let value = unobserved(value);
    with(|runtime| runtime.notes.values.insert(object, value));
}

/// Records that the running thread changes shared data without an operation.
#[inline]
pub(crate) fn changes() {
    if inside() {
        with(|runtime| runtime.outcome.progress = true);
    }
}
