//! Counts the instructions of the hot paths with valgrind: a change shows even on a busy machine.
//!
//! Each path runs in a child under callgrind twice, the second time longer. Costs that both have in
//! common (starting the process, reading the model) cancel in the difference, which is divided by
//! the number of additional operations. For the visited set only the instructions inside it are
//! counted, for all others everything.
//!
//! Frameworks for this need a runner that is installed in exactly the right version. This needs
//! only valgrind.

mod callgrind;
pub mod path;

use std::collections::BTreeMap;

use anyhow::Result;

pub use self::path::HotPath;
use crate::record::{self, Record};
use crate::table::{Table, absent};

/// The title of the table.
const TITLE: &str = "instructions of the hot paths";

/// The number of sources in a profile.
const NAMED: usize = 6;

/// Counts, prints, and compares with the last record.
pub fn print() -> Result<()> {
    let recorded = recorded();
    let mut counts = Table::new(["path", "instructions", "recorded", "change", "operation"]);
    let mut profiles = Table::new(["path", "share", "source"]);
    for path in HotPath::ALL {
        let [short, long] = path.sizes();
        let (before, after) = (callgrind::run(path, short)?, callgrind::run(path, long)?);
        let each = (after.instructions - before.instructions) as f64
            / (after.operations - before.operations) as f64;
        let known = recorded.get(path.name());
        counts.row([
            path.name().to_owned(),
            format!("{each:.1}"),
            known.map_or_else(absent, |known| format!("{known:.1}")),
            known.map_or_else(absent, |known| format!("{:+.1} %", 100.0 * (each / known - 1.0))),
            path.operation().to_owned(),
        ]);
        for (at, (source, share)) in after.profile.iter().take(NAMED).enumerate() {
            let name = if at == 0 { path.name() } else { "" };
            profiles.row([name.to_owned(), format!("{share:.1} %"), source.clone()]);
        }
    }
    println!("{TITLE}, each, and the change against the last record\n{}", counts.to_text());
    println!(
        "where they go, by the source of the code, inlined or not\n{}",
        profiles.to_text().trim_end()
    );
    Ok(())
}

/// The counts of the last record, if there is one.
fn recorded() -> BTreeMap<String, f64> {
    let Ok(record) = Record::newest(&record::runs(), "instructions") else {
        return BTreeMap::new();
    };
    let table = record.parts().find(|part| part.starts_with(TITLE)).unwrap_or_default();
    // Columns are separated by two blanks; names contain single blanks.
    let row = |line: &str| {
        let mut cells = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty());
        Some((cells.next()?.to_owned(), cells.next()?.parse().ok()?))
    };
    table.lines().filter_map(row).collect()
}
