//! Checkpoints: the remaining work of a search, as bytes from which it continues.
//!
//! A search *pauses* where its remaining work is plain data: waiting states, open steps, numbers.
//! All its workers stop at such a place, their data is
//! [written](crate::engine::control::SearchControl::pause), and they continue. A search that is
//! [resumed](Checkpoints::resume) reads the same data and enters the same loop at the same place.
//! So a search that was killed and resumed has the numbers, the findings and the guarantee of one
//! that was not interrupted.
//!
//! What can be computed again is not written: executions are written as their choices and executed
//! again, tables as their entries and filled again, in an order in which they grow to the same
//! size.
//!
//! [`pauses`] decides when to pause, and what the layers around a search add. This file defines the
//! header: the version of the format, the program and the plan. A checkpoint that is damaged or
//! belongs to another search is refused.
//!
//! This crate produces and consumes bytes. A [`Keeper`] writes files.

mod pauses;
pub(crate) mod shards;

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::time::Duration;

use preempt_system::Program;

pub(crate) use self::pauses::{Layer, Pauses};
pub use self::shards::{ShardBytes, ShardKeeper, ShardSource, ShardedCheckpoints, WriteBytes};
use crate::codec::{BLOCK, CHECKSUM, Damaged, Reader, Save, Writer, checksum, save_fields};
use crate::plan::{Difference, Refusal, Unusable};
use crate::plan::{Limits, Plan};

/// The first bytes of every checkpoint.
const MAGIC: &[u8] = b"preempt checkpoint\n";

/// The version of the format.
const FORMAT: u32 = 7;

/// The version of the program that writes it.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Keeps the checkpoints of a search, and decides when to take one.
pub trait Keeper: Sync {
    /// Whether a checkpoint is due. Every worker asks every few thousand steps, so calls may be
    /// concurrent.
    fn is_due(&self) -> bool;

    /// Keeps a checkpoint: `write` writes its bytes. If that fails, the previous checkpoint has to
    /// stay intact; the search continues.
    fn keep(&self, write: &dyn Fn(&mut dyn Write) -> io::Result<()>);

    /// The largest number of steps, or states, between two questions.
    fn poll_interval(&self) -> u64 {
        u64::MAX
    }
}

/// Keeps nothing.
impl Keeper for () {
    fn is_due(&self) -> bool {
        false
    }

    fn keep(&self, _: &dyn Fn(&mut dyn Write) -> io::Result<()>) {}
}

/// Identifies a program by `texts`: its source or its code, and whatever else its steps depend on.
/// The same on every machine.
pub fn program_hash<T: AsRef<[u8]>>(texts: impl IntoIterator<Item = T>) -> u64 {
    texts.into_iter().fold(0, |before, text| checksum(before, text.as_ref()))
}

/// A program whose search can continue in another process. What its executions have shown so far is
/// a part of a checkpoint: schedules name threads by their slots, and happens-before graphs name
/// objects by their locations, so both have to mean the same after the search was resumed.
pub trait Resumable: Program {
    /// Writes what the program has learned. No execution is running.
    fn save(&self, to: &mut Writer<'_>);

    /// Reads what [`save`](Resumable::save) has written, into a program that has run nothing yet.
    fn load(&mut self, from: &mut Reader) -> Result<(), Damaged>;
}

/// The checkpoints of a search: where they go, and the one to resume from.
pub struct Checkpoints<'a> {
    program: u64,
    keeper: &'a dyn Keeper,
    saved: Option<Saved>,
}

impl<'a> Checkpoints<'a> {
    /// Gives checkpoints to `keeper`. `program` is a [hash](program_hash) of everything on which
    /// the steps of the program depend.
    pub fn of(program: u64, keeper: &'a dyn Keeper) -> Checkpoints<'a> {
        Checkpoints { program, keeper, saved: None }
    }

    /// Continues from a checkpoint.
    pub fn resume(self, saved: Saved) -> Checkpoints<'a> {
        Checkpoints { saved: Some(saved), ..self }
    }
}

/// A checkpoint that was opened: its checksum is right, and this version has written it.
pub struct Saved {
    head: Head,
    rest: Reader,
}

/// The header of a checkpoint.
struct Head {
    program: u64,
    plan: Vec<(String, String)>,
    /// The time that the search has taken.
    elapsed: Duration,
}

save_fields!(Head { program, plan, elapsed });

impl Head {
    fn write(&self, writer: &mut Writer<'_>) {
        writer.bytes(MAGIC);
        writer.put(&FORMAT);
        writer.put(&VERSION.to_owned());
        writer.put(self);
    }
}

impl Saved {
    /// Opens a checkpoint and reads it once to verify its checksum. A refusal says what is wrong
    /// and what to do.
    pub fn open(mut source: impl Read + Seek + Send + 'static) -> Result<Saved, Refusal> {
        let unreadable = |error: io::Error| Unusable::Unreadable(error.to_string());
        let length = source.seek(SeekFrom::End(0)).map_err(unreadable)?;
        source.rewind().map_err(unreadable)?;
        let whole = stored_checksum(&mut source, length).map_err(unreadable)?.is_some();
        source.rewind().map_err(unreadable)?;
        let mut magic = Vec::new();
        source.by_ref().take(MAGIC.len() as u64).read_to_end(&mut magic).map_err(unreadable)?;
        if magic != MAGIC {
            let cut = !magic.is_empty() && MAGIC.starts_with(&magic);
            return Err(if cut { Unusable::Damaged } else { Unusable::Foreign }.into());
        }
        // The remaining bytes without the checksum.
        let mut rest =
            Reader::new(Box::new(source), length.saturating_sub(CHECKSUM + MAGIC.len() as u64));
        match written_by(&mut rest) {
            Ok((FORMAT, version)) if version == VERSION => {}
            Ok((format, version)) if whole => {
                let ours = (VERSION.to_owned(), FORMAT);
                return Err(Unusable::Version { theirs: (version, format), ours }.into());
            }
            _ => return Err(Unusable::Damaged.into()),
        }
        match Head::load(&mut rest) {
            Ok(head) if whole => Ok(Saved { head, rest }),
            _ => Err(Unusable::Damaged.into()),
        }
    }

    /// Checks that it belongs to a search of this program by this plan; a refusal says what
    /// differs, and what to do. The limits of time and memory may differ.
    pub fn fits(&self, program: u64, plan: &Plan) -> Result<(), Refusal> {
        self.fits_settings(program, &settings(plan, Processes::One))
    }

    /// The same for a search in several processes. The number of workers may differ, too.
    pub fn fits_distributed(&self, program: u64, plan: &Plan) -> Result<(), Refusal> {
        self.fits_settings(program, &settings(plan, Processes::Several))
    }

    fn fits_settings(&self, program: u64, plan: &[(String, String)]) -> Result<(), Refusal> {
        if self.head.program != program {
            return Err(Unusable::OtherProgram.into());
        }
        let pairs = self.head.plan.iter().zip(plan);
        match pairs.into_iter().find(|(theirs, ours)| theirs != ours) {
            None if self.head.plan.len() == plan.len() => Ok(()),
            None => Err(Unusable::OtherPlan(None).into()),
            Some(((name, theirs), (_, ours))) => {
                let [setting, theirs, ours] = [name, theirs, ours].map(String::clone);
                Err(Unusable::OtherPlan(Some(Difference { setting, theirs, ours })).into())
            }
        }
    }
}

/// Whether a checkpoint is of one process or of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Processes {
    One,
    Several,
}

/// The settings that must not change between the parts of a search.
fn settings(plan: &Plan, processes: Processes) -> Vec<(String, String)> {
    let mut settings = match processes {
        Processes::One => described(plan),
        Processes::Several => described(&plan.jobs(1)),
    };
    let is_distributed = processes == Processes::Several;
    settings.push(("whether it is distributed".into(), is_distributed.to_string()));
    settings
}

/// The checksum of a file of this length. `None` if the file does not end with it.
pub(crate) fn stored_checksum(source: &mut impl Read, length: u64) -> io::Result<Option<u64>> {
    let Some(mut left) = length.checked_sub(CHECKSUM) else { return Ok(None) };
    let (mut block, mut sum) = (vec![0; BLOCK], 0);
    while left > 0 {
        let size = left.min(BLOCK as u64) as usize;
        source.read_exact(&mut block[..size])?;
        sum = checksum(sum, &block[..size]);
        left -= size as u64;
    }
    let mut stored = [0; CHECKSUM as usize];
    source.read_exact(&mut stored)?;
    Ok((u64::from_le_bytes(stored) == sum).then_some(sum))
}

fn written_by(rest: &mut Reader) -> Result<(u32, String), Damaged> {
    Ok((rest.get()?, rest.get()?))
}

/// The options of a plan as text, by their names. Limits of time and memory are left out: they may
/// differ between the parts of a search.
pub fn described(plan: &Plan) -> Vec<(String, String)> {
    let Plan {
        order,
        bound,
        past_bound,
        seed,
        runs,
        count,
        points,
        reduction,
        memory,
        store,
        jobs,
        limits,
        keep_going,
        first,
        promote,
        deadlock,
        sampling,
        // Comes after the search.
        shrink: _,
    } = plan;
    let Limits { states, executions, depth, memory: _, resident: _, time: _ } = limits;
    let debug: [(&str, &dyn std::fmt::Debug); 19] = [
        ("the order", order),
        ("the reduction", reduction),
        ("the memory model", memory),
        ("the bound", bound),
        ("how far to continue past the bound", past_bound),
        ("the store", store),
        ("the number of jobs", jobs),
        ("where threads are switched", points),
        ("whether to keep going", keep_going),
        ("whether the first finding is reported as it is", first),
        ("whether to promote", promote),
        ("whether deadlocks count", deadlock),
        ("what is counted", count),
        ("when coverage is sampled", sampling),
        ("the seed", seed),
        ("the number of runs", runs),
        ("the limit of states", states),
        ("the limit of executions", executions),
        ("the limit of depth", depth),
    ];
    debug.into_iter().map(|(name, value)| (name.to_owned(), format!("{value:?}"))).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::plan::Order;

    fn written(format: u32, version: &str) -> Vec<u8> {
        let head = Head {
            program: 7,
            plan: settings(&Plan::new(), Processes::One),
            elapsed: Duration::from_millis(5),
        };
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        writer.bytes(MAGIC);
        writer.put(&format);
        writer.put(&version.to_owned());
        writer.put(&head);
        writer.put(&vec![1u64, 2, 3]);
        writer.finish().expect("a vector takes all");
        bytes
    }

    fn refusal(bytes: &[u8]) -> String {
        Saved::open(Cursor::new(bytes.to_vec())).err().expect("the input is refused").to_string()
    }

    #[test]
    fn every_cut_and_every_changed_bit_is_refused() {
        let whole = written(FORMAT, VERSION);
        let opened =
            Saved::open(Cursor::new(whole.clone())).unwrap_or_else(|refusal| panic!("{refusal}"));
        assert!(opened.fits(7, &Plan::new()).is_ok());
        for length in 0..whole.len() {
            let text = refusal(&whole[..length]);
            assert!(
                text.contains(if length == 0 { "not a checkpoint" } else { "damaged" }),
                "{length}: {text}"
            );
        }
        for bit in 0..8 * whole.len() {
            let mut bytes = whole.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let text = refusal(&bytes);
            let expected = if bit / 8 < MAGIC.len() { "not a checkpoint" } else { "damaged" };
            assert!(text.contains(expected), "bit {bit}: {text}");
        }
        let longer = [&whole[..], b"x"].concat();
        assert!(refusal(&longer).contains("damaged"));
    }

    #[test]
    fn another_version_is_refused_by_its_name() {
        assert!(refusal(&written(FORMAT + 1, VERSION)).contains(&format!("format {}", FORMAT + 1)));
        assert!(refusal(&written(FORMAT, "0.0.1-other")).contains("preempt 0.0.1-other"));
        assert!(refusal(b"const N = 3;\nthread t { skip; }\n").contains("not a checkpoint"));
    }

    #[test]
    fn what_differs_is_said() {
        let saved = Saved::open(Cursor::new(written(FORMAT, VERSION)))
            .unwrap_or_else(|refusal| panic!("{refusal}"));
        let why = |program: u64, plan: Plan| {
            saved.fits(program, &plan).err().map(|refusal| refusal.to_string())
        };
        assert!(why(8, Plan::new()).is_some_and(|text| text.contains("another program")));
        let order = why(7, Plan::new().order(Order::DepthFirst)).expect("another order");
        assert!(
            order.contains("there the order is BreadthFirst, here it is DepthFirst"),
            "{order}"
        );
        assert!(why(7, Plan::new().keep_going()).is_some_and(|text| text.contains("keep going")));
        let hour = Limits {
            time: Some(Duration::from_secs(3600)),
            memory: Some(1 << 30),
            ..Limits::default()
        };
        assert_eq!(why(7, Plan::new().limits(hour)), None, "these limits may be changed");
        let few = Limits { states: Some(5), ..Limits::default() };
        assert!(
            why(7, Plan::new().limits(few)).is_some_and(|text| text.contains("limit of states"))
        );
    }
}
