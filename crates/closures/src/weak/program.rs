//! Random programs: what each thread does.

use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release, SeqCst};

use crate::random::Random;

/// The number of atomics.
pub const LOCATIONS: usize = 2;

/// An operation of a thread. The first field of an access to memory is the location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Operation {
    Load(usize, Ordering),
    Store(usize, u64, Ordering),
    Add(usize, u64, Ordering),
    Swap(usize, u64, Ordering),
    /// Location, expected and new value, order of success and of failure.
    Exchange(usize, u64, u64, Ordering, Ordering),
    Fence(Ordering),
    Lock,
    Unlock,
    TryLock,
    Read,
    ReadUnlock,
    Write,
    WriteUnlock,
    TryRead,
    TryWrite,
    Downgrade,
    /// The first thread is unparked.
    Park,
    Unpark,
    ParkTimeout,
    Barrier,
    Choose,
    Wait,
    WaitTimeout,
    NotifyOne,
    NotifyAll,
    /// The first thread has the receiver; the others skip operations on it.
    Send,
    Receive,
    TryReceive,
    Once,
}

/// A kind of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Family {
    Memory,
    Mutex,
    RwLock,
    Park,
    Barrier,
    Choice,
    Condvar,
    Timeout,
    Channel,
    Once,
}

/// All of them.
pub const FAMILIES: [Family; 10] = [
    Family::Memory,
    Family::Mutex,
    Family::RwLock,
    Family::Park,
    Family::Barrier,
    Family::Choice,
    Family::Condvar,
    Family::Timeout,
    Family::Channel,
    Family::Once,
];

/// What programs consist of: one after the other, by seed.
const MIXES: [&[Family]; 16] = [
    &[Family::Memory],
    &[Family::Mutex, Family::Memory],
    &[Family::RwLock],
    &[Family::RwLock, Family::Memory],
    &[Family::Park, Family::Memory],
    &[Family::Barrier, Family::Mutex, Family::Memory],
    &[Family::Choice, Family::Mutex, Family::Memory],
    &[Family::Mutex, Family::RwLock, Family::Park, Family::Memory],
    &[Family::Condvar],
    &[Family::Condvar, Family::Memory],
    &[Family::Condvar, Family::Mutex, Family::RwLock],
    &[Family::Timeout, Family::Condvar, Family::Memory],
    &[Family::Channel],
    &[Family::Channel, Family::Memory],
    &[Family::Once, Family::Memory],
    &[Family::Barrier, Family::Timeout],
];

/// A program.
#[derive(Clone, Debug)]
pub struct Program {
    /// The kinds of operations that it is made of.
    pub families: &'static [Family],
    /// The operations of each thread.
    pub threads: Vec<Vec<Operation>>,
}

/// The program of a seed: two threads with at most four operations each or three threads with at
/// most two, and the operations that unlock.
pub fn of_seed(seed: u64) -> Program {
    let families = MIXES[(seed % MIXES.len() as u64) as usize];
    let mut random = Random::new(seed);
    let threads = if random.percent(60) { 2 } else { 3 };
    let most = if threads == 2 { 4 } else { 2 };
    let threads = (0..threads).map(|_| thread(&mut random, families, most)).collect();
    Program { families, threads }
}

/// The locks that a thread holds.
#[derive(Default)]
struct Held {
    mutex: bool,
    read: bool,
    write: bool,
}

fn thread(random: &mut Random, families: &[Family], most: usize) -> Vec<Operation> {
    let mut held = Held::default();
    let length = 1 + random.below(most);
    let mut code: Vec<Operation> = (0..length)
        .map(|_| {
            let family = *random.pick(families);
            operation(random, family, &mut held)
        })
        .collect();
    // Most locks are released.
    let mut unlock = |held: bool, operation| {
        code.extend((held && random.percent(80)).then_some(operation));
    };
    unlock(held.mutex, Operation::Unlock);
    unlock(held.read, Operation::ReadUnlock);
    unlock(held.write, Operation::WriteUnlock);
    code
}

fn operation(random: &mut Random, family: Family, held: &mut Held) -> Operation {
    let way = random.below(4);
    match family {
        Family::Memory => access(random),
        Family::Mutex if held.mutex => {
            held.mutex = false;
            Operation::Unlock
        }
        Family::Mutex if way == 0 => Operation::TryLock,
        Family::Mutex => {
            held.mutex = true;
            Operation::Lock
        }
        Family::RwLock => read_write(random, held),
        Family::Condvar | Family::Timeout if !held.mutex && way == 0 => {
            held.mutex = true;
            Operation::Lock
        }
        Family::Condvar if held.mutex && way < 3 => Operation::Wait,
        Family::Timeout if held.mutex && way < 3 => Operation::WaitTimeout,
        Family::Timeout if way == 1 => Operation::ParkTimeout,
        Family::Timeout if way == 2 => Operation::Unpark,
        Family::Condvar if way < 3 => Operation::NotifyOne,
        Family::Condvar | Family::Timeout => Operation::NotifyAll,
        Family::Channel => match way {
            0 => Operation::Receive,
            1 => Operation::TryReceive,
            _ => Operation::Send,
        },
        Family::Once => Operation::Once,
        Family::Park if way < 2 => Operation::Park,
        Family::Park => Operation::Unpark,
        Family::Barrier => Operation::Barrier,
        Family::Choice => Operation::Choose,
    }
}

fn access(random: &mut Random) -> Operation {
    let (at, value) = (random.below(LOCATIONS), 1 + random.below(2) as u64);
    let update = *random.pick(&[Relaxed, Acquire, Release, AcqRel, SeqCst]);
    match random.below(10) {
        0..=2 => Operation::Load(at, *random.pick(&[Relaxed, Acquire, SeqCst])),
        3..=5 => Operation::Store(at, value, *random.pick(&[Relaxed, Release, SeqCst])),
        6 => Operation::Add(at, value, update),
        7 => Operation::Swap(at, value, update),
        8 => {
            let failure = *random.pick(&[Relaxed, Acquire, SeqCst]);
            Operation::Exchange(at, value - 1, value, update, failure)
        }
        _ => Operation::Fence(*random.pick(&[Acquire, Release, AcqRel, SeqCst])),
    }
}

fn read_write(random: &mut Random, held: &mut Held) -> Operation {
    if held.read {
        held.read = false;
        return Operation::ReadUnlock;
    }
    if held.write {
        held.write = false;
        held.read = random.percent(25);
        return if held.read { Operation::Downgrade } else { Operation::WriteUnlock };
    }
    match random.below(4) {
        0 => Operation::TryRead,
        1 => Operation::TryWrite,
        2 => {
            held.read = true;
            Operation::Read
        }
        _ => {
            held.write = true;
            Operation::Write
        }
    }
}
