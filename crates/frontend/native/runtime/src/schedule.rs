//! The scheduler: threads announce operations, one thread is chosen, and the choice is logged.
//!
//! A step of a thread is one operation followed by the code up to its next operation. At every
//! scheduling point all threads have announced their next operations, so it is known which threads
//! can continue. The choices of the prefix are taken first. After that the running thread continues
//! while it can; otherwise the enabled thread in the lowest slot runs, with its lowest alternative.
//! Searches explore in the same order, so the rest of an execution is usually the next one that a
//! search needs.

use core::ptr::{addr_of, addr_of_mut};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::block::{
    Block, Choice, Event, MAX_COUNT, MAX_EVENTS, MAX_NOTES, MAX_STEPS, MAX_TEXT, MAX_THREADS,
    Misuse, NEVER, ObjectKind, Op, Outcome, Record, may_expire,
};
use crate::descriptors::Wait;
use crate::footprint::Access;
use crate::hooks::socket::Ports;
use crate::object::Action;
use crate::objects::{Object, Objects};
use crate::op::NO_OBJECT;
use crate::spins::{self, Recorded, Step};
use crate::sys;
use crate::thread::ThreadId;
use crate::threads::{NO_THREAD, Stage, Thread, hand_over, me, park};

/// The state of this library. Only the thread with the baton touches it.
pub struct Runtime {
    pub block: *mut Block,
    pub threads: [Thread; MAX_THREADS],
    pub recursive_reads: [RecursiveRead; RECURSIVE_READS],
    steps: usize,
    /// The number of steps that are not [idle](crate::spin).
    progress: usize,
    events: usize,
    /// The thread that took the last step.
    running: usize,
    /// The number of consecutive steps by threads that are held back.
    forced: u32,
    /// Whether the program has created a thread.
    pub concurrent: bool,
    /// The latest deadline that has expired. No clock shows an earlier time afterwards.
    floor: u64,
    /// The number of threads that have announced a wait for descriptors.
    pub waits_for_descriptors: u32,
    /// The number of operations on descriptors.
    pub descriptor_operations: u64,
    /// The virtual time of the last operation on descriptors.
    descriptor_time: u64,
    /// The ports on which the program listens.
    pub ports: Ports,
}

/// A read lock that a thread holds more than once.
#[derive(Clone, Copy)]
pub struct RecursiveRead {
    pub lock: u64,
    pub thread: usize,
    /// How often the thread holds the lock beyond the first time; 0 for a free entry.
    pub extra: u32,
}

const RECURSIVE_READS: usize = 64;

static mut RUNTIME: Runtime = Runtime {
    block: core::ptr::null_mut(),
    threads: [Thread::VACANT; MAX_THREADS],
    recursive_reads: [RecursiveRead { lock: 0, thread: 0, extra: 0 }; RECURSIVE_READS],
    steps: 0,
    progress: 0,
    events: 0,
    running: 0,
    forced: 0,
    concurrent: false,
    floor: 0,
    waits_for_descriptors: 0,
    descriptor_operations: 0,
    descriptor_time: 0,
    ports: Ports::NONE,
};

/// The state of this library. A reference to it must not be used after the baton is handed over.
pub fn runtime() -> &'static mut Runtime {
    // SAFETY: only the thread with the baton calls this, or the fork server before there are
    // threads. Handing over the baton synchronises, and no reference lives across a hand-over.
    unsafe { &mut *addr_of_mut!(RUNTIME) }
}

// Not part of `RUNTIME`: it is all zeros, so it takes no space in the library's file.
static mut OBJECTS: Objects = Objects::EMPTY;

/// The objects of the program. The same rule applies as for [`runtime`].
pub fn objects() -> &'static mut Objects {
    // SAFETY: as for `runtime`.
    unsafe { &mut *addr_of_mut!(OBJECTS) }
}

/// The shared memory.
pub fn block() -> &'static Block {
    // SAFETY: the block is mapped before the program begins, and never unmapped. Fields that both
    // sides write are atomic, or are written through the raw pointer while the other side waits.
    unsafe { &*(*addr_of!(RUNTIME)).block }
}

/// Ends the execution.
pub fn stop(outcome: Outcome, detail: u32) -> ! {
    block().detail.store(detail, SeqCst);
    block().outcome.store(outcome as u32, SeqCst);
    sys::exit_group(0)
}

/// Ends the execution because a table or the log is full.
#[cold]
pub fn full(why: &str) -> ! {
    write_text(&[why.as_bytes()]);
    stop(Outcome::Full, 0)
}

/// Ends the execution because an invariant of this library is violated.
#[cold]
pub fn fault(why: &str) -> ! {
    write_text(&[why.as_bytes()]);
    stop(Outcome::Fault, 0)
}

/// Ends the execution because the program uses `what`, which is not supported.
#[cold]
pub fn unsupported(what: &str) -> ! {
    write_text(&[what.as_bytes()]);
    stop(Outcome::Unsupported, 0)
}

/// Writes `parts` to the text of the block, separated by zero bytes and truncated to its size.
pub fn write_text(parts: &[&[u8]]) {
    let text = text_pointer();
    let mut len = 0;
    for (nth, part) in parts.iter().enumerate() {
        let separator: &[u8] = if nth == 0 { b"" } else { b"\0" };
        for &byte in separator.iter().chain(part.iter()) {
            if len < MAX_TEXT {
                // SAFETY: the index is below the length of the array.
                unsafe { (*text)[len] = byte };
                len += 1;
            }
        }
    }
    block().text_len.store(len as u32, Relaxed);
}

/// Notes an action that depends on the world outside of the process, such as "reads the file " and
/// its path. Does nothing if the note is there already or does not fit.
pub fn note(action: &[u8], object: &[u8]) {
    // SAFETY: only the thread with the baton writes, and the controller reads afterwards.
    let notes = unsafe { &mut *addr_of_mut!((*runtime().block).notes) };
    let len = block().notes_len.load(Relaxed) as usize;
    let new = || action.iter().chain(object).copied();
    let size = action.len() + object.len();
    let known = notes[..len].split(|&byte| byte == 0).any(|old| new().eq(old.iter().copied()));
    if known || len + size + 1 > MAX_NOTES {
        return;
    }
    notes[len..].iter_mut().zip(new().chain([0])).for_each(|(to, from)| *to = from);
    block().notes_len.store((len + size + 1) as u32, Relaxed);
}

/// A debugger stops here, in the thread that is about to take the requested step.
#[unsafe(no_mangle)]
#[inline(never)]
pub extern "C" fn preempt_step(step: usize) {
    core::hint::black_box(step);
}

/// Lets a debugger stop if the calling thread, which was chosen, is about to take the requested
/// step.
fn stop_before_step() {
    let (step, requested) = (runtime().steps, block().stop_before.load(Relaxed) as usize);
    if step == requested && requested != 0 {
        preempt_step(step);
    }
}

fn text_pointer() -> *mut [u8; MAX_TEXT] {
    // SAFETY: the block is mapped.
    unsafe { addr_of_mut!((*runtime().block).text) }
}

const EVENT: Event =
    Event { record: 0, thread: 0, what: 0, size: 0, value: 0, object: 0, other: 0, pc: 0, time: 0 };

fn log(event: Event) {
    let runtime = runtime();
    if runtime.events >= MAX_EVENTS {
        full("the log of the execution is full");
    }
    if runtime.events.is_multiple_of(AHEAD) && runtime.events > 0 {
        map_ahead(runtime.events);
    }
    // SAFETY: the index is below the length, and the controller reads after the execution.
    unsafe { (*runtime.block).log[runtime.events] = event };
    runtime.events += 1;
    block().events.store(runtime.events as u32, Relaxed);
}

/// The number of events for which the log is mapped at once.
const AHEAD: usize = 1 << 11;

/// Maps the part of the log for the next events with one system call. A page fault for each page
/// would cost more than everything else that a scheduling point does.
#[cold]
fn map_ahead(first: usize) {
    const PAGE: usize = 4096;
    const POPULATE_FOR_WRITING: usize = 23;
    let log = log_address();
    let (start, end) = (log + first * size_of::<Event>(), MAX_EVENTS.min(first + AHEAD));
    let end = log + end * size_of::<Event>();
    let start = start.next_multiple_of(PAGE);
    let arguments = [start, end.saturating_sub(start), POPULATE_FOR_WRITING, 0, 0, 0];
    // Older kernels refuse this; their page faults then map the pages one by one.
    // SAFETY: the log is mapped, and its contents do not change.
    unsafe { sys::call(sys::MADVISE, arguments) };
}

/// The address of the log.
fn log_address() -> usize {
    // SAFETY: the block is mapped.
    unsafe { addr_of!((*runtime().block).log) as usize }
}

/// Logs that an object begins a life.
pub fn log_create(kind: ObjectKind, address: u64, parameter: u32) {
    let (record, what) = (Record::Create as u8, kind as u8);
    let thread = me() as u8;
    log(Event { record, thread, what, value: parameter, object: address, ..EVENT });
}

/// Logs that a thread creates another one, which begins at `entry`.
pub fn log_start(slot: usize, entry: u64) {
    let (record, thread) = (Record::Start as u8, me() as u8);
    log(Event { record, thread, object: slot as u64, pc: entry, ..EVENT });
}

/// Logs the result `value` of an operation that depends on the word `found`, not on the modelled
/// objects.
pub fn log_learned(value: u32, found: u32) {
    if let Some(step) = &mut runtime().threads[me()].step {
        step.find(found.into(), false);
    }
    log(Event { record: Record::Learn as u8, thread: me() as u8, value, ..EVENT });
}

/// The values before and after an atomic operation, and whether it has written.
#[derive(Clone, Copy)]
pub struct Values {
    pub found: u128,
    pub left: u128,
    pub wrote: bool,
}

/// Logs the values of an atomic operation on `size` bytes.
pub fn log_values(size: u8, values: Values) {
    let Values { found, left, wrote } = values;
    let step = runtime().threads[me()].step.as_mut();
    let step = step.unwrap_or_else(|| fault("an atomic operation is a step"));
    step.find(found as u64 ^ (found >> 64) as u64, found != left);
    if found != left {
        objects().get(step.objects[0]).change();
    }
    crate::race::atomic(step, values);
    let (thread, value) = (me() as u8, u32::from(wrote));
    let (object, other) = (found as u64, left as u64);
    log(Event { record: Record::Values as u8, thread, value, object, other, ..EVENT });
    if size > 8 {
        let (object, other) = ((found >> 64) as u64, (left >> 64) as u64);
        log(Event { record: Record::UpperValues as u8, thread, object, other, ..EVENT });
    }
}

/// Whether the controller may ask for stale accesses.
fn is_weak() -> bool {
    block().weak.load(Relaxed) != 0
}

/// The value that the current step of the calling thread, a stale access, reads.
pub fn stale_value() -> u64 {
    // SAFETY: the controller writes the prefix before the execution, and the step, which was
    // chosen last, is one of it.
    unsafe { (*runtime().block).stale_values[runtime().steps - 1] }
}

/// Logs the values of a stale access, which leaves `memory` in memory: see
/// [`crate::hooks::atomic`].
#[cold]
pub fn log_stale(values: Values, memory: u64) {
    let Values { found, left, wrote } = values;
    let step = runtime().threads[me()].step.as_mut();
    let step = step.unwrap_or_else(|| fault("an atomic operation is a step"));
    step.find(found as u64, found != left);
    if found != left {
        // A thread that waits for a change can read the new store too, as an old one.
        objects().get(step.objects[0]).change();
    }
    crate::race::stale(step);
    let (thread, value) = (me() as u8, u32::from(wrote));
    let (object, other) = (found as u64, left as u64);
    log(Event { record: Record::Values as u8, thread, value, object, other, ..EVENT });
    log(Event { record: Record::Stale as u8, thread, object: memory, ..EVENT });
}

/// Logs a fence under weak memory.
pub fn log_fence(order: u32) {
    // Outside of an execution there is no control block that says which model is explored.
    if active() && runtime().concurrent && is_weak() {
        log(Event { record: Record::Fence as u8, thread: me() as u8, value: order, ..EVENT });
    }
}

/// Logs whether the descriptors for which a thread waits are ready.
pub fn log_ready(slot: usize, ready: bool) {
    let (record, value) = (Record::Ready as u8, u32::from(ready));
    log(Event { record, thread: slot as u8, value, ..EVENT });
}

/// Logs a Rust panic.
pub fn log_panic() {
    log(Event { record: Record::Panic as u8, thread: me() as u8, ..EVENT });
}

/// Logs the misuse of an object.
pub fn log_misuse(misuse: Misuse, object: u64, pc: usize) {
    let (record, thread) = (Record::Misuse as u8, me() as u8);
    log(Event { record, thread, value: misuse as u32, object, pc: pc as u64, ..EVENT });
}

/// One of the two accesses of a data race.
#[derive(Clone, Copy)]
pub struct RacingAccess {
    pub thread: u8,
    pub pc: u64,
    pub access: Access,
}

/// Logs a data race at `address`; `second` is the access of the calling thread.
#[cold]
pub fn log_race(address: u64, first: RacingAccess, second: RacingAccess) {
    let writes = |racing: RacingAccess| u8::from(racing.access == Access::Write);
    log(Event {
        record: Record::Misuse as u8,
        thread: second.thread,
        what: first.thread,
        size: writes(second) | writes(first) << 1,
        value: Misuse::Race as u32,
        object: address,
        other: first.pc,
        pc: second.pc,
        ..EVENT
    });
}

/// Logs the misuse of memory. `freed` is the slot of the thread that freed the memory, and the
/// return address of that call.
pub fn log_memory(misuse: Misuse, address: u64, pc: usize, freed: (usize, u64)) {
    log(Event {
        record: Record::Misuse as u8,
        thread: me() as u8,
        what: freed.0 as u8,
        value: misuse as u32,
        object: address,
        other: freed.1,
        pc: pc as u64,
        ..EVENT
    });
}

/// The next operation of a thread.
#[derive(Clone, Copy)]
pub struct Next {
    pub op: Op,
    /// The address of its object.
    pub object: u64,
    /// The address of a second object.
    pub other: u64,
    /// The return address of the call.
    pub pc: usize,
    /// As in [`Event`].
    pub size: u8,
    /// As in [`Event`].
    pub value: u32,
    /// A digest of the operands of an atomic operation.
    pub operands: u64,
    /// The virtual time at which a wait times out, or [`NEVER`].
    pub deadline: u64,
    /// The local time of the thread when it announced the operation.
    pub time: u64,
    /// The descriptors for which it waits.
    pub wait: Wait,
}

impl Next {
    /// A placeholder, for threads that do not exist and for fields that an operation does not use.
    pub const NONE: Next = Next {
        op: Op::Begin,
        object: 0,
        other: 0,
        pc: 0,
        size: 0,
        value: 0,
        operands: 0,
        deadline: NEVER,
        time: 0,
        wait: Wait::Nothing,
    };

    /// An operation on one object.
    pub fn on(op: Op, object: u64, pc: usize) -> Next {
        Next { op, object, pc, ..Next::NONE }
    }

    /// An operation on two objects.
    pub fn on_both(op: Op, object: u64, other: u64, pc: usize) -> Next {
        Next { op, object, other, pc, ..Next::NONE }
    }

    /// Sets the deadline.
    pub fn until(self, deadline: u64) -> Next {
        Next { deadline, ..self }
    }
}

/// The result of incrementing a semaphore whose count is at its maximum.
pub const OVERFLOW: i64 = -1;

/// The result of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    pub alternative: u32,
    /// The result of the action on the object; for a notification, the number of woken threads.
    pub reply: i64,
}

/// A scheduling point: announces the operation, waits until the thread is chosen, and performs the
/// operation on the modelled objects.
pub fn point(next: Next) -> Taken {
    let me = me();
    announce(me, next);
    let choice = choose();
    let chosen = choice.thread as usize;
    runtime().threads[chosen].alternative = choice.alternative;
    if chosen != me {
        hand_over(chosen);
        park(me);
    }
    stop_before_step();
    let alternative = runtime().threads[me].alternative;
    Taken { alternative, reply: runtime().perform(me, alternative) }
}

/// Announces the next operation of a thread.
pub fn announce(slot: usize, next: Next) {
    // Creates new objects, which logs their kinds before the operation mentions them.
    let index = |kind: Option<ObjectKind>, address| {
        kind.map_or(NO_OBJECT, |kind| objects().index(kind, address))
    };
    let known = objects().len();
    let used = [
        index(next.op.object_kind(), next.object),
        index(next.op.other_kind(next.other), next.other),
    ];
    let is_first = objects().len() != known;
    end_step(slot, &next, used);
    let thread = &mut runtime().threads[slot];
    thread.objects = used;
    let repeats = thread.next.op == next.op && thread.next.pc == next.pc;
    thread.yields_again = repeats && next.op == Op::Yield;
    let time = thread.time;
    thread.next = Next { time, ..next };
    thread.stage = Stage::Waiting;
    if next.op == Op::IoWait {
        (thread.ready, thread.asked) = (false, 0);
        runtime().waits_for_descriptors += 1;
    }
    if next.deadline != NEVER {
        let (record, object) = (Record::Deadline as u8, next.deadline);
        log(Event { record, thread: slot as u8, object, ..EVENT });
    }
    if next.op == Op::CompareExchange && is_weak() {
        let (record, object) = (Record::Expected as u8, next.other);
        log(Event { record, thread: slot as u8, object, ..EVENT });
    }
    log(Event {
        record: Record::Next as u8,
        thread: slot as u8,
        what: next.op as u8,
        size: next.size,
        value: next.value,
        object: next.object,
        other: if next.op.is_atomic() { next.operands } else { next.other },
        pc: next.pc as u64,
        time,
    });
    log_stack(slot, is_first && next.op.is_atomic() && is_weak());
}

/// Records the step that ends when its thread announces `next`, an operation on `objects`.
fn end_step(slot: usize, next: &Next, objects: [u32; 2]) {
    let Some(step) = &runtime().threads[slot].step else { return };
    let Recorded { round, idle } = spins::record(slot, step, next, objects);
    runtime().threads[slot].step = None;
    let thread = slot as u8;
    if idle {
        runtime().progress -= 1;
        runtime().threads[slot].stepped_at = runtime().progress;
        log(Event { record: Record::Idle as u8, thread, ..EVENT });
    }
    if round > 0 {
        log(Event { record: Record::Spin as u8, thread, value: round.into(), ..EVENT });
    }
}

/// Logs the call stack of the operation that was just announced, if that was requested or is
/// needed.
fn log_stack(slot: usize, is_needed: bool) {
    // The log has no space for the call stacks of all operations of a long execution.
    let has_room = runtime().events < MAX_EVENTS / 2;
    let is_requested = block().stacks.load(Relaxed) != 0 && has_room;
    if (is_requested || is_needed) && slot == me() {
        crate::hooks::stack::walk(|nth, pc| {
            let (record, thread) = (Record::Frame as u8, slot as u8);
            log(Event { record, thread, value: nth, pc: pc as u64, ..EVENT });
        });
    }
}

/// Chooses the thread that takes the next step, and logs it.
pub fn choose() -> Choice {
    crate::descriptors::refresh();
    let runtime = runtime();
    let block = block();
    let step = runtime.steps;
    if step >= MAX_STEPS || step as u32 >= block.max_steps.load(Relaxed) {
        stop(Outcome::StepLimit, step as u32);
    }
    let choice = if (step as u32) < block.prefix_len.load(Relaxed) {
        let choice = block.prefix[step];
        let (first, count) = runtime.alternatives(choice.thread as usize);
        let is_stale = count > 0 && is_weak() && runtime.is_at_atomic(choice.thread as usize);
        if !(first..first + count).contains(&choice.alternative) && !is_stale {
            stop(Outcome::Diverged, step as u32);
        }
        choice
    } else {
        runtime.continuation().unwrap_or_else(|| stop(Outcome::Deadlock, step as u32))
    };
    runtime.count_turns(choice.thread as usize);
    runtime.steps += 1;
    runtime.running = choice.thread as usize;
    let (record, thread) = (Record::Step as u8, choice.thread as u8);
    log(Event { record, thread, value: choice.alternative, ..EVENT });
    block.steps.store(runtime.steps as u32, Relaxed);
    block.running.store(choice.thread, Relaxed);
    choice
}

/// Reports an operation on an object in freed memory. Operations that do not access the memory are
/// exempt: after a write another thread may already have freed the variable, and a futex wake uses
/// its address only as a key.
fn check_memory(next: &Next) {
    let accesses = !matches!(next.op, Op::AfterWrite | Op::FutexWakeOne | Op::FutexWakeAll);
    if accesses && next.op.object_kind().is_some() {
        crate::heap::check(next.object as usize, next.pc);
    }
}

fn mutex(address: u64) -> &'static mut Object {
    objects().at(ObjectKind::Mutex, address, || 0)
}

fn condvar(address: u64) -> &'static mut Object {
    objects().at(ObjectKind::Condvar, address, || 0)
}

fn rwlock(address: u64) -> &'static mut Object {
    objects().at(ObjectKind::RwLock, address, || 0)
}

fn semaphore(address: u64) -> &'static mut Object {
    objects().at(ObjectKind::Semaphore, address, || 0)
}

fn futex(address: u64) -> &'static mut Object {
    objects().at(ObjectKind::Futex, address, || 0)
}

/// The action of an operation that is one action on one object.
#[inline(always)]
fn action(op: Op, alternative: u32) -> Action {
    match op {
        Op::Lock => Action::Lock,
        Op::TryLock | Op::TimedLock => Action::TryLock,
        Op::Unlock => Action::Unlock,
        Op::ReadLock => Action::ReadLock,
        Op::TryReadLock | Op::TimedReadLock => Action::TryReadLock,
        Op::ReadUnlock => Action::ReadUnlock,
        Op::WriteLock => Action::WriteLock,
        Op::TryWriteLock | Op::TimedWriteLock => Action::TryWriteLock,
        Op::WriteUnlock => Action::WriteUnlock,
        Op::NotifyOne => Action::NotifyOne { nth: alternative },
        Op::NotifyAll => Action::NotifyAll,
        Op::Acquire => Action::Acquire,
        Op::TryAcquire | Op::TimedAcquire => Action::TryAcquire,
        Op::Release => Action::Release,
        Op::Arrive => Action::Arrive,
        Op::Leave => Action::Leave,
        Op::EnterOnce => Action::Lock,
        Op::LeaveOnce => Action::Unlock,
        Op::FutexWakeOne => Action::NotifyOne { nth: alternative },
        Op::FutexWakeAll => Action::NotifyAll,
        _ => fault("the operation is not one action on one object"),
    }
}

impl Runtime {
    /// The choice after the prefix: see the module documentation. A thread that is held back is
    /// chosen only if no other thread can continue; then all held-back threads take turns.
    fn continuation(&mut self) -> Option<Choice> {
        let running = self.running;
        let order = [running].into_iter().chain((0..MAX_THREADS).filter(move |&s| s != running));
        let mut held = 0;
        for slot in order {
            let (alternative, count) = self.alternatives(slot);
            if count > 0 && !self.is_held(slot) {
                return Some(Choice { thread: slot as u32, alternative });
            }
            held += u32::from(count > 0);
        }
        let mut turn = self.forced.checked_rem(held)?;
        for slot in 0..MAX_THREADS {
            let (alternative, count) = self.alternatives(slot);
            if count > 0 && turn == 0 {
                return Some(Choice { thread: slot as u32, alternative });
            }
            turn -= u32::from(count > 0);
        }
        None
    }

    /// Whether the next operation of a thread is one on an atomic variable.
    fn is_at_atomic(&self, slot: usize) -> bool {
        self.threads[slot].next.op.is_atomic()
    }

    /// Counts the turns of threads that are held back. Searches count in the same way.
    fn count_turns(&mut self, chosen: usize) {
        if self.is_held(chosen) {
            self.forced += 1;
        } else if chosen != self.running {
            self.forced = 0;
        }
    }

    /// Whether a thread is held back: it yields again at the same place, and no other thread has
    /// taken a step since that is not [idle](crate::spin), or it [spins](crate::spins).
    fn is_held(&self, slot: usize) -> bool {
        let thread = &self.threads[slot];
        thread.yields_again && thread.stepped_at == self.progress || spins::is_held(slot)
    }

    /// The first alternative that a thread has now, and the number of alternatives: 0 if the thread
    /// has to wait.
    fn alternatives(&mut self, slot: usize) -> (u32, u32) {
        let (first, count) = self.without_timeout(slot);
        if count == 0 && self.may_expire(slot) {
            // A timeout is alternative 1, except for a sleep, which has no other alternative.
            let sleeps = self.threads[slot].next.op == Op::Sleep;
            return (u32::from(!sleeps), 1);
        }
        (first, count)
    }

    /// Whether the deadline of a thread that has to wait may end its wait.
    fn may_expire(&mut self, slot: usize) -> bool {
        let Some(deadline) = self.waits_until(slot) else { return false };
        let own = self.threads[slot].next.time;
        let others = (0..MAX_THREADS).filter(|&other| other != slot);
        let times = others.filter_map(|other| self.acts_at(other));
        may_expire(deadline, own, times, block().max_delay.load(Relaxed))
    }

    /// The local time of a thread that can run, or the deadline of one that waits with a time
    /// limit.
    fn acts_at(&mut self, slot: usize) -> Option<u64> {
        if self.without_timeout(slot).1 == 0 {
            return self.waits_until(slot);
        }
        (!self.is_held(slot)).then_some(self.threads[slot].next.time)
    }

    /// The deadline that can end the wait of a thread.
    fn waits_until(&mut self, slot: usize) -> Option<u64> {
        let thread = self.threads.get(slot).filter(|t| t.stage == Stage::Waiting)?;
        let Next { op, object, deadline, .. } = thread.next;
        // A notified thread waits for the mutex without a time limit.
        let notified =
            op == Op::TimedWake && condvar(object).can(ThreadId::new(slot), Action::Wake);
        (deadline != NEVER && !notified).then_some(deadline)
    }

    /// Like [`alternatives`](Runtime::alternatives), but without timeouts.
    fn without_timeout(&mut self, slot: usize) -> (u32, u32) {
        let Some(thread) = self.threads.get(slot).filter(|t| t.stage == Stage::Waiting) else {
            return (0, 0);
        };
        let (Next { op, object, other, .. }, id) = (thread.next, ThreadId::new(slot));
        let one_if = |enabled: bool| (0, u32::from(enabled));
        match op {
            Op::Join => one_if(self.threads[object as usize].stage == Stage::Ended),
            Op::Wake | Op::TimedWake => {
                if other != 0 && !mutex(other).can(id, Action::Lock) {
                    return (0, 0);
                }
                one_if(condvar(object).can(id, Action::Wake))
            }
            Op::FutexWoken | Op::TimedFutexWoken => one_if(futex(object).can(id, Action::Wake)),
            Op::Sleep => (0, 0),
            Op::IoWait => one_if(thread.ready),
            Op::NotifyOne => (0, condvar(object).alternatives(id, Action::NotifyOne { nth: 0 })),
            Op::FutexWakeOne => (0, futex(object).alternatives(id, Action::NotifyOne { nth: 0 })),
            Op::Lock | Op::ReadLock | Op::WriteLock | Op::Acquire | Op::Leave | Op::EnterOnce => {
                one_if(objects().get(thread.objects[0]).can(id, action(op, 0)))
            }
            Op::TimedLock => one_if(mutex(object).can(id, Action::Lock)),
            Op::TimedReadLock => one_if(rwlock(object).can(id, Action::ReadLock)),
            Op::TimedWriteLock => one_if(rwlock(object).can(id, Action::WriteLock)),
            Op::TimedAcquire => one_if(semaphore(object).can(id, Action::Acquire)),
            _ => (0, 1),
        }
    }

    /// Performs the announced operation of a thread that was chosen. Returns its result.
    fn perform(&mut self, slot: usize, alternative: u32) -> i64 {
        self.progress += 1;
        let progress = self.progress;
        let thread = &mut self.threads[slot];
        thread.stage = Stage::Running;
        thread.stepped_at = progress;
        let Next { op, deadline, .. } = thread.next;
        let timed_out = deadline != NEVER && (alternative == 1 || op == Op::Sleep);
        if timed_out {
            self.floor = self.floor.max(deadline);
        }
        thread.time = thread.time.max(self.floor);
        let (object, objects) = (thread.next.object, thread.objects);
        thread.step = Some(Step::new(&thread.next, alternative, objects));
        check_memory(&thread.next);
        let reply = self.apply(slot, alternative, timed_out);
        if let Some(step) = &mut self.threads[slot].step {
            step.learn(reply);
        }
        crate::race::synchronise(slot, op, object, objects);
        reply
    }

    /// Applies the announced operation of a thread to the modelled objects and to virtual time.
    fn apply(&mut self, slot: usize, alternative: u32, timed_out: bool) -> i64 {
        let id = ThreadId::new(slot);
        let Next { op, object, other, .. } = self.threads[slot].next;
        match op {
            Op::Begin | Op::Created | Op::Yield | Op::Sleep | Op::Exit | Op::Count => 0,
            Op::FutexWait => self.touch(slot, ObjectKind::Atomic, other, Access::Read),
            Op::Io | Op::IoWait => {
                self.waits_for_descriptors -= u32::from(op == Op::IoWait);
                self.descriptor_operations += 1;
                let time = self.threads[slot].time.max(self.descriptor_time) + 1;
                (self.threads[slot].time, self.descriptor_time) = (time, time);
                0
            }
            Op::Finish => {
                self.threads[slot].stage = Stage::Ended;
                0
            }
            Op::Join => {
                self.threads[slot].time =
                    self.threads[slot].time.max(self.threads[object as usize].time);
                0
            }
            Op::Wait => {
                self.act(id, ObjectKind::Condvar, object, Action::Wait);
                if other == 0 {
                    return 0;
                }
                self.act(id, ObjectKind::Mutex, other, Action::Unlock)
            }
            Op::Wake | Op::TimedWake => {
                if timed_out {
                    condvar(object).cancel_wait(id);
                    return 0;
                }
                self.act(id, ObjectKind::Condvar, object, Action::Wake);
                if other == 0 {
                    return 0;
                }
                self.act(id, ObjectKind::Mutex, other, Action::Lock)
            }
            Op::FutexWoken | Op::TimedFutexWoken => {
                if timed_out {
                    futex(object).cancel_wait(id);
                    return 0;
                }
                self.act(id, ObjectKind::Futex, object, Action::Wake)
            }
            Op::AfterWrite | Op::Enter => 0,
            Op::EnterWait | Op::EnterWrite | Op::Relock => {
                // Its new value is not known until the next operation on the word.
                objects().get(self.threads[slot].objects[0]).change();
                self.touch(slot, ObjectKind::Atomic, object, Access::Write)
            }
            Op::Load => self.touch(slot, ObjectKind::Atomic, object, Access::Read),
            _ if op.may_write() => self.touch(slot, ObjectKind::Atomic, object, Access::Write),
            _ => self.apply_action(slot, action(op, alternative)),
        }
    }

    /// Performs an action on the object of a thread's announced operation.
    fn apply_action(&mut self, slot: usize, action: Action) -> i64 {
        let thread = &mut self.threads[slot];
        let object = objects().get(thread.objects[0]);
        let waiting = object.waiting();
        let overflows = action == Action::Release && object.count() >= MAX_COUNT.into();
        let reply = match overflows {
            true => OVERFLOW,
            // A misuse changes nothing. The controller performs the same action and reports it.
            false => object.act(ThreadId::new(slot), action).unwrap_or(0),
        };
        thread.time = object.advance_time(thread.time, object.access(action));
        match action {
            Action::NotifyOne { .. } => waiting.min(1),
            Action::NotifyAll => waiting,
            _ => reply,
        }
    }

    /// Performs an action on an object.
    pub fn act(&mut self, id: ThreadId, kind: ObjectKind, address: u64, action: Action) -> i64 {
        let time = self.threads[id.index()].time;
        let object = objects().at(kind, address, || 0);
        let reply = object.act(id, action).unwrap_or(0);
        let access = object.access(action);
        self.threads[id.index()].time = object.advance_time(time, access);
        reply
    }

    fn touch(&mut self, slot: usize, kind: ObjectKind, address: u64, access: Access) -> i64 {
        let object = objects().at(kind, address, || 0);
        self.threads[slot].time = object.advance_time(self.threads[slot].time, access);
        0
    }

    /// Whether a thread other than `slot` exists and has not ended.
    pub fn has_others(&self, slot: usize) -> bool {
        let lives = |thread: &Thread| !matches!(thread.stage, Stage::Vacant | Stage::Ended);
        self.threads.iter().enumerate().any(|(other, thread)| other != slot && lives(thread))
    }
}

/// Performs the first operation of a thread that was just chosen.
pub fn begin(slot: usize) {
    stop_before_step();
    runtime().perform(slot, 0);
}

/// Whether the calling thread is a thread of the program in an execution, so that its operations
/// are scheduling points.
pub fn active() -> bool {
    me() != NO_THREAD
}
