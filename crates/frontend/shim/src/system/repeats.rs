//! Livelocks: whether an execution in which every thread that could move is held back repeats itself.
//!
//! Threads that are all held back get their turns one after the other. If the execution comes back to a state that it was in, and every
//! thread that is held back has moved meanwhile, it can go on like that forever, and every thread gets its turns: a livelock. The state is compared as a
//! whole, by a fingerprint: the registers and stacks of the threads, the states of the objects, the memory that the execution has allocated, and, for
//! what lies in statics, the values that the threads' last operations gave. So a loop that counts its rounds, wherever it does that, never seems to repeat
//! itself. Nothing less is a livelock: an execution that is not seen to repeat itself goes on until it ends or reaches the limit of steps.

use std::collections::HashMap;

use preempt_explore::system::Status;
use preempt_system::fingerprint::Mixer;
use preempt_system::{Fingerprint, ThreadId, ThreadSet};

use super::Execution;
use crate::runtime::Runtime;

/// How many results of operations count for each thread.
const RESULTS: usize = 24;

/// The states of an execution since all its threads were held back, each with how many operations the threads had done.
#[derive(Default)]
pub(super) struct Visited {
    states: HashMap<Fingerprint, Vec<u32>>,
    /// The number of steps after which the execution is known to repeat itself.
    pub(super) repeats: Option<usize>,
}

impl Execution<'_> {
    /// A thread has moved that is held back again. If all others are too, compares the state with those before.
    #[cold]
    pub(super) fn compare_states(&mut self) {
        // Where a thread was followed ahead, the coroutines are not where the state says.
        let held = if self.live { self.held() } else { ThreadSet::EMPTY };
        let runtime = self.runtime();
        if held.is_empty() {
            return;
        }
        if !runtime.watches {
            // From now on threads note their registers when they are suspended.
            runtime.watches = true;
            return;
        }
        let Some(state) = self.fingerprint(held) else { return };
        let counts: Vec<u32> = self.read().state.counts.to_vec();
        let (len, counts_now) = (self.path.len(), counts.clone());
        let before = self.visited.states.entry(state).or_insert(counts);
        if held.iter().all(|thread| before[thread.index()] < counts_now[thread.index()]) {
            self.visited.repeats = Some(len);
        }
    }

    /// The threads that are held back, if nobody else can move.
    fn held(&self) -> ThreadSet {
        let Runtime { state, names, threads, .. } = self.read();
        let mut held = ThreadSet::EMPTY;
        for thread in state.started.iter() {
            match state.ask(&names.objects, thread, &threads[thread.index()].history).status {
                Status::Held => held.insert(thread),
                Status::Enabled => return ThreadSet::EMPTY,
                _ => {}
            }
        }
        held
    }

    /// The state of the execution, as far as the threads in `held` can tell. `None` if they have not moved since states are compared.
    fn fingerprint(&self, held: ThreadSet) -> Option<Fingerprint> {
        let Runtime { state, threads, coroutines, arena, .. } = self.read();
        let mut mixer = Mixer::new();
        mixer.absorb(self.moved.index() as u64);
        mixer.absorb(held.bits());
        state.absorb(&mut mixer);
        mixer.absorb(arena.fingerprint());
        for thread in held.iter().map(ThreadId::index) {
            let history = &threads[thread].history;
            history.outcomes.iter().rev().take(RESULTS).for_each(|outcome| mixer.absorb(outcome.value));
            if !coroutines.absorb(thread, &mut mixer) {
                return None;
            }
        }
        Some(mixer.finish())
    }
}
