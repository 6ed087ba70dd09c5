//! The state of an object as text, the same for all front ends.

use super::{Cells, Kind};
use crate::thread::{ThreadId, ThreadSet};

impl Kind {
    /// The state of the object for a report: `free`, `held by phil(1)`, `[3, 4]`. `name` formats
    /// threads, `payload` formats the values in a channel or a cell.
    pub fn show(
        self,
        cells: &(impl Cells + ?Sized),
        name: impl Fn(ThreadId) -> String,
        payload: impl Fn(i64) -> String,
    ) -> String {
        let field = |field: usize| cells.get(field);
        // Owner fields contain the slot + 1.
        let owner = |value: u64| name(ThreadId::new(value as usize - 1));
        let threads =
            |bits: u64| ThreadSet::from_bits(bits).iter().map(&name).collect::<Vec<_>>().join(", ");
        match self {
            Kind::Mutex if field(0) == 0 => "free".to_owned(),
            Kind::Mutex => format!("held by {}", owner(field(0))),
            Kind::RwLock if field(0) != 0 => format!("written by {}", owner(field(0))),
            Kind::RwLock if field(1) != 0 => format!("read by {}", threads(field(1))),
            Kind::RwLock => "free".to_owned(),
            Kind::Condvar | Kind::Barrier { .. } if field(0) == 0 => "no waiters".to_owned(),
            Kind::Condvar | Kind::Barrier { .. } => {
                let verb = if field(0).count_ones() == 1 { "waits" } else { "wait" };
                format!("{} {verb}", threads(field(0)))
            }
            Kind::Event { .. } => if field(0) == 0 { "not set" } else { "set" }.to_owned(),
            Kind::Channel { capacity: 0 } => match field(0) {
                0 => "empty".to_owned(),
                1 => format!("offers {}", payload(field(1) as i64)),
                _ => "taken".to_owned(),
            },
            Kind::Channel { .. } => {
                let values = (1..=field(0) as usize).map(|at| payload(field(at) as i64));
                format!("[{}]", values.collect::<Vec<_>>().join(", "))
            }
            Kind::Thread => ["not started", "running", "ended"][field(0) as usize].to_owned(),
            Kind::Parker => if field(0) == 0 { "no token" } else { "token" }.to_owned(),
            Kind::Semaphore { .. } => field(0).to_string(),
            Kind::Cell { .. } => payload(field(0) as i64),
        }
    }
}
