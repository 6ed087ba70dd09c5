//! Theorem 1 of icb: of a program with n threads of at most k steps, of which at most b may block,
//! there are at most C(nk, c) · (nb + c)! executions with exactly c preemptions.
//!
//! The end of a thread counts as one of its b steps: without it the theorem is wrong, and a test
//! says so. It is about programs that end and whose threads have no choices of their own.

use std::collections::{BTreeSet, HashMap};

use preempt_bench::corpus;
use preempt_explore::cursor::Cursor;
use preempt_explore::model::ModelExecution;
use preempt_explore::{Limits, Plan, Silent, oracle, waits};
use preempt_machine::Machine;
use preempt_system::{
    Capacity, Choice, Footprint, Location, Model, Status, System, ThreadId, Waits,
};

/// Larger programs are skipped.
const MOST_STATES: u64 = 5_000;

/// The maximal numbers of steps, of steps that may block, and of ends of a thread from some state
/// on. A slot that is reused has several ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rest {
    steps: u64,
    blocking: u64,
    ends: u64,
}

impl Rest {
    fn max(self, other: Rest) -> Rest {
        Rest {
            steps: self.steps.max(other.steps),
            blocking: self.blocking.max(other.blocking),
            ends: self.ends.max(other.ends),
        }
    }
}

/// The longest paths through the states of a program.
struct Longest {
    /// The accesses for which some thread waits in some state. A step that accesses the same counts
    /// as one that may block, even if it cannot.
    waits: BTreeSet<Location>,
    /// For every state and thread; `None` while the state is on the path.
    known: HashMap<Vec<u64>, Option<Vec<Rest>>>,
}

enum Unfit {
    /// The states are too small.
    Full(Capacity),
    /// The program can run forever, or a thread has a choice.
    NotMeant,
}

impl From<Capacity> for Unfit {
    fn from(capacity: Capacity) -> Unfit {
        Unfit::Full(capacity)
    }
}

impl Longest {
    fn blocks(&self, footprint: &Footprint) -> bool {
        footprint.accesses().iter().any(|(location, _)| self.waits.contains(location))
    }

    fn from(
        &mut self,
        cursor: &mut Cursor<ModelExecution<'_, Machine>>,
    ) -> Result<Vec<Rest>, Unfit> {
        let state = cursor.system().words().expect("the states of a model are known").to_vec();
        match self.known.get(&state) {
            Some(Some(known)) => return Ok(known.clone()),
            Some(None) => return Err(Unfit::NotMeant),
            None => {}
        }
        self.known.insert(state.clone(), None);
        let mut longest = vec![Rest::default(); cursor.threads()];
        for thread in cursor.enabled().iter() {
            if cursor.choices(thread).count() != 1 {
                return Err(Unfit::NotMeant);
            }
            let choice = Choice::of(thread);
            let blocks = self.blocks(cursor.footprint(choice));
            cursor.step(choice)?;
            let ended = matches!(cursor.pending(thread).status, Status::Ended | Status::Vacant);
            let mut rest = self.from(cursor)?;
            cursor.rewind(cursor.len() - 1);
            let own = &mut rest[thread.index()];
            own.steps += 1;
            own.blocking += u64::from(blocks);
            own.ends += u64::from(ended);
            for (longest, rest) in longest.iter_mut().zip(rest) {
                *longest = longest.max(rest);
            }
        }
        self.known.insert(state, Some(longest.clone()));
        Ok(longest)
    }
}

/// n, k, and b with and without the end of a thread.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    n: u64,
    k: u64,
    b: u64,
    b_without_end: u64,
}

impl Sizes {
    /// The sizes of a program that ends, has no choices and is not too large; and the machine with
    /// states that are large enough.
    fn of(machine: Machine) -> Option<(Sizes, Machine)> {
        let limits = Limits { states: Some(MOST_STATES), ..Limits::default() };
        let search = Plan::new().keep_going().limits(limits).build().expect("the plan is valid");
        let (outcome, machine) = search.run(machine, &Silent);
        if !outcome.complete {
            return None;
        }
        let mut machine = machine.with_stable_names();
        loop {
            match Sizes::measure(&machine) {
                Ok(sizes) => return Some((sizes, machine)),
                Err(Unfit::Full(capacity)) => machine = machine.grow(capacity),
                Err(Unfit::NotMeant) => return None,
            }
        }
    }

    fn measure(machine: &Machine) -> Result<Sizes, Unfit> {
        let Waits::At(looks) = waits::reachable(machine)? else {
            unreachable!("it is known what they wait for")
        };
        let waits = looks.accesses().iter().map(|&(location, _)| location).collect();
        let mut cursor = Cursor::new(machine)?;
        if cursor.system().failure().is_some() {
            return Err(Unfit::NotMeant);
        }
        let there = |slot: &usize| cursor.pending(ThreadId::new(*slot)).status != Status::Vacant;
        let from_the_start = (0..cursor.threads()).filter(there).collect::<BTreeSet<_>>();
        let longest = Longest { waits, known: HashMap::new() }.from(&mut cursor)?;
        let threads = longest
            .iter()
            .enumerate()
            .filter(|(slot, rest)| from_the_start.contains(slot) || rest.steps > 0);
        let most = |of: fn(&Rest) -> u64| longest.iter().map(of).max().unwrap_or(0);
        Ok(Sizes {
            n: threads.count() as u64,
            k: most(|rest| rest.steps),
            // A thread that waits forever does not end, but is never switched to again.
            b: most(|rest| rest.blocking + rest.ends.max(1)),
            b_without_end: most(|rest| rest.blocking),
        })
    }

    fn bound(&self, b: u64, c: u32) -> f64 {
        let (steps, c) = ((self.n * self.k) as f64, u64::from(c));
        let choose =
            (0..c).map(|i| ((steps - i as f64) / (i + 1) as f64).max(0.0)).product::<f64>();
        choose * (1..=self.n * b + c).map(|i| i as f64).product::<f64>()
    }
}

/// The programs: name and machine.
fn programs() -> Vec<(String, Machine)> {
    let mut programs = Vec::new();
    for subject in corpus::subjects().expect("the corpus can be read") {
        for run in subject.runs.iter().filter(|run| !run.big) {
            let machine = subject.machine(run).expect("a program of the corpus");
            programs.push((format!("{} {run}", subject.name()), machine));
        }
    }
    programs
}

#[test]
fn there_are_no_more_executions_than_theorem_1_allows() {
    let (mut checked, mut cases, mut reached, mut needs_the_end) = (Vec::new(), 0, 0, 0);
    for (name, machine) in programs() {
        let Some((sizes, machine)) = Sizes::of(machine) else { continue };
        let executions = oracle::executions(&machine).expect("the longest path is finite");
        for (&c, &executions) in &executions {
            let (executions, bound) = (executions as f64, sizes.bound(sizes.b, c));
            assert!(
                executions <= bound * (1.0 + 1e-9),
                "{name}, {c} preemptions: {executions} > {bound}, {sizes:?}"
            );
            cases += 1;
            reached += usize::from(executions >= bound * (1.0 - 1e-9));
            needs_the_end += usize::from(executions > sizes.bound(sizes.b_without_end, c));
        }
        checked.push(name);
    }
    // If the bound were never reached, or held without the ends as well, the sizes would be too
    // large.
    assert!(
        reached > 0 && needs_the_end > 0,
        "reached {reached} times, {needs_the_end} need the end, of {cases}"
    );
    assert!(
        checked.len() > 30 && cases > 150,
        "only {} programs, {cases} cases: {checked:?}",
        checked.len()
    );
    for subject in ["zoo ", "races ", "work-stealing-queue protocol"] {
        assert!(
            checked.iter().any(|name| name.starts_with(subject)),
            "none of {subject}: {checked:?}"
        );
    }
}
