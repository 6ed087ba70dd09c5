//! The failure of an execution, from its log, how its process ended and what it printed.

use std::sync::Arc;

use preempt_native_block::{ExecutionEnd, Misuse};
use preempt_system::{Failure, FailureKind, Site, ThreadId};

use crate::describe;
use crate::executable::{Executable, Harness};
use crate::names::Names;
use crate::server::Output;
use crate::source;
use crate::symbols::Symbols;
use crate::trace::{Access, Incident, Trace};

/// Determines the failure of an execution and words it.
pub(crate) struct Judge<'j> {
    pub(crate) trace: &'j Trace,
    pub(crate) executable: &'j Executable,
    pub(crate) names: &'j Names,
    pub(crate) symbols: &'j Symbols,
}

impl Judge<'_> {
    /// The failure of the execution, and the number of steps after which it occurs. An execution
    /// may continue after an incident, such as a panic of one thread; the rest is ignored.
    ///
    /// Whether a panic makes a test fail depends on the steps after it. So the end of an execution
    /// can show that a panic in an earlier step was a failure. The first `taken` steps were already
    /// taken without one, so such a panic is reported at the end.
    pub(crate) fn failure(&self, taken: usize) -> Option<(usize, Failure)> {
        let trace = self.trace;
        let fails =
            || trace.run.outcome == ExecutionEnd::Deadlock || self.process_failure().is_some();
        let panic = match self.executable.harness {
            Harness::Program => trace.panic,
            Harness::Libtest | Harness::Other => {
                trace.panic.filter(|_| fails()).map(|(at, panic)| {
                    let reported_at = if at < taken { trace.steps.len() } else { at };
                    (reported_at, panic)
                })
            }
        };
        let first = trace.incident.into_iter().chain(panic).min_by_key(|(at, _)| *at);
        if let Some((at, incident)) = first {
            return Some((at, self.incident_failure(incident)));
        }
        let failure = match trace.run.outcome {
            ExecutionEnd::Assertion => self.assertion_failure(),
            ExecutionEnd::StepLimit => Failure {
                kind: FailureKind::StepLimit,
                message: format!("the execution reached the limit of {} steps", trace.steps.len()),
                site: None,
            },
            ExecutionEnd::Exited | ExecutionEnd::Died => self.process_failure()?,
            ExecutionEnd::Deadlock
            | ExecutionEnd::Diverged
            | ExecutionEnd::Unsupported
            | ExecutionEnd::Full
            | ExecutionEnd::Fault => {
                return None;
            }
        };
        Some((trace.steps.len(), failure))
    }

    fn incident_failure(&self, incident: Incident) -> Failure {
        match incident {
            Incident::Panic { thread } => self.panic_failure(thread),
            Incident::Race { address, first, second } => self.race_failure(address, first, second),
            Incident::Memory { misuse, pc, freed: (thread, freed_at) } => {
                let message = match misuse {
                    Misuse::DoubleFree => {
                        format!("double free: {}", self.freed_before(thread, freed_at))
                    }
                    Misuse::UseAfterFree => {
                        format!("use after free: {}", self.freed_before(thread, freed_at))
                    }
                    _ => "invalid free: the address is not that of an allocated block".to_owned(),
                };
                Failure { kind: FailureKind::Runtime, message, site: self.symbols.own_caller(pc) }
            }
            Incident::Misuse { misuse, object, pc } => {
                let name = describe::object(self.names, self.symbols, object);
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
                Failure { kind: FailureKind::Runtime, message, site: self.symbols.caller(pc) }
            }
        }
    }

    fn panic_failure(&self, thread: ThreadId) -> Failure {
        let (site, message) = printed_panic(&self.trace.run.output.text).unzip();
        let message = message.map(|text| format!(": {text}")).unwrap_or_default();
        let place = site
            .as_ref()
            .map(|Site { file, line, .. }| format!(" at {}:{line}", source::in_package(file)))
            .unwrap_or_default();
        let message = format!("thread {} panicked{place}{message}", self.thread(thread));
        Failure { kind: FailureKind::Panic, message, site }
    }

    fn race_failure(&self, address: u64, first: Access, second: Access) -> Failure {
        let name = self.symbols.variable(address, 16);
        let name = name.unwrap_or_else(|| "memory without a name".to_owned());
        let describe = |access: Access| {
            let verb = if access.writes { "writes" } else { "reads" };
            format!("{} {verb}{}", self.thread(access.thread), self.at(access.pc))
        };
        let message = format!(
            "data race on {name}: {} and {}, and no synchronisation orders the two",
            describe(first),
            describe(second)
        );
        Failure { kind: FailureKind::Race, message, site: self.symbols.own_caller(second.pc) }
    }

    fn freed_before(&self, thread: ThreadId, pc: u64) -> String {
        format!("{} freed this memory{}", self.thread(thread), self.at(pc))
    }

    fn thread(&self, thread: ThreadId) -> String {
        self.names.thread_name(thread.index())
    }

    /// The position of a call as the end of a sentence; empty if it is not known.
    fn at(&self, pc: u64) -> String {
        self.symbols.own_caller(pc).map(|site| format!(" at {site}")).unwrap_or_default()
    }

    /// A failed `assert` of C.
    fn assertion_failure(&self) -> Failure {
        let run = &self.trace.run;
        let mut parts = run.text.split(|&byte| byte == 0).map(String::from_utf8_lossy);
        let (expression, file) =
            (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        let site = Site { file: Arc::from(&*file), line: run.detail, column: 1 };
        let message = format!("assertion failed: {expression}");
        Failure { kind: FailureKind::Assertion, message, site: Some(site) }
    }

    /// The failure of a process that was killed by a signal or has an unexpected exit status.
    fn process_failure(&self) -> Option<Failure> {
        let (run, expected) = (&self.trace.run, self.executable.expected_exit);
        let signal = run.status & 0x7f;
        if signal == 0 {
            let code = run.status >> 8 & 0xff;
            let message = format!("the program exits with status {code} instead of {expected}");
            let failure = Failure { kind: FailureKind::Runtime, message, site: None };
            return (code != expected).then_some(failure);
        }
        // A Rust program that aborts on panics prints why.
        if let Some((site, text)) =
            printed_panic(&run.output.text).filter(|_| signal == libc::SIGABRT)
        {
            let message = format!("a thread panicked: {text}");
            return Some(Failure { kind: FailureKind::Panic, message, site: Some(site) });
        }
        let message = match signal {
            libc::SIGXFSZ => "the program writes more output than --max-output permits".to_owned(),
            _ => format!("the program is killed by {}", signal_name(signal)),
        };
        let site = (run.fault != 0).then(|| self.symbols.site(run.fault)).flatten();
        Some(Failure { kind: FailureKind::Runtime, message, site })
    }
}

/// The failure of an execution whose output is not the one that every execution must have.
pub(crate) fn output_failure(output: &Output, expected: &Output) -> Option<Failure> {
    if output == expected {
        return None;
    }
    let (mut lines, mut expected_lines) = (output.text.lines(), expected.text.lines());
    let shown = |line: Option<&str>| match line {
        Some(line) => format!("`{line}`"),
        None => "missing".to_owned(),
    };
    let difference = (1..).find_map(|number| match (lines.next(), expected_lines.next()) {
        (None, None) => Some("they differ in white space or past what is shown".to_owned()),
        (line, expected) if line == expected => None,
        (line, expected) => {
            Some(format!("line {number} is {}, there it is {}", shown(line), shown(expected)))
        }
    });
    let difference = difference.expect("the texts end");
    let message =
        format!("the output is not that of the execution without preemptions: {difference}");
    Some(Failure { kind: FailureKind::Runtime, message, site: None })
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGILL => "SIGILL (invalid instruction)",
        libc::SIGABRT => "SIGABRT (it called abort)",
        libc::SIGBUS => "SIGBUS (invalid memory access)",
        libc::SIGFPE => "SIGFPE (arithmetic error)",
        libc::SIGSEGV => "SIGSEGV (invalid memory access)",
        libc::SIGKILL => "SIGKILL (another process killed it, or it ran out of memory)",
        libc::SIGTERM => "SIGTERM",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGPIPE => "SIGPIPE",
        _ => return format!("signal {signal}"),
    };
    name.to_owned()
}

/// The position and the message of the first panic that a Rust program has printed.
fn printed_panic(output: &str) -> Option<(Site, String)> {
    let (_, rest) = output.split_once(" panicked at ")?;
    let mut lines = rest.lines();
    let position = lines.next()?.trim_end_matches(':');
    let mut parts = position.rsplitn(3, ':');
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
        let message = |printed, expected| {
            output_failure(&output(printed), &output(expected)).map(|failure| failure.message)
        };
        assert_eq!(message("a\nb\n", "a\nb\n"), None);
        for (printed, expected, words) in [
            ("a\nc\n", "a\nb\n", "line 2 is `c`, there it is `b`"),
            ("a\n", "a\nb\n", "line 2 is missing, there it is `b`"),
            ("a\nb", "a\nb\n", "white space"),
        ] {
            let message = message(printed, expected).expect("the outputs differ");
            assert!(message.contains(words), "{message}");
        }
    }

    #[test]
    fn the_first_panic_is_read() {
        let output = "hello\n\nthread 'main' (12) panicked at src/main.rs:10:5:\nleft\n right\n\
                      note: run with `RUST_BACKTRACE=1`\n\nthread 'b' panicked at b.rs:1:2:\nno\n";
        let (site, message) = printed_panic(output).expect("there is one");
        assert_eq!((&*site.file, site.line, site.column), ("src/main.rs", 10, 5));
        assert_eq!(message, "left\n right");
        assert_eq!(printed_panic("panicked at nowhere"), None);
    }
}
