//! Checkpoints of several processes, resumed by the same and by other numbers of processes: the
//! outcome of a search that was not interrupted, from every checkpoint that was written.

use std::collections::HashMap;
use std::io::{self, Cursor};

use super::*;
use preempt_explore::{
    Keeper, Refusal, Saved, ShardBytes, ShardKeeper, ShardSource, ShardedCheckpoints, WriteBytes,
};

/// Keeps all checkpoints in memory. All processes share it.
#[derive(Default)]
struct Tape {
    /// The number of polls of process 0 between two checkpoints; 0 for no checkpoints.
    every: u32,
    polls: Mutex<u32>,
    shards: Mutex<HashMap<(u64, usize), Vec<u8>>>,
    /// The main files, with their epochs.
    committed: Mutex<Vec<(u64, Vec<u8>)>>,
    /// The number of checkpoints that were begun.
    begun: Mutex<u64>,
    abandoned: Mutex<Vec<String>>,
    /// The process that cannot write its shards.
    full: Option<usize>,
}

impl Tape {
    fn every(every: u32) -> Tape {
        Tape { every, ..Tape::default() }
    }

    fn committed(&self) -> Vec<Vec<u8>> {
        self.committed
            .lock()
            .expect("mutex poisoned")
            .iter()
            .map(|(_, main)| main.clone())
            .collect()
    }
}

impl Keeper for Tape {
    fn is_due(&self) -> bool {
        let mut polls = self.polls.lock().expect("mutex poisoned");
        *polls += 1;
        self.every > 0 && polls.is_multiple_of(self.every)
    }

    fn keep(&self, _: WriteBytes<'_>) {
        panic!("a search in several processes writes shards");
    }

    fn poll_interval(&self) -> u64 {
        1
    }
}

impl ShardKeeper for Tape {
    fn next_epoch(&self) -> u64 {
        *self.begun.lock().expect("mutex poisoned") + 1
    }

    fn keep_shard(&self, epoch: u64, process: usize, write: WriteBytes<'_>) -> io::Result<()> {
        if self.full == Some(process) {
            return Err(io::Error::other("the disk is full"));
        }
        if process == 0 {
            *self.begun.lock().expect("mutex poisoned") = epoch;
        }
        let mut bytes = Vec::new();
        write(&mut bytes)?;
        let before = self.shards.lock().expect("mutex poisoned").insert((epoch, process), bytes);
        assert!(before.is_none(), "a shard is written once");
        Ok(())
    }

    fn commit(&self, epoch: u64, shards: usize, write: WriteBytes<'_>) {
        let kept = self.shards.lock().expect("mutex poisoned");
        assert!((0..shards).all(|process| kept.contains_key(&(epoch, process))));
        let mut bytes = Vec::new();
        write(&mut bytes).expect("a vector takes all");
        self.committed.lock().expect("mutex poisoned").push((epoch, bytes));
    }

    fn abandon(&self, _: u64, why: String) {
        self.abandoned.lock().expect("mutex poisoned").push(why);
    }
}

impl ShardSource for Tape {
    fn open(&self, epoch: u64, process: usize) -> io::Result<Box<dyn ShardBytes>> {
        match self.shards.lock().expect("mutex poisoned").get(&(epoch, process)) {
            Some(bytes) => Ok(Box::new(Cursor::new(bytes.clone()))),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// The keeper of a process that is not the first.
struct Other<'t>(&'t Tape);

impl Keeper for Other<'_> {
    fn is_due(&self) -> bool {
        false
    }

    fn keep(&self, _: WriteBytes<'_>) {
        panic!("a search in several processes writes shards");
    }
}

impl ShardKeeper for Other<'_> {
    fn next_epoch(&self) -> u64 {
        panic!("process 0 chooses the epoch")
    }

    fn keep_shard(&self, epoch: u64, process: usize, write: WriteBytes<'_>) -> io::Result<()> {
        self.0.keep_shard(epoch, process, write)
    }

    fn commit(&self, _: u64, _: usize, _: WriteBytes<'_>) {
        panic!("process 0 commits");
    }

    fn abandon(&self, _: u64, _: String) {
        panic!("process 0 commits");
    }
}

/// What each process gets that searches with checkpoints, from a main file if one is given.
fn run(
    plan: Plan,
    toy: &Toy,
    processes: usize,
    (tape, main): (&Tape, Option<&[u8]>),
    observer: &dyn Observer,
    dies: Option<(usize, usize)>,
) -> Vec<Result<Outcome, Refusal>> {
    let search = Plan { shrink: None, ..plan }.build().expect("the plan is valid");
    let network = &Network::new(processes, Form::Raw, 7);
    thread::scope(|scope| {
        let search = &search;
        let run = move |process: usize| {
            let other = Other(tape);
            let keeper: &dyn ShardKeeper = if process == 0 { tape } else { &other };
            let mut checkpoints = ShardedCheckpoints::of(5, Some(keeper));
            if let Some(main) = main {
                let saved = Saved::open(Cursor::new(main.to_vec())).expect("it is whole");
                checkpoints = checkpoints.resume(saved, tape);
            }
            let dies_at = dies.filter(|&(dies, _)| dies == process).map(|(_, at)| at);
            let exchange = Process { network, process, dies_at };
            let toy = toy.clone();
            search.run_distributed_with(toy, observer, &exchange, checkpoints).map(|done| done.0)
        };
        let started: Vec<_> =
            (0..processes).map(|process| scope.spawn(move || run(process))).collect();
        started
            .into_iter()
            .map(|process| process.join().expect("the process does not panic"))
            .collect()
    })
}

/// Resumes from `main` with 1 to 4 processes and compares with a search by one worker.
fn resumes(plan: Plan, toy: &Toy, (tape, main): (&Tape, &[u8]), what: &str) {
    let plan = Plan { shrink: None, ..plan };
    let alone = plan.jobs(1).build().expect("the plan is valid").run(toy.clone(), &Silent).0;
    for processes in 1..=4 {
        let from = Tape {
            shards: Mutex::new(tape.shards.lock().expect("poisoned").clone()),
            ..Tape::default()
        };
        for outcome in run(plan, toy, processes, (&from, Some(main)), &Silent, None) {
            let outcome = outcome.unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
            assert_eq!(essence(&outcome), essence(&alone), "{what}, {processes} processes");
        }
    }
}

#[test]
fn every_checkpoint_leads_to_the_outcome_of_one_worker() {
    let mut checkpoints = 0;
    for (number, toy) in [philosophers(4), grid(3, 6), grid(2, 40), random(7), random(21).words(3)]
        .iter()
        .enumerate()
    {
        for (plan, every) in [(Plan::new(), 3), (Plan::new().keep_going().jobs(2), 5)] {
            let (tape, processes) = (Tape::every(every), 1 + number % 3);
            for outcome in run(plan, toy, processes, (&tape, None), &Silent, None) {
                let alone = plan.jobs(1).build().expect("valid").run(toy.clone(), &Silent).0;
                let outcome = outcome.expect("nothing is resumed");
                // The pauses change nothing.
                assert_eq!(outcome.coverage.states, alone.coverage.states);
            }
            for main in &tape.committed() {
                checkpoints += 1;
                resumes(plan, toy, (&tape, main), &format!("program {number}, every {every}"));
            }
        }
    }
    assert!(checkpoints > 20, "{checkpoints}");
}

#[test]
fn all_stores_of_states_are_resumed() {
    for store in [StoreKind::Exact, StoreKind::Tree, StoreKind::Fingerprint] {
        for words in [1, 2, 3, 5] {
            let (toy, plan) = (philosophers(4).words(words), Plan::new().store(store));
            let tape = Tape::every(2);
            run(plan, &toy, 3, (&tape, None), &Silent, None);
            let committed = tape.committed();
            let main = &committed[committed.len() / 2];
            resumes(plan, &toy, (&tape, main), &format!("{store:?}, {words} words"));
        }
    }
}

#[test]
fn a_level_can_be_resumed_in_its_middle() {
    // Levels of more than one chunk, so that pauses cut them.
    let (toy, plan) = (grid(4, 20), Plan::new().jobs(2));
    let tape = Tape::every(40);
    run(plan, &toy, 2, (&tape, None), &Silent, None);
    let committed = tape.committed();
    assert!(committed.len() > 5, "{}", committed.len());
    resumes(plan, &toy, (&tape, &committed[committed.len() / 2]), "the middle");
}

#[test]
fn a_search_that_had_to_grow_is_resumed_with_its_larger_states() {
    let toy = Toy { bits: 2, ..grid(3, 9) };
    let tape = Tape::every(4);
    run(Plan::new(), &toy, 2, (&tape, None), &Silent, None);
    let last = tape.committed().pop().expect("there are checkpoints");
    resumes(Plan::new(), &toy, (&tape, &last), "after growing");
}

#[test]
fn an_interrupt_leaves_a_checkpoint_of_its_moment() {
    let (toy, tape) = (grid(6, 8), Tape::every(0));
    let observer = Interrupting(Mutex::new(0));
    for outcome in run(Plan::new(), &toy, 3, (&tape, None), &observer, None) {
        assert_eq!(outcome.expect("nothing is resumed").stopped, Some(Limit::Interrupt));
    }
    let committed = tape.committed();
    assert_eq!(committed.len(), 1);
    resumes(Plan::new(), &toy, (&tape, &committed[0]), "interrupted");
}

#[test]
fn a_process_without_memory_ends_all_with_a_checkpoint() {
    let (toy, tape, plan) = (grid(5, 8), Tape::every(0), Plan { shrink: None, ..Plan::new() });
    let network = &Network::new(2, Form::Raw, 7);
    let searches = [None, Some(300_000)].map(|memory| {
        let limits = Limits { memory, ..Limits::default() };
        plan.limits(limits).build().expect("the plan is valid")
    });
    let (toy_of_all, tape_of_all, searches) = (&toy, &tape, &searches);
    thread::scope(|scope| {
        let started = [0, 1].map(|process| {
            scope.spawn(move || {
                let other = Other(tape_of_all);
                let keeper: &dyn ShardKeeper = if process == 0 { tape_of_all } else { &other };
                let checkpoints = ShardedCheckpoints::of(5, Some(keeper));
                let exchange = Process { network, process, dies_at: None };
                let toy = toy_of_all.clone();
                searches[process].run_distributed_with(toy, &Silent, &exchange, checkpoints)
            })
        });
        for process in started {
            let outcome = process.join().expect("it does not panic").expect("nothing is resumed").0;
            assert_eq!(outcome.stopped, Some(Limit::Memory));
            assert_eq!(outcome.verdict, Verdict::Incomplete);
        }
    });
    let committed = tape.committed();
    assert_eq!(committed.len(), 1);
    resumes(plan, &toy, (&tape, &committed[0]), "without memory");
}

#[test]
fn a_process_lost_at_any_moment_leaves_a_whole_checkpoint() {
    let toy = grid(3, 6);
    for at in 0..24 {
        let tape = Tape::every(4);
        let ends = run(Plan::new(), &toy, 3, (&tape, None), &Silent, Some((at % 3, at)));
        for outcome in ends {
            assert_eq!(outcome.expect("nothing is resumed").stopped, Some(Limit::Process), "{at}");
        }
        if let Some(last) = tape.committed().pop() {
            resumes(Plan::new(), &toy, (&tape, &last), &format!("lost at {at}"));
        }
    }
}

#[test]
fn a_shard_that_is_missing_or_damaged_is_refused_by_all_processes() {
    let toy = grid(3, 6);
    let tape = Tape::every(5);
    run(Plan::new(), &toy, 3, (&tape, None), &Silent, None);
    let (epoch, main) =
        tape.committed.lock().expect("mutex poisoned").last().expect("some").clone();
    for (processes, shard) in [(3, 1), (2, 2), (4, 0)] {
        for is_missing in [true, false] {
            let mut shards = tape.shards.lock().expect("mutex poisoned").clone();
            match is_missing {
                true => drop(shards.remove(&(epoch, shard))),
                false => shards.get_mut(&(epoch, shard)).expect("it is there")[40] ^= 1,
            }
            let from = Tape { shards: Mutex::new(shards), ..Tape::default() };
            for refused in run(Plan::new(), &toy, processes, (&from, Some(&main)), &Silent, None) {
                let why = refused.expect_err("it is refused").to_string();
                assert!(why.contains(&format!("shard {shard} of the checkpoint")), "{why}");
            }
        }
    }
}

#[test]
fn a_process_that_cannot_write_its_shard_stops_no_search() {
    let (toy, tape) = (grid(3, 6), Tape { full: Some(1), ..Tape::every(4) });
    let alone = Plan::new().build().expect("valid").run(toy.clone(), &Silent).0;
    for outcome in run(Plan::new(), &toy, 2, (&tape, None), &Silent, None) {
        let outcome = outcome.expect("nothing is resumed");
        assert_eq!(essence(&outcome), essence(&alone));
    }
    assert_eq!(tape.committed().len(), 0);
    let abandoned = tape.abandoned.lock().expect("mutex poisoned");
    assert!(abandoned.len() > 2 && abandoned[0] == "process 1: the disk is full", "{abandoned:?}");
}

#[test]
fn checkpoints_of_one_process_and_of_several_are_not_exchanged() {
    let (toy, tape) = (grid(3, 6), Tape::every(4));
    run(Plan::new(), &toy, 2, (&tape, None), &Silent, None);
    let main = tape.committed().pop().expect("there are checkpoints");
    let saved = Saved::open(Cursor::new(main)).expect("it is whole");
    assert!(saved.fits_distributed(5, &Plan::new().jobs(3)).is_ok(), "jobs may differ");
    let why = saved.fits(5, &Plan::new()).expect_err("it is refused").to_string();
    assert!(why.contains("there whether it is distributed is true"), "{why}");
    assert!(saved.fits_distributed(6, &Plan::new()).is_err());
}
