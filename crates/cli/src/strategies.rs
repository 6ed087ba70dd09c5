//! `preempt strategies`: describes what can be chosen. Strategies and refusals come from the
//! engine's table.

use preempt_explore::plan::strategies::{Conflict, Entry, ParameterKind, STRATEGIES};
use preempt_explore::{Setting, Subject};

use crate::terms::flag;
use crate::{Exit, Refused, screen};

/// The width of the text.
const WIDTH: usize = 80;

/// The column at which descriptions begin.
const INDENT: usize = 17;

const INTRODUCTION: &str = "\
A strategy is an order or a reduction. Unless its description says otherwise, it
finds assertions, invariants, runtime errors and deadlocks, and a search that
completes without an error has covered every reachable state. Every error is
replayed before it is reported.

A trace is a class of executions that differ only in the order of independent
steps.
";

const AUTO_ORDER: &str = "All states (bfs). Beside it, executions with at most 2 preemptions are \
    searched for an error with the fewest preemptions (icb, at most 200,000 states): when bfs has \
    found an error or has ended at a limit, and in a large model while bfs runs. With --bound, \
    icb; with --reduce, the order of the reduction. The default.";

const AUTO_REDUCTION: &str = "One that suits the model and the other options and loses nothing: \
    cb-por within a bound, cartesian or transactions over states, dpor-optimal over executions. \
    The report names it.";

const EXECUTABLES: &str = "Executables (preempt run) have no states that can be compared. Not \
    available for them: ";

const FOREVER: &str = "
Searches over executions might not terminate on programs that run forever,
except depth, and icb and delay with --cache state. A reduction stops there, and
is incomplete.
";

const OTHERS: &str = "
--cache    which steps icb and delay do not repeat
  none           None: every execution is explored.
  state          Steps from the same state. The default.
  hb             Steps after the same happens-before graph: every trace is
                 taken.

--points   where threads may be switched, in searches over executions
  all            Before every access to shared state. The default.
  sync           Before synchronisation only: objects and atomic variables. A
                 data race on a plain variable is an error then; programs
                 without one lose no errors. Not for models with invariants.
                 With --promote the search starts again after a race, with the
                 variable treated as synchronisation.

--store    how visited states are stored
  exact          Whole states. The default.
  tree           Whole states, with equal parts stored once. Exact; smaller if
                 states are large, and somewhat slower.
  sorted         Whole states in sorted runs, as differences. Exact; one or two
                 bytes for most states, breadth first only. With --spill DIR
                 runs that do not fit into memory are kept in files.
  fingerprint    64-bit hashes. States with equal hashes count as one; the
                 report says how many are to be expected (far fewer than one up
                 to a billion states).
  bitstate       A few bits per state in an array of fixed size
                 (--bitstate-size), for searches that do not fit otherwise. It
                 misses states, more of them as the array fills, and is never
                 complete.

--jobs N   Several workers search one graph, or one tree of executions. A
           complete search has the same counts for every N, and one over
           executions the same findings: after a finding one worker searches
           again, and the report says how long that took. --first reports
           whichever error is found first.

--checkpoint FILE  Every few seconds, at an interrupt and at a time or memory
           limit, the state of the search is written to the file. --resume FILE
           continues from there, with the numbers of an uninterrupted search.
           The model and the options must be the same, except for --time and
           --memory.
";

const EXIT_CODES: &str = "
Exit codes: 0 no error, search complete; 1 error found; 2 bad input or refused;
3 incomplete, by a limit or an interrupt; 70 internal error.
";

/// Runs the command.
pub fn run() -> Result<Exit, Refused> {
    screen::print(&text())?;
    Ok(Exit::Covered)
}

fn text() -> String {
    let mut text = INTRODUCTION.to_owned();
    text += "\n--order    what is explored, and in which order\n";
    text += &item("auto", AUTO_ORDER);
    let all = || STRATEGIES.iter().filter(|entry| is_for_models(entry));
    let of = |setting| all().filter(move |entry| entry.setting() == setting);
    of(Setting::Order).for_each(|entry| text += &item(entry.name, entry.description));
    text += FOREVER;
    text += "\n--reduce   partial-order reduction\n";
    text += &item("auto", AUTO_REDUCTION);
    text += &item("none", "None: every step of every thread is taken. The default.");
    let reductions = || of(Setting::Reduction);
    let described =
        |entry: &Entry| item(entry.name, &format!("{}{}", entry.description, limits(entry)));
    reductions().filter(|entry| entry.is_general()).for_each(|entry| text += &described(entry));
    text += "\n--reduce, for research: published variants\n";
    reductions().filter(|entry| !entry.is_general()).for_each(|entry| text += &described(entry));
    let states = STRATEGIES.iter().filter(|entry| !entry.searches(Subject::Program));
    let states: Vec<&str> = states.map(|entry| entry.name).collect();
    text.push('\n');
    text += &wrapped(&format!("{EXECUTABLES}{}.", states.join(", ")), 0, 0);
    text += OTHERS;
    text += "\nRefused, with exit code 2:\n";
    for (names, conflict) in conflicts() {
        let with: Vec<&str> = conflict.with.iter().map(|&setting| used(setting)).collect();
        let line = format!("{} with {}: {}", with.join(" and "), names.join(", "), conflict.why);
        let witness = conflict.witness.map(|witness| format!(" (witness: {witness})"));
        text += &wrapped(&(line + &witness.unwrap_or_default()), 2, 4);
    }
    text + EXIT_CODES
}

/// The option as it is used in a conflict.
fn used(setting: Setting) -> &'static str {
    match setting {
        Setting::Points => "--points sync",
        other => flag(other),
    }
}

/// The requirements and losses of a reduction.
fn limits(entry: &Entry) -> String {
    use preempt_explore::plan::property::{Property, Soundness};
    let loses = |property| matches!(entry.properties.of(property), Soundness::Unsound(_));
    let mut text = String::new();
    if entry.needs_bound.is_some() {
        text += " Needs --bound.";
    }
    if loses(Property::Deadlock) {
        text += " Needs --no-deadlock.";
    }
    if entry.properties.of(Property::Invariant) != Soundness::Sound {
        text += " Not for models with invariants.";
    }
    text
}

/// Whether a strategy explores models, under sequential consistency or weak memory.
fn is_for_models(entry: &Entry) -> bool {
    entry.searches(Subject::Model) || entry.searches(Subject::WeakModel)
}

/// Every conflict of the table once, with the strategies that have it.
fn conflicts() -> Vec<(Vec<String>, &'static Conflict)> {
    let mut found: Vec<(Vec<String>, &'static Conflict)> = Vec::new();
    for entry in STRATEGIES.iter().filter(|entry| is_for_models(entry)) {
        // On the command line --depth is the parameter of the order depth.
        let own = |conflict: &&Conflict| {
            entry.parameter == ParameterKind::Steps && conflict.with == [Setting::Depth]
        };
        for &conflict in entry.conflicts.iter().filter(|conflict| !own(conflict)) {
            let caches: Vec<&str> = conflict.caches.iter().map(|cache| cache.name()).collect();
            let name = match &caches[..] {
                [] => entry.name.to_owned(),
                caches => format!("{} (--cache {})", entry.name, caches.join(" or ")),
            };
            match found.iter_mut().find(|(_, other)| other.why == conflict.why) {
                Some((names, _)) => names.push(name),
                None => found.push((vec![name], conflict)),
            }
        }
    }
    found
}

/// A value and its description.
fn item(name: &str, description: &str) -> String {
    let text = wrapped(description, INDENT, INDENT);
    // A name that does not fit gets a line of its own.
    if name.len() + 4 > INDENT {
        return format!("  {name}\n{text}");
    }
    format!("  {name:width$}{}", &text[INDENT..], width = INDENT - 2)
}

/// Words in lines, the first one indented by `first`, the others by `rest`.
fn wrapped(text: &str, first: usize, rest: usize) -> String {
    let (mut lines, mut line) = (String::new(), " ".repeat(first));
    for word in text.split(' ') {
        if line.chars().count() + word.chars().count() > WIDTH {
            lines += line.trim_end();
            lines.push('\n');
            line = " ".repeat(rest);
        }
        line += word;
        line.push(' ');
    }
    lines + line.trim_end() + "\n"
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_choice_is_described() {
        let (command, text) = (Cli::command(), text());
        let check = command.find_subcommand("check").expect("there is a command check");
        for option in ["order", "cache", "points", "reduce", "store"] {
            let argument = check
                .get_arguments()
                .find(|argument| argument.get_id() == option)
                .expect("an option");
            assert!(text.contains(&format!("\n--{option}")), "{option}");
            for value in argument.get_possible_values() {
                let name = value.get_name();
                let begins = |line: &str| line.trim_start().split(' ').next() == Some(name);
                assert!(text.lines().any(begins), "{option} {name}");
            }
        }
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }

    #[test]
    fn a_conflict_is_listed_once() {
        let text = text();
        let states = "--bound with bfs, dfs: a state that was reached with the last preemption";
        assert_eq!(text.matches(states).count(), 1, "{text}");
    }
}
