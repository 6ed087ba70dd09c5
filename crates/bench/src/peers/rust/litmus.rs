//! The litmus tests of the corpus with loom and with Preempt: which outcomes they show.
//!
//! All outcomes of a test that the memory model allows are known. A tool *misses* those that it
//! does not show, and those that it shows beyond them are *forbidden*: a correct program can fail
//! because of one. A test that races, or in which a thread waits forever, has to be reported.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use anyhow::Result;
use preempt_litmus::program::Position;
use preempt_litmus::{Expected, Graph, Order, Program, expected, graph};

use super::meter::{self, Ended};
use super::table::{Table, grouped};
use super::{Mode, Request, Times, Tool};

/// What the names of these tests begin with.
const PREFIX: &str = "litmus:";

/// The program that this process explores.
static CURRENT: OnceLock<Program> = OnceLock::new();

/// The program that this process explores.
pub(super) fn current() -> &'static Program {
    CURRENT.get().expect("`choose` comes first")
}

/// Chooses the litmus test with this name; returns whether there is one.
pub(super) fn choose(name: &str) -> bool {
    let Some(name) = name.strip_prefix(PREFIX) else { return false };
    let test = expected::all().into_iter().find(|test| test.name == name);
    test.is_some_and(|test| CURRENT.set(test.program).is_ok())
}

/// The ordering in std.
pub(super) fn ordering(order: Order) -> Ordering {
    match order {
        Order::Plain => unreachable!("a plain access has no ordering"),
        Order::Relaxed => Ordering::Relaxed,
        Order::Acquire => Ordering::Acquire,
        Order::Release => Ordering::Release,
        Order::AcqRel => Ordering::AcqRel,
        Order::SeqCst => Ordering::SeqCst,
    }
}

/// Records the outcome of an execution: what each thread has read and how often it has stored to
/// each location, and the last values.
pub(super) fn saw_outcome(
    program: &Program,
    ends: &[(Position, Vec<usize>)],
    last: impl Fn(usize) -> u64,
) {
    let mut stores = Graph::new(program);
    for (location, order) in stores.orders.iter_mut().enumerate() {
        *order = vec![(0, 0); ends.iter().map(|(_, stores)| stores[location]).sum()];
    }
    let registers = |thread: usize, register: usize| ends[thread].0.registers[register];
    let text = graph::outcome(program, &stores, registers, |_| false, last);
    meter::saw(word(&text));
}

/// An outcome as one word, for the line of a child process.
fn word(outcome: &str) -> String {
    if outcome.is_empty() { "none".to_owned() } else { outcome.replace(' ', "/") }
}

/// What a tool has shown of a test.
struct Shown {
    executions: u64,
    /// Whether it explored everything that it would.
    is_complete: bool,
    missed: usize,
    forbidden: BTreeSet<String>,
    /// The failure that it reported.
    failure: Option<String>,
}

impl Shown {
    fn of(tool: Tool, mode: Mode, test: &Expected, cap: f64) -> Result<Shown> {
        let name = format!("{PREFIX}{}", test.name);
        let run = Request { tool, mode, test: &name, repeat: 0.0, cap }.in_child()?;
        let allowed = test.outcomes.iter().map(|outcome| &outcome.text);
        let allowed: BTreeSet<String> =
            allowed.filter(|text| !text.contains("waits")).map(|text| word(text)).collect();
        let seen: BTreeSet<String> = run.seen.into_iter().collect();
        Ok(Shown {
            executions: run.first,
            is_complete: run.ended == Ended::Complete,
            missed: allowed.difference(&seen).count(),
            forbidden: seen.difference(&allowed).cloned().collect(),
            failure: match run.ended {
                Ended::Failed(message) => Some(message),
                Ended::Complete | Ended::Capped => None,
            },
        })
    }

    /// What is wrong about it.
    fn verdict(&self, test: &Expected) -> Verdict {
        if test.racy > 0 || test.stuck > 0 {
            let reports = if self.failure.is_some() { Verdict::Right } else { Verdict::Missed };
            return if self.is_complete || self.failure.is_some() { reports } else { Verdict::Cut };
        }
        if self.failure.is_some() || !self.forbidden.is_empty() {
            Verdict::Forbidden
        } else if self.missed == 0 {
            Verdict::Right
        } else if self.is_complete {
            Verdict::Missed
        } else {
            Verdict::Cut
        }
    }

    /// The executions: `+` if the search was stopped, `!` if it failed.
    fn count(&self) -> String {
        let mark = match (&self.failure, self.is_complete) {
            (Some(_), _) => "!",
            (None, true) => "",
            (None, false) => "+",
        };
        grouped(self.executions) + mark
    }
}

/// A judgement about a tool on a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Exactly the allowed outcomes, or the report that has to be.
    Right,
    /// An outcome that the model forbids.
    Forbidden,
    /// A complete search without an allowed outcome or a report that has to be.
    Missed,
    /// Stopped at the limit of time before all allowed outcomes were shown, none is forbidden.
    Cut,
}

/// Prints the table; returns whether Preempt shows exactly the allowed outcomes of every test, in
/// as many executions as there are graphs.
pub(super) fn compare(times: Times) -> Result<bool> {
    println!(
        "\nLitmus tests: executions, outcomes that the memory model of Rust allows without load \
         buffering and that are missed, and outcomes that it forbids; + was stopped after {} \
         CPU-seconds, ! reported a failure",
        times.cap
    );
    let mut table = Table::new([
        "test",
        "allowed",
        "Preempt",
        "missed",
        "forbidden",
        "loom",
        "missed",
        "forbidden",
    ]);
    let (mut right, mut totals) = (true, [[0; 4]; 2]);
    let mut wrong = Vec::new();
    for test in expected::all() {
        let ours = Shown::of(Tool::Preempt, Mode::Graphs, &test, times.cap)?;
        let theirs = Shown::of(Tool::Loom, Mode::All, &test, times.cap)?;
        let each_once = ours.executions == test.graphs as u64 || ours.failure.is_some();
        right &= ours.verdict(&test) == Verdict::Right && each_once;
        for (total, shown) in totals.iter_mut().zip([&ours, &theirs]) {
            total[shown.verdict(&test) as usize] += 1;
        }
        let allowed = match (test.racy, test.stuck) {
            (0, 0) => test.outcomes.len().to_string(),
            (0, _) => "deadlock".to_owned(),
            _ => "race".to_owned(),
        };
        let reported = test.racy > 0 || test.stuck > 0;
        let mut cells = vec![test.name.clone(), allowed];
        for shown in [&ours, &theirs] {
            let number =
                |number: usize| if reported { "–".to_owned() } else { number.to_string() };
            cells.extend([shown.count(), number(shown.missed), number(shown.forbidden.len())]);
        }
        table.row(cells);
        if theirs.verdict(&test) == Verdict::Forbidden {
            let shown = theirs.forbidden.first().or(theirs.failure.as_ref());
            let text = shown.map_or_else(String::new, |text| text.replace('/', " "));
            wrong.push(format!("  {}: {text}", test.name));
        }
    }
    print!("{}", table.to_text());
    for (tool, [right, forbidden, missed, cut]) in ["Preempt", "loom"].iter().zip(totals) {
        println!(
            "{tool}: {right} tests right, {forbidden} with a forbidden outcome, {missed} with a \
             missed one, {cut} stopped before all were shown"
        );
    }
    println!("forbidden outcomes that loom shows, one for each test:");
    wrong.iter().for_each(|line| println!("{line}"));
    Ok(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_judged_by_what_it_shows() {
        let named = |name: &str| {
            let test = expected::all().into_iter().find(|test| test.name == name);
            test.expect("the corpus has this test")
        };
        let shown = |missed, forbidden: &[&str], is_complete, failure: Option<&str>| Shown {
            executions: 1,
            is_complete,
            missed,
            forbidden: forbidden.iter().map(|text| (*text).to_owned()).collect(),
            failure: failure.map(str::to_owned),
        };
        let (test, racy) = (named("SB+sc+sc"), named("arc-drop-relaxed"));
        for (shown, verdict) in [
            (shown(0, &[], true, None), Verdict::Right),
            (shown(0, &[], false, None), Verdict::Right),
            (shown(1, &[], true, None), Verdict::Missed),
            (shown(1, &[], false, None), Verdict::Cut),
            (shown(1, &["t0.r0=0/t1.r0=0"], false, None), Verdict::Forbidden),
            (shown(3, &[], false, Some("race")), Verdict::Forbidden),
        ] {
            assert_eq!(shown.verdict(&test), verdict, "{}", shown.count());
        }
        for (shown, verdict) in [
            (shown(0, &[], false, Some("race")), Verdict::Right),
            (shown(0, &[], true, None), Verdict::Missed),
            (shown(0, &[], false, None), Verdict::Cut),
        ] {
            assert_eq!(shown.verdict(&racy), verdict, "{}", shown.count());
        }
    }
}
