//! What went wrong in an execution, from how its process ended and what it printed.

use std::sync::Arc;

use preempt_native_block::{Misuse, Outcome as End};
use preempt_system::{Failure, FailureKind, Site};

use crate::executable::Harness;
use crate::server::Output;
use crate::source;
use crate::symbols::Symbols;
use crate::trace::{Access, Incident, Trace};

/// The failure of an execution, and the number of steps before it is known. An execution may
/// continue after an incident, such as a panic of one thread; what follows is ignored.
///
/// Whether a panic makes a test fail depends on what follows, so steps that were taken before may
/// turn out to contain one that does. Only the steps after the first `settled` can fail.
pub(crate) fn failure(
    trace: &Trace,
    settled: usize,
    (expected_exit, harness): (i32, Harness),
    symbols: &Symbols,
    object: impl Fn(u32) -> String,
    thread: impl Fn(usize) -> String,
) -> Option<(usize, Failure)> {
    let fails =
        || trace.run.outcome == End::Deadlock || ended(trace, expected_exit, symbols).is_some();
    let panic = match harness {
        Harness::Program => trace.panic,
        Harness::Libtest | Harness::Other => trace.panic.filter(|_| fails()).map(|(at, panic)| {
            let known = if at < settled { trace.steps.len() } else { at };
            (known, panic)
        }),
    };
    let first = trace.incident.into_iter().chain(panic).min_by_key(|(at, _)| *at);
    if let Some((at, incident)) = first {
        return Some((at, incident_failure(trace, incident, symbols, object, thread)));
    }
    let failure = match trace.run.outcome {
        End::Assertion => assertion(trace),
        End::StepLimit => Failure {
            kind: FailureKind::StepLimit,
            message: format!("the execution reached the limit of {} steps", trace.steps.len()),
            site: None,
        },
        End::Exited | End::Died => ended(trace, expected_exit, symbols)?,
        End::Deadlock | End::Diverged | End::Unsupported | End::Full | End::Fault => return None,
    };
    Some((trace.steps.len(), failure))
}

/// The failure of an execution that has not printed what all executions have to print.
pub(crate) fn other_output(output: &Output, wanted: &Output) -> Option<Failure> {
    if output == wanted {
        return None;
    }
    let (mut lines, mut wanted_lines) = (output.text.lines(), wanted.text.lines());
    let shown = |line: Option<&str>| match line {
        Some(line) => format!("`{line}`"),
        None => "missing".to_owned(),
    };
    let at = (1..).find_map(|number| match (lines.next(), wanted_lines.next()) {
        (None, None) => Some("they differ in white space or past what is shown".to_owned()),
        (one, other) if one == other => None,
        (one, other) => {
            Some(format!("line {number} is {}, there it is {}", shown(one), shown(other)))
        }
    });
    let at = at.expect("the texts end");
    let message = format!("the output is not that of the execution without preemptions: {at}");
    Some(Failure { kind: FailureKind::Runtime, message, site: None })
}

fn incident_failure(
    trace: &Trace,
    incident: Incident,
    symbols: &Symbols,
    object: impl Fn(u32) -> String,
    thread: impl Fn(usize) -> String,
) -> Failure {
    match incident {
        Incident::Panic { thread: slot } => {
            let (site, message) = panic(&trace.run.output.text).unzip();
            let who = thread(slot.index());
            let message = message.map(|text| format!(": {text}")).unwrap_or_default();
            let place = site
                .as_ref()
                .map(|Site { file, line, .. }| format!(" at {}:{line}", source::in_package(file)));
            let message = format!("thread {who} panicked{}{message}", place.unwrap_or_default());
            Failure { kind: FailureKind::Panic, message, site }
        }
        Incident::Race { address, first, second } => {
            let name = symbols.variable(address, 16);
            let name = name.unwrap_or_else(|| "memory without a name".to_owned());
            let describe = |access: Access| {
                let verb = if access.writes { "writes" } else { "reads" };
                let place = symbols.own_caller(access.pc).map(|site| format!(" at {site}"));
                format!("{} {verb}{}", thread(access.thread.index()), place.unwrap_or_default())
            };
            let message = format!(
                "data race on {name}: {} and {}, and no synchronisation orders the two",
                describe(first),
                describe(second)
            );
            let site = symbols.own_caller(second.pc);
            Failure { kind: FailureKind::Race, message, site }
        }
        Incident::Memory { misuse, pc, freed: (slot, at) } => {
            let place = symbols.own_caller(at).map(|site| format!(" at {site}"));
            let freed = format!("{} has freed{}", thread(slot.index()), place.unwrap_or_default());
            let message = match misuse {
                Misuse::DoubleFree => format!("double free: of memory that {freed}"),
                Misuse::UseAfterFree => format!("use after free: of memory that {freed}"),
                _ => "free of an address that is not that of allocated memory".to_owned(),
            };
            Failure { kind: FailureKind::Runtime, message, site: symbols.own_caller(pc) }
        }
        Incident::Misuse { misuse, object: location, pc } => {
            let name = object(location);
            let message = match misuse {
                Misuse::UseDestroyedMutex => format!("{name} is used after it was destroyed"),
                Misuse::DestroyHeldMutex | Misuse::DestroyHeldRwLock => {
                    format!("{name} is destroyed while a thread holds it")
                }
                Misuse::DestroyAwaitedCondvar | Misuse::DestroyAwaitedBarrier => {
                    format!("{name} is destroyed while threads wait for it")
                }
                Misuse::UseAfterFree | Misuse::DoubleFree | Misuse::BadFree | Misuse::Race => {
                    unreachable!("misuses of memory are incidents of their own")
                }
            };
            Failure { kind: FailureKind::Runtime, message, site: symbols.caller(pc) }
        }
    }
}

/// A failed `assert` of C.
fn assertion(trace: &Trace) -> Failure {
    let mut parts = trace.run.text.split(|&byte| byte == 0).map(String::from_utf8_lossy);
    let (expression, file) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let site = Site { file: Arc::from(&*file), line: trace.run.detail, column: 1 };
    let message = format!("assertion failed: {expression}");
    Failure { kind: FailureKind::Assertion, message, site: Some(site) }
}

/// The end of the process.
fn ended(trace: &Trace, expected_exit: i32, symbols: &Symbols) -> Option<Failure> {
    let status = trace.run.status;
    let signal = status & 0x7f;
    if signal == 0 {
        let code = status >> 8 & 0xff;
        let message = format!("the program exits with status {code} instead of {expected_exit}");
        let failure = Failure { kind: FailureKind::Runtime, message, site: None };
        return (code != expected_exit).then_some(failure);
    }
    let message = match signal {
        libc::SIGXFSZ => "the program writes more output than --max-output permits".to_owned(),
        _ => format!("the program is ended by {}", signal_name(signal)),
    };
    // A Rust program that aborts on panics says why.
    if let Some((site, text)) = panic(&trace.run.output.text).filter(|_| signal == libc::SIGABRT) {
        let message = format!("a thread panicked: {text}");
        return Some(Failure { kind: FailureKind::Panic, message, site: Some(site) });
    }
    let site = (trace.run.fault != 0).then(|| symbols.site(trace.run.fault)).flatten();
    Some(Failure { kind: FailureKind::Runtime, message, site })
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGILL => "SIGILL, an invalid instruction",
        libc::SIGABRT => "SIGABRT: it calls abort",
        libc::SIGBUS => "SIGBUS, an invalid access to memory",
        libc::SIGFPE => "SIGFPE, an arithmetic error",
        libc::SIGSEGV => "SIGSEGV, an invalid access to memory",
        libc::SIGKILL => "SIGKILL: another process ended it, or it had no memory left",
        libc::SIGTERM => "SIGTERM",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGPIPE => "SIGPIPE",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}

/// The place and the message of the first panic that a Rust program has printed.
fn panic(output: &str) -> Option<(Site, String)> {
    let (_, rest) = output.split_once(" panicked at ")?;
    let mut lines = rest.lines();
    let place = lines.next()?.trim_end_matches(':');
    let mut parts = place.rsplitn(3, ':');
    let (column, line, file) = (parts.next()?, parts.next()?, parts.next()?);
    let site =
        Site { file: Arc::from(file), line: line.parse().ok()?, column: column.parse().ok()? };
    let ends = |line: &&str| line.starts_with("note: ") || line.starts_with("stack backtrace:");
    let message: Vec<&str> = lines.take_while(|line| !ends(line) && !line.is_empty()).collect();
    Some((site, message.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_shown() {
        let output = |text: &str| Output { text: text.to_owned(), hash: text.len() as u64 };
        let message = |one, other| other_output(&output(one), &output(other)).map(|f| f.message);
        assert_eq!(message("a\nb\n", "a\nb\n"), None);
        for (one, other, words) in [
            ("a\nc\n", "a\nb\n", "line 2 is `c`, there it is `b`"),
            ("a\n", "a\nb\n", "line 2 is missing, there it is `b`"),
            ("a\nb", "a\nb\n", "white space"),
        ] {
            let message = message(one, other).expect("they differ");
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn the_first_panic_is_read() {
        let output = "hello\n\nthread 'main' (12) panicked at src/main.rs:10:5:\nleft\n right\n\
                      note: run with `RUST_BACKTRACE=1`\n\nthread 'b' panicked at b.rs:1:2:\nno\n";
        let (site, message) = panic(output).expect("there is one");
        assert_eq!((&*site.file, site.line, site.column), ("src/main.rs", 10, 5));
        assert_eq!(message, "left\n right");
        assert_eq!(panic("panicked at nowhere"), None);
    }
}
