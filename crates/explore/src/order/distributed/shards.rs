//! Checkpoints of a search in several processes.
//!
//! A checkpoint is written while nothing is in flight: between the end of a round in which all
//! processes have stopped expanding, and the next round. Each process writes the entries of its
//! store and its waiting states into a shard; process 0 writes the sums into the main file when all
//! shards are kept ([`shards`](crate::engine::checkpoint::shards)).
//!
//! **Resuming.** The owner of a state follows from its hash and from the number of processes. With
//! as many processes as before, each reads its own shard. With another number, each reads all
//! shards and keeps its own states. Either way a state has one owner, so the stores together
//! contain the states of all shards, which is checked by their number. The search then continues
//! where it paused, with the counts of a search that was not interrupted.
//!
//! Nothing is used before all processes have verified the checksums of the shards that they read
//! and have agreed on the main file. If one of them cannot, all refuse the checkpoint.

use std::cell::Cell;

use preempt_system::{Failure, Model};

use super::report::{Tag, read};
use super::{Failures, TablePart};
use crate::codec::{Damaged, Reader, Reserved, Save, Writer, checksum, save_fields};
use crate::engine::checkpoint::shards::{ShardMark, open_shard, write_shard};
use crate::engine::exchange::{Lost, Place, owner_of};
use crate::engine::execution::Stop;
use crate::engine::explored::Explored;
use crate::engine::store::Lookup;
use crate::engine::store::hash::hash;
use crate::order::frontier::CHUNK;
use crate::plan::Unusable;
use crate::plan::coverage::{Coverage, Limit};

/// Entries that are added to a store together.
const BATCH: usize = 256;

/// What the main file contains besides the frames.
struct Sums {
    seen: Coverage,
    /// Failures and the number of steps to each.
    failures: Vec<(Failure, u32)>,
    /// The level that was being expanded, if any.
    level: Option<u32>,
    /// The width of states and the hash of the initial one.
    words: u64,
    initial: u64,
    epoch: u64,
    shards: Vec<ShardMark>,
}

save_fields!(Sums { seen, failures, level, words, initial, epoch, shards });

/// The result of a step that all processes take, or the reason why one of them cannot.
#[derive(Debug, PartialEq, Eq)]
struct Answer<T, const KIND: u8> {
    tag: Tag<KIND>,
    value: Option<T>,
    why: String,
}

save_fields!([T: Save, const KIND: u8] Answer<T, KIND> { tag, value, why });

impl<T: Save, const KIND: u8> Answer<T, KIND> {
    fn of(result: Result<T, String>) -> Answer<T, KIND> {
        let (value, why) = match result {
            Ok(value) => (Some(value), String::new()),
            Err(why) => (None, why),
        };
        Answer { tag: Tag, value, why }
    }
}

/// The kinds of answers.
const KEPT: u8 = 2;
const OPENED: u8 = 3;
const LOADED: u8 = 4;

/// The states that a process has loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Loaded {
    entries: u64,
    level: u64,
    next: u64,
}

save_fields!(Loaded { entries, level, next });

impl<M: Model, const W: usize> TablePart<'_, M, W> {
    /// The answers of all processes, or the first reason, with the number of its process.
    fn answers<T: Save, const KIND: u8>(
        &self,
        own: Result<T, String>,
    ) -> Result<Result<Vec<T>, String>, Lost> {
        let own = Answer::<T, KIND>::of(own);
        let all = self.cluster.exchange.gather(Writer::collect(|to| to.put(&own)))?;
        let mut values = Vec::new();
        for (process, bytes) in all.iter().enumerate() {
            let answer: Answer<T, KIND> = read(bytes).map_err(|Damaged| Lost)?;
            match answer.value {
                Some(value) => values.push(value),
                None => return Ok(Err(format!("process {process}: {}", answer.why))),
            }
        }
        Ok(Ok(values))
    }

    /// Writes a checkpoint.
    pub(super) fn write_checkpoint(
        &mut self,
        epoch: u64,
        initial: u64,
        level: Option<u32>,
        explored: &Explored,
        failures: &Failures,
    ) -> Result<(), Lost> {
        let (control, process) = (self.shared.control, self.cluster.exchange.place().process);
        let keeper = control.pauses().and_then(|pauses| pauses.shards().keeper);
        let own = match keeper {
            Some(keeper) => {
                let mark = Cell::new(self.mark());
                let write = |to: &mut dyn std::io::Write| {
                    let checksum =
                        write_shard(to, epoch, process, |to| self.write_states(&mark.get(), to))?;
                    mark.set(ShardMark { checksum, ..mark.get() });
                    Ok(())
                };
                let kept = keeper.keep_shard(epoch, process, &write);
                kept.map(|()| mark.get()).map_err(|error| error.to_string())
            }
            None => Err("it keeps no checkpoints".to_owned()),
        };
        let marks = self.answers::<ShardMark, KEPT>(own)?;
        let Some(keeper) = keeper.filter(|_| process == 0) else { return Ok(()) };
        match marks {
            Ok(shards) => {
                let sums = Sums {
                    seen: explored.seen,
                    failures: failures
                        .iter()
                        .map(|(failure, steps)| (failure.clone(), *steps))
                        .collect(),
                    level,
                    words: self.cluster.model.shape().words as u64,
                    initial,
                    epoch,
                    shards,
                };
                control.commit(epoch, sums.shards.len(), |to| to.put(&sums));
            }
            Err(why) => keeper.abandon(epoch, why),
        }
        Ok(())
    }

    /// What the main file says about the shard of this process, without its checksum.
    fn mark(&self) -> ShardMark {
        let words = self.cluster.model.shape().words as u64;
        ShardMark {
            checksum: 0,
            entries: self.store.entry_count(),
            level: self.frontier.left() * words,
            next: self.frontier.waiting() * words,
        }
    }

    fn write_states(&self, mark: &ShardMark, to: &mut Writer<'_>) {
        to.put(&mark.entries);
        self.store.each_entry(&mut |entry| entry.iter().for_each(|&word| to.word(word)));
        self.frontier.write_states(to);
    }

    /// Continues from a checkpoint: see `Part::begin`. All processes call this, or none.
    pub(super) fn resume(
        &mut self,
        explored: &mut Explored,
        failures: &mut Failures,
    ) -> Result<Option<(u64, Option<u32>)>, Lost> {
        let control = self.shared.control;
        let initial = self.worker.initial().map_or(0, |state| hash::<W>(&state));
        let sums: Option<Sums> = control.resume_part(Reader::get).filter(|_| control.is_resumed());
        let opened = self.open(initial, sums.as_ref());
        let (readers, identity) = match opened {
            Ok((readers, identity)) => (readers, Ok(identity)),
            Err(why) => (Vec::new(), Err(why)),
        };
        let agreed = self.answers::<u64, OPENED>(identity)?.and_then(|identities| match identities
            .windows(2)
            .all(|pair| pair[0] == pair[1])
        {
            true => Ok(()),
            false => Err("the processes see different checkpoints: all of them must be able \
                              to read the same files"
                .to_owned()),
        });
        if let Err(why) = agreed {
            return Ok(self.refuse(why));
        }
        let sums = sums.expect("a process without a main file does not agree");
        let loaded = self.load(readers, &sums);
        let loaded = self.answers::<Loaded, LOADED>(loaded)?.and_then(|all| sums.has_all(&all));
        if let Err(why) = loaded {
            return Ok(self.refuse(why));
        }
        explored.seen = sums.seen;
        for (failure, steps) in sums.failures {
            failures.record(failure, steps, |new, old| new < old);
            control.count_failure();
        }
        if let Some(level) = sums.level {
            self.shared.depth.store(level, std::sync::atomic::Ordering::Relaxed);
            control.reach_depth(explored.seen.depth);
        }
        Ok(Some((initial, sums.level)))
    }

    /// Ends the search: the checkpoint cannot be resumed. The same in all processes.
    fn refuse<T>(&self, why: String) -> Option<T> {
        let control = self.shared.control;
        if let Some(pauses) = control.pauses() {
            pauses.refuse_because(Unusable::Shard(why));
        }
        control.stop(Stop::Limit(Limit::Interrupt));
        None
    }

    /// Opens the shards of which this process has states. Also returns a number that identifies
    /// the checkpoint.
    fn open(&self, initial: u64, sums: Option<&Sums>) -> Result<(Vec<Reader>, u64), String> {
        let sums = sums.ok_or("its main file does not belong to this search")?;
        let source = self.shared.control.pauses().and_then(|pauses| pauses.shards().source);
        let source = source.ok_or("there are no shards")?;
        let words = self.cluster.model.shape().words as u64;
        if (sums.words, sums.initial) != (words, initial) || sums.shards.is_empty() {
            return Err("it was written with another form of states".into());
        }
        let Place { process, processes, .. } = self.cluster.exchange.place();
        let all = 0..sums.shards.len();
        let own = if all.len() == processes { process..process + 1 } else { all };
        let readers = own.map(|shard| open_shard(source, (sums.epoch, shard), &sums.shards[shard]));
        let readers = readers.collect::<Result<Vec<Reader>, String>>()?;
        Ok((readers, checksum(0, &Writer::collect(|to| to.put(sums)))))
    }

    /// Adds the states of this process to its store and its frontier.
    fn load(&mut self, readers: Vec<Reader>, sums: &Sums) -> Result<Loaded, String> {
        let (all, processes) =
            (sums.shards.iter().map(|shard| shard.entries).sum::<u64>(), self.processes() as u64);
        // A share may be a little larger than the average. If it is larger, the store grows.
        let share = all / processes + all / processes / 64;
        self.store.reserve(share).map_err(|_| "there is too little memory for its states")?;
        let mut loaded = Loaded::default();
        for mut reader in readers {
            let done = self.load_shard(&mut reader, &mut loaded);
            done.map_err(|Damaged| {
                "its states do not belong to this search, or there is too little memory for them"
            })?;
        }
        Ok(loaded)
    }

    fn processes(&self) -> usize {
        self.cluster.exchange.place().processes
    }

    fn load_shard(&mut self, from: &mut Reader, loaded: &mut Loaded) -> Result<(), Damaged> {
        let Place { process, processes, .. } = self.cluster.exchange.place();
        let (store, stride) = (self.store, self.store.entry_words());
        let (mut entry, mut batch) = (vec![0; stride], Vec::new());
        let mut lookup = Lookup::default();
        let count: u64 = from.get()?;
        for number in 1..=count {
            for word in &mut entry {
                *word = from.word()?;
            }
            // The lowest bit of a state is set, and no fingerprint is 0.
            let is_valid = entry[0] != 0 && (stride == 1 || entry[0] & 1 == 1);
            if !is_valid {
                return Err(Damaged);
            }
            if owner_of(store.hash_of(&entry), processes) == process {
                batch.extend_from_slice(&entry);
                loaded.entries += 1;
            }
            if batch.len() >= BATCH * stride || number == count && !batch.is_empty() {
                store.insert_entries(&batch, &mut lookup)?;
                if lookup.fresh.len() != batch.len() / stride {
                    // Two shards contain the same state.
                    return Err(Damaged);
                }
                batch.clear();
            }
        }
        let words = self.cluster.model.shape().words;
        for is_next in [false, true] {
            let states = from.words()?;
            let is_whole = |state: &[u64]| state[0] & 1 == 1;
            if !states.len().is_multiple_of(words) || !states.chunks_exact(words).all(is_whole) {
                return Err(Damaged);
            }
            let is_mine = |state: &&[u64]| owner_of(hash::<W>(state), processes) == process;
            let mine: Vec<&[u64]> = states.chunks_exact(words).filter(is_mine).collect();
            for chunk in mine.chunks(CHUNK) {
                let chunk = Reserved(chunk.concat());
                match is_next {
                    false => self.frontier.add_to_level(chunk),
                    true => self.frontier.add(chunk),
                }
            }
            let own = (mine.len() * words) as u64;
            *(if is_next { &mut loaded.next } else { &mut loaded.level }) += own;
        }
        if from.is_at_its_end() { Ok(()) } else { Err(Damaged) }
    }
}

impl Sums {
    /// Whether the processes have loaded all states of all shards.
    fn has_all(&self, loaded: &[Loaded]) -> Result<(), String> {
        let expected = self.shards.iter().fold(Loaded::default(), |sum, shard| Loaded {
            entries: sum.entries.wrapping_add(shard.entries),
            level: sum.level.wrapping_add(shard.level),
            next: sum.next.wrapping_add(shard.next),
        });
        let found = loaded.iter().fold(Loaded::default(), |sum, own| Loaded {
            entries: sum.entries.wrapping_add(own.entries),
            level: sum.level.wrapping_add(own.level),
            next: sum.next.wrapping_add(own.next),
        });
        if expected == found { Ok(()) } else { Err("its shards do not fit together".into()) }
    }
}
