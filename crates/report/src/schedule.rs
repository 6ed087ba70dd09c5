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
//! A *context* is a sequence of steps of one thread. Its line has the thread's number, its name
//! and, after the colon, its steps: a number `n` means `n` steps in which the thread had no choice
//! or took the first alternative, `?n` for one step with alternative `n` (counted from 0). The text
//! after the bar describes the first step of the context. A line `cycle` separates the stem of an
//! infinite schedule from the steps that repeat forever. Lines that begin with `#` are comments.
//!
//! Only the numbers decide which threads move. Names and first steps are checked when the schedule
//! is replayed, so that a schedule of another program is noticed. The [token](crate::token) is the
//! same schedule in one word, without names.

use std::fmt::{self, Write as _};

use preempt_system::{Choice, Failure, FailureKind, MAX_THREADS, Schedule, ThreadId};

use crate::wrap::clean;

/// The first line of a schedule file.
const HEADER: &str = "preempt schedule 1";

/// The line between the stem and the cycle.
const CYCLE: &str = "cycle";

/// The most steps that are read, so that a number with a digit too many does not exhaust memory.
const MOST_STEPS: u64 = 1 << 26;

/// A schedule with the data that help to replay it: the contents of a schedule file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScheduleFile {
    /// The file of the model, as the user named it.
    pub model: Option<String>,
    /// Constants that `--set` changed, with values in the syntax of the model.
    pub settings: Vec<(String, String)>,
    /// The failure at its end.
    pub ending: Ending,
    /// The names of the threads that move.
    pub names: Vec<(ThreadId, String)>,
    /// Descriptions of the first steps of contexts, each with the number of the step from 0.
    pub begins: Vec<(usize, String)>,
    /// The steps.
    pub schedule: Schedule,
}

/// The end of an execution when its schedule was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// It was not recorded.
    #[default]
    Unknown,
    /// In a failure, described as [`describe`] does.
    Described(String),
    /// In a failure whose description has this tag.
    Tagged(u16),
}

impl Ending {
    /// The ending of an execution that ends in `failure`; unknown if there is none, since the
    /// schedule may be a prefix.
    pub fn of(failure: Option<&Failure>) -> Ending {
        failure.map_or(Ending::Unknown, |failure| Ending::Described(describe(failure)))
    }

    /// Whether an execution that ends in `failure` has this ending; `None` if it was not recorded.
    pub fn is_same(&self, failure: Option<&Failure>) -> Option<bool> {
        let now = failure.map(describe);
        match self {
            Ending::Unknown => None,
            Ending::Described(then) => Some(now.as_ref() == Some(then)),
            Ending::Tagged(then) => Some(now.map(|now| tag(&now)) == Some(*then)),
        }
    }
}

/// A failure on one line: its kind, unless the message begins with it, and the message. Source
/// positions are left out, because every edit of the program moves them.
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

impl fmt::Display for ScheduleFile {
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
        self.write_contexts(f, self.schedule.stem(), 0)?;
        if !self.schedule.cycle().is_empty() {
            writeln!(f, "{CYCLE}")?;
            self.write_contexts(f, self.schedule.cycle(), self.schedule.stem().len())?;
        }
        Ok(())
    }
}

impl ScheduleFile {
    /// Writes the contexts of `steps`, the first of which is step `first` of the schedule.
    fn write_contexts(
        &self,
        f: &mut fmt::Formatter<'_>,
        steps: &[Choice],
        mut first: usize,
    ) -> fmt::Result {
        for context in steps.chunk_by(|a, b| a.thread == b.thread) {
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

    /// The name of a thread, if it is known.
    pub fn name(&self, thread: ThreadId) -> Option<&str> {
        self.names.iter().find(|(of, _)| *of == thread).map(|(_, name)| name.as_str())
    }

    /// Whether `text` begins like a schedule file of any version.
    pub fn looks_like_one(text: &str) -> bool {
        text.starts_with("preempt schedule")
    }

    /// Parses a schedule file.
    pub fn parse(text: &str) -> Result<ScheduleFile, Malformed> {
        let mut lines = text.lines().map(str::trim).enumerate().map(|(at, line)| (at + 1, line));
        match lines.next() {
            Some((_, HEADER)) => {}
            Some((line, other)) if ScheduleFile::looks_like_one(other) => {
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
        let (mut file, mut steps, mut last) = (ScheduleFile::default(), Steps::default(), 1);
        for (line, text) in lines {
            if !text.is_empty() && !text.starts_with('#') {
                file.read_line(text, &mut steps).map_err(|why| Malformed { line, why })?;
                last = line;
            }
        }
        file.schedule = steps.finish().map_err(|why| Malformed { line: last, why })?;
        Ok(file)
    }

    fn read_line(&mut self, text: &str, steps: &mut Steps) -> Result<(), String> {
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
                self.read_context(slot, rest, steps)?
            }
            CYCLE if rest.is_empty() => steps.begin_cycle()?,
            other => {
                return Err(format!(
                    "`{other}` is neither a thread's number nor `model`, `set`, `failure` or \
                     `{CYCLE}`"
                ));
            }
        }
        Ok(())
    }

    fn read_context(&mut self, slot: &str, rest: &str, all: &mut Steps) -> Result<(), String> {
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
        let first = all.steps.len();
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
                (Ok(count), Ok(alternative)) => all.push(Choice { thread, alternative }, count)?,
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

/// Splits a context into the name, the steps and the first step. Names and first steps may contain
/// colons and bars; the steps between them contain neither.
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
    // If no colon precedes steps, the last colon was meant to.
    all.find(|(_, steps, _)| are_steps(steps)).or_else(|| colons.next_back().map(cut))
}

/// A schedule that is being read.
#[derive(Default)]
pub(crate) struct Steps {
    steps: Vec<Choice>,
    /// The length of the stem, once the cycle has begun.
    stem: Option<usize>,
}

impl Steps {
    /// Appends `count` equal steps.
    pub(crate) fn push(&mut self, choice: Choice, count: u64) -> Result<(), String> {
        let length = self.steps.len() as u64;
        if count > MOST_STEPS - length {
            return Err(format!("a schedule has at most {MOST_STEPS} steps"));
        }
        self.steps.resize((length + count) as usize, choice);
        Ok(())
    }

    /// The steps that follow are the cycle.
    pub(crate) fn begin_cycle(&mut self) -> Result<(), String> {
        match self.stem.replace(self.steps.len()) {
            None => Ok(()),
            Some(_) => Err("a schedule has at most one cycle".into()),
        }
    }

    pub(crate) fn finish(self) -> Result<Schedule, String> {
        let cycle = self.stem.map(|stem| self.steps.len() - stem);
        match cycle {
            Some(0) => Err("the cycle has no steps".into()),
            _ => Ok(Schedule::new(self.steps).with_cycle(cycle.unwrap_or(0))),
        }
    }
}

/// Why a text is not a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The line number, from 1.
    pub line: usize,
    /// The mistake.
    pub why: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for Malformed {}
