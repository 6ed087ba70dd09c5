//! Starts, ends and panics of an execution's threads.

use std::any::Any;
use std::panic::Location as Site;

use preempt_replay::{Divergence, NO_OBJECT, Op, OpKind};
use preempt_system::{ThreadId, ThreadSet};

use super::coroutine::Job;
use super::restart::RestartReason;
use super::{Panicked, Runtime, hook, op};

impl Runtime {
    /// Starts a thread in a free slot; without one, the search starts over with more slots.
    pub(crate) fn spawn(&mut self, name: Option<String>, job: Job) -> Option<usize> {
        let parent = self.current;
        // The name outlives the memory of the execution.
        let name = name.map(|name| name.as_str().to_owned());
        let nth = self.threads[parent].children;
        let most = self.options.max_threads;
        let child = if self.order.len() < most {
            self.recording.names_mut().child(parent, nth)
        } else {
            Err(most + 1)
        };
        match child {
            Ok(slot) => {
                self.threads[parent].children += 1;
                self.threads[slot].joined = self.threads[parent].joined;
                if self.threads[slot].name != name
                    || self.recording.histories()[slot].ops().is_empty()
                {
                    self.threads[slot].name = name;
                    self.show_name(slot);
                }
                self.spawned_jobs.push((slot, job));
                self.order.push(slot);
                self.watch_weak_orderings();
                if self.requirements.races {
                    self.races.clocks.fork(ThreadId::new(parent), ThreadId::new(slot));
                }
                Some(slot)
            }
            Err(needed) => {
                self.restart = Some(RestartReason::Slots(needed));
                None
            }
        }
    }

    /// Whether a thread has ended.
    pub(crate) fn has_ended(&self, slot: usize) -> bool {
        self.recording.has_ended(ThreadId::new(slot))
    }

    /// Records that the code of the running thread has returned.
    pub(crate) fn ended(&mut self, slot: usize) {
        self.current = slot;
        let thread = ThreadId::new(slot);
        if slot == 0 {
            // No thread can join the first one: its end is part of its last step.
            if let Some(recorded) = self.recording.end(thread) {
                let found = Op::new(OpKind::Finish, NO_OBJECT, "end", recorded.site);
                let at = self.recording.state().count(slot);
                self.differs(&Divergence { thread, at, recorded, found });
            }
            return;
        }
        self.arrive(&mut op(OpKind::Finish, slot as u32, "end", Site::caller()));
    }

    /// Records a panic that escaped from the code of a thread.
    pub(crate) fn panicked(&mut self, payload: &(dyn Any + Send)) {
        let thread = self.current;
        let said = self.threads[thread].said.pop();
        let now = self.recording.state().counts()[thread];
        let (message, site, done) = said.unwrap_or_else(|| (hook::text(payload), None, now));
        self.verdict.panicking.remove(ThreadId::new(thread));
        self.verdict.panics.push(Panicked { thread, message, site, done, seen: false });
    }

    /// Whether the running thread is unwinding.
    ///
    /// All threads share the panic count of their OS thread, so the panicking threads are recorded
    /// separately: by the hook, and here for `resume_unwind`, which calls no hook. Two cases stay
    /// undetected, both while *another* thread is suspended in a destructor that runs because of a
    /// panic: that the running thread has caught its own, and that it has called `resume_unwind`.
    pub(crate) fn is_panicking(&mut self) -> bool {
        self.note_unwinding();
        self.verdict.panicking.contains(ThreadId::new(self.current))
    }

    /// Updates the set of threads that are unwinding.
    #[inline]
    pub(super) fn note_unwinding(&mut self) {
        let unwinds = std::thread::panicking();
        if unwinds == self.verdict.panicking.is_empty() {
            self.verdict.panicking = if unwinds {
                ThreadSet::EMPTY.with(ThreadId::new(self.current))
            } else {
                // The program has caught the panic.
                ThreadSet::EMPTY
            };
        }
    }
}
