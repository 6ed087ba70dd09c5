//! Schedules as one word that is short enough to be pasted: `p1-5k2g0010c4d`.
//!
//! After the prefix with the version come base-32 digits (Crockford's: no i, l, o, u; upper case
//! and the usual confusions are accepted). The first three are the tag of the failure, 0 if there
//! is none; the last three are a checksum. Between them, each run of equal steps is written as two
//! or three numbers of one or more digits, with four bits in each digit and the fifth bit set in
//! all digits but the last:
//!
//! ```text
//! 2 · thread + (1 if the alternative is not 0)    [alternative - 1]    count - 1
//! ```
//!
//! Thread numbers are below 64, so the number 128 cannot begin a run. It separates the stem of an
//! infinite schedule from its cycle.
//!
//! The checksum is the value of the digits as a polynomial at 32, modulo a prime below 2¹⁵: it
//! changes if one digit changes or two neighbours are exchanged.

use preempt_system::{Choice, MAX_THREADS, Schedule, ThreadId};

use crate::schedule::{Ending, Run, ScheduleFile, Steps, runs, tag};

const PREFIX: &str = "p1-";
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Where a run would begin, this number begins the cycle instead.
const CYCLE: u64 = 2 * MAX_THREADS as u64;
/// The greatest prime below 2¹⁵.
const MODULUS: u32 = 32_749;

/// The token of a schedule and its ending. It contains no names, settings or model.
pub fn token(schedule: &Schedule, ending: &Ending) -> String {
    let mut digits = Vec::new();
    let tag = match ending {
        Ending::Unknown => 0,
        Ending::Described(failure) => tag(failure),
        Ending::Tagged(tag) => *tag,
    };
    digits.extend(three(tag.into()));
    write_runs(&mut digits, schedule.stem());
    if !schedule.cycle().is_empty() {
        write_number(&mut digits, CYCLE);
        write_runs(&mut digits, schedule.cycle());
    }
    digits.extend(three(checksum(&digits)));
    let digits = digits.into_iter().map(|digit| char::from(ALPHABET[usize::from(digit)]));
    PREFIX.chars().chain(digits).collect()
}

fn write_runs(digits: &mut Vec<u8>, steps: &[Choice]) {
    for Run { choice, count } in runs(steps) {
        let head = 2 * choice.thread.index() as u64 + u64::from(choice.alternative > 0);
        write_number(digits, head);
        if let Some(alternative) = choice.alternative.checked_sub(1) {
            write_number(digits, alternative.into());
        }
        write_number(digits, count - 1);
    }
}

/// Whether a word has the form of a token of any version.
pub fn looks_like_one(word: &str) -> bool {
    let version =
        word.strip_prefix('p').and_then(|rest| rest.split_once('-')).map(|(version, _)| version);
    version.is_some_and(|version| {
        !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Parses a token. The error completes the sentence "the token cannot be read:".
pub fn parse(word: &str) -> Result<ScheduleFile, String> {
    let word = word.trim();
    let Some(text) = word.strip_prefix(PREFIX) else {
        return Err(match looks_like_one(word) {
            true => "it is of another version of preempt".into(),
            false => format!("a token begins with `{PREFIX}`"),
        });
    };
    let digits = text.chars().map(digit).collect::<Result<Vec<u8>, String>>()?;
    let cut = || "it is cut off or misspelt".to_owned();
    let (digits, sum) = digits.split_last_chunk::<3>().ok_or_else(cut)?;
    if from_three(*sum) != checksum(digits) {
        return Err(cut());
    }
    let (tag, mut rest) = digits.split_first_chunk::<3>().ok_or_else(cut)?;
    let ending = match from_three(*tag) {
        0 => Ending::Unknown,
        tag => Ending::Tagged(tag as u16),
    };
    let mut steps = Steps::default();
    while !rest.is_empty() {
        let head = read_number(&mut rest).ok_or_else(cut)?;
        if head == CYCLE {
            steps.begin_cycle()?;
            continue;
        }
        let alternative = match head & 1 {
            0 => 0,
            _ => read_number(&mut rest).and_then(|n| u32::try_from(n + 1).ok()).ok_or_else(cut)?,
        };
        let count = read_number(&mut rest).ok_or_else(cut)? + 1;
        let slot =
            usize::try_from(head / 2).ok().filter(|&slot| slot < MAX_THREADS).ok_or_else(cut)?;
        steps.push(Choice { thread: ThreadId::new(slot), alternative }, count)?;
    }
    Ok(ScheduleFile { ending, schedule: steps.finish()?, ..ScheduleFile::default() })
}

fn digit(c: char) -> Result<u8, String> {
    let meant = match c.to_ascii_lowercase() {
        'o' => '0',
        'i' | 'l' => '1',
        other => other,
    };
    let found = ALPHABET.iter().position(|&letter| char::from(letter) == meant);
    found.map(|at| at as u8).ok_or_else(|| format!("`{c}` does not occur in tokens"))
}

/// Fifteen bits as three digits, the highest first.
fn three(value: u32) -> [u8; 3] {
    [10, 5, 0].map(|shift| (value >> shift & 31) as u8)
}

fn from_three(digits: [u8; 3]) -> u32 {
    digits.iter().fold(0, |value, &digit| value << 5 | u32::from(digit))
}

fn checksum(digits: &[u8]) -> u32 {
    // Begins with 1 so that zeros in front count too.
    digits.iter().fold(1, |sum, &digit| (sum * 32 + u32::from(digit)) % MODULUS)
}

/// Four bits in a digit, the lowest first.
fn write_number(digits: &mut Vec<u8>, mut value: u64) {
    while value > 15 {
        digits.push(16 | (value & 15) as u8);
        value >>= 4;
    }
    digits.push(value as u8);
}

/// A number below 2⁴⁸, which every number that is written is; `None` if it is larger or cut off.
fn read_number(digits: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..48).step_by(4) {
        let (&digit, rest) = digits.split_first()?;
        *digits = rest;
        value |= u64::from(digit & 15) << shift;
        if digit < 16 {
            return Some(value);
        }
    }
    None
}
