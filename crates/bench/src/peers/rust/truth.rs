//! Small tests with known answers, and the answers of the tools.

use anyhow::Result;

use super::meter::Ended;
use super::table::{Table, absent, grouped};
use super::{Ask, Times, Tool, Way};

/// The correct answer.
enum Truth {
    /// The executions observe these results, and there is no failure.
    Shows(&'static [&'static str]),
    /// A failure whose report contains one of these words.
    Fails(&'static [&'static str]),
}

use Truth::{Fails, Shows};

/// The probes: the test, the way to search, and the correct answer. shuttle always uses its
/// exhaustive search.
const PROBES: [(&str, &str, Way, Truth); 10] = [
    ("redundant load", "redundant load before a store", Way::All, Shows(&["0", "1"])),
    ("store buffering", "store buffering, SeqCst", Way::All, Shows(&["01", "10", "11"])),
    ("swap and store", "swap against store", Way::All, Shows(&["01", "10"])),
    (
        "orders",
        "3 threads, no preemption",
        Way::Bound(0),
        Shows(&["123", "132", "213", "231", "312", "321"]),
    ),
    ("wait_timeout", "wait_timeout, nobody notifies", Way::All, Shows(&["timeout"])),
    ("spin", "spin without yield", Way::All, Shows(&["ends"])),
    ("six threads", "six threads", Way::All, Shows(&["ends"])),
    ("panic and join", "a thread panics, join", Way::All, Shows(&["Err"])),
    ("race", "UnsafeCell race", Way::All, Fails(&["race", "Causality", "concurrent"])),
    ("leak", "Arc leak", Way::All, Fails(&["leak"])),
];

/// Asks all tools; returns whether Preempt is always correct.
pub fn probes(times: Times) -> Result<bool> {
    println!(
        "\nWhat is known, and what the tools say (WRONG marks what is not so; in parentheses the \
         executions)"
    );
    let mut table = Table::new(["probe", "truth", "Preempt", "loom", "shuttle dfs"]);
    let mut right = true;
    for (test, what, way, truth) in &PROBES {
        let said = match truth {
            Shows(all) => all.join(" "),
            Fails(words) => words[0].to_owned(),
        };
        let mut cells = vec![(*what).to_owned(), said];
        for tool in [Tool::Preempt, Tool::Loom, Tool::Shuttle] {
            let way = match (tool, way) {
                (Tool::Shuttle, Way::Bound(_)) => None,
                (Tool::Shuttle, _) => Some(Way::Dfs),
                (_, way) => Some(*way),
            };
            let Some(way) = way else {
                cells.push(absent());
                continue;
            };
            let (good, text) = answer(Ask { tool, way, test, repeat: 0.0, cap: times.cap }, truth);
            right &= good || tool != Tool::Preempt;
            cells.push(if good { text } else { format!("WRONG {text}") });
        }
        table.row(cells);
    }
    print!("{}", table.to_text());
    Ok(right)
}

/// The answer of a tool, and whether it is correct.
fn answer(ask: Ask<'_>, truth: &Truth) -> (bool, String) {
    // A crash is an answer too.
    let run = match ask.in_child() {
        Ok(run) => run,
        Err(_) => return (false, "the process dies".into()),
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
