//! The state of an object in words.

use super::{Cells, Kind};
use crate::thread::{ThreadId, ThreadSet};

/// How those are called that the state of an object speaks of.
pub struct Called<'a> {
    /// The name of a thread.
    pub thread: &'a dyn Fn(ThreadId) -> String,
    /// A value in a channel or a cell.
    pub value: &'a dyn Fn(i64) -> String,
}

impl Kind {
    /// What a person is told about an object in this state: `free`, `held by left`, `[1, 2]`.
    pub fn show<C: Cells + ?Sized>(self, cells: &C, called: &Called<'_>) -> String {
        let first = cells.get(0);
        let owner = |field: u64| (called.thread)(ThreadId::new(field as usize - 1));
        let threads = |bits: u64| {
            let names = ThreadSet::from_bits(bits).iter().map(called.thread);
            names.collect::<Vec<_>>().join(", ")
        };
        let value = |field: usize| (called.value)(cells.get(field) as i64);
        match self {
            Kind::Mutex if first == 0 => "free".to_owned(),
            Kind::Mutex => format!("held by {}", owner(first)),
            Kind::RwLock if first != 0 => format!("written by {}", owner(first)),
            Kind::RwLock if cells.get(1) != 0 => format!("read by {}", threads(cells.get(1))),
            Kind::RwLock => "free".to_owned(),
            Kind::Condvar | Kind::Barrier { .. } if first == 0 => "nobody waits".to_owned(),
            Kind::Condvar | Kind::Barrier { .. } => format!("{} waits", threads(first)),
            Kind::Event { .. } => if first == 0 { "not set" } else { "set" }.to_owned(),
            Kind::Channel { capacity: 0 } => match first {
                0 => "empty".to_owned(),
                1 => format!("offers {}", value(1)),
                _ => "taken".to_owned(),
            },
            Kind::Channel { .. } => {
                let values = (1..=first as usize).map(value);
                format!("[{}]", values.collect::<Vec<_>>().join(", "))
            }
            Kind::Parker => if first == 0 { "no token" } else { "a token" }.to_owned(),
            Kind::Thread | Kind::Semaphore { .. } | Kind::Cell { .. } => value(0),
        }
    }
}
