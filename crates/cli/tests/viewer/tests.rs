//! The tests of the pages.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

use crate::browser::{Browser, Click, key};

/// A test with a browser, and a sentence that describes it.
pub type Test = (&'static str, fn(&Browser));

pub const ALL: [Test; 15] = [
    ("every_step_shows_its_line_and_values_forwards_and_backwards", every_step),
    ("an_arrow_joins_what_happens_before_in_another_thread", arrows),
    ("a_stale_read_has_an_arrow_to_the_store_that_it_does_not_see", stale),
    ("pointing_at_a_step_shows_it_and_clicking_goes_there", pointing),
    ("what_is_searched_is_found_in_turn", searching),
    ("ten_thousand_steps_are_as_quick_as_ten", long),
    ("texts_of_a_program_stay_texts", hostile),
    ("light_and_dark_follow_the_system_until_the_user_chooses", dark),
    ("a_deadlock_shows_who_waits", deadlock),
    ("a_cycle_is_marked_where_it_begins", cycle),
    ("coverage_is_a_table_and_plots", coverage),
    ("several_errors_can_be_chosen_from", several),
    ("a_replay_has_a_page_of_its_own", replay),
    ("a_closure_has_values_and_source", closure),
    ("a_narrow_window_is_filled_and_an_image_can_be_taken", narrow),
];

/// The visible parts of the current step.
const SEEN: &str = "
    const text = (id) => document.getElementById(id).textContent;
    const values = {};
    for (const row of document.querySelectorAll('#values tr[data-variable]')) {
        if (row.hidden) continue;
        const value = row.lastChild.cloneNode(true);
        value.querySelectorAll('.old, .to').forEach((part) => part.remove());
        values[row.dataset.variable] = value.textContent;
    }
    return {
        position: text('position'),
        step: document.querySelector('.box.current')?.dataset.step ?? null,
        line: document.querySelector('.source-line.current')?.dataset.line ?? null,
        what: text('what'),
        values,
    };";

fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn repository(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path).display().to_string()
}

/// Makes a page with the command, and reads its data.
fn page(name: &str, args: &[&str]) -> (PathBuf, Value) {
    let path = temporary(name);
    let mut command = Command::new(env!("CARGO_BIN_EXE_preempt"));
    let output = command.args(args).arg("--html").arg(&path).output().unwrap();
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let data = data(&path);
    (path, data)
}

fn data(path: &Path) -> Value {
    let page = std::fs::read_to_string(path).unwrap();
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

fn bluetooth(name: &str) -> (PathBuf, Value) {
    page(name, &["check", &repository("corpus/bluetooth/model.pre")])
}

/// The values after `steps` steps, of shared variables only: their names are unique.
fn values(execution: &Value, position: usize) -> Value {
    let mut values = Map::new();
    for changes in &execution["changes"].as_array().unwrap()[..=position] {
        for change in changes.as_array().unwrap() {
            let name = execution["variables"][change[0].as_u64().unwrap() as usize]["name"]
                .as_str()
                .unwrap();
            values.insert(name.to_owned(), change[1].clone());
        }
    }
    values.retain(|_, value| !value.is_null());
    Value::Object(values)
}

fn steps(execution: &Value) -> usize {
    execution["steps"].as_array().unwrap().len()
}

/// A number as it is written for people.
fn number(n: usize) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", n / 1000, n % 1000) }
}

/// The expected contents of the page after `steps` steps.
fn seen(execution: &Value, position: usize) -> Value {
    let step = position.checked_sub(1).map(|at| (at, &execution["steps"][at]));
    json!({
        "position": format!("{} / {}", number(position), number(steps(execution))),
        "step": step.map(|(at, _)| at.to_string()),
        "line": step.map(|(_, step)| step["line"].to_string()),
        "what": step.map_or(json!("Nothing has happened yet."), |(_, step)| step["source"].clone()),
        "values": values(execution, position),
    })
}

fn every_step(browser: &Browser) {
    let (path, data) = bluetooth("steps.html");
    let execution = &data["executions"][0];
    let all = steps(execution);
    browser.open(&path, "");
    browser.expect(SEEN, &seen(execution, all));
    browser.press(&[key::HOME]);
    browser.expect(SEEN, &seen(execution, 0));
    for position in 1..=all {
        browser.press(&[if position % 2 == 0 { "j" } else { key::DOWN }]);
        browser.expect(SEEN, &seen(execution, position));
    }
    browser.press(&[key::DOWN]);
    browser.expect(SEEN, &seen(execution, all));
    for position in (0..all).rev() {
        browser.press(&[if position % 2 == 0 { "k" } else { key::UP }]);
        browser.expect(SEEN, &seen(execution, position));
    }
    // Literal numbers, so that not all expected values come from the data.
    browser.press(&["n"]);
    browser.expect("return document.getElementById('position').textContent", &json!("2 / 8"));
    browser
        .expect("return document.querySelector('.source-line.current').dataset.line", &json!("32"));
    browser.expect(
        "return document.querySelector('tr.changed').textContent",
        &json!("stoppingfalse → true"),
    );
    browser.expect(
        "return document.getElementById('headline').textContent",
        &json!(format!(
            "assertion failed: the driver is not used after it was stopped ({}:26)",
            repository("corpus/bluetooth/model.pre")
        )),
    );
    browser.open(&path, "#step=3");
    browser.expect(SEEN, &seen(execution, 3));
}

fn arrows(browser: &Browser) {
    let (path, data) = bluetooth("arrows.html");
    browser.open(&path, "");
    let execution = &data["executions"][0];
    let slot = |at: usize| &execution["steps"][at]["slot"];
    let across =
        execution["arrows"].as_array().unwrap().iter().enumerate().flat_map(|(to, from)| {
            from.as_array()
                .unwrap()
                .iter()
                .filter(move |from| slot(from.as_u64().unwrap() as usize) != slot(to))
        });
    // The flag is read before it is written; the count is changed and the end is set before they
    // are used again.
    assert_eq!(across.count(), 3);
    browser.expect("return document.querySelectorAll('.arrow').length", &json!(3));
    browser.expect("return document.querySelectorAll('.arrow.into').length", &json!(1));
    browser.expect("return document.querySelectorAll('.rule').length", &json!(1));
    browser.expect(
        "return document.querySelector('.rule').textContent",
        &json!("preemption: adder(0) could have continued"),
    );
}

fn stale(browser: &Browser) {
    let model = repository("crates/cli/tests/models/message-passing.pre");
    let (path, data) = page("stale.html", &["check", &model]);
    assert_eq!(data["check"]["memory"], json!("weak"));
    let read = json!({ "access": "read", "store": null, "newest": 1 });
    assert_eq!(data["executions"][0]["steps"][3]["stale"], read);
    browser.open(&path, "");
    browser.expect("return document.querySelectorAll('.arrow.memory').length", &json!(1));
    browser.expect("return document.querySelectorAll('.arrow.unseen').length", &json!(1));
}

fn pointing(browser: &Browser) {
    let (path, data) = bluetooth("pointing.html");
    let execution = &data["executions"][0];
    browser.open(&path, "");
    browser.expect(SEEN, &seen(execution, 8));
    browser.point("#step-3", Click::No);
    let mut looked = seen(execution, 3);
    (looked["position"], looked["step"]) = (json!("8 / 8"), json!("7"));
    browser.expect(SEEN, &looked);
    browser.point("#headline", Click::No);
    browser.expect(SEEN, &seen(execution, 8));
    browser.point("#step-4", Click::Yes);
    browser.expect(SEEN, &seen(execution, 4));
    browser.point("#forward", Click::Yes);
    browser.expect(SEEN, &seen(execution, 5));
}

fn searching(browser: &Browser) {
    let (path, _) = bluetooth("searching.html");
    browser.open(&path, "");
    let found = "return [document.getElementById('found').textContent, document.getElementById('position').textContent]";
    browser.press(&["/"]);
    browser.press(&["F", "e", "t", "c", "h"]);
    browser.expect(found, &json!(["2 found", "8 / 8"]));
    browser.expect(
        "return [...document.querySelectorAll('.match')].map((box) => box.dataset.step)",
        &json!(["2", "6"]),
    );
    browser.press(&[key::ENTER]);
    browser.expect(found, &json!(["1 of 2", "3 / 8"]));
    browser.press(&[key::ENTER]);
    browser.expect(found, &json!(["2 of 2", "7 / 8"]));
    browser.press(&[key::SHIFT, key::ENTER]);
    browser.expect(found, &json!(["1 of 2", "3 / 8"]));
    browser.press(&["x"]);
    browser.expect(found, &json!(["nothing found", "3 / 8"]));
    browser.press(&[key::ESCAPE]);
    browser.expect(found, &json!(["", "3 / 8"]));
    browser.press(&["j"]);
    browser.expect(found, &json!(["", "4 / 8"]));
}

fn long(browser: &Browser) {
    let (path, data) = page(
        "long.html",
        &[
            "check",
            &repository("crates/cli/tests/models/rounds.pre"),
            "--order",
            "icb",
            "--bound",
            "0",
            "--quiet",
        ],
    );
    let execution = &data["executions"][0];
    let all = steps(execution);
    assert_eq!(all, 9_997);
    browser.open(&path, "");
    let boxes = "return document.querySelectorAll('.box').length < 150 && document.querySelectorAll('.arrow').length < 150";
    // Two threads have an `i`; both are checked where they are equal.
    let shown = |position: usize| {
        let mut shown = seen(execution, position);
        shown["values"].as_object_mut().unwrap().remove("i");
        shown
    };
    let script = SEEN.replace("return {", "delete values.i; return {");
    for (keys, position) in [
        (vec![], all),
        (vec![key::HOME], 0),
        (vec![key::PAGE_DOWN; 40], 400),
        (vec![key::END], all),
        (vec![key::UP; 30], all - 30),
        (vec![key::PAGE_UP], all - 40),
    ] {
        browser.press(&keys);
        browser.expect(&script, &shown(position));
        browser.expect(boxes, &json!(true));
    }
    browser.open(&path, "#step=5000");
    browser.expect(&script, &shown(5000));
    browser.expect("return document.getElementById('step-5000') !== null", &json!(true));
    // In the middle of the strip is the middle of the execution.
    browser.point("#overview", Click::Yes);
    browser.expect(
        "return Math.abs(parseInt(document.getElementById('position').textContent.replace(',', '')) - 5000) < 100",
        &json!(true),
    );
}

fn hostile(browser: &Browser) {
    let image = "</script><img src=x onerror=hacked=1>";
    let model = temporary("<img src=x onerror=hacked=1>&lt;.pre");
    let text = format!(
        "var x = 0; // {image}\nthread t {{ x = 1; assert x == 0, \"{image}<!-- &amp; {{{{scripts}}}}\"; }}\n"
    );
    std::fs::write(&model, &text).unwrap();
    let (path, _) = page("hostile.html", &["check", &model.display().to_string()]);
    browser.open(&path, "");
    let said =
        format!("assertion failed: {image}<!-- &amp; {{{{scripts}}}} ({}:2)", model.display());
    browser.expect("return document.getElementById('headline').textContent", &json!(said));
    browser.expect("return document.querySelector('.failure').textContent", &json!(said));
    browser.expect(
        "return document.getElementById('subject').textContent",
        &json!(model.display().to_string()),
    );
    browser.expect(
        "return [...document.querySelectorAll('.source-line code')].map((code) => code.textContent).join('\\n') + '\\n'",
        &json!(text),
    );
    browser.press(&["/"]);
    browser.press(&["<", "!", "-", "-"]);
    browser.expect("return document.getElementById('found').textContent", &json!("1 of 1"));
    browser.expect("return document.title", &json!(format!("{} – Preempt", model.display())));
    browser.expect("return [typeof hacked, document.images.length]", &json!(["undefined", 0]));
}

fn dark(browser: &Browser) {
    let (path, _) = bluetooth("dark.html");
    let ground = "const [r, g, b] = getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number);
        return r + g + b > 3 * 128 ? 'light' : 'dark';";
    browser.open(&path, "");
    browser.expect(ground, &json!("light"));
    browser.prefer("dark");
    browser.expect(ground, &json!("dark"));
    browser.press(&["t"]);
    browser.expect(ground, &json!("light"));
    browser.open(&path, "");
    browser.expect(ground, &json!("light"));
    browser.point("#theme", Click::Yes);
    browser.expect(ground, &json!("dark"));
    browser.prefer("light");
    browser.expect(ground, &json!("dark"));
    browser.run("localStorage.clear()");
    browser.open(&path, "");
    browser.expect(ground, &json!("light"));
    browser.press(&["?"]);
    browser.expect("return document.getElementById('keys').open", &json!(true));
    browser.press(&[key::ESCAPE]);
    browser.expect("return document.getElementById('keys').open", &json!(false));
}

fn deadlock(browser: &Browser) {
    let (path, _) =
        page("deadlock.html", &["check", &repository("crates/cli/tests/models/abba.pre")]);
    browser.open(&path, "");
    browser.expect(
        "return [...document.querySelectorAll('.box.waits')].map((box) => box.textContent)",
        &json!(["waits: b.lock()b = held by right", "waits: a.lock()a = held by left"]),
    );
    browser.expect("return document.getElementById('badge').textContent", &json!("deadlock"));
    browser.expect("return document.querySelectorAll('.box.failed').length", &json!(0));
    // The positions of the threads in the source.
    browser.expect(
        "return [...document.querySelectorAll('.source-line:has(.stand i)')].map((line) => line.dataset.line)",
        &json!(["6", "13"]),
    );
    // Each in the lane of its thread.
    browser.expect(
        "const left = (box) => box.getBoundingClientRect().left;
        const [a, b] = document.querySelectorAll('.box.waits');
        return [left(a) === left(document.getElementById('step-1')), left(b) === left(document.getElementById('step-2'))];",
        &json!([true, true]),
    );
}

fn cycle(browser: &Browser) {
    let model = repository("crates/cli/tests/models/livelock.pre");
    let (path, _) = page("cycle.html", &["check", &model, "--order", "icb", "--cache", "hb"]);
    browser.open(&path, "");
    browser.expect(
        "return [...document.querySelectorAll('.rule.cycle')].map((rule) => rule.textContent)",
        &json!(["cycle: steps 3 to 4 repeat forever"]),
    );
    // Between the last step before the cycle and the first of it.
    browser.expect(
        "const at = (selector) => document.querySelector(selector).getBoundingClientRect();
        const rule = at('.rule.cycle');
        return [at('#step-2').bottom <= rule.top, rule.bottom <= at('#step-3').top];",
        &json!([true, true]),
    );
}

fn coverage(browser: &Browser) {
    let model = repository("corpus/bluetooth/fixed.pre");
    let (path, data) = page("coverage.html", &["check", &model, "--order", "icb", "--bound", "3"]);
    browser.open(&path, "");
    assert_eq!(data["executions"], json!([]));
    browser.expect("return document.getElementById('headline').textContent", &json!("No error"));
    browser.expect(
        "return document.getElementById('guarantee').textContent",
        &data["check"]["guarantee"],
    );
    browser.expect("return document.getElementById('work').hidden", &json!(true));
    let rows = data["check"]["bounds"].as_array().unwrap().iter().map(|bound| {
        let cells = ["bound", "executions", "new_executions", "states", "new_states", "pruned"];
        cells.map(|name| number(bound[name].as_u64().unwrap() as usize))
    });
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.len(), 4);
    browser.expect(
        "return [...document.querySelectorAll('#bounds tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))",
        &json!(rows),
    );
    browser.expect(
        "return [...document.querySelectorAll('.plot')].map((plot) => [plot.dataset.measure, plot.querySelectorAll('circle').length])",
        &json!([["executions", 4], ["states", 4], ["states by executions", data["growth"].as_array().unwrap().len()]]),
    );
    let last = data["growth"].as_array().unwrap().last().unwrap();
    assert_eq!(last["states"], data["check"]["states"]);
}

fn several(browser: &Browser) {
    let (path, data) = page(
        "several.html",
        &["check", &repository("crates/cli/tests/models/several.pre"), "--keep-going"],
    );
    let executions = data["executions"].as_array().unwrap();
    assert!(executions.len() > 1);
    browser.open(&path, "");
    for (at, execution) in executions.iter().enumerate() {
        browser.run(&format!(
            "const choice = document.getElementById('execution');
            choice.value = {at};
            choice.dispatchEvent(new Event('change'));"
        ));
        browser.expect(
            "return document.getElementById('headline').textContent",
            &execution["headline"],
        );
        browser.expect(SEEN, &seen(execution, steps(execution)));
    }
    // Switches to the other finding and back before anything is drawn.
    browser.run(
        "const choice = document.getElementById('execution');
        for (const at of [0, 1, 0]) {
            choice.value = at;
            choice.dispatchEvent(new Event('change'));
        }",
    );
    browser.expect(SEEN, &seen(&executions[0], steps(&executions[0])));
    let boxes = "return document.querySelectorAll('.box[data-step]').length";
    browser.expect(boxes, &json!(steps(&executions[0])));
    // The assertion is one line below the beginning of its step.
    let failed = "return [...document.querySelectorAll('.source-line.fails')].map((line) => line.dataset.line)";
    browser.open(&path, "#error=1");
    browser.expect(failed, &json!(["12"]));
    browser.press(&[key::UP]);
    browser.expect(failed, &json!([]));
}

fn replay(browser: &Browser) {
    let (_, data) = bluetooth("found.html");
    let token = data["executions"][0]["schedule"].as_str().unwrap();
    let (path, data) =
        page("replay.html", &["replay", &repository("corpus/bluetooth/model.pre"), token]);
    browser.open(&path, "");
    browser.expect(SEEN, &seen(&data["executions"][0], 8));
    browser.expect(
        "return document.getElementById('guarantee').textContent",
        &json!("The schedule still fails in the same way."),
    );
    browser.expect("return document.getElementById('coverage').hidden", &json!(true));
}

fn closure(browser: &Browser) {
    use preempt::sync::Arc;
    use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    let path = temporary("closure.html");
    let outcome = preempt::Check::new().html(&path).run(|| {
        let n = Arc::new(AtomicUsize::new(0));
        let add = |n: &AtomicUsize| n.store(n.load(SeqCst) + 1, SeqCst);
        let t = preempt::thread::spawn({
            let n = n.clone();
            move || add(&n)
        });
        add(&n);
        t.join().unwrap();
        assert_eq!(n.load(SeqCst), 2, "an update was lost");
    });
    assert_eq!(outcome.findings.len(), 1);
    let data = data(&path);
    let execution = &data["executions"][0];
    browser.open(&path, "#step=0");
    for position in 0..=steps(execution) {
        let mut seen = seen(execution, position);
        // The end of a thread has no position.
        if execution["steps"][position.wrapping_sub(1)]["line"].is_null() {
            seen["line"] = Value::Null;
        }
        browser.expect(SEEN, &seen);
        browser.press(&[key::DOWN]);
    }
    browser.expect("return document.getElementById('file').textContent", &json!("tests.rs"));
}

fn narrow(browser: &Browser) {
    let (path, data) = page(
        "narrow.html",
        &["check", &repository("corpus/philosophers/left-right.pre"), "--set", "N=5"],
    );
    browser.open(&path, "");
    for width in [900, 1280, 1920] {
        browser.resize(width, 900);
        browser.expect(
            "const page = document.documentElement; return page.scrollWidth <= page.clientWidth && page.clientWidth > 0",
            &json!(true),
        );
        // The current step is in view, however many lanes there are.
        browser.press(&[key::HOME]);
        for step in 0..steps(&data["executions"][0]) {
            browser.press(&[key::DOWN]);
            browser.expect(
                "const [box, view] = ['.box.current', '#scroller'].map((one) => document.querySelector(one)?.getBoundingClientRect());
                const seen = box && box.left >= view.left && box.right <= view.right && box.top >= view.top && box.bottom <= view.bottom;
                return [document.querySelector('.box.current')?.dataset.step, seen];",
                &json!([step.to_string(), true]),
            );
        }
    }
    let image = browser.screenshot();
    assert!(image.starts_with(b"\x89PNG\r\n\x1a\n"), "it is a PNG");
    let size = |at: usize| u32::from_be_bytes(image[at..at + 4].try_into().unwrap());
    assert!(
        size(16) > 1000 && size(20) > 500,
        "of the size of the window: {} × {}",
        size(16),
        size(20)
    );
    assert!(image.len() > 20_000, "with something on it: {} bytes", image.len());
}
