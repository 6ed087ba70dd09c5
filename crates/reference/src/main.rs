//! Compares the product's searches with the reference, on files or on random programs. See
//! `--help`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use preempt_explore::Points;
use preempt_lang::source::Source;
use preempt_reference::compare::plans::strategy;
use preempt_reference::compare::weak::{WeakVerdict, compare_weak};
use preempt_reference::compare::{
    Compared, Disagreement, MOST_EXECUTIONS, MOST_STATES, Selection, Verdict, compare,
};
use preempt_reference::coverage::Coverage;
use preempt_reference::executions::Unknown;
use preempt_reference::generate::program;
use preempt_reference::shrink::shrink;

/// The number of disagreements of one kind that are shrunk and shown.
const SHOWN: usize = 1;

const USAGE: &str = "\
Compares the searches with an independent semantics of models.

Usage: preempt-reference --programs N [--from SEED] [--all]
       preempt-reference --weak N [--from SEED]
       preempt-reference --show [--from SEED]
       preempt-reference FILE...

  --programs N   Compare N random programs, one for each seed
  --weak N       Compare N random models with weak memory with the axioms of the memory model
  --from SEED    The first seed [default: 0]
  --all          Compare all plans on every program, not a selection
  --show         Print the program of the first seed
  FILE           Compare all plans on this model

Exits with 0 if all agree, 1 if a search disagrees, 2 if the arguments are wrong.
";

enum Task {
    Help,
    Show { seed: u64 },
    Random { from: u64, programs: u64, all: bool },
    Weak { from: u64, programs: u64 },
    Files(Vec<String>),
}

fn main() -> ExitCode {
    let task = match task(std::env::args().skip(1)) {
        Ok(task) => task,
        Err(message) => {
            eprintln!("error: {message}\n\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    // `compare` reports panics as disagreements, so the default hook would only add noise.
    std::panic::set_hook(Box::new(|_| {}));
    let agree = match task {
        Task::Help => {
            print!("{USAGE}");
            true
        }
        Task::Show { seed } => {
            println!("{}", program(seed));
            true
        }
        Task::Random { from, programs, all } => random(from, programs, all),
        Task::Weak { from, programs } => random_weak(from, programs),
        // `filter` instead of `all`: a disagreement on one file must not hide others.
        Task::Files(files) => files.iter().filter(|file| !on_file(file)).count() == 0,
    };
    if agree { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn task(mut arguments: impl Iterator<Item = String>) -> Result<Task, String> {
    let (mut programs, mut weak, mut from, mut all, mut show, mut files) =
        (None, None, 0, false, false, Vec::new());
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let value = arguments.next().ok_or_else(|| format!("{argument} needs a number"))?;
            value.parse::<u64>().map_err(|_| format!("{argument} needs a number, not \"{value}\""))
        };
        match argument.as_str() {
            "--help" | "-h" => return Ok(Task::Help),
            "--programs" => programs = Some(number()?),
            "--weak" => weak = Some(number()?),
            "--from" => from = number()?,
            "--all" => all = true,
            "--show" => show = true,
            unknown if unknown.starts_with('-') => return Err(format!("unknown option {unknown}")),
            _ => files.push(argument),
        }
    }
    match (programs, weak, show, files.is_empty()) {
        (Some(programs), None, false, true) => Ok(Task::Random { from, programs, all }),
        (None, Some(programs), false, true) => Ok(Task::Weak { from, programs }),
        (None, None, true, true) => Ok(Task::Show { seed: from }),
        (None, None, false, false) => Ok(Task::Files(files)),
        (None, None, false, true) => Err("nothing to compare".to_owned()),
        _ => Err("--programs, --weak, --show and files exclude each other".to_owned()),
    }
}

fn on_file(file: &str) -> bool {
    match std::fs::read_to_string(file).map(|text| compare(&text, Selection::All)) {
        Ok(verdict) => {
            match &verdict {
                Verdict::Agree(compared) => println!("{file}: {}", extent(compared)),
                Verdict::TooLarge => println!("{file}: too large for brute force"),
                Verdict::Orderings => println!("{file}: skipped: it has memory orderings"),
                Verdict::Refused(message) => println!("{file}: refused: {message}"),
                Verdict::Disagree(disagreement) => println!("{file}: {disagreement}"),
            }
            !matches!(verdict, Verdict::Disagree(_))
        }
        Err(error) => {
            println!("{file}: {error}");
            false
        }
    }
}

fn extent(compared: &Compared) -> String {
    let searches = format!("{} searches agree", compared.plans.len());
    match compared.without_executions {
        Some(why) => format!("{searches}, none over executions: {}", reason(why)),
        None => searches,
    }
}

/// Why no search over executions was compared.
fn reason(unknown: Unknown) -> String {
    match unknown {
        Unknown::NoStart => "the program fails before its first step".to_owned(),
        Unknown::Endless => "some never end".to_owned(),
        Unknown::TooMany => format!("more than {} executions", MOST_EXECUTIONS.executions),
        Unknown::TooLong => format!("more than {} steps in all", MOST_EXECUTIONS.steps),
    }
}

fn random_weak(from: u64, programs: u64) -> bool {
    let (mut agree, mut large, mut all, mut dead) = (0, 0, 0, 0);
    let mut disagree = 0;
    for (done, seed) in (from..from + programs).enumerate() {
        if done > 0 && done % 1_000 == 0 {
            eprintln!("{done} of {programs} programs");
        }
        match compare_weak(seed) {
            WeakVerdict::Agree { graphs, dead_ends } => {
                (agree, all, dead) = (agree + 1, all + graphs, dead + dead_ends);
            }
            WeakVerdict::TooLarge => large += 1,
            WeakVerdict::Disagree(what) => {
                disagree += 1;
                println!("seed {seed}: {what}");
            }
        }
    }
    println!(
        "{programs} models with weak memory from seed {from}: {agree} agree, {disagree} disagree, \
         {large} too large; {all} graphs, {dead} dead ends ({:.1} %)",
        100.0 * dead as f64 / all.max(1) as f64
    );
    disagree == 0
}

fn random(from: u64, programs: u64, all: bool) -> bool {
    let (mut agree, mut large) = (0, 0);
    let mut compared: BTreeMap<(String, bool), (u64, u64)> = BTreeMap::new();
    let mut refused: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut disagree: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut partly: BTreeMap<Unknown, u64> = BTreeMap::new();
    let mut coverage = Coverage::default();
    for (done, seed) in (from..from + programs).enumerate() {
        if done > 0 && done % 1_000 == 0 {
            eprintln!("{done} of {programs} programs");
        }
        let text = program(seed);
        let selection = if all { Selection::All } else { Selection::Some(seed) };
        match compare(&text, selection) {
            Verdict::Agree(Compared { plans, without_executions }) => {
                agree += 1;
                if let Some(why) = without_executions {
                    *partly.entry(why).or_default() += 1;
                }
                let mut programs = BTreeSet::new();
                for plan in &plans {
                    let row = (strategy(plan), plan.points == Points::Sync);
                    let counts = compared.entry(row.clone()).or_default();
                    counts.0 += u64::from(programs.insert(row));
                    counts.1 += 1;
                }
                coverage
                    .add(&preempt_lang::syntax::parse(&Source::new("random.pre", text.as_str())).0);
            }
            Verdict::TooLarge => large += 1,
            Verdict::Orderings => unreachable!("random programs have no memory orderings"),
            Verdict::Refused(message) => {
                let words = message.split_once(": ").map_or(message.as_str(), |(_, words)| words);
                refused.entry(words.to_owned()).or_default().push(seed);
            }
            Verdict::Disagree(disagreement) => {
                let cause = cause(&disagreement);
                let seeds = disagree.entry(cause.clone()).or_default();
                seeds.push(seed);
                if seeds.len() <= SHOWN {
                    report(seed, &text, &cause, selection);
                }
            }
        }
    }
    for (cause, seeds) in &disagree {
        println!(
            "{} disagree about {cause}, first seeds {:?}",
            seeds.len(),
            &seeds[..seeds.len().min(5)]
        );
    }
    let all: usize = refused.values().map(Vec::len).sum();
    println!(
        "{programs} programs from seed {from}: {agree} agree, {} disagree, {large} too large (more than {MOST_STATES} states), \
         {all} refused",
        disagree.values().map(Vec::len).sum::<usize>()
    );
    for (why, programs) in &partly {
        println!("  {programs} agree without executions: {}", reason(*why));
    }
    for (message, seeds) in &refused {
        println!("  refused {}: {message}, seed {}", seeds.len(), seeds[0]);
    }
    for ((strategy, sync), (programs, searches)) in &compared {
        let points = if *sync { "sync" } else { "all" };
        println!("  {strategy}, points {points}: {programs} programs, {searches} searches");
    }
    println!(
        "{} constructs, {} pairs; never: {:?}",
        coverage.constructs.len(),
        coverage.pairs.len(),
        coverage.missing()
    );
    disagree.is_empty()
}

/// A key that groups disagreements which probably have the same cause.
fn cause(disagreement: &Disagreement) -> String {
    let found = if disagreement.what == "panic" { disagreement.found.as_str() } else { "" };
    format!("{} {}: {found}", disagreement.search, disagreement.what)
}

fn report(seed: u64, text: &str, wanted: &str, selection: Selection) {
    let same = |text: &str| matches!(compare(text, selection), Verdict::Disagree(d) if cause(&d) == wanted);
    let small = shrink(text, same);
    if let Verdict::Disagree(disagreement) = compare(&small, selection) {
        println!("seed {seed}: {disagreement}\n{small}");
    }
}

#[cfg(test)]
mod tests {
    use super::{Task, task};

    fn parsed(words: &str) -> Result<Task, String> {
        task(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_that_say_nothing_are_refused() {
        for words in
            ["", "--programs", "--programs many", "--form 7", "--programs 5 model.pre", "--from 3"]
        {
            assert!(parsed(words).is_err(), "{words:?}");
        }
        assert!(matches!(
            parsed("--programs 5 --from 3"),
            Ok(Task::Random { from: 3, programs: 5, all: false })
        ));
        assert!(matches!(parsed("--show --from 3"), Ok(Task::Show { seed: 3 })));
        assert!(matches!(parsed("a.pre b.pre"), Ok(Task::Files(files)) if files.len() == 2));
    }
}
