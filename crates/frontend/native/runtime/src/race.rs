//! Data races on plain memory, in programs that were built such that plain accesses are visible.
//!
//! **Paper** FastTrack (Flanagan and Freund, PLDI 2009), with vector clocks for all objects.
//!
//! **Guarantees** A reported pair of accesses is not ordered by the synchronisation of this
//! execution: neither by an operation that is visible, nor by one that precompiled code may have
//! performed. Races can be missed: accesses of precompiled code are not seen, a cell keeps a few
//! accesses only (below), and where precompiled code may have synchronised, everything before is
//! taken for ordered. The report counts these places.
//!
//! **Map** *C_t* is [`clock`], *L_m* the clock of an [`ObjectClock`], an epoch *c@t* an
//! [`Access`].
//!
//! **Deviations**
//! 1. A cell covers 8 bytes, and has [`KEPT`] writes and reads with the bytes that they touch. An
//!    access takes the place of one to the same bytes by the same thread, of one that happens
//!    before it, or of the first. What is forgotten can only be missed.
//! 2. Atomic operations synchronise by their memory orders (C11, without consume). A release
//!    sequence is continued by read-modify-write operations only. Fences keep what was read by
//!    relaxed operations, and what was done before a release.
//! 3. *Value mismatch*: every atomic operation compares the value that it finds with the one that
//!    the last visible operation left. A difference means that code without instrumentation has
//!    written in between (the slow path of a lock, `Once::call`, the end of a scoped thread), and
//!    may have published anything: the thread is ordered after everything that has happened
//!    ([`join_all`]). So it is by its first operation on an object, by `thread::park`, and by the
//!    end of a futex wait, after which precompiled code may take a lock.
//! 4. Plain accesses are compared with plain accesses only.
//!
//! **Cost** A vector of [`MAX_THREADS`] numbers for each operation that synchronises; 64 bytes for
//! every 8 bytes that are accessed after the first thread was created.
//!
//! Compilers may read memory ahead of a condition if they do not know that races matter. gcc knows
//! when it instruments. rustc does not, so its flags for plain accesses switch optimisation off.

use core::ptr::addr_of_mut;
use core::sync::atomic::Ordering::Relaxed;

use crate::block::{MAX_THREADS, Op};
use crate::objects::CAPACITY;
use crate::schedule::{active, block, full, log_race, runtime};
use crate::spins::Step;
use crate::sys;
use crate::threads::me;

type Clock = [u32; MAX_THREADS];

/// The clocks of a thread.
#[derive(Clone, Copy)]
struct ThreadClocks {
    /// What happens before its next operation. Its own entry is never 0 once there are threads.
    now: Clock,
    /// What an acquire fence will join: the clocks of what relaxed operations have read.
    read: Clock,
    /// What the last release fence has published.
    fenced: Clock,
}

const ZERO: Clock = [0; MAX_THREADS];

static mut THREADS: [ThreadClocks; MAX_THREADS] =
    [ThreadClocks { now: ZERO, read: ZERO, fenced: ZERO }; MAX_THREADS];

/// What was published at an object.
#[derive(Clone, Copy)]
struct ObjectClock {
    clock: Clock,
    /// The value that the last visible operation on an atomic variable left, and its size; a size
    /// of 0 if there was none.
    left: u128,
    size: u8,
}

/// One access to a cell. A clock of 0 means that there was none.
#[derive(Clone, Copy)]
struct Access {
    pc: u64,
    clock: u32,
    thread: u8,
    /// The bytes of the cell that it touches, a bit for each.
    bytes: u8,
}

/// The accesses of each kind that a cell has room for.
const KEPT: usize = 2;

/// Eight bytes of the program's memory.
#[derive(Clone, Copy)]
struct Cell {
    writes: [Access; KEPT],
    reads: [Access; KEPT],
}

const PAGE: usize = 4096;
const CELLS: usize = PAGE / 8;

/// The pages of the program that were accessed: a table with open addressing. The cells of a page
/// lie together, so that the number of pages of cells that an execution touches is small.
const PAGES: usize = 1 << 14;

static mut PAGE_OF: [usize; PAGES] = [0; PAGES];

/// The clocks of all objects, by their indices, then the cells of all pages: mapped where they are
/// needed, and zero at the beginning of every execution.
static mut OBJECTS: *mut ObjectClock = core::ptr::null_mut();
static mut CELLS_OF: *mut [Cell; CELLS] = core::ptr::null_mut();

/// Whether a race of this execution was reported. One is enough: it fails.
static mut REPORTED: bool = false;

/// The operations that synchronise on descriptors have no object.
static mut DESCRIPTORS: Clock = ZERO;

/// Prepares the memory, if the controller asks for the detection of races. Called once, before the
/// program begins.
pub fn prepare() {
    if block().races.load(Relaxed) == 0 {
        return;
    }
    let objects = CAPACITY * size_of::<ObjectClock>();
    let cells = PAGES * size_of::<[Cell; CELLS]>();
    const READ_WRITE: usize = 3;
    const PRIVATE_ANONYMOUS_UNRESERVED: usize = 0x02 | 0x20 | 0x4000;
    let arguments = [0, objects + cells, READ_WRITE, PRIVATE_ANONYMOUS_UNRESERVED, usize::MAX, 0];
    // SAFETY: a new mapping.
    let mapped = unsafe { sys::call(sys::MMAP, arguments) };
    if (-4095..0).contains(&mapped) {
        return block().races.store(0, Relaxed);
    }
    // SAFETY: only the fork server runs.
    unsafe {
        OBJECTS = mapped as *mut ObjectClock;
        CELLS_OF = (mapped as usize + objects).next_multiple_of(64) as *mut [Cell; CELLS];
    }
}

/// Whether races are detected now.
#[inline]
pub fn is_on() -> bool {
    // SAFETY: only the thread with the baton, or the only thread, runs this.
    let is_prepared = unsafe { !OBJECTS.is_null() };
    is_prepared && active() && runtime().concurrent
}

fn clocks(slot: usize) -> &'static mut ThreadClocks {
    // SAFETY: only the thread with the baton runs this.
    unsafe { &mut (*addr_of_mut!(THREADS))[slot] }
}

fn object(index: u32) -> &'static mut ObjectClock {
    // SAFETY: as above; the index is below the capacity, and the memory is mapped if races are
    // detected.
    unsafe { &mut *OBJECTS.add(index as usize) }
}

fn join(into: &mut Clock, from: &Clock) {
    into.iter_mut().zip(from).for_each(|(into, &from)| *into = (*into).max(from));
}

/// What the thread does from now on is not part of what it has published.
fn advance(slot: usize) {
    clocks(slot).now[slot] += 1;
}

fn acquire(slot: usize, index: u32) {
    join(&mut clocks(slot).now, &object(index).clock);
}

fn release(slot: usize, index: u32) {
    join(&mut object(index).clock, &clocks(slot).now);
    advance(slot);
}

/// Orders a thread after everything that has happened: see deviation 3.
fn join_all(slot: usize) {
    block().oversynchronised.fetch_add(1, Relaxed);
    for other in (0..MAX_THREADS).filter(|&other| other != slot) {
        let from = clocks(other).now;
        if from[other] != 0 {
            join(&mut clocks(slot).now, &from);
            advance(other);
        }
    }
}

/// A thread creates another one. What happened before the first thread is created happens before
/// everything, and was not recorded.
pub fn create(creator: usize, slot: usize) {
    // SAFETY: as for `is_on`.
    if unsafe { OBJECTS.is_null() } {
        return;
    }
    let now = &mut clocks(creator).now;
    now[creator] = now[creator].max(1);
    let mut started = *now;
    started[slot] = 1;
    *clocks(slot) = ThreadClocks { now: started, read: ZERO, fenced: ZERO };
    advance(creator);
}

/// An operation that is not one on an atomic variable synchronises.
pub fn synchronise(slot: usize, op: Op, joined: u64, [first, second]: [u32; 2]) {
    if !is_on() {
        return;
    }
    match op {
        Op::Join => {
            let ended = clocks(joined as usize).now;
            join(&mut clocks(slot).now, &ended);
        }
        Op::Lock
        | Op::TryLock
        | Op::TimedLock
        | Op::ReadLock
        | Op::TryReadLock
        | Op::TimedReadLock
        | Op::WriteLock
        | Op::TryWriteLock
        | Op::TimedWriteLock => acquire(slot, first),
        Op::Unlock
        | Op::ReadUnlock
        | Op::WriteUnlock
        | Op::NotifyOne
        | Op::NotifyAll
        | Op::Release
        | Op::LeaveOnce
        | Op::FutexWakeOne
        | Op::FutexWakeAll => release(slot, first),
        Op::Wait => release(slot, second),
        Op::Wake | Op::TimedWake => {
            acquire(slot, first);
            acquire(slot, second);
        }
        // What was waited for may be a lock whose state is another word.
        Op::FutexWoken | Op::TimedFutexWoken => join_all(slot),
        Op::Acquire | Op::TryAcquire | Op::TimedAcquire | Op::Count | Op::Leave | Op::EnterOnce => {
            acquire(slot, first)
        }
        Op::Arrive => {
            acquire(slot, first);
            release(slot, first);
        }
        Op::FutexWait => {
            acquire(slot, first);
            acquire(slot, second);
            release(slot, first);
        }
        // Precompiled code unlocks the mutex, locks it again, or does what is not known.
        Op::EnterWait => release(slot, first),
        Op::Relock => acquire(slot, first),
        // A `Once` that is complete publishes what its closure has done, and no operation shows it.
        Op::EnterWrite => {
            join_all(slot);
            release(slot, first);
        }
        Op::Enter => join_all(slot),
        Op::Io | Op::IoWait => {
            // SAFETY: only the thread with the baton runs this.
            let descriptors = unsafe { &mut *addr_of_mut!(DESCRIPTORS) };
            join(&mut clocks(slot).now, descriptors);
            *descriptors = clocks(slot).now;
            advance(slot);
        }
        _ => {}
    }
}

/// A futex call has read its word. If that has not the expected value, the call ends at once.
pub fn after_futex(waits: bool) {
    if is_on() && !waits {
        join_all(me());
    }
}

/// An atomic operation on an object synchronises by its memory orders, numbered as C11 does.
pub fn atomic(step: &Step, (found, left, wrote): (u128, u128, bool)) {
    if !is_on() {
        return;
    }
    const RELAXED: u32 = 0;
    const RELEASE: u32 = 3;
    let (slot, size, index) = (me(), step.size, step.objects[0]);
    if object(index).size != size || object(index).left != found {
        join_all(slot);
    }
    let order = if wrote { step.orders & 0xff } else { step.orders >> 8 & 0xff };
    let (threads, published) = (clocks(slot), object(index));
    (published.left, published.size) = (left, size);
    if step.op != Op::Store {
        let before = published.clock;
        let is_acquire = !matches!(order, RELAXED | RELEASE);
        join(if is_acquire { &mut threads.now } else { &mut threads.read }, &before);
    }
    if wrote {
        if step.op == Op::Store {
            published.clock = ZERO;
        }
        join(&mut published.clock, if order >= RELEASE { &threads.now } else { &threads.fenced });
        advance(slot);
    }
}

/// A fence.
pub fn fence(order: u32) {
    if !is_on() {
        return;
    }
    const RELEASE: u32 = 3;
    let slot = me();
    let threads = clocks(slot);
    if !matches!(order, 0 | RELEASE) {
        let read = threads.read;
        join(&mut threads.now, &read);
    }
    if order >= RELEASE {
        threads.fenced = threads.now;
        advance(slot);
    }
}

/// The cell of an address.
fn cell(address: usize) -> &'static mut Cell {
    let page = address / PAGE;
    let mut at = (page.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) & (PAGES - 1);
    for _ in 0..PAGES {
        // SAFETY: only the thread with the baton runs this; the index is below the length.
        let known = unsafe { &mut (*addr_of_mut!(PAGE_OF))[at] };
        if *known == 0 {
            *known = page;
        }
        if *known == page {
            // SAFETY: the cells of all pages are mapped.
            return unsafe { &mut (*CELLS_OF.add(at))[address % PAGE / 8] };
        }
        at = (at + 1) & (PAGES - 1);
    }
    full("the program accesses more memory than the detection of data races has room for")
}

/// A plain access of `size` bytes.
pub fn access(address: usize, size: usize, writes: bool, pc: usize) {
    if !is_on() {
        return;
    }
    let end = address + size;
    let mut at = address;
    while at < end {
        let next = (at / 8 + 1) * 8;
        let (first, past) = (at % 8, (end.min(next) - 1) % 8 + 1);
        let bytes = ((1_u32 << past) - (1 << first)) as u8;
        access_cell(at, bytes, writes, pc);
        at = next;
    }
}

fn access_cell(address: usize, bytes: u8, writes: bool, pc: usize) {
    let slot = me();
    let now = &clocks(slot).now;
    let new = Access { pc: pc as u64, clock: now[slot], thread: slot as u8, bytes };
    let is_before = |old: &Access| now[usize::from(old.thread)] >= old.clock;
    let races = |old: &&Access| {
        usize::from(old.thread) != slot && old.bytes & bytes != 0 && !is_before(old)
    };
    let cell = cell(address);
    let write = cell.writes.iter().find(races).map(|old| (old.thread, old.pc, true));
    let read = || cell.reads.iter().find(races).map(|old| (old.thread, old.pc, false));
    if let Some(other) = write.or_else(|| read().filter(|_| writes)) {
        // SAFETY: only the thread with the baton runs this.
        if !core::mem::replace(unsafe { &mut *addr_of_mut!(REPORTED) }, true) {
            log_race(address as u64, pc, writes, other);
        }
    }
    let kept = if writes { &mut cell.writes } else { &mut cell.reads };
    let same = |old: &Access| usize::from(old.thread) == slot && old.bytes == bytes;
    // No access has the clock 0, which is before everything.
    let place = kept.iter().position(same).or_else(|| kept.iter().position(is_before));
    kept[place.unwrap_or(0)] = new;
}

/// Memory is mapped anew: what was accessed there before was something else.
pub fn forget(address: usize, len: usize) {
    if !is_on() {
        return;
    }
    for at in 0..PAGES {
        // SAFETY: only the thread with the baton runs this; the index is below the length.
        let page = unsafe { (*addr_of_mut!(PAGE_OF))[at] };
        if page != 0 && (address..address.saturating_add(len)).contains(&(page * PAGE)) {
            // SAFETY: the cells of all pages are mapped, and valid if they are zero.
            unsafe { CELLS_OF.add(at).write_bytes(0, 1) };
        }
    }
}
