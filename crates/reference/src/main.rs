//! Compares the searches with the reference: on files, or on many random programs.
//!
//! `preempt-reference --programs 1000 --from 0` compares the programs with the seeds 0 to 999;
//! `preempt-reference FILE…` compares these files; `--show` prints the program of the seed `--from`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use preempt_explore::Points;
use preempt_lang::source::Source;
use preempt_reference::compare::plans::strategy;
use preempt_reference::compare::{Disagreement, Selection, Verdict, compare};
use preempt_reference::coverage::Coverage;
use preempt_reference::generate::program;
use preempt_reference::shrink::shrink;

/// How many disagreements of one sort are made small and shown.
const SHOWN: usize = 1;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1)?.parse::<u64>().ok()
    };
    // Panics are reported as disagreements.
    std::panic::set_hook(Box::new(|_| {}));
    let from = number("--from").unwrap_or(0);
    let good = if arguments.iter().any(|argument| argument == "--show") {
        println!("{}", program(from));
        true
    } else if let Some(programs) = number("--programs") {
        let all = arguments.iter().any(|argument| argument == "--all");
        random(from, programs, all)
    } else {
        arguments.iter().all(|file| on_file(file))
    };
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn on_file(file: &str) -> bool {
    match std::fs::read_to_string(file).map(|text| compare(&text, Selection::All)) {
        Ok(verdict) => {
            match &verdict {
                Verdict::Agree(plans) => println!("{file}: {} searches agree", plans.len()),
                Verdict::TooLarge => println!("{file}: too large for brute force"),
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

fn random(from: u64, programs: u64, all: bool) -> bool {
    let (mut agree, mut large) = (0, 0);
    let mut compared: BTreeMap<(String, bool), (u64, u64)> = BTreeMap::new();
    let mut refused: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut disagree: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut coverage = Coverage::default();
    for seed in from..from + programs {
        let text = program(seed);
        let selection = if all { Selection::All } else { Selection::Some(seed) };
        match compare(&text, selection) {
            Verdict::Agree(plans) => {
                agree += 1;
                let mut programs = BTreeSet::new();
                for plan in &plans {
                    let row = (strategy(plan), plan.points == Points::Sync);
                    let counts = compared.entry(row.clone()).or_default();
                    counts.0 += u64::from(programs.insert(row));
                    counts.1 += 1;
                }
                coverage.add(&preempt_lang::syntax::parse(&Source::new("random.pre", text.as_str())).0);
            }
            Verdict::TooLarge => large += 1,
            Verdict::Refused(message) => {
                let words = message.split_once(": ").map_or(message.as_str(), |(_, words)| words);
                refused.entry(words.to_owned()).or_default().push(seed);
            }
            Verdict::Disagree(disagreement) => {
                let sort = sort(&disagreement);
                let seeds = disagree.entry(sort.clone()).or_default();
                seeds.push(seed);
                if seeds.len() <= SHOWN {
                    report(seed, &text, &sort, selection);
                }
            }
        }
    }
    for (sort, seeds) in &disagree {
        println!("{} disagree about {sort}, first seeds {:?}", seeds.len(), &seeds[..seeds.len().min(5)]);
    }
    let all: usize = refused.values().map(Vec::len).sum();
    println!(
        "{programs} programs from seed {from}: {agree} agree, {} disagree, {large} too large, \
         {all} refused",
        disagree.values().map(Vec::len).sum::<usize>()
    );
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

/// Disagreements of one sort probably have one cause.
fn sort(disagreement: &Disagreement) -> String {
    let found = if disagreement.what == "panic" { disagreement.found.as_str() } else { "" };
    format!("{} {}: {found}", disagreement.search, disagreement.what)
}

fn report(seed: u64, text: &str, wanted: &str, selection: Selection) {
    let same = |text: &str| matches!(compare(text, selection), Verdict::Disagree(d) if sort(&d) == wanted);
    let small = shrink(text, same);
    if let Verdict::Disagree(disagreement) = compare(&small, selection) {
        println!("seed {seed}: {disagreement}\n{small}");
    }
}
