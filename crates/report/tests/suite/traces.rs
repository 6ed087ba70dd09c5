//! Golden texts of hand-made traces, so that the layout is tested independently of the language.

use std::sync::Arc;

use preempt_report::trace::{NarratedStep, ThreadPosition};
use preempt_report::{FileNames, Layout, Origin, Style, Trace};
use preempt_system::{Failure, FailureKind, Narration, Nesting, Site, ThreadId};

fn narration(line: u32, source: &str, effects: &[&str]) -> Narration {
    Narration {
        site: Some(Site { file: Arc::from("a.pre"), line, column: 1 }),
        source: source.to_owned(),
        effects: effects.iter().map(|&effect| effect.to_owned()).collect(),
    }
}

fn step(slot: usize, line: u32, source: &str, effects: &[&str]) -> NarratedStep {
    NarratedStep {
        thread: ThreadId::new(slot),
        number: ThreadId::new(slot),
        label: source.to_owned(),
        alternative: None,
        narration: narration(line, source, effects),
        nesting: Nesting::Own,
        preempts: None,
        stale: None,
    }
}

fn trace(names: &[&str], steps: Vec<NarratedStep>) -> Trace {
    let names = names.iter().map(|&name| name.to_owned()).collect();
    Trace { names, steps, ..Trace::default() }
}

fn plain(width: usize) -> Layout {
    Layout { width, ..Layout::default() }
}

#[track_caller]
fn assert_trace(trace: &Trace, width: usize, expected: &str) {
    let text = trace.to_text(&plain(width));
    let expected = expected
        .strip_prefix('\n')
        .expect("the text begins on a new line, so that its indentation is seen");
    assert!(text == expected, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= width && line == line.trim_end()));
}

fn lost_update() -> Trace {
    let mut steps = vec![
        step(0, 6, "t = x", &["x = 0"]),
        step(1, 6, "t = x", &["x = 0"]),
        step(1, 7, "x = t + 1", &["x: 0 → 1", "ends"]),
        step(0, 7, "x = t + 1", &["x = 1", "ends"]),
    ];
    steps[1].preempts = Some(ThreadId::new(0));
    trace(&["count(0)", "count(1)"], steps)
}

#[test]
fn threads_that_fit_are_shown_side_by_side() {
    assert_trace(
        &lost_update(),
        80,
        "
    line  count(0)                    count(1)
 1     6  t = x      // x = 0
          ── preemption: count(0) could have continued ───────────
 2     6                              t = x      // x = 0
 3     7                              x = t + 1  // x: 0 → 1, ends
 4     7  x = t + 1  // x = 1, ends
",
    );
}

#[test]
fn threads_that_fit_barely_are_narrower() {
    assert_trace(
        &lost_update(),
        48,
        "
    line  count(0)             count(1)
 1     6  t = x  // x = 0
          ── preemption: count(0) could have… ──
 2     6                       t = x  // x = 0
 3     7                       x = t + 1
                               // x: 0 → 1, ends
 4     7  x = t + 1
          // x = 1, ends
",
    );
}

#[test]
fn threads_that_do_not_fit_are_named() {
    let steps = vec![
        step(0, 8, "lock[from].lock()", &["lock[0]: free → held by transfer(0)"]),
        step(0, 9, "x = 1", &[]),
        step(
            1,
            18,
            "lock[from].lock()",
            &["lock[1]: free → held by transfer(1)", "turn = 1", "ends"],
        ),
        step(
            1,
            110,
            "assert x == 1 && turn == 1, \"a message that is so long that it needs two lines\"",
            &["x = 1"],
        ),
    ];
    assert_trace(
        &trace(&["transfer(0)", "transfer(1)"], steps),
        80,
        "
    line  thread
 1     8  transfer(0)  lock[from].lock()  // lock[0]: free → held by transfer(0)
 2     9               x = 1
 3    18  transfer(1)  lock[from].lock()
                       // lock[1]: free → held by transfer(1), turn = 1, ends
 4   110               assert x == 1 && turn == 1, \"a message that is so long
                       that it needs two lines\"
                       // x = 1
",
    );
}

#[test]
fn repeated_steps_are_folded() {
    let mut steps = vec![step(0, 3, "go = 1", &["go: 0 → 1"])];
    for _ in 0..1000 {
        steps.push(step(1, 8, "while busy", &["busy = true"]));
        steps.push(step(1, 9, "yield", &[]));
    }
    steps.push(step(0, 4, "skip", &[]));
    assert_trace(
        &trace(&["a", "b"], steps),
        80,
        "
      line  a                      b
   1     3  go = 1  // go: 0 → 1
   2     8                         while busy  // busy = true
   3     9                         yield
            ── the same 2 steps, 999 more times ─────────────
2002     4  skip
",
    );
}

/// A schedule that ends in a cycle: the trace shows the cycle once and says that it repeats.
#[test]
fn a_cycle_is_shown_once() {
    let spin = |slot| step(slot, 8, "while busy", &["busy = true"]);
    let mut steps = vec![step(0, 3, "busy = true", &["busy: false → true"])];
    steps.extend([spin(0), spin(0), spin(0), spin(1)]);
    let mut trace = trace(&["a", "b"], steps);
    trace.cycle = 2;
    assert_trace(
        &trace,
        80,
        "
    line  a                                    b
 1     3  busy = true  // busy: false → true
 2     8  while busy   // busy = true
 3     8  while busy   // busy = true
          ── cycle: steps 4 to 5 repeat forever ─────────────────────────
 4     8  while busy   // busy = true
 5     8                                       while busy  // busy = true
",
    );
    trace.cycle = 1;
    let text = trace.to_text(&plain(80));
    assert!(text.contains("── cycle: step 5 repeats forever ──"), "{text}");
}

#[test]
fn a_deadlock_shows_which_thread_waits_for_what() {
    let mut trace =
        trace(&["left", "right(1, 2)"], vec![step(0, 1, "a.lock()", &["a: free → held by left"])]);
    trace.failure = Some(Failure {
        kind: FailureKind::Deadlock,
        message: "no thread can move".into(),
        site: None,
    });
    trace.waiting = vec![
        ThreadPosition {
            thread: ThreadId::new(0),
            narration: narration(2, "b.lock()", &["b = held by right(1, 2)"]),
        },
        ThreadPosition { thread: ThreadId::new(1), narration: narration(12, "e.wait()", &[]) },
    ];
    assert_trace(
        &trace,
        80,
        "
    line  left
 1     1  a.lock()  // a: free → held by left
 ✗  deadlock: no thread can move
    left        waits at line 2: b.lock()  // b = held by right(1, 2)
    right(1, 2) waits at line 12: e.wait()
",
    );
}

#[test]
fn a_long_trace_shows_its_beginning_and_its_end() {
    let steps =
        (0..1000).map(|n| step(0, 1, "x += 1", &[&format!("x: {n} → {}", n + 1)])).collect();
    let trace = trace(&["t"], steps);
    let text = trace.to_text(&Layout { most_steps: 10, ..Layout::default() });
    assert_eq!(text.lines().count(), 12, "{text}");
    assert!(text.contains("── 990 steps are not shown here; replay shows them all ──"), "{text}");
    assert!(
        text.contains("   2     1  x += 1  // x: 1 → 2\n") && text.contains(" 993     1  x += 1"),
        "{text}"
    );
}

#[test]
fn any_width_and_any_text_can_be_shown() {
    let mut trace = lost_update();
    trace.names[0] = "a_very_long_name_of_a_thread".repeat(4);
    trace.steps[0].narration.source = format!("\x1b[2J{}", "é→ ".repeat(60));
    trace.steps[1].narration.effects = vec!["y".repeat(300), String::new()];
    trace.steps[2].narration.site = None;
    trace.steps[3].narration.site = Some(Site { file: Arc::from("src/b.pre"), line: 7, column: 1 });
    for width in (0..200).step_by(7) {
        let text = trace.to_text(&plain(width));
        assert!(!text.contains('\x1b') && text.contains("b.pre:7"));
    }
    let coloured = trace.to_text(&Layout { style: Style::coloured(), ..Layout::default() });
    assert_eq!(without_colours(&coloured), trace.to_text(&Layout::default()));
}

/// The text without the escape sequences of colours.
fn without_colours(text: &str) -> String {
    let mut pieces = text.split('\x1b');
    let first = pieces.next().unwrap_or_default().to_owned();
    pieces.fold(first, |text, piece| text + piece.split_once('m').map_or("", |(_, rest)| rest))
}

#[test]
fn an_execution_without_steps_can_be_shown() {
    let mut trace = trace(&["a"], Vec::new());
    assert_eq!(trace.to_text(&Layout::default()), "");
    trace.failure = Some(Failure {
        kind: FailureKind::Invariant,
        message: "invariant violated: x".into(),
        site: None,
    });
    assert_eq!(trace.to_text(&Layout::default()), " ✗  invariant violated: x\n");
}

/// A reader's questions after a failure: where does the value come from, and where are the other
/// threads?
#[test]
fn the_failure_is_followed_by_its_origins() {
    let mut trace = lost_update();
    let site = Site { file: Arc::from("a.pre"), line: 8, column: 1 };
    let message =
        "assertion failed: a long text that says what should have been and what is there \
                   instead of it, in many words, on several lines of this size"
            .into();
    trace.failure = Some(Failure { kind: FailureKind::Assertion, message, site: Some(site) });
    let origin = |variable: &str, value: Option<&str>, read, written| Origin {
        variable: variable.to_owned(),
        value: value.map(str::to_owned),
        read,
        written,
    };
    trace.origins = vec![
        origin("x", Some("1"), Some(3), Some(2)),
        origin("y", Some("0"), Some(3), None),
        origin("total", None, Some(1), Some(0)),
        origin("z", Some("2"), None, Some(3)),
        origin("w", Some("2"), None, Some(3)),
    ];
    trace.waiting = vec![ThreadPosition {
        thread: ThreadId::new(0),
        narration: narration(9, "m.lock()", &["m = held by count(1)"]),
    }];
    assert_trace(
        &trace,
        80,
        "
    line  count(0)                    count(1)
 1     6  t = x      // x = 0
          ── preemption: count(0) could have continued ───────────
 2     6                              t = x      // x = 0
 3     7                              x = t + 1  // x: 0 → 1, ends
 4     7  x = t + 1  // x = 1, ends
 ✗  assertion failed: a long text that says what should have been and what is
    there instead of it, in many words, on several lines of this size …
    x = 1 was last written in step 3 by count(1): x = t + 1
    y = 0 is its initial value
    total, read in step 2, was last written in step 1 by count(0): t = x
    z = 2 was last written in step 4 by count(0): x = t + 1
    and 1 more
    count(0) waits at line 9: m.lock()  // m = held by count(1)
",
    );
}

/// A line number is not enough if the reader cannot know the file.
#[test]
fn files_are_named_where_the_reader_cannot_know_them() {
    let mut trace = lost_update();
    let unknown = Layout { files: FileNames::Shown, ..plain(80) };
    assert!(!trace.to_text(&plain(80)).contains("a.pre"), "it was named on the command line");
    let text = trace.to_text(&unknown);
    assert!(text.starts_with("    a.pre  count(0) ") && text.contains("\n 1      6  "), "{text}");
    // The headline above the trace names it.
    let site = Some(Site { file: Arc::from("a.pre"), line: 8, column: 1 });
    let (kind, message) = (FailureKind::Assertion, "assertion failed".to_owned());
    trace.failure = Some(Failure { kind, message, site });
    assert!(trace.to_text(&unknown).contains(" 1     6  "), "{}", trace.to_text(&unknown));
    // A thread that waits is elsewhere.
    let mut narration = narration(3, "m.lock()", &[]);
    narration.site = Some(Site { file: Arc::from("b.pre"), line: 3, column: 1 });
    trace.waiting = vec![ThreadPosition { thread: ThreadId::new(0), narration }];
    for layout in [plain(80), unknown] {
        let text = trace.to_text(&layout);
        assert!(text.contains(" 1  a.pre:6  ") && text.contains("waits at b.pre:3"), "{text}");
    }
}

/// An execution that was not followed to its end.
#[test]
fn an_unfinished_execution_shows_the_position_of_each_thread() {
    let mut trace = lost_update();
    let at = |slot, line, source, effects: &[&str]| ThreadPosition {
        thread: ThreadId::new(slot),
        narration: narration(line, source, effects),
    };
    trace.next = vec![at(0, 7, "x = t + 1", &["x: 0 → 1"])];
    trace.waiting = vec![at(1, 12, "await done == 2", &[])];
    trace.variables = vec![("x".into(), "0".into()), ("done".into(), "1".into())];
    let expected = "    count(0) continues at line 7: x = t + 1  // x: 0 → 1
    count(1) waits at line 12: await done == 2

  x    = 0
  done = 1
";
    assert_eq!(trace.state_to_text(&plain(80)), expected);
}
