//! The rest of an execution that was given up.
//!
//! A search gives an execution up when all that could follow is covered. What is on the stacks of its threads has to be dropped before
//! the closure is started again. To unwind a stack takes microseconds; a thread that runs to its end takes a fraction of one.
//! So the execution goes on for a while, as a search would go on that prefers not to preempt: whatever the program lets others see
//! of it, such an execution is within every bound within which its beginning is. What it shows is not looked at. Whoever has not come to
//! an end by then is [unwound](crate::runtime::coroutine::unwind).

use preempt_explore::system::Status;
use preempt_system::{Choice, ThreadId};

use super::Execution;

/// The most steps that it goes on: about as long as it takes to unwind a few stacks.
const LONGEST: usize = 64;

impl Execution<'_> {
    /// Lets the threads run to their ends, as far as that is cheap and nothing goes wrong.
    pub(super) fn finish(&mut self) {
        if self.failed || self.adrift {
            return;
        }
        for _ in 0..LONGEST {
            let runtime = self.runtime();
            // A panic unwinds a stack itself, and may not meet another one.
            let wrong = runtime.failure.is_some() || !runtime.panics.is_empty() || std::thread::panicking();
            if wrong || !runtime.coroutines.has_suspended() {
                break;
            }
            let Some(choice) = self.continuation() else { break };
            if self.perform::<false>(choice).is_err() {
                break;
            }
        }
        // What this needed is for executions to say that are looked at.
        self.runtime().full = None;
    }

    /// The next step of an execution without a further preemption.
    fn continuation(&mut self) -> Option<Choice> {
        let moved = self.moved;
        let runtime = self.runtime();
        let threads = [moved].into_iter().chain(runtime.state.started.without(moved).iter());
        let mut choices = threads.filter_map(|thread: ThreadId| {
            let pending = runtime.state.ask(&runtime.names.objects, thread, &runtime.threads[thread.index()].history);
            let &(alternative, _) = pending.footprints.first().filter(|_| pending.status == Status::Enabled)?;
            Some(Choice { thread, alternative })
        });
        choices.next()
    }
}
