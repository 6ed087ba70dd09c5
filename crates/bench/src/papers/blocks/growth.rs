//! The data behind Figures 1 to 5 of blocks, and the example of three threads with 20 statements.
//!
//! The figures are curves without numbers; the statements of the text about them must be
//! reproduced. Numbers are powers of 10. The paper's worst case is that of formula (13), which
//! relies on Theorem 1; the true one, all blocks on one variable, is next to it.

use anyhow::{Result, ensure};
use preempt_explore::reduce::Dependence;
use preempt_explore::reduce::blocks::{Blocks, Figures, multinomial};
use preempt_system::{Access, Footprint, Location};
use serde::Deserialize;

use super::word;
use crate::random::Random;

/// The numbers in the text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stated {
    interleavings_of_3_times_20: f64,
    interleavings_of_blocks: u128,
    base: f64,
    reduction: f64,
}

/// Formula (12) for three threads of 20 accesses, by the number of variables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claims {
    claimed: Vec<(usize, f64)>,
    one_variable: String,
}

/// Statements of a block in Figures 3 to 5.
pub(in crate::papers) const PER_BLOCK: usize = 5;

/// log₁₀ of n!
fn factorial(n: usize) -> f64 {
    (2..=n).map(|i| (i as f64).log10()).sum()
}

/// log₁₀ of the interleavings of `threads` threads with `each` statements: formula (3).
pub(in crate::papers) fn interleavings(threads: usize, each: usize) -> f64 {
    factorial(threads * each) - threads as f64 * factorial(each)
}

/// log₁₀ of b (e^(2/e))^(b √(1 - 1/n)), which the paper calls the worst case for b blocks of n
/// threads.
pub(in crate::papers) fn worst_case(threads: usize, blocks: usize) -> f64 {
    let (n, b) = (threads as f64, blocks as f64);
    b.log10() + b * (1.0 - 1.0 / n).sqrt() * 2.0 / std::f64::consts::E * std::f64::consts::LOG10_E
}

/// Prints the data; returns whether the numbers in the text are reproduced. `quick` prints fewer
/// points.
pub(super) fn figures(stated: &Stated, quick: bool) -> bool {
    let points: &[usize] =
        if quick { &[1, 10, 20, 40] } else { &[1, 2, 3, 4, 5, 10, 15, 20, 25, 30, 35, 40] };
    println!(
        "\nblocks, Figures 1 and 2: interleavings of n threads with β statements each, as powers \
         of 10"
    );
    print!("  {:>4}", "β\\n");
    points.iter().for_each(|n| print!(" {n:>7}"));
    println!();
    for each in [2, 5, 10, 15, 20, 25, 30, 50, 100, 200] {
        print!("  {each:>4}");
        points.iter().for_each(|&n| print!(" {:>7.1}", interleavings(n, each)));
        println!();
    }
    let by_threads = points.iter().filter(|&&n| n <= 20).map(|&n| (n, 50));
    compare("Figure 4: n threads of 50 statements, 5 in a block", by_threads);
    let by_statements = [5, 10, 50, 100, 150, 200].into_iter().map(|each| (20, each));
    compare("Figures 3 and 5: 20 threads of β statements, 5 in a block", by_statements);
    stated.check()
}

fn compare(what: &str, points: impl Iterator<Item = (usize, usize)>) {
    println!(
        "\nblocks, {what}: interleavings, the paper's worst case, the true one, and both \
         reductions, as powers of 10"
    );
    for (threads, each) in points {
        let (all, blocks) = (interleavings(threads, each), each / PER_BLOCK);
        let (paper, truth) =
            (worst_case(threads, threads * blocks), interleavings(threads, blocks));
        println!(
            "  {threads:>4} {each:>4} {all:>8.1} {paper:>8.1} {truth:>8.1} {:>8.1} {:>8.1}",
            all - paper,
            all - truth
        );
    }
}

impl Stated {
    fn check(&self) -> bool {
        let exact = multinomial(&[20, 20, 20]).unwrap_or(0) as f64;
        let blocks = multinomial(&[1, 1, 2]);
        let base = (2.0 / std::f64::consts::E).exp();
        let reduction = interleavings(20, 200) - worst_case(20, 20 * 200 / PER_BLOCK);
        let digits = (exact / 1e26).floor() * 1e26 == self.interleavings_of_3_times_20;
        println!("\nblocks, numbers in the text: the paper's, ours");
        println!(
            "  60!/(20!)^3          {:.0e}  {exact:.3e}  {}",
            self.interleavings_of_3_times_20,
            if digits { "explained: cut after the first digit" } else { "DIFFERENT" }
        );
        println!(
            "  4!/(1! 1! 2!)        {}  {}  {}",
            self.interleavings_of_blocks,
            blocks.unwrap_or(0),
            word(blocks == Some(self.interleavings_of_blocks))
        );
        let same_base = (base - self.base).abs() < 1e-3;
        println!("  e^(2/e)              {}  {base:.4}  {}", self.base, word(same_base));
        let same_reduction = reduction.floor() == self.reduction;
        println!(
            "  reduction, 20 × 200  10^{}  10^{reduction:.1}  {}",
            self.reduction,
            word(same_reduction)
        );
        println!(
            "    with the true worst case it is 10^{:.1}",
            interleavings(20, 200) - interleavings(20, 40)
        );
        digits && blocks == Some(self.interleavings_of_blocks) && same_base && same_reduction
    }
}

/// Threads that access variables at random, half of the accesses being reads.
fn random_lines(variables: usize) -> Vec<Vec<Footprint>> {
    let mut random = Random::new(variables as u64);
    let mut access = || {
        let how = if random.percent(50) { Access::Read } else { Access::Write };
        Footprint::from_iter([(Location(random.below(variables) as u32), how)])
    };
    (0..3).map(|_| (0..20).map(|_| access()).collect()).collect()
}

/// Prints the counts of three threads of 20 random accesses; returns whether those that must be
/// equal are.
pub(super) fn three_times_twenty(claims: &Claims) -> Result<bool> {
    println!(
        "\nblocks, section 5: three threads of 20 random accesses, half of them reads (our \
         programs); variables, formula (12), orders"
    );
    println!("combined, PO graphs, traces where reads commute");
    let mut good = true;
    for &(variables, claimed) in &claims.claimed {
        let lines = random_lines(variables);
        let paper = Figures::of(&Blocks::new(&lines, Dependence::All));
        let ours = Figures::of(&Blocks::new(&lines, Dependence::ReadWrite));
        let number = |number: Option<u128>| {
            number.map_or("too many".to_owned(), |number| number.to_string())
        };
        let equal = (paper.claimed / claimed - 1.0).abs() < 0.05
            && (variables > 1
                || [paper.product, paper.graphs].map(number)
                    == [&claims.one_variable; 2].map(Clone::clone));
        ensure!(
            ours.graphs <= paper.graphs && paper.graphs <= paper.product,
            "reads that commute lead to fewer graphs"
        );
        good &= equal;
        println!(
            "  {variables} {:.1e}  {:>27} {:>27} {:>20}  {}",
            paper.claimed,
            number(paper.product),
            number(paper.graphs),
            number(ours.graphs),
            word(equal)
        );
    }
    Ok(good)
}
