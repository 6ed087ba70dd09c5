//! `docs/performance.md` shows the records, and nothing else.

use std::path::Path;

use preempt_bench::record::machine::Machine;
use preempt_bench::record::{Record, name, performance, runs};

fn record(output: &str) -> Record {
    Record {
        command: "cargo run -- peers spin".to_owned(),
        commit: "0123456789ab".to_owned(),
        date: "2026-01-02".to_owned(),
        seconds: 3,
        machine: Machine {
            cores: 2,
            memory_gb: 24,
            cpu: "a processor".to_owned(),
            rustc: "a compiler".to_owned(),
            load: 0.5,
        },
        output: output.to_owned(),
    }
}

fn folder(name: &str, records: &[(&str, &Record)]) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    for (day, record) in records {
        std::fs::create_dir_all(folder.join(day)).expect("a folder can be made");
        let text = record.to_text().expect("the file is writable");
        std::fs::write(folder.join(day).join("peers-spin.toml"), text)
            .expect("a file can be written");
    }
    folder
}

#[test]
fn the_page_is_up_to_date_with_the_records() {
    let text = std::fs::read_to_string(performance::file()).expect("there is a page");
    let made = performance::page(&text, &runs()).unwrap_or_else(|error| panic!("{error:#}"));
    assert!(made == text, "run: cargo run -p preempt-bench -- performance");
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let record = record("states  12\n\n\"quoted\" \\ back\n");
    assert_eq!(
        Record::parse(&record.to_text().expect("the file is writable"))
            .expect("the file is readable"),
        record
    );
}

#[test]
fn the_newest_record_is_shown_and_only_its_requested_part() {
    let (old, new) = (record("first\n1\n\nsecond\n2\n"), record("first\n3\n\nsecond\n4\n"));
    let runs = folder("newest", &[("2026-01-02", &new), ("2025-12-31", &old)]);
    let page = "# Page\n<!-- run peers-spin: second -->\nold\n<!-- end -->\nrest\n";
    let made = performance::page(page, &runs).expect("the page can be generated");
    let expected = "# Page\n<!-- run peers-spin: second -->\n```text\nsecond\n4\n```\n\n2026-01-02, commit 0123456789ab, 2 cores of a processor, \
                    24 GB, load 0.5: `cargo run -- peers spin`\n<!-- end -->\nrest\n";
    assert_eq!(made, expected);
    assert_eq!(
        performance::page(&made, &runs).expect("the page can be generated"),
        made,
        "made twice is made once"
    );
}

#[test]
fn a_quick_run_is_shown_until_a_whole_one_is_recorded() {
    let runs = folder("quick", &[("2026-01-02", &record("whole\n"))]);
    let quick = record("quick\n").to_text().expect("the file is writable");
    for name in ["peers-spin-quick", "papers-quick"] {
        std::fs::write(runs.join("2026-01-02").join(format!("{name}.toml")), &quick)
            .expect("a file can be written");
    }
    for (name, shown) in [("peers-spin", "whole"), ("papers", "quick")] {
        let made = performance::page(&format!("<!-- run {name} -->\n<!-- end -->\n"), &runs)
            .expect("the page can be generated");
        assert!(made.contains(&format!("```text\n{shown}\n```")), "{made}");
    }
}

#[test]
fn there_is_no_table_without_a_record() {
    let runs = folder("missing", &[("2026-01-02", &record("first\n"))]);
    for page in [
        "<!-- run peers-rust -->\n<!-- end -->\n",
        "<!-- run peers-spin: third -->\n<!-- end -->\n",
    ] {
        assert!(performance::page(page, &runs).is_err(), "{page}");
    }
    assert!(
        performance::page("<!-- run peers-spin -->\n", &runs).is_err(),
        "a table without an end"
    );
}

#[test]
fn a_record_is_named_after_what_was_measured() {
    let named = |command: &str| name(&command.split(' ').map(str::to_owned).collect::<Vec<_>>());
    assert_eq!(named("papers icb --check"), "papers-icb");
    assert_eq!(named("scale --svg docs/images --quick"), "scale-quick");
}
