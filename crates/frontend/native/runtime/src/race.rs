//! Data races on plain memory, in programs that were built so that plain accesses are visible.
//!
//! **Paper** FastTrack (Flanagan and Freund, PLDI 2009), with vector clocks for all objects.
//!
//! **Guarantees** A reported pair of accesses is not ordered by the synchronisation of this
//! execution: neither by a visible operation, nor by one that precompiled code may have performed.
//! Races can be missed: accesses of precompiled code are not visible, a cell keeps only a few
//! accesses (see below), and where precompiled code may have synchronised, everything before is
//! taken to be ordered. The report counts how often that happens.
//!
//! **Map** *C_t* is [`ThreadClocks::now`], *L_m* the clock of an [`ObjectClock`], an epoch *c@t* an
//! [`AccessRecord`].
//!
//! **Deviations**
//! 1. A cell covers 8 bytes, and has [`KEPT`] writes and reads with the bytes that they access. A
//!    new access replaces one to the same bytes by the same thread, one that happens before it, or
//!    the first. Replaced accesses can lead to missed races, never to false ones.
//! 2. Atomic operations synchronise by their memory orders (C11, without consume). A release
//!    sequence is continued by read-modify-write operations only. For fences, each thread has a
//!    clock of what its relaxed operations have read, and one of its last release fence.
//! 3. *Value mismatch*: every atomic operation compares the value that it finds with the one that
//!    the last visible operation left. A difference means that code without instrumentation has
//!    written in between (the slow path of a lock, `Once::call`, the end of a scoped thread), and
//!    may have published anything. So the thread is ordered after everything that has happened
//!    ([`join_all`]). The same applies to the first operation on an object, to `thread::park`, and
//!    to the end of a futex wait, after which precompiled code may take a lock.
//! 4. Plain accesses are compared with plain accesses only.
//!
//! **Cost** A vector of [`MAX_THREADS`] numbers for each operation that synchronises; 64 bytes for
//! every 8 bytes that are accessed after the first thread was created.
//!
//! A compiler that does not know of the instrumentation may move a read before the condition that
//! guards it. gcc knows when it instruments. rustc does not, so its flags for plain accesses
//! disable optimisation.

use core::ptr::addr_of_mut;
use core::sync::atomic::Ordering::Relaxed;

use crate::block::{MAX_THREADS, Op};
use crate::footprint::Access;
use crate::objects::CAPACITY;
use crate::op::NO_OBJECT;
use crate::schedule::{RacingAccess, Values, active, block, full, log_race, runtime};
use crate::spins::Step;
use crate::sys;
use crate::threads::me;

type Clock = [u32; MAX_THREADS];

/// The clocks of a thread.
#[derive(Clone, Copy)]
struct ThreadClocks {
    /// What happens before the thread's next operation. Its own entry is never 0 once there are
    /// several threads.
    now: Clock,
    /// The clocks that relaxed operations have read; the next acquire fence joins them.
    read: Clock,
    /// The value of `now` at the last release fence.
    fenced: Clock,
}

const ZERO: Clock = [0; MAX_THREADS];

static mut THREADS: [ThreadClocks; MAX_THREADS] =
    [ThreadClocks { now: ZERO, read: ZERO, fenced: ZERO }; MAX_THREADS];

/// The clock that releases at an object have published.
#[derive(Clone, Copy)]
struct ObjectClock {
    clock: Clock,
    /// For an atomic variable, the value after the last visible operation.
    left: u128,
    /// The size of that operation in bytes; 0 if there was none.
    size: u8,
}

/// One access to a cell. A clock of 0 means that there was none.
#[derive(Clone, Copy)]
struct AccessRecord {
    pc: u64,
    clock: u32,
    thread: u8,
    /// The bytes of the cell that were accessed, a bit for each.
    bytes: u8,
}

/// The number of reads and the number of writes that a cell keeps.
const KEPT: usize = 2;

/// The last accesses to eight bytes of the program's memory.
#[derive(Clone, Copy)]
struct Cell {
    writes: [AccessRecord; KEPT],
    reads: [AccessRecord; KEPT],
}

const PAGE: usize = 4096;
const CELLS: usize = PAGE / 8;

/// The maximal number of pages whose accesses are recorded.
const PAGES: usize = 1 << 14;

/// The numbers of the pages that were accessed: a table with open addressing. The cells of a page
/// are contiguous, so that an execution touches few pages of cells.
static mut PAGE_OF: [usize; PAGES] = [0; PAGES];

/// The clocks of all objects, by index. Zero at the beginning of every execution.
static mut OBJECTS: *mut ObjectClock = core::ptr::null_mut();

/// The cells of all pages, by index in [`PAGE_OF`]. Zero at the beginning of every execution.
static mut CELLS_OF: *mut [Cell; CELLS] = core::ptr::null_mut();

/// Whether a race of this execution was reported. The first one fails the execution.
static mut REPORTED: bool = false;

/// The clock of all operations on descriptors, which have no object.
static mut DESCRIPTORS: Clock = ZERO;

/// Maps the memory for clocks and cells if the controller asks for the detection of races. Called
/// once, before the program begins.
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

/// Separates the further steps of a thread from those that it has published.
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

/// Orders a new thread after its creator. Accesses before the first thread is created happen before
/// everything and are not recorded.
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

/// Updates the clocks for an operation, except for atomic ones, which [`atomic`] handles. `joined`
/// is the slot of the thread that a join waits for; `first` and `second` are the operation's
/// objects.
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
        Op::Wait if second == NO_OBJECT => {}
        Op::Wait => release(slot, second),
        Op::Wake | Op::TimedWake => {
            acquire(slot, first);
            if second != NO_OBJECT {
                acquire(slot, second);
            }
        }
        // The thread may have waited for a lock whose state is in another word.
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
        // Precompiled code unlocks the mutex, or locks it again.
        Op::EnterWait => release(slot, first),
        Op::Relock => acquire(slot, first),
        // A completed `Once` publishes the effects of its closure by an invisible operation.
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

/// Orders the calling thread after a futex wait that ended at once, because the word had another
/// value: precompiled code may have written it.
pub fn after_unexpected_word() {
    if is_on() {
        join_all(me());
    }
}

/// Updates the clocks for an atomic operation, according to its memory orders, which are numbered
/// as in C11.
pub fn atomic(step: &Step, Values { found, left, wrote }: Values) {
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

/// Updates the clocks for a stale access. The clock of its object is that of the last store in
/// modification order, which stays the last. What older stores have published is not kept, so the
/// thread is ordered after everything that has happened: races can be missed, as in deviation 3.
pub fn stale(step: &Step) {
    if is_on() && step.op != Op::Store {
        join_all(me());
    }
}

/// Updates the clocks of the calling thread for a fence.
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

/// Checks and records a plain access to `size` bytes.
pub fn access(address: usize, size: usize, access: Access, pc: usize) {
    if !is_on() {
        return;
    }
    let end = address + size;
    let mut at = address;
    while at < end {
        let next = (at / 8 + 1) * 8;
        let (first, past) = (at % 8, (end.min(next) - 1) % 8 + 1);
        let bytes = ((1_u32 << past) - (1 << first)) as u8;
        access_cell(at, bytes, access, pc);
        at = next;
    }
}

fn access_cell(address: usize, bytes: u8, access: Access, pc: usize) {
    let slot = me();
    let now = &clocks(slot).now;
    let (pc, thread) = (pc as u64, slot as u8);
    let is_before = |old: &AccessRecord| now[usize::from(old.thread)] >= old.clock;
    let races =
        |old: &&AccessRecord| old.thread != thread && old.bytes & bytes != 0 && !is_before(old);
    let cell = cell(address);
    let racing =
        |old: &AccessRecord, access| RacingAccess { thread: old.thread, pc: old.pc, access };
    let write = cell.writes.iter().find(races).map(|old| racing(old, Access::Write));
    let read = || cell.reads.iter().find(races).map(|old| racing(old, Access::Read));
    if let Some(first) = write.or_else(|| read().filter(|_| access == Access::Write)) {
        // SAFETY: only the thread with the baton runs this.
        if !core::mem::replace(unsafe { &mut *addr_of_mut!(REPORTED) }, true) {
            log_race(address as u64, first, RacingAccess { thread, pc, access });
        }
    }
    let kept = match access {
        Access::Write => &mut cell.writes,
        Access::Read => &mut cell.reads,
    };
    let same = |old: &AccessRecord| old.thread == thread && old.bytes == bytes;
    // A free record has the clock 0, which is before everything.
    let place = kept.iter().position(same).or_else(|| kept.iter().position(is_before));
    kept[place.unwrap_or(0)] = AccessRecord { pc, clock: now[slot], thread, bytes };
}

/// Forgets the accesses to a range that was mapped again and now contains something else.
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
