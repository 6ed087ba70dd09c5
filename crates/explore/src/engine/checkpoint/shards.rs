//! Checkpoints of a search in several processes: a shard of each process, and a main file.
//!
//! Every process writes its states into a *shard*, all of them at the same point of the search.
//! When all shards are complete on disk, process 0 writes the main file: an ordinary checkpoint
//! that contains the sums of all processes and, for each shard, its checksum and its number of
//! states. The main file replaces the one before at once, and only then are the shards of the one
//! before removed. So whenever a process is killed, the main file names shards that are complete.
//!
//! Shards have an *epoch*, a number that is new for each checkpoint. A shard is never overwritten
//! while a main file names it.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::time::Duration;

use super::{Checkpoints, Keeper, Pauses, Saved, stored_checksum};
use crate::codec::{CHECKSUM, Damaged, Reader, Writer, save_fields};
use crate::engine::control::Learned;

/// The first bytes of every shard.
const MAGIC: &[u8] = b"preempt shard\n";

/// Writes the bytes of a file.
pub type WriteBytes<'w> = &'w dyn Fn(&mut dyn Write) -> io::Result<()>;

/// Keeps the checkpoints of a search in several processes, and decides when to take one.
/// [`Keeper::is_due`] counts in process 0 only.
pub trait ShardKeeper: Keeper {
    /// An epoch that no shard has. Called in process 0 only.
    fn next_epoch(&self) -> u64;

    /// Keeps the shard of a process. It has to be complete on disk afterwards.
    fn keep_shard(&self, epoch: u64, process: usize, write: WriteBytes<'_>) -> io::Result<()>;

    /// Replaces the main file, and removes the shards of earlier epochs. If that fails, or if one
    /// of the `shards` shards of this epoch is not there, the main file has to stay as it is.
    fn commit(&self, epoch: u64, shards: usize, write: WriteBytes<'_>);

    /// Not all processes could keep their shards; the reason of one of them.
    fn abandon(&self, epoch: u64, why: String);
}

/// The bytes of a shard.
pub trait ShardBytes: Read + Seek + Send {}

impl<T: Read + Seek + Send> ShardBytes for T {}

/// Provides the shards of the checkpoint that is resumed.
pub trait ShardSource: Sync {
    /// Opens a shard.
    fn open(&self, epoch: u64, process: usize) -> io::Result<Box<dyn ShardBytes>>;
}

/// The checkpoints of a search in several processes: where they go, and the one to resume from.
pub struct ShardedCheckpoints<'a> {
    pub(super) program: u64,
    pub(super) keeper: Option<&'a dyn ShardKeeper>,
    pub(super) saved: Option<(Saved, &'a dyn ShardSource)>,
}

impl<'a> ShardedCheckpoints<'a> {
    /// Gives checkpoints to `keeper`, if there is one. `program` is as in [`Checkpoints::of`].
    pub fn of(program: u64, keeper: Option<&'a dyn ShardKeeper>) -> ShardedCheckpoints<'a> {
        ShardedCheckpoints { program, keeper, saved: None }
    }

    /// Continues from a checkpoint.
    pub fn resume(self, saved: Saved, shards: &'a dyn ShardSource) -> ShardedCheckpoints<'a> {
        ShardedCheckpoints { saved: Some((saved, shards)), ..self }
    }

    /// The same as the checkpoints of a single process, and the access to shards.
    pub(super) fn split(self) -> (Checkpoints<'a>, ShardAccess<'a>) {
        let keeper: &dyn Keeper = match self.keeper {
            Some(keeper) => keeper,
            None => &(),
        };
        let source = self.saved.as_ref().map(|(_, source)| *source);
        let checkpoints = Checkpoints {
            program: self.program,
            keeper,
            saved: self.saved.map(|(saved, _)| saved),
        };
        (checkpoints, ShardAccess { keeper: self.keeper, source })
    }
}

/// Where the shards of a search go, and where those of the resumed one are.
#[derive(Clone, Copy, Default)]
pub(crate) struct ShardAccess<'a> {
    pub(crate) keeper: Option<&'a dyn ShardKeeper>,
    pub(crate) source: Option<&'a dyn ShardSource>,
}

/// What the main file says about a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShardMark {
    pub(crate) checksum: u64,
    /// The entries of its store.
    pub(crate) entries: u64,
    /// The words of its states that wait in this level and in the next one.
    pub(crate) level: u64,
    pub(crate) next: u64,
}

save_fields!(ShardMark { checksum, entries, level, next });

/// Writes a shard and its checksum, which is returned.
pub(crate) fn write_shard(
    to: &mut dyn Write,
    epoch: u64,
    process: usize,
    contents: impl FnOnce(&mut Writer<'_>),
) -> io::Result<u64> {
    let mut writer = Writer::new(to);
    writer.bytes(MAGIC);
    writer.put(&epoch);
    writer.put(&process);
    contents(&mut writer);
    writer.finish()
}

/// Opens a shard whose checksum is known. The reader is at the contents.
pub(crate) fn open_shard(
    source: &dyn ShardSource,
    (epoch, process): (u64, usize),
    mark: &ShardMark,
) -> Result<Reader, String> {
    let explain = |why: String| format!("shard {process} of the checkpoint {why}");
    let unreadable = |error: io::Error| explain(format!("cannot be read: {error}"));
    let mut bytes = source.open(epoch, process).map_err(unreadable)?;
    let length = bytes.seek(SeekFrom::End(0)).map_err(unreadable)?;
    bytes.rewind().map_err(unreadable)?;
    let stored = stored_checksum(&mut bytes, length).map_err(unreadable)?;
    bytes.rewind().map_err(unreadable)?;
    let damaged = || explain("is damaged".into());
    if stored != Some(mark.checksum) {
        return Err(damaged());
    }
    let mut reader = Reader::new(Box::new(bytes), length - CHECKSUM);
    let mut read = || -> Result<bool, Damaged> {
        let mut magic = [0; MAGIC.len()];
        reader.bytes(&mut magic)?;
        Ok(magic == *MAGIC && reader.get::<u64>()? == epoch && reader.get::<usize>()? == process)
    };
    if read() == Ok(true) { Ok(reader) } else { Err(damaged()) }
}

impl Pauses<'_> {
    /// Writes the main file of a checkpoint.
    pub(crate) fn commit(
        &self,
        (epoch, shards): (u64, usize),
        elapsed: Duration,
        learned: Learned<'_>,
        rest: &dyn Fn(&mut Writer<'_>),
    ) {
        let keeper = self.shards().keeper.expect("a process without a keeper starts no checkpoint");
        keeper.commit(epoch, shards, &|to| self.write(elapsed, learned, rest, to));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    struct One(Vec<u8>);

    impl ShardSource for One {
        fn open(&self, _: u64, _: usize) -> io::Result<Box<dyn ShardBytes>> {
            Ok(Box::new(Cursor::new(self.0.clone())))
        }
    }

    #[test]
    fn a_shard_that_was_cut_or_changed_is_refused() {
        let mut bytes = Vec::new();
        let checksum = write_shard(&mut bytes, 7, 2, |to| to.words(&[1, 2, 3]));
        let checksum = checksum.expect("a vector takes all");
        let mark = ShardMark { checksum, entries: 3, level: 0, next: 0 };
        let open = |bytes: &[u8], place| open_shard(&One(bytes.to_vec()), place, &mark);
        let mut whole = open(&bytes, (7, 2)).expect("it is whole");
        assert_eq!(whole.words(), Ok(vec![1, 2, 3]));
        assert!(whole.is_at_its_end());
        for other in [(7, 1), (6, 2)] {
            assert!(open(&bytes, other).is_err_and(|why| why.contains("is damaged")));
        }
        for length in 0..bytes.len() {
            assert!(open(&bytes[..length], (7, 2)).is_err(), "{length}");
        }
        for bit in 0..8 * bytes.len() {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&changed, (7, 2)).is_err(), "{bit}");
        }
        // A shard with a right checksum that the main file does not name.
        let mut other = Vec::new();
        write_shard(&mut other, 7, 2, |to| to.words(&[1, 2])).expect("a vector takes all");
        assert!(open(&other, (7, 2)).is_err());
    }
}
