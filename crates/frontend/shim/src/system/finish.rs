//! The rest of an execution that the search abandons.
//!
//! A search abandons an execution when all that could follow is covered, when a limit or an error
//! ends it, and when it has to start over with more room. The closure is started again then, and
//! what is on the stacks of its threads must be gone before. It must not be *unwound*: user code
//! would run destructors in states that the program can never reach, in which `unreachable!()`
//! fires and a `catch_unwind` of the program catches the unwinding.
//!
//! So the threads run to their ends instead, by the rules of the program, as a search would let
//! them that prefers not to preempt: whatever the program shows to others meanwhile, such an
//! execution is within every bound within which its beginning is. The search does not look at it.
//! What cannot end (threads that wait for each other, that spin, that wait for a slot)
//! loses its stack without running anything: as in a real deadlock, what these threads own is never
//! dropped. Their memory stays allocated: parts of it may have been handed to code outside.

use preempt_replay::Mode;
use preempt_system::{Choice, Status, ThreadId};

use super::{Execution, Phase};
use crate::runtime::coroutine;
use crate::runtime::restart::RestartReason;

/// The least number of steps for which an abandoned execution goes on. Where executions do not end
/// within the number of steps that is tried, that number is halved until it is this one: a test
/// that never ends costs little more than what the search looks at.
const LEAST: usize = 64;

/// The number of steps in a row for which only spinning threads step.
const SPINS: usize = 64;

impl Execution<'_> {
    /// Abandons the present execution: lets its threads run to their ends and drops the stacks of
    /// those that cannot.
    pub(super) fn abandon(&mut self) {
        self.finish();
        let complete = !self.read().coroutines.has_suspended();
        coroutine::discard(self.runtime);
        let learned = self.runtime().arena.end(complete);
        if !learned.is_empty() {
            self.runtime().learned = true;
            self.program.learn(learned);
        }
        // What this needed is for executions to say that the search looks at.
        let runtime = self.runtime();
        (runtime.restart, runtime.verdict.failure) = (None, None);
    }

    fn finish(&mut self) {
        let runtime = self.runtime();
        runtime.notes.step = None;
        let differs = runtime.verdict.is_nondeterministic();
        // The checker itself is unwinding: no time to run anything.
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

    /// Lets threads go on until all have ended, or cannot.
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
                // It took seconds to find that out; the next one that blocks would take as long.
                return;
            }
        }
        if self.read().coroutines.has_suspended() {
            self.rest = (self.rest / 2).max(LEAST);
        } else {
            self.end_statics();
        }
    }

    /// All threads have ended: drops what outlives them.
    fn end_statics(&mut self) {
        if !self.read().statics.is_empty() {
            coroutine::end_statics(self.runtime);
        }
    }

    /// Whether a thread waits for a slot in which to start another one: it cannot go on.
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
