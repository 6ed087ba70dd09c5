//! Random models with weak memory whose threads use an object that blocks, compared with all
//! executions.

use std::fmt::Write as _;

use preempt_litmus::random::Random;

use super::weak::{WeakVerdict, compare_text};

/// A synchronisation object of a random model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// A counting semaphore.
    Semaphore,
    /// An event that stays set.
    ManualEvent,
    /// An event that one wait resets.
    AutoEvent,
    /// A channel with a place for one value.
    Channel,
    /// A channel without a place for a value.
    Rendezvous,
    /// A reader-writer lock.
    RwLock,
    /// A barrier for two threads.
    Barrier,
}

/// All of them.
pub const OBJECTS: [Object; 7] = [
    Object::Semaphore,
    Object::ManualEvent,
    Object::AutoEvent,
    Object::Channel,
    Object::Rendezvous,
    Object::RwLock,
    Object::Barrier,
];

impl Object {
    fn declaration(self) -> &'static str {
        match self {
            Object::Semaphore => "semaphore(1) o;",
            Object::ManualEvent => "event o;",
            Object::AutoEvent => "event(auto) o;",
            Object::Channel => "channel(1, int) o;",
            Object::Rendezvous => "channel(0, int) o;",
            Object::RwLock => "rwlock o;",
            Object::Barrier => "barrier(2) o;",
        }
    }

    /// Statements of the body of a thread. Locks are released where they were acquired.
    fn operations(self) -> &'static [&'static str] {
        match self {
            Object::Semaphore => &["o.acquire();", "seen = o.try_acquire();", "o.release();"],
            Object::ManualEvent => &["o.set();", "o.reset();", "o.wait();"],
            Object::AutoEvent => &["o.set();", "o.wait();"],
            Object::Channel => &["o.send(1);", "seen = o.try_send(2);", "got = o.recv();"],
            Object::Rendezvous => &["o.send(1);", "got = o.recv();"],
            Object::RwLock => &[
                "o.read(); got = load(x, relaxed); o.unlock_read();",
                "o.write(); store(x, 3, relaxed); o.unlock_write();",
                "o.read(); o.unlock_read();",
            ],
            Object::Barrier => &["o.wait();"],
        }
    }
}

const MEMORY: [&str; 4] = [
    "store(x, 1, relaxed);",
    "got = load(x, acquire);",
    "got = fetch_add(x, 2, acq_rel);",
    "store(y, 1, release);",
];

/// The model of a seed: two or three threads with up to three statements each.
pub fn model(object: Object, seed: u64) -> String {
    let mut random = Random(seed);
    let mut text =
        format!("memory weak; atomic var x = 0; atomic var y = 0; {}\n", object.declaration());
    for thread in 0..2 + random.below(2) {
        let _ = write!(text, "thread t{thread} {{ var got = 0; var seen = false; ");
        for _ in 0..1 + random.below(3) {
            let choices = if random.below(3) == 0 { &MEMORY[..] } else { object.operations() };
            let _ = write!(text, "{} ", choices[random.below(choices.len())]);
        }
        text.push_str("}\n");
    }
    text
}

/// Compares the searches of the model of a seed.
pub fn compare_objects(object: Object, seed: u64) -> WeakVerdict {
    compare_text(&model(object, seed))
}
