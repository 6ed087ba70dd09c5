//! `cargo preempt replay`: executes a schedule of a test or of a program again.

use preempt_native::Native;
use preempt_report::Folding;

use super::ReplayArgs;
use super::build::{Built, Goal, build};
use super::run::program;
use super::test::executable;
use super::tests::{self, Selection};
use crate::replay;
use crate::replay_executable::{Debugger, Showing, show};
use crate::{Exit, Refused, output};

/// Runs the command.
pub(super) fn run(args: &ReplayArgs) -> Result<Exit, Refused> {
    let recorded = replay::read(&args.schedule)?;
    if let Some(path) = &args.html {
        output::writable(path, "the page")?;
    }
    let memory = args.memory.unwrap_or_default();
    let (name, executable) = match &args.name {
        Some(test) => {
            let built = with_test(args, test)?;
            (test.clone(), executable(&args.program, &built, test, memory)?)
        }
        None => {
            let built = program(&args.build)?;
            let path = built.path.clone().into_os_string();
            (built.target, args.program.executable(&path, &args.args, memory)?)
        }
    };
    let showing = Showing {
        name: &name,
        folding: if args.all_steps { Folding::Repetitions } else { Folding::Statements },
        stop_at: args.stop_at,
        html: args.html.as_deref(),
        debugger: args.gdb.then(|| Debugger { step: args.step, commands: &args.gdb_command }),
    };
    show(Native::new(executable), &recorded, &showing)
}

/// The executable that has this test.
fn with_test(args: &ReplayArgs, test: &str) -> Result<Built, Refused> {
    let mut found = Vec::new();
    for built in build(&args.build, Goal::Tests)? {
        if tests::list(&built, &Selection::only(test))?.is_some_and(|tests| !tests.is_empty()) {
            found.push(built);
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Refused::because(format!("there is no test {test}"))),
        _ => {
            let titles: Vec<String> = found.iter().map(Built::title).collect();
            Err(Refused::because(format!(
                "there are several tests {test}: choose one with --lib, --bin or --test ({})",
                titles.join("; ")
            )))
        }
    }
}
