//! `preempt check`: searches a model and reports.

use std::fs;

use preempt_explore::Replay;
use preempt_lang::diagnostic::Style;
use preempt_report::record::Checked;
use preempt_report::story::Story;
use preempt_system::Verdict;

use crate::args::Check;
use crate::{Exit, input};

/// Runs the command.
pub fn run(args: &Check) -> Result<(String, Exit), String> {
    let search = args.plan()?.build().map_err(|refusal| format!("error: {refusal}\n"))?;
    let machine = input::load(&args.model, Style::Plain)?;
    let (outcome, machine) = search.run(machine, &());
    let stories: Vec<Story> = outcome
        .findings
        .iter()
        .map(|finding| {
            let replay = Replay::of(&machine, &finding.schedule).expect("a finding was replayed before it was reported");
            Story::of(&machine, &finding.schedule, &replay, Some(&finding.failure))
        })
        .collect();
    let checked = Checked { plan: search.plan(), outcome: &outcome, stories: &stories, peak_memory: peak_memory() };
    let exit = match outcome.verdict {
        Verdict::Ok => Exit::Covered,
        Verdict::Violation | Verdict::Deadlock => Exit::Finding,
        Verdict::Incomplete => Exit::Incomplete,
    };
    let text = if args.json { format!("{}\n", checked.to_json()) } else { format!("{outcome:#?}\n{stories:#?}\n") };
    Ok((text, exit))
}

/// The most memory that this process had so far, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
