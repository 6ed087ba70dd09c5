//! Failures that are detected at the end of a step.

use preempt_system::{Failure, FailureKind, ThreadId, ThreadSet};

use super::identity::COVERED;
use super::{Panicked, Runtime};

/// The failures of an execution so far.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// The first failure of the step.
    pub(crate) failure: Option<Box<Failure>>,
    /// The panics that escaped from the code of threads.
    pub(crate) panics: Vec<Panicked>,
    /// The threads that are unwinding.
    pub(crate) panicking: ThreadSet,
    /// Whether a thread has used memory that was freed.
    pub(crate) used_after_free: bool,
}

impl Verdict {
    /// Whether the test has turned out not to be deterministic.
    pub(crate) fn is_nondeterministic(&self) -> bool {
        self.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Nondeterminism)
    }

    /// An execution begins.
    pub(super) fn clear(&mut self) {
        (self.failure, self.used_after_free) = (None, false);
        self.panics.clear();
        self.panicking = ThreadSet::EMPTY;
    }
}

impl Runtime {
    /// Checks panics that have escaped from the code of a thread.
    ///
    /// A panic that the test does not inspect is an error. Whether it inspects the result of `join`
    /// cannot be observed: `let _ = t.join()` and `t.join().is_err()` drop the same payload at the
    /// same moment, and the payload is the program's own value. So the rule is that of loom and
    /// shuttle: every panic that a thread does not catch itself fails the check, at once. A test
    /// that wants panics as results of `join` says so
    /// ([`Check::allow_panics`](crate::Check::allow_panics)); then one counts as soon as its thread
    /// cannot be joined any more.
    pub(crate) fn judge_panics(&mut self) {
        let counts = |panic: &Panicked| {
            let joinable = self.options.allow_panics && !self.threads[panic.thread].detached;
            !panic.seen && (panic.thread == 0 || !joinable)
        };
        if self.verdict.panics.iter().any(counts) || self.is_over() {
            let failure = self.panic_failure();
            self.verdict.failure.get_or_insert(Box::new(failure));
            self.verdict.panics.iter_mut().for_each(|panic| panic.seen = true);
        }
    }

    /// Whether all threads have ended.
    #[inline]
    pub(crate) fn has_all_ended(&self) -> bool {
        let recording = &self.recording;
        let ended = |thread: ThreadId| recording.next_op(thread).is_none();
        ended(ThreadId::new(self.current)) && recording.state().started().iter().all(ended)
    }

    /// Reports objects of the execution that outlive it.
    pub(crate) fn judge_leaks(&mut self) {
        let mut left = self.met.shared.iter().filter(|shared| shared.noun != COVERED);
        let Some(first) = left.next() else { return };
        let (noun, site, others) = (first.noun, first.site, left.count());
        let mut message =
            format!("the {noun} made at {site} is still there when all threads have ended");
        if others > 0 {
            message += &format!(", and {others} more");
        }
        self.fail(FailureKind::Leak, message, Some(site));
    }

    /// Reports an execution that has not ended within the step limit.
    pub(crate) fn judge_length(&mut self) {
        if self.is_over() || self.recording.is_discarded() {
            return;
        }
        let message = format!(
            "step limit reached: an execution has not ended after {} steps. It may never end, or \
             need more: `Check::max_steps` or PREEMPT_MAX_STEPS allows more",
            self.options.max_steps
        );
        self.fail(FailureKind::StepLimit, message, None);
    }

    /// Whether no thread can step any more.
    fn is_over(&self) -> bool {
        !self.recording.state().started().iter().any(|thread| self.recording.can_step(thread))
    }

    /// All panics of the execution, the first one first: later ones are often its consequences.
    fn panic_failure(&self) -> Failure {
        let describe = |panic: &Panicked| match &panic.site {
            Some(site) => {
                format!("{} panicked at {site}: {}", self.thread_name(panic.thread), panic.message)
            }
            None => format!("{} panicked: {}", self.thread_name(panic.thread), panic.message),
        };
        let message = self.verdict.panics.iter().map(describe).collect::<Vec<_>>().join("; then ");
        let site = self.verdict.panics.first().and_then(|panic| panic.site.clone());
        Failure { kind: FailureKind::Panic, message, site }
    }
}
