//! shuttle's schedulers: each is a strategy for a [`Runner`](crate::Runner).

use std::path::Path;

use preempt_explore::Order;

use crate::check::Check;

/// A search strategy. Unlike shuttle's, this trait cannot be implemented by users: a strategy that
/// chooses steps one by one cannot skip equivalent executions.
pub trait Scheduler: sealed::Sealed {}

pub(crate) mod sealed {
    /// The settings of a check.
    pub trait Sealed {
        #[doc(hidden)]
        fn check(&self) -> super::Checking;
    }
}

/// The check that is equivalent to a scheduler.
#[doc(hidden)]
#[derive(Debug)]
pub struct Checking(pub(crate) Check);

macro_rules! scheduler {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name(Check);

        impl sealed::Sealed for $name {
            fn check(&self) -> Checking {
                Checking(self.0.clone())
            }
        }

        impl Scheduler for $name {}
    };
}

scheduler!(
    /// Random schedules.
    RandomScheduler
);
scheduler!(
    /// Schedules with random priorities.
    PctScheduler
);
scheduler!(
    /// Random schedules; where nothing blocks, all interleavings are equally likely.
    UrwRandomScheduler
);
scheduler!(
    /// All schedules, every happens-before graph once.
    DfsScheduler
);
scheduler!(
    /// The schedule of a token.
    ReplayScheduler
);

impl RandomScheduler {
    /// Draws `iterations` schedules.
    pub fn new(iterations: usize) -> RandomScheduler {
        RandomScheduler::new_from_seed(0, iterations)
    }

    /// Draws `iterations` schedules, with a seed.
    pub fn new_from_seed(seed: u64, iterations: usize) -> RandomScheduler {
        RandomScheduler(Check::new().order(Order::Random).seed(seed).runs(iterations as u64))
    }
}

impl PctScheduler {
    /// Draws `iterations` schedules, in which priorities change `depth` - 1 times.
    pub fn new(depth: usize, iterations: usize) -> PctScheduler {
        PctScheduler::new_from_seed(0, depth, iterations)
    }

    /// Draws `iterations` schedules, with a seed.
    pub fn new_from_seed(seed: u64, depth: usize, iterations: usize) -> PctScheduler {
        let depth = u32::try_from(depth).unwrap_or(u32::MAX);
        PctScheduler(Check::new().order(Order::Pct { depth }).seed(seed).runs(iterations as u64))
    }
}

impl UrwRandomScheduler {
    /// Draws `iterations` schedules.
    pub fn new(iterations: usize) -> UrwRandomScheduler {
        UrwRandomScheduler::new_from_seed(0, iterations)
    }

    /// Draws `iterations` schedules, with a seed.
    pub fn new_from_seed(seed: u64, iterations: usize) -> UrwRandomScheduler {
        UrwRandomScheduler(Check::new().order(Order::Urw).seed(seed).runs(iterations as u64))
    }
}

/// `allow_random_data` has no effect: a test may always draw [random numbers](crate::rand), since
/// they are explored or the same in every execution.
type AllowRandomData = bool;

impl DfsScheduler {
    /// Explores all schedules, or at most `max_iterations`.
    pub fn new(max_iterations: Option<usize>, _allow_random_data: AllowRandomData) -> DfsScheduler {
        let check = Check::new().unbounded();
        DfsScheduler(match max_iterations {
            Some(most) => check.executions(most as u64).allow_incomplete(),
            None => check,
        })
    }
}

impl ReplayScheduler {
    /// Replays the schedule of a token.
    pub fn new_from_encoded(token: &str) -> ReplayScheduler {
        ReplayScheduler(Check::new().replay(token))
    }

    /// Replays the schedule of the token in a file.
    #[track_caller]
    pub fn new_from_file(path: impl AsRef<Path>) -> ReplayScheduler {
        ReplayScheduler::new_from_encoded(&super::read(path.as_ref()))
    }
}
