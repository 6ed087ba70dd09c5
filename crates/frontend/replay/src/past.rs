//! Happens-before of the recorded operations: the past of a thread as a name, and the steps that do
//! not depend on a step.

use std::hash::Hash;

use preempt_system::fingerprint::Mixer;
use preempt_system::{Choice, Fingerprint, ThreadId};

use crate::recording::Recording;

impl<P: Copy + Eq + Hash> Recording<P> {
    /// The name of everything that happens before the present of `thread`, after the steps of
    /// `path`.
    ///
    /// The variables of a thread follow from its own operations and from what happened before them:
    /// the operations of others that wrote what it then used, and so on. So two executions in which
    /// a thread has the same past leave it at the same place with the same variables, whatever else
    /// happened in them, and what was computed about it once need not be computed again.
    pub fn past(&self, thread: ThreadId, path: &[Choice]) -> Fingerprint {
        let mut pasts: Vec<Past> =
            (0..self.histories().len()).map(|slot| Past { name: origin(slot), steps: 0 }).collect();
        // For each object the past of its last write.
        let mut objects: Vec<Fingerprint> = Vec::new();
        for choice in path {
            let slot = choice.thread.index();
            let Past { name, steps } = pasts[slot];
            let history = self.history(choice.thread);
            let op = history.ops()[steps].performed(choice.alternative);
            let spawned = history.outcomes()[steps].spawned;
            let mut mixer = Mixer::new();
            absorb(&mut mixer, name);
            mixer.absorb(choice.alternative.into());
            for (_, object) in op.objects() {
                absorb(&mut mixer, objects.get(object as usize).copied().unwrap_or_default());
            }
            let name = mixer.finish();
            pasts[slot] = Past { name, steps: steps + 1 };
            for child in spawned.iter() {
                pasts[child.index()].name = name ^ origin(child.index());
            }
            for (_, object) in op.objects().filter(|_| !op.is_load()) {
                let at = object as usize;
                if objects.len() <= at {
                    objects.resize(at + 1, Fingerprint::default());
                }
                objects[at] = name;
            }
        }
        pasts[thread.index()].name
    }

    /// The steps of `path` that do not depend on the operation of `thread` after its first `count`
    /// ones; `None` if the last step of `path` does.
    pub fn without(&self, path: &[Choice], thread: ThreadId, count: usize) -> Option<Vec<Choice>> {
        let slots = self.histories().len();
        let (mut steps, mut after) = (vec![0; slots], vec![false; slots]);
        // The objects that were used after the operation, and those of them that were changed.
        let (mut used, mut changed): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut kept = Vec::new();
        for &choice in path {
            let slot = choice.thread.index();
            let history = self.history(choice.thread);
            let at = steps[slot];
            let op = history.ops().get(at)?.performed(choice.alternative);
            steps[slot] += 1;
            let conflicts = |(_, object): (usize, u32)| {
                changed.contains(&object) || !op.is_load() && used.contains(&object)
            };
            let is_the_operation = choice.thread == thread && at >= count;
            if !is_the_operation && !after[slot] && !op.objects().any(conflicts) {
                kept.push(choice);
                continue;
            }
            after[slot] = true;
            for (_, object) in op.objects() {
                used.push(object);
                if !op.is_load() {
                    changed.push(object);
                }
            }
            if let Some(outcome) = history.outcomes().get(at) {
                outcome.spawned.iter().for_each(|child| after[child.index()] = true);
            }
        }
        let last = path.last()?;
        (kept.last() == Some(last) && !after[last.thread.index()]).then_some(kept)
    }

    /// Whether other threads have changed an object that `thread` used in its last `round`
    /// operations, since then, by [idle](crate::spin) operations, which do not release it.
    pub fn is_changed_idly(&self, thread: ThreadId, round: usize, path: &[Choice]) -> bool {
        let mut counts: Vec<usize> =
            self.state().counts().iter().map(|&count| count as usize).collect();
        let last = counts[thread.index()];
        let history = self.history(thread);
        let mut open: Vec<u32> = history.ops()[last - round..last]
            .iter()
            .zip(&history.outcomes()[last - round..last])
            .flat_map(|(op, outcome)| op.performed(outcome.alternative).objects())
            .map(|(_, object)| object)
            .collect();
        for choice in path.iter().rev() {
            let slot = choice.thread.index();
            counts[slot] -= 1;
            let history = self.history(choice.thread);
            let outcome = &history.outcomes()[counts[slot]];
            let op = history.ops()[counts[slot]].performed(choice.alternative);
            if choice.thread == thread {
                open.retain(|&object| op.objects().all(|(_, used)| used != object));
                if open.is_empty() {
                    return false;
                }
            } else if outcome.idle
                && !op.is_load()
                && op.objects().any(|(_, object)| open.contains(&object))
            {
                return true;
            }
        }
        false
    }
}

/// The progress of a thread.
#[derive(Clone, Copy)]
struct Past {
    name: Fingerprint,
    steps: usize,
}

/// The past of a thread before its first operation, if no other thread started it.
fn origin(slot: usize) -> Fingerprint {
    let mut mixer = Mixer::new();
    mixer.absorb(slot as u64);
    mixer.finish()
}

fn absorb(mixer: &mut Mixer, name: Fingerprint) {
    mixer.absorb(name.0 as u64);
    mixer.absorb((name.0 >> 64) as u64);
}
