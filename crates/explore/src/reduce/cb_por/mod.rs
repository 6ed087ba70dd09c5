//! Partial-order reduction for a bounded number of preemptions.
//!
//! **Paper.** cb-por: Algorithm 1 ([`states`]), Algorithm 2 ([`terminals`]), CB(s, t) (section
//! 3.2), canonical states (3.3).
//!
//! **Guarantees.** CB(s) is the least number of preemptions of the executions that lead to the
//! happens-before state s. [`states`] visits every state with CB ≤ bound once; [`terminals`] runs
//! exactly one execution to every terminal state with CB ≤ bound, none twice, and marks every state
//! with CB ≤ bound. Deadlocks, assertions at the end of an execution or on the way to it, and
//! terminal states within the bound survive; [`terminals`] does not visit all states between. The
//! executions shown may have more preemptions than the bound: the bound holds for the best
//! execution of the same trace. If [`Counts::bounded`] is 0 the bound left nothing out.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | state s, as the set of its actions | a `Name`: a fingerprint, or the set itself |
//! | prefix x of s | a cut of the `log` |
//! | E(x), next(x, t) | `cuts::Known::possible` |
//! | CB(x, t) | `cuts::Possible::bound` |
//! | Search | the loop in `search` |
//! | Mark | `mark` |
//! | H | `Search::visited` |
//!
//! **Deviations.**
//!
//! 1. The paper leaves open what a prefix enables that was never executed. Here its state is
//!    computed, from that of a smaller prefix by one step of the program, once for each name. So E,
//!    next and CB are exact for all objects that can block, for conditions that wait and for steps
//!    whose footprint depends on the state.
//! 2. A thread with several alternatives has one CB and several successors, each with its own
//!    footprint and name; all of them have to be in H before Mark goes back. Nothing is concluded
//!    from one alternative about another.
//! 3. Explicit stacks for Search, Mark and CB: each is as deep as an execution.
//! 4. 128-bit fingerprints instead of 32 bits and a comparison, or the exact sets
//!    ([`Names::Exact`]).
//! 5. The initial state may be terminal.
//! 6. CB is computed only for the prefixes with CB ≤ bound, which `within` finds. The paper
//!    computes it backwards, for all prefixes: kⁿ of an execution of n threads with k actions.
//!
//! **Cost.** Memory: the steps of every state with CB ≤ bound that was found so far, 32 bytes each,
//! and the state itself for those before the present one. Mark is called once per state with CB ≤
//! bound. Time: per such state one step and one trial of each thread; and per step of Search the
//! states with CB ≤ bound before the present one are compared with it.

mod cuts;
mod log;
mod mark;
mod name;
mod search;
mod within;

use preempt_system::{Fingerprint, System};

use super::Dependence;
use crate::codec::save_fields;
use crate::engine::cursor::Cursor;
use crate::engine::execution::{Stop, Visitor, run_to_end};
use crate::reduce::policy::ReducedSearch;
use name::{Exact, Name};
pub(crate) use search::{Algorithm, Search};

/// The names of states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Names {
    /// 128 bits.
    #[default]
    Fingerprints,
    /// The set of its actions.
    Exact,
}

/// The configuration of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The most preemptions.
    pub bound: u32,
    /// The dependence relation.
    pub dependence: Dependence,
    /// The kind of names.
    pub names: Names,
}

/// The counts of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Executions that were followed to their end.
    pub executions: u64,
    /// Calls of Search.
    pub searches: u64,
    /// Calls of Mark.
    pub marks: u64,
    /// The number of times that Mark checked whether all successors of a state are marked.
    pub evaluations: u64,
    /// States in H at the end.
    pub states: u64,
    /// Cuts whose CB was computed.
    pub cuts: u64,
    /// Steps from visited or marked states that the bound left out.
    pub bounded: u64,
    /// Insertions into H of a state that was there already. Always 0.
    pub twice: u64,
    /// Calls of Search that led nowhere. Always 0, by Theorem 4.
    pub dead_ends: u64,
    /// Whether the initial state is in H at the end.
    pub initial: bool,
}

save_fields!(Counts {
    executions,
    searches,
    marks,
    evaluations,
    states,
    cuts,
    bounded,
    twice,
    dead_ends,
    initial
});

/// Algorithm 1: visits every happens-before state that can be reached with `bound` preemptions
/// once.
pub fn states<S: System>(
    cursor: &mut Cursor<S>,
    visitor: &mut impl Visitor<S>,
    config: &Config,
) -> Result<Counts, Stop<S::Need>> {
    run(cursor, visitor, config, Algorithm::States)
}

/// Algorithm 2: runs one execution to every terminal happens-before state that can be reached with
/// `bound` preemptions.
pub fn terminals<S: System>(
    cursor: &mut Cursor<S>,
    visitor: &mut impl Visitor<S>,
    config: &Config,
) -> Result<Counts, Stop<S::Need>> {
    run(cursor, visitor, config, Algorithm::Terminals)
}

fn run<S: System>(
    cursor: &mut Cursor<S>,
    visitor: &mut impl Visitor<S>,
    config: &Config,
    algorithm: Algorithm,
) -> Result<Counts, Stop<S::Need>> {
    match config.names {
        Names::Fingerprints => count(strategy(cursor, config, algorithm), visitor),
        Names::Exact => count(named::<S, Exact>(cursor, config, algorithm), visitor),
    }
}

fn count<S: System, N: Name>(
    mut search: ReducedSearch<'_, S, Search<S, N>>,
    visitor: &mut impl Visitor<S>,
) -> Result<Counts, Stop<S::Need>> {
    run_to_end(&mut search, visitor)?;
    Ok(search.nodes.policy.counts(&search.nodes.stats))
}

/// The search as a strategy, with fingerprints.
pub(crate) fn strategy<'c, S: System>(
    cursor: &'c mut Cursor<S>,
    config: &Config,
    algorithm: Algorithm,
) -> ReducedSearch<'c, S, Search<S, Fingerprint>> {
    named(cursor, config, algorithm)
}

fn named<'c, S: System, N: Name>(
    cursor: &'c mut Cursor<S>,
    config: &Config,
    algorithm: Algorithm,
) -> ReducedSearch<'c, S, Search<S, N>> {
    let search = Search::new(cursor.threads(), config, algorithm);
    ReducedSearch::new(cursor, config.dependence, search)
}

impl Counts {
    /// Checks the invariants of Algorithm 1; returns the one that is violated.
    pub fn check_states(&self) -> Result<(), &'static str> {
        check([
            (self.searches == self.states, "every search call is a new state"),
            (self.twice == 0, "no state is visited twice"),
            (self.initial, "the initial state is visited"),
        ])
    }

    /// Checks the invariants of Algorithm 2; returns the one that is violated.
    pub fn check_terminals(&self) -> Result<(), &'static str> {
        check([
            (self.marks == self.states, "every mark call is a new state"),
            (self.twice == 0, "no state is marked twice"),
            (self.dead_ends == 0, "every search call on a state that is not terminal takes a step"),
            (self.initial, "the initial state is marked"),
        ])
    }
}

fn check<const N: usize>(invariants: [(bool, &'static str); N]) -> Result<(), &'static str> {
    invariants.into_iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, invariant)| Err(invariant))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::execution::Ignore;
    use crate::toy::{Op, Toy, grid, random};

    fn search(toy: &Toy, algorithm: Algorithm, bound: u32, names: Names) -> Counts {
        let mut cursor = Cursor::new(toy).expect("states of a toy have room");
        let config = Config { bound, names, ..Config::default() };
        run(&mut cursor, &mut Ignore, &config, algorithm).expect("nothing stops the search")
    }

    /// Threads of two steps each. If all steps depend on each other, a happens-before state is a
    /// sequence of steps: there are 6 of four steps, and 19 with their prefixes. If threads are
    /// independent, it is one of 9 pairs of positions, with 12 steps between them.
    #[test]
    fn small_systems_have_the_counts_that_follow_from_their_graphs() {
        let dependent = grid(2, 2);
        let independent =
            Toy::new(2, [0, 1].map(|cell| vec![Op::Set { cell, value: 0 }; 2]).to_vec());
        let of = |executions, searches, marks, evaluations, states, bounded| Counts {
            executions,
            searches,
            marks,
            evaluations,
            states,
            cuts: states,
            bounded,
            initial: true,
            ..Counts::default()
        };
        for names in [Names::Fingerprints, Names::Exact] {
            let states = |toy, bound| search(toy, Algorithm::States, bound, names);
            let terminals = |toy, bound| search(toy, Algorithm::Terminals, bound, names);
            assert_eq!(states(&dependent, 9), of(6, 19, 0, 0, 19, 0));
            // One execution passes five states. Of the others, the last two on either side have a
            // successor that was visited before.
            let dead_ends = 2;
            assert_eq!(states(&independent, 9), Counts { dead_ends, ..of(1, 9, 0, 0, 9, 0) });
            // Every state but the initial one follows one other state, or its two neighbours.
            assert_eq!(terminals(&dependent, 9), of(6, 19, 19, 18, 19, 0));
            assert_eq!(terminals(&independent, 9), of(1, 5, 9, 12, 9, 0));
            // Without preemptions, one thread follows the other; after the first step of either,
            // the step of the other one is left out.
            assert_eq!(states(&dependent, 0), of(2, 9, 0, 0, 9, 2));
            assert_eq!(terminals(&dependent, 0), of(2, 9, 9, 8, 9, 2));
        }
    }

    /// Five independent threads of two steps have one trace. A state says how far each thread is,
    /// and CB is the number of threads between their two steps, without the last one that moved. So
    /// j threads are there in C(5, j)·2⁵⁻ʲ states, and those with j ≤ bound + 1 are evaluated, of
    /// 3⁵ in all.
    #[test]
    fn only_states_within_the_bound_are_evaluated() {
        let threads = (0..5).map(|cell| vec![Op::Set { cell, value: 0 }; 2]).collect();
        let toy = Toy::new(5, threads);
        let within = [32, 80, 80, 40, 10, 1];
        for bound in 0..6 {
            let expected: u64 = within.iter().take(bound as usize + 2).sum();
            for names in [Names::Fingerprints, Names::Exact] {
                let counts = search(&toy, Algorithm::Terminals, bound, names);
                assert_eq!((counts.cuts, counts.states), (expected, expected), "bound {bound}");
                assert_eq!(counts.executions, 1);
            }
        }
    }

    #[test]
    fn the_invariants_hold_on_random_programs() {
        let mut searched = 0;
        for seed in 0..200 {
            // Cells that never outgrow their bits.
            let toy = Toy { bits: 10, ..random(seed) };
            if crate::oracle::executions(&toy).is_none_or(|all| all.values().sum::<u128>() > 400) {
                continue;
            }
            searched += 1;
            for bound in [0, 1, 2] {
                let named = |algorithm| {
                    let [one, other] = [Names::Fingerprints, Names::Exact]
                        .map(|names| search(&toy, algorithm, bound, names));
                    assert_eq!(one, other, "program {seed}, bound {bound}");
                    one
                };
                let (states, terminals) = (named(Algorithm::States), named(Algorithm::Terminals));
                assert_eq!(states.check_states(), Ok(()), "program {seed}, bound {bound}");
                assert_eq!(terminals.check_terminals(), Ok(()), "program {seed}, bound {bound}");
                assert_eq!(states.bounded > 0, terminals.bounded > 0, "program {seed}");
            }
        }
        assert!(searched > 30, "{searched}");
    }
}
