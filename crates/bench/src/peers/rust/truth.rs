//! Small tests with known answers, and the answers of the tools.

use anyhow::Result;

use super::meter::Ended;
use super::table::{Table, absent, grouped};
use super::{Mode, Request, Times, Tool};

/// The correct answer.
enum Truth {
    /// The executions observe these results, and there is no failure.
    Shows(&'static [&'static str]),
    /// A failure whose report contains one of these words.
    Fails(&'static [&'static str]),
}

use Truth::{Fails, Shows};

/// The probes: the test, its description, the search mode and the correct answer. shuttle always
/// uses its exhaustive search.
const PROBES: [(&str, &str, Mode, Truth); 10] = [
    ("redundant load", "redundant load before a store", Mode::All, Shows(&["0", "1"])),
    ("store buffering", "store buffering, SeqCst", Mode::All, Shows(&["01", "10", "11"])),
    ("swap and store", "swap against store", Mode::All, Shows(&["01", "10"])),
    (
        "orders",
        "3 threads, no preemption",
        Mode::Bound(0),
        Shows(&["123", "132", "213", "231", "312", "321"]),
    ),
    ("wait_timeout", "wait_timeout, no notification", Mode::All, Shows(&["timeout"])),
    ("spin", "spin without yield", Mode::All, Shows(&["ends"])),
    ("six threads", "six threads", Mode::All, Shows(&["ends"])),
    ("panic and join", "a thread panics, join", Mode::All, Shows(&["Err"])),
    ("race", "UnsafeCell race", Mode::All, Fails(&["race", "Causality", "concurrent"])),
    ("leak", "Arc leak", Mode::All, Fails(&["leak"])),
];

/// Runs all tools on the probes; returns whether Preempt is always correct.
pub fn probes(times: Times) -> Result<bool> {
    println!(
        "\nKnown results and those of the tools (WRONG marks a wrong result; in parentheses the \
         number of executions)"
    );
    let mut table = Table::new(["probe", "truth", "Preempt", "loom", "shuttle dfs"]);
    let mut right = true;
    for (test, what, mode, truth) in &PROBES {
        let said = match truth {
            Shows(all) => all.join(" "),
            Fails(words) => words[0].to_owned(),
        };
        let mut cells = vec![(*what).to_owned(), said];
        for tool in [Tool::Preempt, Tool::Loom, Tool::Shuttle] {
            let mode = match (tool, mode) {
                (Tool::Shuttle, Mode::Bound(_)) => None,
                (Tool::Shuttle, _) => Some(Mode::Dfs),
                (_, mode) => Some(*mode),
            };
            let Some(mode) = mode else {
                cells.push(absent());
                continue;
            };
            let (good, text) =
                answer(Request { tool, mode, test, repeat: 0.0, cap: times.cap }, truth);
            right &= good || tool != Tool::Preempt;
            cells.push(if good { text } else { format!("WRONG {text}") });
        }
        table.row(cells);
    }
    print!("{}", table.to_text());
    Ok(right)
}

/// The result of a tool, and whether it is correct.
fn answer(request: Request<'_>, truth: &Truth) -> (bool, String) {
    // A crash is a result too.
    let run = match request.in_child() {
        Ok(run) => run,
        Err(_) => return (false, "crashes".into()),
    };
    let count = grouped(run.first);
    match (&run.ended, truth) {
        (Ended::Failed(message), Fails(words)) => (
            words.iter().any(|word| message.contains(word)),
            format!("{} ({count})", short(message)),
        ),
        (Ended::Failed(message), Shows(_)) => (false, format!("{} ({count})", short(message))),
        (ended, Shows(all)) => {
            // A stopped search is not wrong if it observed all results.
            let good = run.seen == *all;
            let more = if *ended == Ended::Complete { "" } else { "+" };
            (good, format!("{} ({count}{more})", run.seen.join(" ")))
        }
        (_, Fails(_)) => (false, format!("nothing ({count})")),
    }
}

/// The first words of a message.
fn short(message: &str) -> String {
    let end = message.char_indices().nth(44).map_or(message.len(), |(at, _)| at);
    let dots = if end < message.len() { "…" } else { "" };
    format!("\"{}{dots}\"", &message[..end])
}
