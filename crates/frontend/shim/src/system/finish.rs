//! Finishes executions that the search abandons.
//!
//! A search abandons an execution when everything that could follow is covered, when a limit or an
//! error ends it, and when it has to start over with more room. The closure is then started again,
//! and before that the stacks of its threads must be released. It must not be *unwound*: user code
//! would run destructors in states that the program can never reach, in which `unreachable!()`
//! fires and a `catch_unwind` of the program catches the unwinding.
//!
//! Instead the threads run to their ends by the rules of the program, without further preemptions:
//! so whatever the program does meanwhile is also done by an execution within the same bound. The
//! search ignores the results. Threads that cannot end (because they wait for each other, spin, or
//! wait for a slot) lose their stacks without running anything: as in a real deadlock, what these
//! threads own is never dropped. Their memory is released when nothing refers to it any more: parts
//! of it may have been handed to code outside (`runtime/arena/reclaim.rs`).

use preempt_replay::Mode;
use preempt_system::{Choice, Status, ThreadId};

use super::{Execution, Phase};
use crate::runtime::coroutine;
use crate::runtime::restart::RestartReason;

/// The minimum number of steps for which an abandoned execution is continued. The number is halved,
/// down to this minimum, whenever an execution does not end within it: so a test that never ends
/// costs little more than its search.
const LEAST: usize = 64;

/// The number of steps in a row for which only spinning threads step.
const SPINS: usize = 64;

impl Execution<'_> {
    /// Abandons the present execution: lets its threads run to their ends and drops the stacks of
    /// those that cannot.
    pub(super) fn abandon(&mut self) {
        // Before the rest runs, which may wait for the thread that was taken out, and never end.
        self.report_stuck();
        self.finish();
        self.report_stuck();
        let complete = !self.read().coroutines.has_suspended();
        coroutine::discard(self.runtime);
        let learned = self.runtime().arena.end(complete);
        if !learned.is_empty() {
            self.runtime().addresses_changed = true;
            self.program.learn(learned);
        }
        // Needs that arose here are ignored: they are reported by executions of the search.
        let runtime = self.runtime();
        (runtime.restart, runtime.verdict.failure) = (None, None);
    }

    /// Reports that a thread was taken out of code that blocked it, if one was.
    pub(super) fn report_stuck(&mut self) {
        if let Some(stuck) = self.runtime().stuck.1.take() {
            self.program.report_stuck(&stuck);
        }
    }

    fn finish(&mut self) {
        let runtime = self.runtime();
        runtime.notes.step = None;
        let differs = runtime.verdict.is_nondeterministic();
        // The checker itself is unwinding, so no user code may run.
        let unwinds = std::thread::panicking() && runtime.verdict.panicking.is_empty();
        let is_lost = matches!(self.phase, Phase::Adrift | Phase::Broken);
        if is_lost || differs || unwinds || self.lacks_slots() {
            return;
        }
        self.runtime().recording.set_mode(Mode::Record);
        if self.read().coroutines.has_suspended() {
            self.go_on();
        } else {
            self.end_statics();
        }
    }

    /// Lets threads run until all have ended, or none can continue.
    fn go_on(&mut self) {
        let counts = self.read().recording.state().counts();
        let taken: usize = counts.iter().map(|&count| count as usize).sum();
        let most = self.rest.min(self.read().options.max_steps.saturating_sub(taken));
        let mut spins = 0;
        for _ in 0..most {
            let runtime = self.runtime();
            if !runtime.coroutines.has_suspended() {
                break;
            }
            (runtime.restart, runtime.verdict.failure) = (None, None);
            let Some((choice, status)) = self.continuation() else { return };
            spins = if status == Status::Spinning { spins + 1 } else { 0 };
            let stuck = self.read().stuck.0;
            if spins > SPINS || self.perform::<false>(choice).is_err() && self.lacks_slots() {
                return;
            }
            if self.read().stuck.0 != stuck {
                // Detecting this took seconds, and the next thread that blocks would take as long.
                return;
            }
        }
        if self.read().coroutines.has_suspended() {
            self.rest = (self.rest / 2).max(LEAST);
        } else {
            self.end_statics();
        }
    }

    /// All threads have ended: drops statics and other values that outlive them.
    fn end_statics(&mut self) {
        if !self.read().statics.is_empty() {
            coroutine::end_statics(self.runtime);
        }
    }

    /// Whether a thread waits for a slot in which to start another one; it cannot continue.
    fn lacks_slots(&self) -> bool {
        matches!(self.read().restart, Some(RestartReason::Slots(_)))
    }

    /// The next step of an execution without a further preemption: of the thread that moved last if
    /// it can, else of the first that can, else of the next that only spins.
    fn continuation(&mut self) -> Option<(Choice, Status)> {
        let moved = self.moved;
        let recording = &self.read().recording;
        let (history, next) = (recording.history(moved), recording.state().count(moved.index()));
        if next < history.ops().len() && history.is_always_enabled_after(next) {
            return Some((Choice { thread: moved, alternative: 0 }, Status::Enabled));
        }
        let started = recording.state().started();
        let choice = |thread: ThreadId, status: Status| {
            let pending = recording.ask(thread);
            let &(alternative, _) =
                pending.footprints.first().filter(|_| pending.status == status)?;
            Some((Choice { thread, alternative }, status))
        };
        let others = || started.without(moved).iter();
        let enabled =
            [moved].into_iter().chain(others()).find_map(|thread| choice(thread, Status::Enabled));
        enabled.or_else(|| {
            let later = others().filter(|thread| thread.index() > moved.index());
            let earlier = started.iter().filter(|thread| thread.index() <= moved.index());
            later.chain(earlier).find_map(|thread| choice(thread, Status::Spinning))
        })
    }
}
