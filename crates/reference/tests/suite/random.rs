//! Random programs: every search agrees with the reference, and every construct is generated.

use std::ops::Range;

use preempt_lang::source::Source;
use preempt_lang::syntax::parse;
use preempt_reference::compare::{Selection, Verdict, compare};
use preempt_reference::coverage::{Coverage, Relation};
use preempt_reference::generate::program;
use preempt_reference::shrink::shrink;

const PROGRAMS: u64 = 1_000;

/// For each program of which all searches are compared, this many of which only the states are.
const MORE: u64 = 10;

/// Pairs of constructs, the second directly inside the first, in which errors are likely.
const PAIRS: [(&str, &str); 20] = [
    ("while constant", "assert"),
    ("while constant", "break"),
    ("atomic", "call statement"),
    ("atomic", "choose blocks"),
    ("atomic", "await"),
    ("atomic", "assume"),
    ("atomic", "while"),
    ("atomic", "return"),
    ("atomic", "break"),
    ("choose blocks", "atomic"),
    ("choose blocks", "break"),
    ("loop", "atomic"),
    ("for", "continue"),
    ("match", "await"),
    ("else", "assert"),
    ("init", "spawn statement"),
    ("end", "await"),
    ("fn", "atomic"),
    ("fn", "await"),
    ("thread with parameter", "while"),
];

/// The number of programs that CI uses, or `REFERENCE_PROGRAMS`.
fn programs() -> u64 {
    let programs =
        std::env::var("REFERENCE_PROGRAMS").ok().and_then(|programs| programs.parse().ok());
    programs.unwrap_or(PROGRAMS)
}

#[test]
fn every_search_agrees_with_the_reference() {
    agree(0..programs(), Selection::Some);
}

/// Every search uses the same compiler, so one of them can check it with more programs.
#[test]
fn the_states_of_more_programs_agree_with_the_reference() {
    agree(programs()..(1 + MORE) * programs(), |_| Selection::First);
}

fn agree(seeds: Range<u64>, selection: impl Fn(u64) -> Selection) {
    let programs = seeds.end - seeds.start;
    let (mut agree, mut refused) = (0, 0);
    for seed in seeds {
        let text = program(seed);
        let selection = selection(seed);
        match compare(&text, selection) {
            Verdict::Agree(_) => agree += 1,
            Verdict::TooLarge | Verdict::Orderings => {}
            Verdict::Refused(_) => refused += 1,
            Verdict::Disagree(disagreement) => {
                let same = |text: &str| {
                    matches!(compare(text, selection), Verdict::Disagree(other)
                        if (&other.search, other.what) == (&disagreement.search, disagreement.what))
                };
                // `scripts/mutants` runs many broken builds and needs no shrunk program.
                let shrinks = std::env::var("REFERENCE_SHRINK").as_deref() != Ok("0");
                let text = if shrinks { shrink(&text, same) } else { text };
                panic!("seed {seed}: {disagreement}\n{text}");
            }
        }
    }
    assert!(agree > programs * 8 / 10, "only {agree} programs were compared");
    assert!(refused <= programs / 20, "{refused} programs were refused");
}

#[test]
fn every_construct_is_generated() {
    let mut coverage = Coverage::default();
    for seed in 0..PROGRAMS {
        coverage.add(&parse(&Source::new("random.pre", program(seed))).0);
    }
    assert_eq!(coverage.missing(), [""; 0]);
    assert!(coverage.pairs.len() > 1_500, "only {} pairs of constructs", coverage.pairs.len());
    let missing = PAIRS.iter().filter(|(outer, inner)| {
        let pair = ((*outer).to_owned(), Relation::Inside, (*inner).to_owned());
        !coverage.pairs.contains_key(&pair)
    });
    assert_eq!(missing.collect::<Vec<_>>(), [&("", ""); 0]);
}
