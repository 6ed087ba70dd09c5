//! The execution that runs the present code, if one does.

use std::cell::Cell;
use std::panic::Location as Site;
use std::ptr::{null, null_mut};

use preempt_replay::{NO_OBJECT, Op, OpKind};
use preempt_system::{Action, Kind};

use super::coroutine::{suspend_by, suspend_watched};
use super::identity::Identity;
use super::{Runtime, Stage, site};

thread_local! {
    static CURRENT: Cell<*mut Runtime> = const { Cell::new(null_mut()) };
    /// How often the runtime is borrowed, and how many texts for reports are being made: what is
    /// allocated meanwhile is not the program's. One number for both, since every allocation and
    /// every free of a test asks.
    static LENT: Cell<u32> = const { Cell::new(0) };
}

/// Counts one more or one less.
#[inline(always)]
fn lend() {
    LENT.set(LENT.get().wrapping_add(1));
}

#[inline(always)]
fn take_back() {
    LENT.set(LENT.get().wrapping_sub(1));
}

/// While it lives, a coroutine of the execution runs.
pub(super) struct Entered;

impl Entered {
    pub(super) fn new(runtime: *mut Runtime) -> Entered {
        CURRENT.set(runtime);
        // A panic may have left a borrow.
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

/// Whether what is given back is to be noted: in an execution, and where what outlives its threads
/// is dropped.
#[inline]
pub(crate) fn accounts() -> bool {
    inside() || is_set() && with(|runtime| runtime.stage == Stage::Ending)
}

/// Does something to the execution that runs. `f` must not call the program's code or suspend the
/// thread.
#[inline]
pub(crate) fn with<T>(f: impl FnOnce(&mut Runtime) -> T) -> T {
    let runtime = CURRENT.get();
    assert!(!runtime.is_null(), "only code of an execution asks for it");
    lend();
    // SAFETY: the pointer is valid while it is set; there is no other reference, since `f`
    // neither runs the program nor suspends, and code that resumes a coroutine gives its reference
    // up before.
    let result = f(unsafe { &mut *runtime });
    take_back();
    result
}

/// Looks at the execution that runs. `f` must not allocate either.
#[inline]
pub(crate) fn look<T>(f: impl FnOnce(&Runtime) -> T) -> T {
    let runtime = CURRENT.get();
    assert!(!runtime.is_null(), "only code of an execution asks for it");
    // SAFETY: as in `with`.
    f(unsafe { &*runtime })
}

/// Whether what is allocated now is the program's, and the execution is not borrowed.
#[inline]
pub(crate) fn allocates() -> bool {
    inside() && LENT.get() == 0
}

/// Does something to the execution that runs where [`allocates`] is true. `f` must not allocate
/// either, so that nothing has to be noted about the borrow: every allocation of a test comes here.
#[inline(always)]
pub(crate) fn with_quietly<T>(f: impl FnOnce(&mut Runtime) -> T) -> T {
    debug_assert!(allocates(), "the execution is not borrowed");
    // SAFETY: `allocates` says that the pointer is set and that there is no other reference, and
    // `f` cannot make one: it neither allocates, nor runs the program, nor suspends.
    f(unsafe { &mut *CURRENT.get() })
}

/// Runs code of the runtime's own, outside of [`with`], whose allocations are not the program's.
pub(crate) fn unobserved<T>(f: impl FnOnce() -> T) -> T {
    lend();
    let result = f();
    take_back();
    result
}

/// Whether the running code is the program's own, in the middle of an execution. For handlers of
/// signals.
pub(crate) fn is_interruptible() -> bool {
    LENT.get() == 0 && inside()
}

/// An operation at a place of the test.
#[inline(always)]
pub(crate) fn op(
    kind: OpKind,
    object: u32,
    verb: &'static str,
    site: &'static Site<'static>,
) -> Op {
    Op::new(kind, object, verb, site::id(site))
}

/// A scheduling point: the running thread stops before an operation, and returns when it is to
/// perform it. The reply is that of the object.
#[inline]
pub(crate) fn point(op: Op) -> i64 {
    let yielder = with(|runtime| {
        if runtime.watches {
            return null();
        }
        runtime.arrive(op);
        runtime.coroutines.leave(runtime.current)
    });
    if yielder.is_null() {
        return point_watched(op);
    }
    suspend_by(yielder);
    look(|runtime| runtime.reply)
}

/// The same where states of the execution are compared.
#[cold]
#[inline(never)]
fn point_watched(op: Op) -> i64 {
    arrive_apart(op);
    suspend_watched();
    look(|runtime| runtime.reply)
}

/// What the runtime does leaves nothing behind in a frame that stays.
#[inline(never)]
fn arrive_apart(op: Op) {
    with(|runtime| runtime.arrive(op));
}

/// An action on an object that is a mirror.
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

/// The running thread lets others run.
#[track_caller]
pub(crate) fn pause(verb: &'static str) {
    let site = Site::caller();
    if with(|runtime| runtime.yields(site)) {
        // It accesses nothing that the check knows, and others must get a chance anyway.
        point(op(OpKind::Yield, NO_OBJECT, verb, site));
    }
}

/// Notes what an operation did, if a report wants to know.
#[inline]
pub(crate) fn tell(words: impl FnOnce() -> String) {
    if look(|runtime| runtime.notes.step.is_some()) {
        tell_apart(words);
    }
}

/// The words leave nothing behind in a frame of the program, whose states are compared.
#[cold]
#[inline(never)]
fn tell_apart(words: impl FnOnce() -> String) {
    let words = unobserved(words);
    with(|runtime| runtime.notes.step.as_mut().expect("a report wants to know").push(words));
}

/// Notes the value of an object after an operation, if a report wants to know.
#[inline]
pub(crate) fn show(object: &Identity, value: impl FnOnce() -> String) {
    if look(|runtime| runtime.notes.step.is_some()) {
        show_apart(object, value);
    }
}

#[cold]
#[inline(never)]
fn show_apart(object: &Identity, value: impl FnOnce() -> String) {
    let object = object.number().expect("the operation has met the object");
    let value = unobserved(value);
    with(|runtime| runtime.notes.values.insert(object, value));
}

/// The running thread changes what others may look at, though not by an operation.
#[inline]
pub(crate) fn changes() {
    if inside() {
        with(|runtime| runtime.outcome.progress = true);
    }
}
