//! icb: Tables 1 and 2 are in [`tables`]; here are Figures 1 and 2: how coverage grows on the work-stealing queue, with its bound and with the number of executions.
//!
//! The paper has curves, not figures, and of another queue: what must be equal are the new traces of each bound, which an
//! independent prototype counted. The happens-before states after so many executions depend on the order in which threads are
//! tried: here the one that runs comes first. The queue has two, without choices of their own.

use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

use anyhow::{Context, Result};
use preempt_explore::cursor::Cursor;
use preempt_explore::system::Copies;
use preempt_explore::{Cache, Count, Order, Plan};
use preempt_lang::machine::Machine;
use preempt_system::{Capacity, Choice, Fingerprint, HbGraph, Model, Schedule};
use serde::Deserialize;

use super::Ask;
use super::queue::{self, Lock};
use super::sheet::Marks;

mod extent;
mod tables;

/// The sizes of the queue.
const SIZES: [u32; 2] = [3, 5];

#[derive(Debug, Deserialize)]
struct Figures {
    queue: Vec<Queue>,
}

#[derive(Debug, Deserialize)]
struct Queue {
    size: u32,
    locked: u32,
    /// For each bound from 0 up to completeness.
    #[serde(default)]
    new_traces: Vec<u64>,
}

/// After how many executions states are counted. A quick run leaves out the last.
const MARKS: [u64; 4] = [10, 100, 1_000, 10_000];

/// Prints what is asked for. A quick run stops after 1,000 executions.
pub fn print(ask: &Ask) -> Result<Marks> {
    let mut marks = Marks::default();
    if ask.wants_table(1) {
        marks = marks + tables::table_1(&ask.data)?.print();
    }
    if ask.wants_table(2) {
        marks = marks + tables::table_2(&ask.data)?.print();
    }
    if ask.wants_figure(&[1]) {
        marks = marks + Marks::of(by_bound()?);
        println!();
    }
    if ask.wants_figure(&[2]) {
        by_executions(if ask.is_quick() { &MARKS[..3] } else { &MARKS })?;
        println!();
    }
    Ok(marks)
}

/// Figure 1.
fn by_bound() -> Result<bool> {
    println!("icb, Figure 1: the work-stealing queue (blocking lock), what each bound adds");
    println!("{:>4} {:>2} {:>9} {:>9} {:>7} {:>9} {:>7}", "size", "c", "traces", "in all", "", "states", "");
    let mut good = true;
    let Figures { queue } = toml::from_str(include_str!("../../data/bounded.toml"))?;
    for Queue { size, new_traces, .. } in queue.into_iter().filter(|q| q.locked == 1 && SIZES.contains(&q.size)) {
        let outcome = queue::run(Plan::new().order(Order::Icb { cache: Cache::Hb }), size, Lock::Blocking)?;
        let all = outcome.tally.context("a search over executions has a tally")?;
        let mut found = Vec::new();
        for bound in &outcome.bounds {
            let (new, so_far, graphs) = (bound.new.traces, bound.all.traces, bound.all.graphs);
            println!(
                "{size:>4} {:>2} {:>9} {:>9} {:>6.1}% {:>9} {:>6.1}%",
                bound.bound,
                new.unwrap_or(0),
                so_far.unwrap_or(0),
                percent(so_far, all.traces),
                graphs.unwrap_or(0),
                percent(graphs, all.graphs),
            );
            found.extend(new);
        }
        // A bound that only finds out that there is nothing more adds nothing.
        let beyond = found.iter().skip(new_traces.len()).sum::<u64>();
        let equal = outcome.complete && found.starts_with(&new_traces) && beyond == 0 && !new_traces.is_empty();
        println!("size {size}: {}", if equal { "equal" } else { "DIFFERENT" });
        good &= equal;
    }
    Ok(good)
}

fn percent(part: Option<u64>, all: Option<u64>) -> f64 {
    100.0 * part.unwrap_or(0) as f64 / all.unwrap_or(1) as f64
}

/// Figure 2.
fn by_executions(marks: &[u64]) -> Result<()> {
    println!("icb, Figure 2: distinct happens-before states after so many executions, the initial one among them");
    print!("{:>4} {:<8}", "size", "");
    marks.iter().for_each(|mark| print!(" {mark:>9}"));
    println!();
    for size in SIZES {
        for strategy in [Strategy::Icb, Strategy::Random, Strategy::Dfs, Strategy::Depth(40), Strategy::Depth(20)] {
            let states = strategy.growth(size, marks)?;
            print!("{size:>4} {:<8}", strategy.name());
            states.iter().for_each(|states| print!(" {states:>9}"));
            println!();
        }
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Strategy {
    Icb,
    Random,
    Dfs,
    Depth(usize),
}

impl Strategy {
    fn name(self) -> String {
        match self {
            Strategy::Icb => "icb".into(),
            Strategy::Random => "random".into(),
            Strategy::Dfs => "dfs".into(),
            Strategy::Depth(steps) => format!("db:{steps}"),
        }
    }

    /// Distinct happens-before states after so many executions each.
    fn growth(self, size: u32, marks: &[u64]) -> Result<Vec<u64>> {
        if self == Strategy::Random {
            let drawn = |&runs| {
                let plan = Plan::new().order(Order::Random).seed(1).runs(runs).count(Count::States);
                let tally = queue::run(plan, size, Lock::Blocking)?.tally;
                tally.and_then(|tally| tally.graphs).context("all is counted")
            };
            return marks.iter().map(drawn).collect();
        }
        let mut machine = queue::machine(size, Lock::Blocking)?.with_stable_names();
        loop {
            match Walk::growth(&machine, self, marks) {
                Ok(states) => return Ok(states),
                Err(capacity) => machine = machine.grow(capacity),
            }
        }
    }
}

/// A search that can be looked at after any number of executions: icb without a cache, or depth first. They differ in where steps
/// wait that were not taken.
struct Walk<'m> {
    cursor: Cursor<Copies<'m, Machine>>,
    strategy: Strategy,
    /// What is taken next, the last one first.
    now: Vec<Waiting>,
    /// What is taken after that, the first one first. Those with fewer preemptions come before those with more, because each was
    /// put here by an execution with one less.
    later: VecDeque<Waiting>,
    graphs: HashSet<Fingerprint>,
}

/// A step that was not taken: where it leaves an execution that was.
struct Waiting {
    execution: Rc<Schedule>,
    at: usize,
    choice: Choice,
}

impl<'m> Walk<'m> {
    /// The states after so many executions each; fewer entries if there are fewer executions.
    fn growth(machine: &'m Machine, strategy: Strategy, marks: &[u64]) -> Result<Vec<u64>, Capacity> {
        let cursor = Cursor::new(machine)?.recording();
        let mut walk = Walk { cursor, strategy, now: Vec::new(), later: VecDeque::new(), graphs: HashSet::default() };
        let mut found = Vec::new();
        for executions in 1..=marks.last().copied().unwrap_or(0) {
            walk.execute()?;
            if marks.contains(&executions) {
                found.push(walk.graphs.len() as u64);
            }
            let Some(next) = walk.now.pop().or_else(|| walk.later.pop_front()) else { break };
            walk.go_to(&next)?;
        }
        Ok(found)
    }

    /// Follows the execution to its end, and notes what it leaves out.
    fn execute(&mut self) -> Result<(), Capacity> {
        let mut left_out = Vec::new();
        self.arrive();
        while let Some(choice) = self.next() {
            let running = self.cursor.running().filter(|&running| self.cursor.enabled().contains(running));
            let others = self.cursor.enabled().iter().map(Choice::of).filter(|&other| other != choice);
            left_out.extend(others.map(|other| (self.cursor.len(), other, running.is_some())));
            self.cursor.step(choice)?;
            self.arrive();
        }
        let execution = Rc::new(self.cursor.schedule());
        for (at, choice, preempts) in left_out {
            let waiting = Waiting { execution: Rc::clone(&execution), at, choice };
            if preempts && self.strategy == Strategy::Icb {
                self.later.push_back(waiting);
            } else {
                self.now.push(waiting);
            }
        }
        Ok(())
    }

    /// The step that is taken first: of the thread that runs, else of the first that can.
    fn next(&self) -> Option<Choice> {
        let (enabled, running) = (self.cursor.enabled(), self.cursor.running());
        let cut = matches!(self.strategy, Strategy::Depth(steps) if self.cursor.len() >= steps);
        let thread = running.filter(|&running| enabled.contains(running)).or_else(|| enabled.iter().next());
        thread.filter(|_| !cut).map(Choice::of)
    }

    fn go_to(&mut self, waiting: &Waiting) -> Result<(), Capacity> {
        let shared = waiting.execution.steps().iter().take(waiting.at).enumerate();
        let same = shared.take_while(|&(at, &step)| at < self.cursor.len() && self.cursor.choice(at) == step).count();
        self.cursor.rewind(same);
        for &step in &waiting.execution.steps()[same..waiting.at] {
            self.cursor.step(step)?;
        }
        self.cursor.step(waiting.choice).map(|_| ())
    }

    fn arrive(&mut self) {
        self.graphs.extend(self.cursor.graph().map(HbGraph::fingerprint));
    }
}
