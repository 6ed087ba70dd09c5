//! Traces of Rust tests: file names, dropped guards, operations inside the library, and the command
//! that replays a schedule.

use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex, mpsc};
use preempt::{Check, thread};

/// The message of a deadlock names no file, so the trace does.
#[test]
fn a_trace_names_its_file_unless_the_failure_does() {
    let report = Check::new().report(|| {
        let locks = Arc::new((Mutex::new(0), Mutex::new(0)));
        let t = thread::spawn({
            let locks = locks.clone();
            move || {
                let _second = locks.1.lock().unwrap();
                let _first = locks.0.lock().unwrap();
            }
        });
        let _first = locks.0.lock().unwrap();
        let _second = locks.1.lock().unwrap();
        drop((_first, _second));
        t.join().unwrap();
    });
    assert!(report.starts_with("deadlock"), "{report}");
    assert!(report.contains("\n    traces.rs  "), "{report}");
    let panic = Check::new().report(|| {
        let n = Mutex::new(0);
        assert_eq!(*n.lock().unwrap(), 1);
    });
    assert!(
        panic.starts_with("panic: main panicked at") && panic.contains("\n    line  "),
        "{panic}"
    );
}

#[test]
fn an_unlock_is_shown_as_an_unlock() {
    let report = Check::new().report(|| {
        let items = Mutex::new(0);
        *items.lock().unwrap() += 1;
        panic!("the end");
    });
    assert!(report.contains("  *items.lock().unwrap() += 1;"), "{report}");
    assert!(report.contains("  unlock: *items.lock().unwrap() += 1;"), "{report}");
}

/// Cloned and dropped senders, and loops over a receiver.
#[test]
fn the_source_of_the_library_is_not_shown() {
    let report = Check::new().report(|| {
        let (sender, receiver) = mpsc::channel();
        let t = thread::spawn({
            let sender = sender.clone();
            move || sender.send(1).unwrap()
        });
        drop(sender);
        let mut sum = 0;
        for value in &receiver {
            sum += value;
        }
        t.join().unwrap();
        assert_eq!(sum, 2);
    });
    assert!(report.starts_with("panic"), "{report}");
    for own in ["mpsc.rs", "self.0.lock()", "self.0.recv()"] {
        assert!(!report.contains(own), "{own} is shown in\n{report}");
    }
}

#[test]
fn the_expression_is_shown_if_a_line_has_several_operations() {
    let report = Check::new().report(|| {
        let n = AtomicUsize::new(0);
        #[rustfmt::skip]
        thread::scope(|scope| { scope.spawn(|| { let v = n.load(SeqCst); n.store(v + 1, SeqCst); }); });
        assert_eq!(n.load(SeqCst), 2);
    });
    for part in ["  n.load(SeqCst)", "  n.store(v + 1, SeqCst)"] {
        assert!(report.contains(part), "{part} is missing in\n{report}");
    }
    assert!(!report.contains("let v ="), "{report}");
}

#[test]
fn the_replay_line_is_a_command() {
    let report = Check::new().report(|| panic!("always"));
    let line = report.lines().find(|line| line.contains("PREEMPT_REPLAY=")).unwrap();
    let name = "traces::the_replay_line_is_a_command";
    let end = format!(" cargo test -p preempt --test suite {name} -- --exact");
    assert!(line.ends_with(&end), "{line}");
}
