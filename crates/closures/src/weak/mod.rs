//! Random programs under weak memory: the search over execution graphs compared with all
//! executions.
//!
//! A [program] mixes accesses to atomics of every ordering, fences and the objects of std that
//! block. Brute force executes every interleaving and every alternative of the memory, so it visits
//! each graph many times; the search over graphs has to visit the same number of graphs, each once,
//! with the same observations and deadlocks. Graphs are counted by fingerprints of 128 bits.
//!
//! Both searches use the memory of the library, which `preempt-reference --weak` compares with the
//! axioms of its model.

mod execute;
pub mod program;

use std::fmt;
use std::ops::Range;
use std::sync::Mutex;

use preempt::{Check, FailureKind, Memory, Order, Outcome, Reduction, Verdict};

use self::execute::{Seen, execute};
use self::program::{FAMILIES, Program};

/// The most executions of brute force.
const MOST_EXECUTIONS: u64 = 2_000;

/// The result of comparing a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compared {
    /// Both agree.
    Agree {
        /// The number of graphs.
        graphs: u64,
        /// The number of graphs that the search has begun in vain: no complete graph follows.
        dead_ends: u64,
    },
    /// Too many executions for brute force.
    TooLarge,
    /// They disagree about this.
    Disagree(String),
}

/// Compares the searches of a program.
pub fn compare(program: &Program) -> Compared {
    let check = Check::new().memory(Memory::Weak).unbounded().keep_going().quiet();
    let brute = check.clone().order(Order::Executions).executions(MOST_EXECUTIONS);
    let (brute, expected) = match explore(&brute, program) {
        Ok(explored) => explored,
        Err(refusal) => return Compared::Disagree(refusal),
    };
    if brute.verdict == Verdict::Incomplete || numbers(&brute).0 >= MOST_EXECUTIONS {
        return Compared::TooLarge;
    }
    let (outcome, seen) = match explore(&check.reduce(Reduction::Graphs), program) {
        Ok(explored) => explored,
        Err(refusal) => return Compared::Disagree(refusal),
    };
    let (executions, graphs, dead_ends) = numbers(&outcome);
    let all = numbers(&brute).1;
    let deadlocks = [&outcome, &brute].map(|outcome| {
        outcome.findings.iter().any(|finding| finding.failure.kind == FailureKind::Deadlock)
    });
    if graphs != all {
        Compared::Disagree(format!("{graphs} graphs instead of {all}"))
    } else if executions != graphs {
        Compared::Disagree(format!("{executions} executions of {graphs} graphs"))
    } else if seen != expected {
        Compared::Disagree(format!("{seen:?} is observed instead of {expected:?}"))
    } else if deadlocks[0] != deadlocks[1] || !outcome.complete {
        Compared::Disagree(outcome.guarantee())
    } else {
        Compared::Agree { graphs, dead_ends }
    }
}

/// The outcome of a search, and what the threads observed in any execution.
fn explore(check: &Check, program: &Program) -> Result<(Outcome, Seen), String> {
    let seen = Mutex::new(Seen::new());
    let outcome = check.try_run(|| execute(program, &seen)).map_err(|it| it.to_string())?;
    Ok((outcome, seen.into_inner().expect("no thread panics while it holds the mutex")))
}

/// The numbers of executions, of graphs and of dead ends.
fn numbers(outcome: &Outcome) -> (u64, u64, u64) {
    let tally = outcome.tally.expect("a search over executions counts them");
    (tally.executions, tally.traces.expect("graphs are counted"), tally.pruned)
}

/// The results of comparing many programs.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The number of programs on which both agree.
    pub agree: u64,
    /// The number of programs that are too large for brute force.
    pub too_large: u64,
    /// The number of graphs of the programs on which both agree.
    pub graphs: u64,
    /// The number of dead ends in the searches for them.
    pub dead_ends: u64,
    /// The programs of each family on which both agree.
    pub families: [u64; FAMILIES.len()],
    /// The disagreements, each with its seed and program.
    pub disagreements: Vec<String>,
}

/// Compares the programs with these seeds.
pub fn run(seeds: Range<u64>, mut progress: impl FnMut(u64)) -> Report {
    let mut report = Report::default();
    for seed in seeds {
        progress(seed);
        let program = program::of_seed(seed);
        match compare(&program) {
            Compared::Agree { graphs, dead_ends } => {
                report.agree += 1;
                report.graphs += graphs;
                report.dead_ends += dead_ends;
                for (family, count) in FAMILIES.iter().zip(&mut report.families) {
                    *count += u64::from(program.families.contains(family));
                }
            }
            Compared::TooLarge => report.too_large += 1,
            Compared::Disagree(what) => {
                report.disagreements.push(format!("seed {seed}: {what}\n{:?}", program.threads));
            }
        }
    }
    report
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.disagreements.iter().try_for_each(|disagreement| writeln!(f, "{disagreement}"))?;
        let Report { agree, too_large, graphs, dead_ends, .. } = self;
        let percent = 100.0 * *dead_ends as f64 / (*graphs).max(1) as f64;
        writeln!(
            f,
            "{agree} programs agree, {} disagree, {too_large} too large",
            self.disagreements.len()
        )?;
        writeln!(f, "{graphs} graphs, {dead_ends} dead ends ({percent:.1} %)")?;
        let families = FAMILIES.iter().zip(self.families);
        let families = families.map(|(family, count)| format!("{family:?} {count}"));
        write!(f, "programs with each kind of operation: {}", Vec::from_iter(families).join(", "))
    }
}
