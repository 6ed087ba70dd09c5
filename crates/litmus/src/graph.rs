//! Execution graphs in a form that can be compared: the events of each thread with the
//! stores that they read, and the modification order of each location.

use crate::program::{Program, written};

/// An event: its thread and its number in it. A read-modify-write is one event. `None` is the
/// initial store of a location.
pub type EventId = Option<(usize, usize)>;

/// An event of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Event {
    /// The location; `None` for a fence.
    pub location: Option<usize>,
    /// The store that it reads, if it reads.
    pub reads: Option<EventId>,
    /// Whether it is a store.
    pub writes: bool,
}

/// A graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Graph {
    /// The events of each thread.
    pub threads: Vec<Vec<Event>>,
    /// For each location its stores without the initial one, in modification order; for a mutex its
    /// operations.
    pub orders: Vec<Vec<(usize, usize)>>,
}

impl Graph {
    /// The graph without events.
    pub fn new(program: &Program) -> Graph {
        Graph {
            threads: vec![Vec::new(); program.threads.len()],
            orders: vec![Vec::new(); program.locations.len()],
        }
    }
}

/// The outcome of an execution, in the words of the corpus: the registers that threads write,
/// threads that wait, and the final values of locations with several stores.
pub fn outcome(
    program: &Program,
    graph: &Graph,
    registers: impl Fn(usize, usize) -> u64,
    waits: impl Fn(usize) -> bool,
    last: impl Fn(usize) -> u64,
) -> String {
    let mut words = Vec::new();
    for (thread, code) in program.threads.iter().enumerate() {
        for (register, _) in written(code).iter().enumerate().filter(|(_, written)| **written) {
            words.push(format!("t{thread}.r{register}={}", registers(thread, register)));
        }
        if waits(thread) {
            words.push(format!("t{thread} waits"));
        }
    }
    for (location, order) in graph.orders.iter().enumerate() {
        if !program.mutexes[location] && order.len() > 1 {
            words.push(format!("{}={}", program.locations[location], last(location)));
        }
    }
    words.join(" ")
}
