//! Random programs compared with all their interleavings.

use std::collections::{BTreeMap, BTreeSet};

use preempt_bench::random::{self, Shape};
use preempt_explore::cursor::Cursor;
use preempt_explore::execution::{Stop, Visitor};
use preempt_explore::model::ModelExecution;
use preempt_explore::reduce::budgeted_sleep;
use preempt_explore::reduce::cb_por::{self, Names};
use preempt_explore::reduce::{Dependence, ReductionStats, dpor, sleep};
use preempt_explore::waits;
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{Choice, Fingerprint, Footprint, HbGraph, Status, System, ThreadId, Waits};

use super::figures;
use super::watch::{Collect, again, run};

/// All interleavings, one after the other: the oracle.
#[derive(Default)]
pub struct Oracle {
    ends: Collect,
    graph: HbGraph,
    /// For each happens-before state and each of its steps, the fewest preemptions with which it is
    /// reached.
    states: BTreeMap<Fingerprint, u32>,
    steps: BTreeMap<(Fingerprint, usize, u32), u32>,
    /// The accesses for which some thread waits in some state.
    looks: Footprint,
}

impl Oracle {
    fn explore<S: System>(&mut self, cursor: &mut Cursor<S>) -> Result<(), Stop<S::Need>> {
        let (here, spent) = (self.graph.fingerprint(), cursor.preemptions().count());
        let least = self.states.entry(here).or_insert(spent);
        *least = spent.min(*least);
        for pending in (0..cursor.threads()).map(|slot| cursor.pending(ThreadId::new(slot))) {
            if matches!(pending.status, Status::Blocked | Status::Resting) {
                let looks = pending.footprints[0].1.accesses().iter();
                looks.for_each(|&(location, access)| self.looks.add(location, access));
            }
        }
        if cursor.enabled().is_empty() {
            return self.ends.end(cursor);
        }
        for thread in cursor.enabled().iter() {
            let alternatives: Vec<u32> =
                cursor.pending(thread).footprints.iter().map(|&(number, _)| number).collect();
            for alternative in alternatives {
                let failure = cursor.step(Choice { thread, alternative })?;
                self.ends.step(cursor, failure)?;
                let spent = cursor.preemptions().count();
                let least = self.steps.entry((here, thread.index(), alternative)).or_insert(spent);
                *least = spent.min(*least);
                self.graph.push(Choice { thread, alternative }, cursor.taken(cursor.len() - 1));
                self.explore(cursor)?;
                self.graph.pop();
                cursor.rewind(cursor.len() - 1);
            }
        }
        Ok(())
    }

    fn within(map: &BTreeMap<impl Ord, u32>, bound: u32) -> u64 {
        map.values().filter(|&&least| least <= bound).count() as u64
    }

    /// The traces within a bound.
    fn traces(&self, bound: u32) -> BTreeSet<Fingerprint> {
        let within = self.ends.seen.traces.iter().filter(|(_, least)| **least <= bound);
        within.map(|(trace, _)| *trace).collect()
    }

    /// Compares both algorithms of cb-por.
    pub fn check_cb_por(
        &self,
        machine: Machine,
        config: &cb_por::Config,
    ) -> Result<Machine, String> {
        let (bound, expected) = (config.bound, self.traces(config.bound));
        let (states, steps) =
            (Oracle::within(&self.states, bound), Oracle::within(&self.steps, bound));
        let complete = self.steps.values().all(|&least| least <= bound);
        let mut machine = machine;
        for (algorithm, names) in
            [(1, Names::Fingerprints), (2, Names::Fingerprints), (2, Names::Exact)]
        {
            let config = cb_por::Config { names, ..*config };
            let run: CbPor = match algorithm {
                1 => |cursor, collect, config| cb_por::states(cursor, collect, config),
                _ => |cursor, collect, config| cb_por::terminals(cursor, collect, config),
            };
            let ((counts, collect), same) =
                again(machine, |cursor, collect| run(cursor, collect, &config));
            machine = same;
            let found: BTreeSet<Fingerprint> = collect.seen.traces.keys().copied().collect();
            let invariants =
                if algorithm == 1 { counts.check_states() } else { counts.check_terminals() };
            let wrong = [
                (found != expected, "traces"),
                (counts.executions != expected.len() as u64, "executions"),
                (counts.states != states, "states"),
                (algorithm == 2 && counts.evaluations != steps, "evaluations of Mark"),
                ((counts.bounded == 0) != complete, "completeness"),
                (invariants.is_err(), invariants.err().unwrap_or_default()),
            ];
            if let Some((_, what)) = wrong.into_iter().find(|(wrong, _)| *wrong) {
                let expected = format!("{} traces, {states} states, {steps} steps", expected.len());
                return Err(format!(
                    "Algorithm {algorithm}, {names:?}, bound {bound}: {what}: {counts:?}, not {expected}"
                ));
            }
        }
        Ok(machine)
    }

    /// Compares budgeted sleep sets. Returns the numbers of executions with and without knowledge
    /// of waits.
    fn check_budgeted(&self, machine: Machine, bound: u32) -> Result<(Machine, [u64; 2]), String> {
        let expected = self.traces(bound);
        let (mut machine, mut executions) = (machine, [0; 2]);
        if waits::reachable(&machine) != Ok(Waits::At(self.looks.clone())) {
            return Err(format!("what threads wait for is {:?}", self.looks));
        }
        for (waits, executions) in
            [Waits::At(self.looks.clone()), Waits::Anywhere].into_iter().zip(&mut executions)
        {
            let config =
                budgeted_sleep::Config { bound, waits, ..budgeted_sleep::Config::default() };
            let ((tally, collect), same) = again(machine, |cursor, collect| {
                budgeted_sleep::budgeted_sleep_sets(cursor, collect, &config)
            });
            machine = same;
            *executions = tally.executions;
            let found: BTreeSet<Fingerprint> = collect.seen.traces.keys().copied().collect();
            if found != expected || collect.seen.traces.values().any(|&least| least > bound) {
                return Err(format!(
                    "budgeted sleep sets, bound {bound}: {} traces, not {}",
                    found.len(),
                    expected.len()
                ));
            }
        }
        Ok((machine, executions))
    }

    /// All interleavings of a program, unless there are too many.
    pub fn of(machine: Machine, patience: Option<u64>) -> Option<(Oracle, Machine)> {
        run(machine, |cursor| {
            let mut oracle = Oracle::default();
            oracle.ends.patience = patience;
            oracle.explore(cursor).map(|()| oracle)
        })
    }

    /// Compares the unbounded reductions. Adds their counts to `totals`.
    fn check_unbounded(
        &self,
        machine: Machine,
        totals: &mut [ReductionStats; COMPLETE.len()],
    ) -> Result<Machine, String> {
        let (mut machine, expected) = (machine, &self.ends.seen);
        for ((name, once, strategy), total) in COMPLETE.iter().zip(totals) {
            let ((tally, found), same) = again(machine, strategy);
            machine = same;
            let wrong = [
                (!found.seen.traces.keys().eq(expected.traces.keys()), "traces"),
                (found.seen.deadlocks != expected.deadlocks, "deadlocks"),
                (found.seen.failures != expected.failures, "failures"),
                (*once && tally.executions != expected.traces.len() as u64, "a trace twice"),
                (*name == "optimal DPOR" && tally.covered != 0, "an execution was given up"),
                (
                    *name == "sleep sets" && tally.nodes != self.states.len() as u64,
                    "a prefix twice",
                ),
                (
                    (tally.executions, tally.covered) != (found.executions, found.covered),
                    "what the visitor was reported",
                ),
            ];
            if let Some((_, what)) = wrong.into_iter().find(|(wrong, _)| *wrong) {
                return Err(format!(
                    "{name}: {what}: {tally:?}, not {} traces",
                    expected.traces.len()
                ));
            }
            total.executions += tally.executions;
            total.covered += tally.covered;
            total.nodes += tally.nodes;
        }
        Ok(machine)
    }

    /// Compares everything.
    fn check(&self, machine: Machine, totals: &mut Totals) -> Result<(), String> {
        let mut machine = self.check_unbounded(machine, &mut totals.unbounded)?;
        for bound in 0..4 {
            machine =
                self.check_cb_por(machine, &cb_por::Config { bound, ..cb_por::Config::default() })?;
            let (same, executions) = self.check_budgeted(machine, bound)?;
            machine = same;
            totals.within += self.traces(bound).len() as u64;
            totals
                .budgeted
                .iter_mut()
                .zip(executions)
                .for_each(|(total, executions)| *total += executions);
        }
        Ok(())
    }
}

/// Counts over all programs.
#[derive(Debug, Default)]
struct Totals {
    unbounded: [ReductionStats; COMPLETE.len()],
    /// Traces within a bound, over programs and bounds.
    within: u64,
    budgeted: [u64; 2],
}

type CbPor = fn(
    &mut Cursor<ModelExecution<'_, Machine>>,
    &mut Collect,
    &cb_por::Config,
) -> Result<cb_por::Counts, Stop>;

pub fn load(text: &str) -> Machine {
    preempt_lang::load(&Source::new("random.pre", text), &[]).expect("random programs are programs")
}

type Strategy =
    fn(&mut Cursor<ModelExecution<'_, Machine>>, &mut Collect) -> Result<ReductionStats, Stop>;

/// Unbounded reductions that reach every trace, and those that reach none twice.
const COMPLETE: [(&str, bool, Strategy); 4] = [
    ("optimal DPOR", true, |cursor, collect| dpor::optimal(cursor, collect, Dependence::ReadWrite)),
    ("sleep sets", true, |cursor, collect| {
        sleep::sleep_sets(cursor, collect, Dependence::ReadWrite)
    }),
    ("source-DPOR", true, |cursor, collect| dpor::source(cursor, collect, Dependence::ReadWrite)),
    ("Flanagan–Godefroid", false, |cursor, collect| {
        dpor::flanagan_godefroid(cursor, collect, Dependence::ReadWrite, dpor::Sleep::Never)
    }),
];

/// Programs on which a reduction was wrong: a thread waits as soon as it is started; a thread
/// accesses more if it does not have to wait; the last race is always the one that ends a wait; a
/// reversal would begin with a thread that does not exist yet.
const ONCE_WRONG: [u64; 4] = [317_301, 508_233, 305_560, 318_763];

#[test]
fn random_programs_agree_with_all_interleavings() {
    let number =
        |name, default| std::env::var(name).map_or(default, |n| n.parse().expect("a number"));
    let (first, programs): (u64, u64) = (number("FIRST", 0), number("PROGRAMS", 2_000));
    let (mut compared, mut executions, mut totals) = (0, 0, Totals::default());
    let mut seeds = ONCE_WRONG.into_iter().chain(first..);
    while compared < programs {
        let seed = seeds.next().expect("there is always another");
        let text = random::program(seed, Shape { threads: (2, 3), statements: 3 });
        let Some((oracle, machine)) = Oracle::of(load(&text), Some(1_000)) else { continue };
        compared += 1;
        executions += oracle.ends.executions;
        oracle.check(machine, &mut totals).unwrap_or_else(|wrong| panic!("{wrong}\n{text}"));
    }
    println!("{compared} programs, {executions} executions: {totals:?}");
}

#[test]
fn the_zoo_agrees_with_all_interleavings() {
    for program in figures::programs().into_iter().filter(|program| program.file.starts_with("zoo"))
    {
        let (oracle, machine) = Oracle::of(program.machine(), None).expect("the zoo is small");
        oracle
            .check(machine, &mut Totals::default())
            .unwrap_or_else(|wrong| panic!("{}: {wrong}", program.file));
    }
}

/// Small programs on which something particular can go wrong.
const PARTICULAR: [(&str, &str); 6] = [
    (
        "either of two writes ends a wait, and which of them was read decides what the wait depends on",
        "atomic var x = 0; atomic var y = 0;
         thread t0 { x = 1; } thread t1 { await x == 1 || y == 1; } thread t2 { y = 1; }",
    ),
    (
        "a wait reads less than it touches when it ends",
        "atomic var x = 0; atomic var y = 0; atomic var z = 0;
         thread t0 { y = 1; } thread t1 { x = 1; } thread t2 { z = 1; }
         thread t3 { await y == 0 && x == 0 && z == 1; }",
    ),
    (
        "the last reader lets a writer in",
        "rwlock w; atomic var x = 0;
         thread t0 { w.read(); x = 1; w.unlock_read(); } thread t1 { w.read(); w.unlock_read(); x = 2; }
         thread t2 { w.write(); x = 3; w.unlock_write(); }",
    ),
    (
        "an alternative that is there only in the other order",
        "atomic var x = 0; atomic var y = 0;
         thread t0 { x = 1; } thread t1 { atomic { if x == 0 { y = choose(0..2); } } }",
    ),
    (
        "the end of a reader must not sleep: program W of the zoo with a reader-writer lock",
        "rwlock w; atomic var x = 0;
         thread t1 { x = 1; w.write(); x = 2; w.unlock_write(); }
         thread t2 { var r = 0; w.read(); r = x; w.unlock_read(); r = x; }",
    ),
    ("nothing to do", "thread t0 { }"),
];

#[test]
fn particular_programs_agree_with_all_interleavings() {
    for (what, text) in PARTICULAR {
        let (oracle, machine) = Oracle::of(load(text), None).expect("the program is small");
        oracle
            .check(machine, &mut Totals::default())
            .unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
    }
}
