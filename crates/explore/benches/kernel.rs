//! How fast the search itself is: hand-written steppers that cost next to nothing, over the graphs
//! of the reference runs.
//!
//! ```text
//! cargo bench -p preempt-explore --bench kernel -- grid 7 10 --store exact --order bfs --jobs 1 --words 1
//! ```
//!
//! Prints one line: counts, transitions per second of CPU and of wall time, and bytes of the
//! process for every state.

use preempt_explore::{Order, Plan, Silent, StoreKind};
use preempt_system::{Capacity, Choice, Failure, Footprint, Model, Shape, Step, Stepper};

/// The graphs. Only a grid can have states of several words, over which its threads are then
/// spread.
#[derive(Clone, Copy)]
enum Graph {
    /// `n` threads count to `k`.
    Grid { n: usize, k: u64 },
    /// `n` threads do `k` times: read the counter; write it plus one.
    Counter { n: usize, k: u64 },
    /// `n` philosophers.
    Philosophers { n: usize },
}

#[derive(Clone, Copy)]
struct Toy {
    graph: Graph,
    words: usize,
}

impl Model for Toy {
    type Stepper<'m> = Toy;

    fn shape(&self) -> Shape {
        let (Graph::Grid { n, .. } | Graph::Counter { n, .. } | Graph::Philosophers { n }) =
            self.graph;
        Shape { words: self.words, threads: n }
    }

    fn stepper(&self) -> Toy {
        *self
    }

    fn grow(&self, _: Capacity) -> Toy {
        unreachable!("the fields are large enough")
    }
}

const MOVED: Step = Step::Moved { alternatives: 1 };

impl Graph {
    #[inline(always)]
    fn step(self, state: &mut u64, t: usize) -> Step {
        match self {
            Graph::Grid { k, .. } => {
                let at = 1 + 4 * t;
                if *state >> at & 15 == k {
                    return Step::Ended;
                }
                *state += 1 << at;
                MOVED
            }
            Graph::Counter { k, .. } => {
                // Nine bits for a thread: place, rounds, copy; five for the counter, above the
                // lowest one.
                let at = 6 + 9 * t;
                let me = *state >> at & 0x1ff;
                let x = *state >> 1 & 31;
                let (place, rounds, copy) = (me & 1, me >> 1 & 7, me >> 4);
                let (me, x) = match place {
                    0 if rounds == k => return Step::Ended,
                    0 => (1 | rounds << 1 | x << 4, x),
                    _ => ((rounds + 1) << 1, copy + 1),
                };
                *state = *state & !(0x1ff << at) & !(31 << 1) | me << at | x << 1;
                MOVED
            }
            Graph::Philosophers { n } => {
                let (left, right) = (1 << (1 + t), 1 << (1 + if t + 1 == n { 0 } else { t + 1 }));
                let at = 1 + n + 2 * t;
                match *state >> at & 3 {
                    0 if *state & left != 0 => return Step::Blocked { resting: false },
                    1 if *state & right != 0 => return Step::Blocked { resting: false },
                    0 => *state = (*state | left) + (1 << at),
                    1 => *state = (*state | right) + (1 << at),
                    2 => *state = (*state & !left) + (1 << at),
                    _ => *state = *state & !right & !(3 << at),
                }
                MOVED
            }
        }
    }
}

impl Stepper for Toy {
    fn initial(&mut self, state: &mut [u64]) -> Step {
        state.fill(1);
        MOVED
    }

    #[inline(always)]
    fn step(&mut self, state: &mut [u64], choice: Choice) -> Step {
        let (t, words) = (choice.thread.index(), state.len());
        if words == 1 {
            self.graph.step(&mut state[0], t)
        } else {
            self.graph.step(&mut state[t % words], t / words)
        }
    }

    fn alternatives(&self) -> u32 {
        1 // No step that fails has several.
    }

    fn invariant(&mut self, _: &[u64]) -> Result<(), Box<Failure>> {
        Ok(())
    }

    fn invariant_with_footprint(
        &mut self,
        _: &[u64],
        _: &mut Footprint,
    ) -> Result<(), Box<Failure>> {
        Ok(())
    }

    fn step_with_footprint(&mut self, _: &mut [u64], _: Choice, _: &mut Footprint) -> Step {
        unreachable!("a full search asks for no footprints")
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str| {
        args.iter().position(|a| a == name).and_then(|at| args.get(at + 1)).map(String::as_str)
    };
    let number = |name: &str, otherwise: usize| {
        option(name).map_or(otherwise, |n| n.parse().expect("a number"))
    };
    let at = |i: usize| args.get(i).and_then(|n| n.parse().ok());
    let graph = match args.first().map(String::as_str) {
        Some("counter2") => Graph::Counter { n: at(1).unwrap_or(4), k: at(2).unwrap_or(5) as u64 },
        Some("phil") => Graph::Philosophers { n: at(1).unwrap_or(15) },
        _ => Graph::Grid { n: at(1).unwrap_or(7), k: at(2).unwrap_or(10) as u64 },
    };
    let store = match option("--store") {
        Some("tree") => StoreKind::Tree,
        Some("fingerprint") => StoreKind::Fingerprint,
        Some("bitstate") => StoreKind::Bitstate { bytes: number("--bytes", 64 << 20) },
        _ => StoreKind::Exact,
    };
    let order =
        if option("--order") == Some("dfs") { Order::DepthFirst } else { Order::BreadthFirst };
    let plan = Plan::new()
        .store(store)
        .order(order)
        .jobs(number("--jobs", 1))
        .keep_going()
        .ignore_deadlocks();
    let words = number("--words", 1);
    assert!(
        words == 1 || matches!(graph, Graph::Grid { .. }),
        "only a grid has states of several words"
    );
    let search = plan.build().expect("the plan is valid");
    let (outcome, _) = search.run(Toy { graph, words }, &Silent);
    let (cpu, peak) = (cpu_seconds(), peak_bytes());
    let seen = outcome.coverage;
    println!(
        "{} states, {} transitions, {} blocked, {} ended, depth {}; {:.1} M transitions/CPU-s, \
         {:.1} M/s; {:.1} B/state (store {:.1}, frontier {:.1})",
        seen.states,
        seen.transitions,
        seen.blocked,
        seen.ended,
        seen.depth,
        seen.transitions as f64 / cpu / 1e6,
        seen.transitions as f64 / outcome.elapsed.as_secs_f64() / 1e6,
        peak / seen.states as f64,
        outcome.store_bytes as f64 / seen.states as f64,
        outcome.frontier_bytes as f64 / seen.states as f64,
    );
}

/// User and system time of this process, all threads.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks: Vec<f64> =
        after.split_whitespace().skip(11).take(2).filter_map(|t| t.parse().ok()).collect();
    ticks.iter().sum::<f64>() / 100.0
}

/// The most memory that this process had at one time.
fn peak_bytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) * 1024.0
}
