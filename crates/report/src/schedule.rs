//! Schedules as files: versioned, readable, one line per context.
//!
//! ```text
//! preempt schedule 1
//! model philosophers.pre
//! set N = 3
//! failure deadlock: no thread can move
//! 0 phil(0): 3 | left.lock()
//! 1 phil(1): 1 ?2 4 | left.lock()
//! ```
//!
//! A *context* is a run of steps of one thread. Its line has the thread's slot, its name, and after
//! the colon its steps: a number is that many steps in which the thread had no choice or took the
//! first alternative, `?n` is one step with the alternative n (counted from 0). What the first of
//! them was may follow behind a bar. Lines that begin with `#` are comments. The slot says who
//! moves; the name and the first step are checked, so that a schedule is not taken for one of
//! another program. The [token](crate::token) says who moves in one word.

use std::fmt::{self, Write as _};

use preempt_system::{Choice, Failure, FailureKind, MAX_THREADS, Schedule, ThreadId};

use crate::wrap::clean;

/// The first line of a schedule file.
const HEADER: &str = "preempt schedule 1";

/// The most steps that are read: a number with a digit too many shall not fill the memory.
pub(crate) const MOST_STEPS: u64 = 1 << 26;

/// A schedule and what it belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// The file of the model, as the user named it.
    pub model: Option<String>,
    /// The constants that were given another value, as it would be written in the model.
    pub settings: Vec<(String, String)>,
    /// How it ended.
    pub ending: Ending,
    /// The names of the threads that move, by slot.
    pub names: Vec<(ThreadId, String)>,
    /// What the first step of a context was, by the number of the step from 0.
    pub begins: Vec<(usize, String)>,
    /// The steps.
    pub schedule: Schedule,
}

/// How an execution ended when its schedule was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// Nobody has said.
    #[default]
    Unknown,
    /// In a failure, described as [`describe`] does.
    Described(String),
    /// In a failure whose description has this tag.
    Tagged(u16),
}

impl Ending {
    /// In this failure, or unknown: a schedule that was cut off ends nowhere.
    pub fn of(failure: Option<&Failure>) -> Ending {
        failure.map_or(Ending::Unknown, |failure| Ending::Described(describe(failure)))
    }

    /// Whether an execution that ends in `failure` ends in the same way; `None` if nobody knows.
    pub fn is_same(&self, failure: Option<&Failure>) -> Option<bool> {
        let now = failure.map(describe);
        match self {
            Ending::Unknown => None,
            Ending::Described(then) => Some(now.as_ref() == Some(then)),
            Ending::Tagged(then) => Some(now.map(|now| tag(&now)) == Some(*then)),
        }
    }
}

/// A failure on one line, without places, which every edit of the program moves: its message, and
/// its kind if that does not say it.
pub fn describe(failure: &Failure) -> String {
    let (kind, mut message) = (failure.kind.word(), clean(&failure.message).to_string());
    if failure.kind == FailureKind::Panic {
        // `main panicked at src/lib.rs:7: why`
        while let Some(from) = message.find(" panicked at ") {
            let rest = from + " panicked".len();
            let to = message[rest..].find(": ").map_or(message.len(), |len| rest + len);
            message.replace_range(rest..to, "");
        }
    }
    if failure.kind == FailureKind::Race {
        // The places of both accesses, in parentheses.
        while let Some(from) = message.find(" (") {
            let to = message[from..].find(')').map_or(message.len(), |len| from + len + 1);
            message.replace_range(from..to, "");
        }
    }
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if message.starts_with(kind) { message } else { format!("{kind}: {message}") }
}

/// 15 bits for a description, never 0.
pub(crate) fn tag(description: &str) -> u16 {
    let hash = description.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash % 0x7fff) as u16 + 1
}

/// Steps of one thread with one alternative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) choice: Choice,
    pub(crate) count: u64,
}

/// Steps as the longest possible runs.
pub(crate) fn runs(steps: &[Choice]) -> impl Iterator<Item = Run> {
    let same = steps.chunk_by(|a, b| a == b);
    same.map(|steps| Run { choice: steps[0], count: steps.len() as u64 })
}

impl fmt::Display for Recorded {
    /// The text of the file.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        if let Some(model) = &self.model {
            writeln!(f, "model {model}")?;
        }
        for (name, value) in &self.settings {
            writeln!(f, "set {name} = {value}")?;
        }
        if let Ending::Described(failure) = &self.ending {
            writeln!(f, "failure {failure}")?;
        }
        let mut first = 0;
        for context in self.schedule.steps().chunk_by(|a, b| a.thread == b.thread) {
            let thread = context[0].thread;
            write!(f, "{} {}:", thread.index(), self.name(thread).unwrap_or("-"))?;
            for Run { choice: Choice { alternative, .. }, count } in runs(context) {
                match alternative {
                    0 => write!(f, " {count}")?,
                    _ => (0..count).try_for_each(|_| write!(f, " ?{alternative}"))?,
                }
            }
            if let Some((_, begin)) = self.begins.iter().find(|(at, _)| *at == first) {
                write!(f, " | {}", clean(begin))?;
            }
            f.write_char('\n')?;
            first += context.len();
        }
        Ok(())
    }
}

impl Recorded {
    /// The name of a thread, if it is known.
    pub fn name(&self, thread: ThreadId) -> Option<&str> {
        self.names.iter().find(|(of, _)| *of == thread).map(|(_, name)| name.as_str())
    }

    /// Whether this is the beginning of a schedule file of any version.
    pub fn looks_like_one(text: &str) -> bool {
        text.starts_with("preempt schedule")
    }

    /// Reads the text of a schedule file.
    pub fn parse(text: &str) -> Result<Recorded, Malformed> {
        let mut lines = text.lines().map(str::trim).enumerate().map(|(at, line)| (at + 1, line));
        match lines.next() {
            Some((_, HEADER)) => {}
            Some((line, other)) if Recorded::looks_like_one(other) => {
                return Err(Malformed {
                    line,
                    why: format!("this is version 1 of preempt's schedules, not `{other}`"),
                });
            }
            _ => {
                return Err(Malformed {
                    line: 1,
                    why: format!("a schedule begins with the line `{HEADER}`"),
                });
            }
        }
        let mut recorded = Recorded::default();
        for (line, text) in lines {
            if !text.is_empty() && !text.starts_with('#') {
                recorded.read_line(text).map_err(|why| Malformed { line, why })?;
            }
        }
        Ok(recorded)
    }

    fn read_line(&mut self, text: &str) -> Result<(), String> {
        let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
        let rest = rest.trim();
        match word {
            "model" => self.model = Some(rest.to_owned()),
            "failure" => self.ending = Ending::Described(rest.to_owned()),
            "set" => {
                let (name, value) = rest.split_once('=').ok_or("expected `set NAME = VALUE`")?;
                self.settings.push((name.trim().to_owned(), value.trim().to_owned()));
            }
            slot if slot.starts_with(|c: char| c.is_ascii_digit()) => {
                self.read_context(slot, rest)?
            }
            other => {
                return Err(format!(
                    "`{other}` is neither a thread's number nor `model`, `set` or `failure`"
                ));
            }
        }
        Ok(())
    }

    fn read_context(&mut self, slot: &str, rest: &str) -> Result<(), String> {
        let thread = match slot.parse() {
            Ok(slot) if slot < MAX_THREADS => ThreadId::new(slot),
            _ => {
                return Err(format!(
                    "`{slot}` is not the number of a thread: they go from 0 to {}",
                    MAX_THREADS - 1
                ));
            }
        };
        let (name, steps, begin) =
            parts(rest).ok_or("expected a colon between the thread and its steps")?;
        let first = self.schedule.steps().len();
        self.begins.extend(begin.map(|begin| (first, begin.to_owned())));
        match (name.trim(), self.name(thread)) {
            ("-" | "", _) => {}
            (now, None) => self.names.push((thread, now.to_owned())),
            (now, Some(before)) if now == before => {}
            (now, Some(before)) => {
                return Err(format!("thread {slot} is called `{before}` above and `{now}` here"));
            }
        }
        for word in steps.split_whitespace() {
            let (count, alternative) = match word.strip_prefix('?') {
                Some(alternative) => (Ok(1), alternative.parse()),
                None => (word.parse(), Ok(0)),
            };
            match (count, alternative) {
                (Ok(count), Ok(alternative)) => {
                    push(&mut self.schedule, thread, alternative, count)?
                }
                _ => {
                    return Err(format!(
                        "`{word}` is neither a number of steps nor a `?` with an alternative"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// The name, the steps and the first step of a context. Names may contain colons and bars, and so
/// may the first step: what stands between them does not.
fn parts(text: &str) -> Option<(&str, &str, Option<&str>)> {
    let mut colons = text.match_indices(':').map(|(at, _)| at);
    let cut = |at: usize| {
        let (name, rest) = (&text[..at], &text[at + 1..]);
        match rest.split_once(" | ") {
            Some((steps, begin)) => (name, steps, Some(begin.trim())),
            None => (name, rest, None),
        }
    };
    let are_steps =
        |steps: &str| steps.chars().all(|c| c.is_ascii_digit() || c == '?' || c.is_whitespace());
    let mut all = colons.clone().map(cut);
    // If no colon stands before steps, the last one was meant to.
    all.find(|(_, steps, _)| are_steps(steps)).or_else(|| colons.next_back().map(cut))
}

/// Appends `count` equal steps.
pub(crate) fn push(
    schedule: &mut Schedule,
    thread: ThreadId,
    alternative: u32,
    count: u64,
) -> Result<(), String> {
    let length = schedule.0.len() as u64;
    if count > MOST_STEPS - length {
        return Err(format!("a schedule has at most {MOST_STEPS} steps"));
    }
    schedule.0.resize((length + count) as usize, Choice { thread, alternative });
    Ok(())
}

/// Why a text is not a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for Malformed {}
