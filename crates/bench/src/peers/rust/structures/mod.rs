//! Small data structures with two operations, compiled with Preempt's mirrors and with those of the
//! version of loom that the crate lincheck uses.

/// A call of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The operation with an argument: `push`, `add`.
    First(u32),
    /// The operation without one: `pop`, `get`.
    Second,
}

/// A sequential specification.
pub trait Model: Default + Send + Sync + 'static {
    /// The names of the two operations.
    const NAMES: [&str; 2];

    /// The result of a call.
    fn call(&mut self, op: Op) -> Option<u32>;
}

/// A counter: `add` returns the old value.
#[derive(Default)]
pub struct Counter(u32);

impl Model for Counter {
    const NAMES: [&str; 2] = ["add", "get"];

    fn call(&mut self, op: Op) -> Option<u32> {
        let old = self.0;
        if let Op::First(value) = op {
            self.0 += value;
        }
        Some(old)
    }
}

/// A queue of at most `CAPACITY` elements: `push` returns its element if the queue is full.
#[derive(Default)]
pub struct Queue<const CAPACITY: usize>(std::collections::VecDeque<u32>);

impl<const CAPACITY: usize> Model for Queue<CAPACITY> {
    const NAMES: [&str; 2] = ["push", "pop"];

    fn call(&mut self, op: Op) -> Option<u32> {
        match op {
            Op::First(value) if self.0.len() == CAPACITY => Some(value),
            Op::First(value) => {
                self.0.push_back(value);
                None
            }
            Op::Second => self.0.pop_front(),
        }
    }
}

/// A concurrent structure.
pub trait Structure: Default + Send + Sync + 'static {
    /// Its specification.
    type Model: Model;

    /// The result of a call.
    fn call(&self, op: Op) -> Option<u32>;
}

/// The structures with the mirrors of one tool.
macro_rules! structures {
    ($(#[$doc:meta])* $of:ident, $tool:ident) => {
        $(#[$doc])*
        // The structures are compiled once for each tool, which is their purpose.
        #[path = "."]
        #[allow(clippy::duplicate_mod)]
        pub mod $of {
            pub mod objects;

            use ::$tool::sync;
        }
    };
}

structures!(
    /// The structures with Preempt's mirrors.
    of_preempt, preempt
);
#[cfg(feature = "peers")]
structures!(
    /// The structures with loom's mirrors.
    of_lincheck, loom_of_lincheck
);
