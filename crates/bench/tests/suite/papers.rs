//! The tables of the papers are reproduced, and a figure that differs is detected: `--check` then
//! fails.

use std::path::{Path, PathBuf};
use std::process::Command;

use preempt_bench::papers::{self, Ask, Extent, PAPERS, Part};

#[test]
fn every_figure_is_reproduced() {
    let ask = Ask { extent: Extent::Quick, ..Ask::default() };
    let marks = papers::print(&PAPERS, &ask).expect("the tables can be made");
    assert!(marks.good(), "{marks:?}");
    assert!(marks.equal > 280 && marks.explained > 100 && marks.not_to_be_had > 20, "{marks:?}");
}

/// A folder with the published figures, in which one file has one change.
fn changed(file: &str, from: &str, to: &str) -> PathBuf {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{file} with {to}"));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    for entry in std::fs::read_dir(data).expect("there are figures") {
        let path = entry.expect("the folder can be read").path();
        let name = path.file_name().expect("a file has a name");
        let mut text = std::fs::read_to_string(&path).expect("a file can be read");
        if name == file {
            assert!(text.contains(from), "{file} has no {from:?}");
            text = text.replacen(from, to, 1);
        }
        std::fs::write(folder.join(name), text).expect("a file can be written");
    }
    folder
}

fn passes(arguments: &str, data: &Path) -> bool {
    let mut command = Command::new(env!("CARGO_BIN_EXE_preempt-bench"));
    command.args(arguments.split(' ')).arg("--quick").arg("--data").arg(data);
    let output = command.output().expect("the program can be run");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.is_empty(), "{errors}");
    output.status.success()
}

#[test]
fn a_changed_figure_fails_the_check() {
    for (arguments, file, from, to) in [
        ("papers icb table 1", "icb-table-1.toml", "[4, 20, 8, 16]", "[4, 20, 8, 17]"),
        ("papers icb table 2", "icb-table-2.toml", "bugs = [0, 1, 0, 0]", "bugs = [1, 0, 0, 0]"),
        ("papers cb-por table 1", "cb-por-table-1.toml", "756", "757"),
        ("papers cpc table 1", "cpc-table-1.toml", "[111, 16", "[111, 17"),
        ("papers cpc figure 1", "cpc-figures.toml", "[15, 9", "[15, 10"),
        ("papers cartesian table 1", "cartesian-table-1.toml", "[2276, 4552]", "[2276, 4553]"),
        ("papers cartesian", "cartesian-table-1.toml", "saved = [98.7", "saved = [98.6"),
        ("papers blocks table 1", "blocks-table-1.toml", "26", "27"),
        ("papers blocks table 2", "blocks-table-2.toml", "2, 1]", "1, 1]"),
        ("papers blocks", "blocks.toml", "graphs = 2", "graphs = 3"),
    ] {
        assert!(
            !passes(&format!("{arguments} --check"), &changed(file, from, to)),
            "{file}: {from} → {to}"
        );
    }
}

#[test]
fn tables_and_figures_that_do_not_exist_are_refused() {
    for part in [Part::Table(3), Part::Table(0), Part::Figure(6)] {
        for paper in PAPERS {
            let refused =
                papers::print(&[paper], &Ask { part, extent: Extent::Quick, ..Ask::default() });
            assert!(refused.is_err(), "{paper:?} {part:?}");
        }
    }
}

#[test]
fn without_check_the_tables_are_only_printed() {
    let folder = changed("cpc-table-1.toml", "[12671, 31", "[12671, 30");
    assert!(passes("papers cpc table 1", &folder));
}
