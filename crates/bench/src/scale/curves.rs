//! The measured programs: programs of the corpus whose size is a constant, as curves in five
//! dimensions.

use std::fmt;

use crate::measure::Search;
use crate::papers::Extent;

/// The dimension in which cost grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dimension {
    /// Threads of the program.
    Threads,
    /// Rounds of the loops of its threads.
    Steps,
    /// Preemptions.
    Bound,
    /// States, of one program as it becomes larger.
    States,
    /// Cores, by one worker each.
    Cores,
}

/// All dimensions.
pub const DIMENSIONS: [Dimension; 5] =
    [Dimension::Threads, Dimension::Steps, Dimension::Bound, Dimension::States, Dimension::Cores];

impl Dimension {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Dimension::Threads => "threads",
            Dimension::Steps => "steps",
            Dimension::Bound => "bound",
            Dimension::States => "states",
            Dimension::Cores => "cores",
        }
    }
}

/// A program of the corpus and its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// Threads count to `rounds`, one step each: as many states as a grid has points.
    Grid {
        /// Threads.
        threads: u32,
        /// Steps of each.
        rounds: u32,
    },
    /// Lost updates, two steps a round.
    Counter {
        /// Threads.
        threads: u32,
        /// Rounds of each.
        rounds: u32,
    },
    /// Dining philosophers, which deadlock.
    Philosophers {
        /// The number of philosophers, each a thread.
        threads: u32,
    },
    /// Threads that put messages into a table and never meet.
    Indexer {
        /// Threads.
        threads: u32,
    },
    /// The work-stealing queue with a lock that blocks: two threads.
    Queue {
        /// The number of elements that are pushed and popped.
        rounds: u32,
    },
}

impl Subject {
    /// Its file in the corpus.
    pub fn file(self) -> &'static str {
        match self {
            Subject::Grid { .. } => "bench/grid.pre",
            Subject::Counter { .. } => "bench/counter2.pre",
            Subject::Philosophers { .. } => "bench/phil.pre",
            Subject::Indexer { .. } => "bench/indexer.pre",
            Subject::Queue { .. } => "work-stealing-queue/protocol.pre",
        }
    }

    /// Its constants.
    pub fn settings(self) -> Vec<String> {
        match self {
            Subject::Grid { threads, rounds } | Subject::Counter { threads, rounds } => {
                vec![format!("N={threads}"), format!("K={rounds}")]
            }
            Subject::Philosophers { threads } | Subject::Indexer { threads } => {
                vec![format!("N={threads}")]
            }
            Subject::Queue { rounds } => vec![format!("SIZE={rounds}"), "LOCKED=1".to_owned()],
        }
    }

    /// The number of states, if there is a formula for it.
    pub fn states(self) -> Option<u64> {
        match self {
            Subject::Grid { threads, rounds } => Some(u64::from(rounds + 1).pow(threads)),
            Subject::Philosophers { threads } => Some(3_u64.pow(threads) - 1),
            Subject::Indexer { threads } => {
                Some((0..=threads).map(|started| 14_u64.pow(started)).sum())
            }
            Subject::Counter { .. } | Subject::Queue { .. } => None,
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Grid { threads, rounds } => write!(f, "grid {threads}x{rounds}"),
            Subject::Counter { threads, rounds } => write!(f, "counter2 {threads}x{rounds}"),
            Subject::Philosophers { threads } => write!(f, "phil {threads}"),
            Subject::Indexer { threads } => write!(f, "indexer {threads}"),
            Subject::Queue { rounds } => write!(f, "queue {rounds}"),
        }
    }
}

/// A search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Its coordinate in its dimension. For [`Dimension::States`] only the order of points: the
    /// coordinate is counted.
    pub x: u32,
    /// The searched program.
    pub subject: Subject,
    /// How.
    pub search: Search,
    /// The number of workers.
    pub jobs: usize,
}

impl Point {
    /// The expected number of states, where there is a formula.
    pub fn states(&self) -> Option<u64> {
        self.subject.states().filter(|_| self.search == Search::Full)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.subject, self.search)
    }
}

/// Searches that differ in one parameter.
#[derive(Clone, Debug)]
pub struct Curve {
    /// A description of the common parameters.
    pub name: String,
    /// The searches, from small to large.
    pub points: Vec<Point>,
}

impl Curve {
    /// Searches of a subject that grows.
    fn sized(name: &str, search: Search, sizes: &[u32], subject: impl Fn(u32) -> Subject) -> Curve {
        let point = |&x: &u32| Point { x, subject: subject(x), search, jobs: 1 };
        Curve { name: format!("{name}, {search}"), points: sizes.iter().map(point).collect() }
    }

    /// Searches of one subject within more and more preemptions.
    fn bounded(subject: Subject, greatest: u32) -> Curve {
        let point = |bound| Point { x: bound, subject, search: Search::Icb { bound }, jobs: 1 };
        Curve { name: format!("{subject}, icb"), points: (0..=greatest).map(point).collect() }
    }

    /// The same search by one worker and by two.
    fn shared(subject: Subject, search: Search) -> Curve {
        let point = |cores| Point { x: cores, subject, search, jobs: cores as usize };
        Curve { name: format!("{subject}, {search}"), points: [1, 2].map(point).to_vec() }
    }
}

/// The curves of a dimension.
pub fn curves(dimension: Dimension, extent: Extent) -> Vec<Curve> {
    use Subject::{Counter, Grid, Indexer, Philosophers, Queue};
    let whole = extent == Extent::Whole;
    let (full, cartesian, icb) = (Search::Full, Search::Cartesian, |bound| Search::Icb { bound });
    // A quick run skips the last sizes of a curve.
    let upto = |sizes: &'static [u32], quick: usize| if whole { sizes } else { &sizes[..quick] };
    match dimension {
        Dimension::Threads => vec![
            Curve::sized("grid Nx10", full, upto(&[2, 3, 4, 5, 6, 7], 4), |threads| Grid {
                threads,
                rounds: 10,
            }),
            Curve::sized("phil N", full, upto(&[6, 8, 10, 12, 14], 4), |threads| Philosophers {
                threads,
            }),
            Curve::sized("phil N", cartesian, upto(&[6, 8, 10, 12, 14], 3), |threads| {
                Philosophers { threads }
            }),
            Curve::sized("indexer N", full, upto(&[2, 3, 4, 5, 6], 3), |threads| Indexer {
                threads,
            }),
            Curve::sized("indexer N", cartesian, upto(&[2, 4, 6, 8, 11], 5), |threads| Indexer {
                threads,
            }),
        ],
        Dimension::Steps => {
            vec![
                Curve::sized("grid 4xK", full, upto(&[5, 10, 20, 40, 60], 3), |rounds| Grid {
                    threads: 4,
                    rounds,
                }),
                Curve::sized("counter2 2xK", full, upto(&[5, 10, 20, 40, 60], 4), |rounds| {
                    Counter { threads: 2, rounds }
                }),
                Curve::sized("queue K", icb(2), upto(&[8, 16, 32, 64, 128], 3), |rounds| Queue {
                    rounds,
                }),
                Curve::sized("counter2 3xK", icb(2), upto(&[4, 8, 12, 16, 24], 2), |rounds| {
                    Counter { threads: 3, rounds }
                }),
            ]
        }
        Dimension::Bound if whole => {
            vec![
                Curve::bounded(Queue { rounds: 9 }, 8),
                Curve::bounded(Counter { threads: 3, rounds: 3 }, 6),
            ]
        }
        Dimension::Bound => {
            vec![
                Curve::bounded(Queue { rounds: 3 }, 5),
                Curve::bounded(Counter { threads: 3, rounds: 2 }, 4),
            ]
        }
        Dimension::States => vec![
            Curve::sized("grid", full, upto(&[2, 4, 6, 8, 10, 12], 3), |rounds| Grid {
                threads: 7,
                rounds,
            }),
            Curve::sized("phil", full, upto(&[9, 11, 13, 15, 16, 17], 3), |threads| Philosophers {
                threads,
            }),
            Curve::sized("counter2", full, upto(&[1, 2, 3, 4, 5, 6], 4), |rounds| Counter {
                threads: 4,
                rounds,
            }),
        ],
        Dimension::Cores if whole => vec![
            Curve::shared(Grid { threads: 7, rounds: 8 }, full),
            Curve::shared(Philosophers { threads: 14 }, full),
            Curve::shared(Philosophers { threads: 13 }, cartesian),
            Curve::shared(Counter { threads: 3, rounds: 8 }, icb(2)),
        ],
        Dimension::Cores => {
            vec![
                Curve::shared(Grid { threads: 6, rounds: 8 }, full),
                Curve::shared(Queue { rounds: 8 }, icb(3)),
            ]
        }
    }
}
