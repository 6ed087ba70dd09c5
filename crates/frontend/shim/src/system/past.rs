//! The past of a thread, by name: all that it can know.
//!
//! What a thread has in its variables follows from its own operations and from what happened before
//! them: the operations of others that wrote what it then used, and so on. So two executions in
//! which a thread has the same past leave it in the same place with the same variables, whatever
//! else happened in them, and what was once found out about it there need not be found out again.

use preempt_system::fingerprint::Mixer;
use preempt_system::{Choice, Fingerprint, ThreadId};

use crate::runtime::Thread;
use crate::runtime::op::Act;
use crate::runtime::spin::objects as objects_of;

/// The name of the past of `thread` after the steps of `path`, which `threads` have taken.
pub(super) fn of(thread: ThreadId, path: &[Choice], threads: &[Thread]) -> Fingerprint {
    let mut pasts: Vec<Past> =
        (0..threads.len()).map(|slot| Past { name: origin(slot), steps: 0 }).collect();
    // What came before the last write of each object.
    let mut objects: Vec<Fingerprint> = Vec::new();
    for choice in path {
        let slot = choice.thread.index();
        let Past { name, steps } = pasts[slot];
        let history = &threads[slot].history;
        let (op, spawned) = (&history.ops[steps], history.outcomes[steps].spawned);
        let mut mixer = Mixer::new();
        absorb(&mut mixer, name);
        mixer.absorb(choice.alternative.into());
        for (_, object) in objects_of(op) {
            absorb(&mut mixer, objects.get(object as usize).copied().unwrap_or_default());
        }
        let name = mixer.finish();
        pasts[slot] = Past { name, steps: steps + 1 };
        spawned.iter().for_each(|child| pasts[child.index()].name = name ^ origin(child.index()));
        for (_, object) in objects_of(op).filter(|_| op.act != Act::Load) {
            let at = object as usize;
            if objects.len() <= at {
                objects.resize(at + 1, Fingerprint::default());
            }
            objects[at] = name;
        }
    }
    pasts[thread.index()].name
}

/// How far a thread has come.
#[derive(Clone, Copy)]
struct Past {
    name: Fingerprint,
    steps: usize,
}

/// The past of a thread that was started by nobody.
fn origin(slot: usize) -> Fingerprint {
    let mut mixer = Mixer::new();
    mixer.absorb(slot as u64);
    mixer.finish()
}

fn absorb(mixer: &mut Mixer, name: Fingerprint) {
    mixer.absorb(name.0 as u64);
    mixer.absorb((name.0 >> 64) as u64);
}
