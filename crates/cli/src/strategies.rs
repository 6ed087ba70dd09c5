//! `preempt strategies`: what can be chosen, what it guarantees, what it costs.

use crate::{Exit, Refused, screen};

const TEXT: &str = "\
A search is an order, a reduction and a store. All of them find assertions,
invariants, run-time errors and deadlocks, except for transactions below; every
error is replayed before it is reported. Without limits, a search that ends has
seen every reachable state, unless the store, the order or the reduction says
otherwise below.

--order    in which order states are expanded, or executions are taken
  auto         first the simplest executions (icb to bound 2, 200,000 states at
               most), and if they show no error, all states (bfs). With --bound,
               icb; with --reduce, the order that belongs to it. The default.
  bfs          level by level. The first error is one with the fewest steps, and
               a search that a limit ends says which depth is covered in full.
               Keeps the states of two levels besides the store.
  dfs          the newest state first. Reaches deep states early and may need
               less memory; its schedules are longer than they need to be, and
               a search that a limit ends covers no depth in full.
  icb          executions without preemptions, then those with one, and so on
               (iterative context bounding). The first error is one with the
               fewest preemptions, and every bound that is done is covered in
               full. --bound N ends it there, --cache says what it remembers.
  cb-dfs       every execution with at most --bound preemptions, depth first.
               Remembers nothing.
  dfs-hb       the same, or without a bound, but of executions that differ only
               in the order of independent steps few are taken twice.
  executions   every execution, depth first. Remembers nothing.
  depth        every execution up to --depth steps, depth first.
  idfs         the same with 1 step, 2 steps, and so on until none is cut.
  random       --runs executions; at every step all threads that can move are
               equally likely. Proves nothing, like the next two; --seed gives
               other executions.
  pct          --runs executions by priorities that change at random steps: each
               finds an error of depth d (--pct-depth) in n threads of k steps
               in all with a probability of 1 / (n * k^(d-1)) or more.
  urw          --runs executions; where no thread ever waits, all interleavings
               are equally likely.
               Orders from icb to idfs may not end on programs that run for
               ever, except icb with the cache state and depth.

--cache    which steps icb does not take again
  none         none: every execution is taken.
  state        those from the same state. The default.
  hb           those after the same events in the same order of dependent ones:
               every trace is taken.

--points   where threads may be switched; with orders of executions
  all          before every access to shared state. The default.
  sync         before synchronisation only: objects and atomic variables. A data
               race on a plain variable is an error then, and programs without
               one lose nothing. Not for models with invariants. With --promote
               the search goes on after a race, with the variable treated as
               synchronisation.

--reduce   which steps are left out because others show the same
  auto         what suits the model and the other options, and loses nothing of
               what is asked for: cb-por within a bound, cartesian or
               transactions over states, dpor-optimal over executions. The
               report says which.
  none         no step. Every interleaving is explored. The default.
  sleep        sleep sets: every trace once, and every beginning of one.
  dpor         dynamic reduction by source sets: every trace once, and few
               beginnings that lead nowhere.
  dpor-optimal the same with wakeup trees: no beginning that leads nowhere.
  dpor-fg      dynamic reduction as Flanagan and Godefroid published it: every
               trace, some of them often. For comparison.
  cb-por       within --bound, every trace once. Remembers every state.
  cb-por-states  within --bound, every state once, as a set of ordered events.
  budgeted-sleep  within --bound, every trace, some of them twice. Remembers no
               executions, but visits all states first to learn where threads
               wait.
  blocks       for straight-line threads: all orders of conflicting accesses
               are known before any is run; every trace once (a thread that
               fails may show one more often). Refused for branches, loops,
               calls, waiting, choices, new threads, and beyond 10,000,000.
  blocks-paper the same with reads ordered among themselves, as published.
               Traces are executions that differ in more than the order of
               independent steps. Of these only sleep and cb-por-states visit
               every state: the others are refused for models with invariants.
               None of them ends on programs that run for ever.
  cartesian    over states: every thread runs on until what it does depends on
               what another does on its way. Meets every state of every thread
               by itself, every deadlock and every broken invariant, mostly
               from far fewer states; also ends on programs that run for ever.
               With bfs (the default) or dfs, with --store and --jobs.
  cartesian-literal  the same with the test for cycles as the paper prints it.
  transactions a thread runs on as long as the others cannot tell: past lock and
               unlock, past variables that are always used under a lock or by
               one thread, which is assumed and checked on every access. By
               commit point completion. Keeps a table of states, depth first,
               and ends where the full search does. Finds every assertion and
               run-time error; not deadlocks, so that --no-deadlock has to be
               said. Not for models with invariants.
  transactions-cycle  the same by cycle detection: more states. For comparison.
  transactions-unsound  the same without either: errors may be missed, and the
               search is never called complete. Those it finds are real.

--store    how visited states are remembered
  exact        whole states. The default.
  tree         whole states, cut into pieces that are kept once. As exact;
               smaller when states are large, and somewhat slower.
  fingerprint  64 bits of a hash. Two states with equal bits are taken for one;
               the report says how many are to be expected (far fewer than one
               up to a billion states).
  bitstate     a few bits in an array of fixed size (--bitstate-size). For
               searches that do not fit otherwise: it misses states, the more
               the fuller the array is, and is never called complete.

--jobs N   several workers search one graph, or one tree of executions. A
           complete search has the same counts for every N, and one over
           executions the same findings: where something was found, one worker
           searches again, to report it as one alone would, and the report says
           how long that took. --first reports whichever error is found first.

--checkpoint FILE  every few seconds, and at an interrupt or a limit of time or
           memory, what is left of the search is written to the file; --resume
           FILE goes on from there, in the end with the numbers of a search that
           ran through. Every strategy can do it. The model and the options
           have to be the same, but for --time and --memory.

Refused, with exit code 2:
  --bitstate-size without --store bitstate
  a --memory that is not larger than the bitstate array
  --bound with bfs or dfs: a set of visited states would lose errors
  --bound with executions, depth, idfs, random, pct, urw; cb-dfs without it
  --bound with sleep and dpor, which lose errors within a bound (smallest
  program: corpus/zoo/x.pre); cb-por and budgeted-sleep without it
  --bound and --points sync with blocks
  --points sync with bfs, dfs or the cache state: races depend on the way
  --depth with --reduce; --bound with cartesian, and orders of executions
  transactions without --no-deadlock, with --bound, --points sync, --jobs,
  --store, or an order other than dfs
  --cache without icb; --seed and --runs without random, pct or urw
  --store with orders of executions; --executions with bfs and dfs
  --jobs with --reduce, pct and urw; with dfs-hb and --bound; with a cache or
  dfs-hb and --depth; with the cache hb or dfs-hb and --points sync: what one
  worker would see depends on the order of its executions
  --resume with a file that is damaged, or of another version, model or search
  --jobs 0, --states 0, --executions 0, --time 0, and --depth 0 with orders of
  executions: nothing would be searched

Exit codes: 0 no error and all covered; 1 an error was found; 2 bad input or
refused; 3 incomplete, by a limit or an interrupt; 70 a fault of preempt.
";

/// Runs the command.
pub fn run() -> Result<Exit, Refused> {
    screen::print(TEXT)?;
    Ok(Exit::Covered)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_choice_is_described() {
        let command = Cli::command();
        let check = command.find_subcommand("check").expect("there is a command check");
        for option in ["order", "cache", "points", "reduce", "store"] {
            let argument = check
                .get_arguments()
                .find(|argument| argument.get_id() == option)
                .expect("an option");
            assert!(TEXT.contains(&format!("\n--{option}")), "{option}");
            for value in argument.get_possible_values() {
                let name = value.get_name();
                assert!(TEXT.contains(&format!("\n  {name} ")), "{option} {name}");
            }
        }
        assert!(TEXT.lines().all(|line| line.chars().count() <= 80));
    }
}
