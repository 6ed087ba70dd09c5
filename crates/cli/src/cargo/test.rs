//! `cargo preempt test`: explores every test on its own.

use preempt_explore::Limits;
use preempt_native::{Executable, Harness, Native, Races};
use preempt_report::ReplayCommand;
use preempt_system::MemoryModel;

use super::TestArgs;
use super::budget::Budget;
use super::build::{Built, Goal, build};
use super::summary::{Explorations, Form, Row, Summary};
use super::tests::{self, Selection, Test};
use crate::progress::Watcher;
use crate::run::{AllocatorArg, Explored, ProgramArgs, memory_words};
use crate::{Exit, Refused, input, output};

/// Runs the command.
pub(super) fn run(args: &TestArgs) -> Result<Exit, Refused> {
    let selection = Selection::new(args.filter.as_deref(), &args.libtest)?;
    args.search.search()?;
    args.search.check_files()?;
    let mut groups = Vec::new();
    for built in build(&args.build, Goal::Tests)? {
        groups.push((tests::list(&built, &selection)?, built));
    }
    if groups.is_empty() {
        return Err(Refused::because("there are no executables with tests"));
    }
    let watcher = args.search.watcher();
    let names = groups.iter().flat_map(|(tests, _)| tests.iter().flatten());
    let form = if args.search.json { Form::Json } else { Form::Table };
    let explored = Explorations { memory: args.search.memory_model(), races: races(args) };
    let mut summary = Summary::new(names.map(|test| &test.name[..]), form, explored);
    let (mut reports, mut saved) = (Vec::new(), Vec::new());
    let explored = |test: &&Test| !test.ignored;
    let mut left =
        groups.iter().flat_map(|(tests, _)| tests.iter().flatten()).filter(explored).count();
    let budget = Budget::new(args.search.limits(), args.test_time);
    for (tests, built) in &groups {
        let Some(tests) = tests else {
            summary.add_unlisted(built);
            continue;
        };
        summary.group(built, tests.len())?;
        for test in tests {
            let limits = budget.next(left).filter(|_| !watcher.is_interrupted());
            left -= usize::from(!test.ignored);
            let row = match limits {
                _ if test.ignored => Row::Ignored,
                None => Row::NotRun,
                Some(limits) => match explore(args, limits, built, test, &watcher) {
                    Ok(explored) => {
                        let replay = replay_command(args, built, test);
                        // The files that were asked for are those of the first test that fails.
                        if explored.exit() == Exit::Finding && summary.has_no_report() {
                            saved = explored.save(&args.search, &test.name, &replay);
                            summary.keep_report(&test.name, explored.to_text(&replay));
                        }
                        reports.push(explored.to_json(&replay));
                        Row::of(&explored, has_no_threads(&explored.native))
                    }
                    Err(Refused(why)) => Row::Refused(why),
                },
            };
            watcher.finish();
            summary.add(&test.name, row)?;
        }
    }
    summary.finish(reports)?;
    Ok(output::exit(summary.exit(), saved))
}

/// Whether data races are detected in these tests, as `Executable` decides it for each.
fn races(args: &TestArgs) -> Races {
    let program = &args.program;
    let reuses_memory = program.allocator == Some(AllocatorArg::System);
    match args.build.races && !program.ignore_races && !reuses_memory {
        true => Races::Detected,
        false => Races::Assumed,
    }
}

/// Explores one test within these limits.
fn explore(
    args: &TestArgs,
    limits: Limits,
    built: &Built,
    test: &Test,
    watcher: &Watcher,
) -> Result<Explored, Refused> {
    let memory = args.search.memory_model();
    let executable = executable(&args.program, built, &test.name, memory)?;
    let search = args.search.search_of(&executable, limits)?;
    Explored::of_test(search, Native::new(executable), watcher)
}

/// The executable that runs one test.
pub(super) fn executable(
    program: &ProgramArgs,
    built: &Built,
    test: &str,
    memory: MemoryModel,
) -> Result<Executable, Refused> {
    let path = built.path.clone().into_os_string();
    let mut executable = program.executable(&path, &tests::arguments(test), memory)?;
    executable.directory = Some(built.folder.clone());
    executable.environment.clone_from(&built.environment);
    // A trace says more than a backtrace, which takes long to print.
    executable.environment.push(("RUST_BACKTRACE".into(), "0".into()));
    // Its output is not a terminal. libtest would read and decode the description of one in every
    // execution, which takes a tenth of the time of a small test.
    executable.environment.push(("TERM".into(), "".into()));
    executable.harness = tests::harness(built);
    Ok(executable)
}

/// The command that replays a schedule of a test.
fn replay_command(args: &TestArgs, built: &Built, test: &Test) -> ReplayCommand {
    let memory = memory_words(args.search.memory_model());
    let options = args.build.to_shell(built) + &args.program.words() + memory;
    ReplayCommand {
        before: format!("cargo preempt replay{options} "),
        after: format!(" {}", input::quoted(&test.name)),
    }
}

/// Whether only the harness and the thread of the test exist.
fn has_no_threads(native: &Native) -> bool {
    native.threads() <= if native.harness() == Harness::Libtest { 2 } else { 1 }
}
