//! Nondeterministic choices of data, and assumptions about them.

use std::cell::RefCell;
use std::panic::Location as Site;

use preempt_replay::{NO_OBJECT, OpKind};

use crate::runtime::{describe, inside, op, point, with};

/// The choices of code that runs outside executions, in order: each with the number of
/// alternatives.
pub(crate) type Choices = Vec<(u32, u32)>;

thread_local! {
    /// The choices that are prescribed, and the number of those that were made.
    static SCRIPT: RefCell<Option<(Choices, usize)>> = const { RefCell::new(None) };
}

/// Runs code outside executions such that its first calls of [`choose`] return the choices of
/// `script`, and all further ones 0. Returns all choices that it made.
pub(crate) fn scripted<T>(script: Choices, f: impl FnOnce() -> T) -> (T, Choices) {
    struct Clear;
    impl Drop for Clear {
        fn drop(&mut self) {
            SCRIPT.set(None);
        }
    }
    SCRIPT.set(Some((script, 0)));
    let _clear = Clear;
    let result = f();
    let (mut choices, made) = SCRIPT.take().expect("only `scripted` removes a script");
    choices.truncate(made);
    (result, choices)
}

/// The next choices after `made`, in lexicographic order, of which the first `fixed` stay.
pub(crate) fn next_script(mut made: Choices, fixed: usize) -> Option<Choices> {
    while made.len() > fixed {
        let (chosen, of) = made.pop().expect("it is not empty");
        if chosen + 1 < of {
            made.push((chosen + 1, of));
            return Some(made);
        }
    }
    None
}

/// The choice of the script, if there is one.
fn choose_outside(n: u32) -> u32 {
    SCRIPT.with_borrow_mut(|script| {
        let Some((choices, made)) = script else { return 0 };
        if *made == choices.len() {
            choices.push((0, n));
        }
        *made += 1;
        choices[*made - 1].0
    })
}

/// Returns a number below `n`. Inside a check this is a step, and every number is explored; outside
/// the result is 0, except in the model of a [history](mod@crate::history), which tries every
/// number.
///
/// ```
/// let outcome = preempt::Check::new().run(|| assert!(preempt::choose(3) < 3));
/// assert_eq!(outcome.executions(), Some(3));
/// ```
///
/// # Panics
///
/// If `n` is 0.
#[track_caller]
pub fn choose(n: u32) -> u32 {
    assert!(n > 0, "`choose` needs at least one number");
    if n == 1 {
        return 0;
    }
    if !inside() {
        return choose_outside(n);
    }
    point(op(OpKind::Choose(n), NO_OBJECT, "choose", Site::caller()));
    let chosen = with(|runtime| {
        runtime.outcome.value = u64::from(runtime.outcome.alternative);
        runtime.outcome.alternative
    });
    describe(|| format!("choose({n}) = {chosen}"));
    chosen
}

/// Discards the execution unless `condition` holds: it is no execution of the test. It is neither a
/// finding nor counted as an execution or a trace; the outcome says how many were discarded. Use it
/// to restrict a test to the cases that matter, such as to values of [`choose`] or to schedules in
/// which a loop ends in its first round.
///
/// A thread whose assumption fails stops there, and the other threads continue. So a failure of
/// another thread is still a finding: it needs no step after the assumption, and the same happens
/// if the thread is interrupted just before it. A deadlock or livelock of an execution that is
/// discarded is not a finding.
///
/// Outside a check this does nothing.
///
/// ```
/// use preempt::{assume, choose};
///
/// let outcome = preempt::Check::new().run(|| {
///     let (a, b) = (choose(3), choose(3));
///     assume(a < b);
///     assert_ne!(a, b);
/// });
/// assert_eq!(outcome.executions(), Some(3));
/// assert_eq!(outcome.tally.map(|tally| tally.discarded), Some(6));
/// ```
#[track_caller]
pub fn assume(condition: bool) {
    if condition || !inside() {
        return;
    }
    // Soundness: this is a wait that never ends, which every strategy knows from deadlocks. Ending
    // the execution at once would lose others. A reduction reverses the races that it has seen, and
    // the write that would make the assumption true may come only after the thread has stopped: so
    // the other threads must go on to their ends. The wait accesses nothing, so no step depends on
    // it, and happens-before graphs and costs are those of the steps before it.
    loop {
        point(op(OpKind::Assume, NO_OBJECT, "assume", Site::caller()));
    }
}
