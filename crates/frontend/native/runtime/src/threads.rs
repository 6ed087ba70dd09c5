//! Threads: their slots, the baton, and their ends.

use core::arch::asm;
use core::ffi::{c_int, c_uint};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, AtomicUsize};

use crate::block::{MAX_THREADS, Op, Slot};
use crate::op::NO_OBJECT;
use crate::real::real;
use crate::schedule::{Next, announce, choose, full, log_start, point, runtime};
use crate::spins::Step;
use crate::sys::{self, P};

/// No thread of the program: the fork server, and threads that are inside of this library.
pub const NOBODY: usize = usize::MAX;

/// The thread pointer of the thread that holds the baton, and its slot; 0 if no thread of the
/// program runs.
///
/// Only the thread with the baton runs code of the program, so one variable takes the place of a
/// thread-local one: a shared library pays a function call for each access to those. Any other
/// thread that asks (one that libc has created for itself) has another thread pointer.
static HOLDER: AtomicUsize = AtomicUsize::new(0);
static HOLDER_SLOT: AtomicUsize = AtomicUsize::new(NOBODY);

/// The address of the calling thread's control block, which is different for every thread.
#[inline(always)]
fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: the ABI of x86-64 puts the address of the block at its beginning.
    unsafe {
        asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    pointer
}

/// The slot of the calling thread, or [`NOBODY`].
#[inline(always)]
pub fn me() -> usize {
    match HOLDER.load(Relaxed) == thread_pointer() {
        true => HOLDER_SLOT.load(Relaxed),
        false => NOBODY,
    }
}

/// Makes the calling thread, which holds the baton, the one in `slot`.
pub fn become_thread(slot: usize) {
    HOLDER_SLOT.store(slot, Relaxed);
    HOLDER.store(if slot == NOBODY { 0 } else { thread_pointer() }, Relaxed);
}

/// The life cycle of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// There is no thread in the slot.
    Vacant,
    /// It has announced an operation and waits to be chosen.
    Waiting,
    /// It runs.
    Running,
    /// It has ended.
    Ended,
}

/// A thread of the program.
pub struct Thread {
    pub stage: Stage,
    pub next: Next,
    /// The indices of the objects of its next operation, or [`NO_OBJECT`].
    pub objects: [u32; 2],
    /// The operation that it has performed, while it runs.
    pub step: Option<Step>,
    /// The alternative by which it was chosen.
    pub alternative: u32,
    /// Whether its next operation is a yield, at the same place as the one before.
    pub yields_again: bool,
    /// The number of steps after its last one.
    pub stepped_at: usize,
    /// Its virtual time in nanoseconds: see [`crate::hooks::time`].
    pub time: u64,
    /// Whether the descriptors that it waits for are ready: see [`crate::descriptors`].
    pub ready: bool,
    /// One more than the number of operations on descriptors when that was asked; 0 if never.
    pub asked: u64,
    /// The words of the condition variable on which precompiled code is about to wait, and of the
    /// mutex that it locks afterwards; 0 if there is none.
    pub waits_on: (u64, u64),
    /// 1 if the baton was handed to it. The only field that other threads' owners may touch.
    baton: AtomicU32,
    pthread: u64,
    /// The number of threads that it has created.
    created: u32,
    start: Start,
    result: P,
    /// The state of its random numbers.
    pub random: u64,
    /// How many rounds of destructors it has gone through.
    rounds: usize,
}

/// The routine of a thread.
#[derive(Clone, Copy)]
pub enum Start {
    /// The main thread has none.
    Main,
    /// `pthread_create`.
    Posix(extern "C-unwind" fn(P) -> P, P),
    /// `thrd_create`.
    C11(extern "C-unwind" fn(P) -> c_int, P),
}

impl Thread {
    #[expect(clippy::declare_interior_mutable_const, reason = "it is only copied")]
    pub const VACANT: Thread = Thread {
        stage: Stage::Vacant,
        next: Next::NONE,
        objects: [NO_OBJECT; 2],
        step: None,
        alternative: 0,
        yields_again: false,
        stepped_at: 0,
        time: 0,
        ready: false,
        asked: 0,
        waits_on: (0, 0),
        baton: AtomicU32::new(0),
        pthread: 0,
        created: 0,
        start: Start::Main,
        result: core::ptr::null_mut(),
        random: 0,
        rounds: 0,
    };
}

/// Gives the baton to the thread in `slot`. The caller must park or end.
pub fn hand_over(slot: usize) {
    let baton = &runtime().threads[slot].baton;
    baton.store(1, Release);
    sys::wake(baton);
}

/// Waits for the baton. The calling thread is the one in `slot`, also if it just begins.
pub fn park(slot: usize) {
    let baton = &runtime().threads[slot].baton;
    while baton.load(Acquire) == 0 {
        sys::wait(baton, 0);
    }
    baton.store(0, Relaxed);
    become_thread(slot);
}

unsafe extern "C" {
    fn pthread_key_create(key: *mut c_uint, end: extern "C-unwind" fn(P)) -> c_int;
    fn pthread_setspecific(key: c_uint, value: P) -> c_int;
    fn pthread_self() -> u64;
    fn pthread_attr_init(attributes: P) -> c_int;
    fn pthread_attr_destroy(attributes: P) -> c_int;
    fn pthread_attr_getstack(attributes: P, address: *mut P, size: *mut usize) -> c_int;
    fn pthread_attr_setstack(attributes: P, address: P, size: usize) -> c_int;
    fn pthread_attr_getguardsize(attributes: P, size: *mut usize) -> c_int;
    fn pthread_attr_setguardsize(attributes: P, size: usize) -> c_int;
    fn exit(code: c_int) -> !;
}

static KEY: AtomicU32 = AtomicU32::new(0);

/// Prepares for the ends of threads. Called once, before the program begins.
pub fn prepare() {
    let mut key = 0;
    // SAFETY: the key is valid for writes.
    unsafe { pthread_key_create(&mut key, end_of_round) };
    KEY.store(key, Relaxed);
}

/// Prepares the calling thread, the only one, for being the main thread of the program. The fork
/// server does this once, and its children inherit it.
pub fn prepare_main() {
    let main = &mut runtime().threads[0];
    main.stage = Stage::Running;
    // SAFETY: no arguments, or a key that was created.
    unsafe {
        main.pthread = pthread_self();
        pthread_setspecific(KEY.load(Relaxed), 1 as P);
    }
    keep_stacks();
    find_main_stack();
}

/// The lowest address, the size and the guard of the main thread's stack; zeros if not known.
static MAIN_STACK: [AtomicUsize; 3] =
    [AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0)];

/// Finds the stack of the main thread for [`main_attributes`].
fn find_main_stack() {
    // `pthread_attr_t` has 56 bytes.
    let mut attributes = [0_u64; 8];
    let at = (&raw mut attributes).cast();
    let main = runtime().threads[0].pthread;
    if real!(pthread_getattr_np: extern "C" fn(u64, P) -> c_int)(main, at) != 0 {
        return;
    }
    let (mut address, mut size, mut guard) = (core::ptr::null_mut(), 0, 0);
    // SAFETY: the attributes are initialised, and the results are valid for writes.
    unsafe {
        pthread_attr_getstack(at, &mut address, &mut size);
        pthread_attr_getguardsize(at, &mut guard);
        pthread_attr_destroy(at);
    }
    let found = [address as usize, size, guard];
    MAIN_STACK.iter().zip(found).for_each(|(to, from)| to.store(from, Relaxed));
}

/// Writes the attributes of the main thread, as far as they concern its stack. libc would read and
/// parse `/proc/self/maps` for that, and the standard library of Rust asks for it before `main`.
/// Returns whether it has written them.
pub fn main_attributes(thread: u64, attributes: P) -> bool {
    let [address, size, guard] = [0, 1, 2].map(|at| MAIN_STACK[at].load(Relaxed));
    if size == 0 || thread != runtime().threads[0].pthread {
        return false;
    }
    // SAFETY: the program passes attributes that are valid for writes.
    unsafe {
        pthread_attr_init(attributes) == 0
            && pthread_attr_setstack(attributes, address as P, size) == 0
            && pthread_attr_setguardsize(attributes, guard) == 0
    }
}

/// Makes the calling thread, the only one, the main thread of the program.
pub fn begin_main() {
    become_thread(0);
}

/// Lets libc keep the stacks of a few threads, for the first threads of the program: it keeps those
/// of threads that have ended. A child then neither maps them nor prepares libc for its first
/// thread. Their addresses are the same in every execution, as those of new stacks are.
fn keep_stacks() {
    extern "C-unwind" fn end_at_once(_: P) -> P {
        core::ptr::null_mut()
    }
    const FEW: usize = 3;
    type Create = extern "C" fn(*mut u64, P, extern "C-unwind" fn(P) -> P, P) -> c_int;
    let mut threads = [0; FEW];
    // All at once: a thread takes the stack of one that has ended.
    let mut created = 0;
    for thread in &mut threads {
        if real!(pthread_create: Create)(thread, core::ptr::null_mut(), end_at_once, 0 as P) != 0 {
            break;
        }
        created += 1;
    }
    for thread in &threads[..created] {
        real!(pthread_join: extern "C" fn(u64, P) -> c_int)(*thread, core::ptr::null_mut());
    }
}

/// The slot for the next thread that the thread in `creator` creates: the one that it had in
/// earlier executions, or a new one.
fn slot_for(creator: usize) -> usize {
    let runtime = runtime();
    let nth = runtime.threads[creator].created;
    runtime.threads[creator].created += 1;
    let wanted = Slot { creator: creator as u32, nth };
    let block = crate::schedule::block();
    let known = block.slots_len.load(Relaxed) as usize;
    if let Some(at) = block.slots[..known].iter().position(|&slot| slot == wanted) {
        return at + 1;
    }
    if known + 1 >= MAX_THREADS {
        full("the program creates more than 63 threads");
    }
    // SAFETY: the index is below the length, and the controller reads after the execution.
    unsafe { (*runtime.block).slots[known] = wanted };
    block.slots_len.store(known as u32 + 1, Relaxed);
    known + 1
}

/// Creates a thread. It announces that it begins, and waits.
pub fn create(id: *mut u64, attributes: P, start: Start, pc: usize) -> c_int {
    let me = me();
    let slot = slot_for(me);
    let entry = match start {
        Start::Main => 0,
        Start::Posix(start, _) => start as usize,
        Start::C11(start, _) => start as usize,
    };
    let time = runtime().threads[me].time;
    runtime().threads[slot] = Thread { start, time, ..Thread::VACANT };
    let real =
        real!(pthread_create: extern "C" fn(*mut u64, P, extern "C-unwind" fn(P) -> P, P) -> c_int);
    let mut handle = 0;
    let error = real(&mut handle, attributes, trampoline, slot as P);
    if error != 0 {
        runtime().threads[me].created -= 1;
        return error;
    }
    runtime().concurrent = true;
    runtime().threads[slot].pthread = handle;
    // SAFETY: the program passes a valid pointer.
    unsafe { *id = handle };
    crate::race::create(me, slot);
    log_start(slot, entry as u64);
    announce(slot, Next::on(Op::Begin, slot as u64, entry));
    let is_first = me == 0 && runtime().threads[0].created == 1;
    if is_first && crate::schedule::block().join_first.load(Relaxed) != 0 {
        point(Next::on(Op::Join, slot as u64, pc));
        return 0;
    }
    // The new thread may run before its creator continues. A point only before the creator's next
    // operation would not show that: code between the two could not follow the new thread's.
    point(Next::on(Op::Created, slot as u64, pc));
    0
}

extern "C-unwind" fn trampoline(slot: P) -> P {
    let slot = slot as usize;
    // SAFETY: the key was created.
    unsafe { pthread_setspecific(KEY.load(Relaxed), 1 as P) };
    park(slot);
    crate::schedule::begin(slot);
    let start = runtime().threads[slot].start;
    let result = match start {
        Start::Posix(start, argument) => start(argument),
        Start::C11(start, argument) => start(argument) as isize as P,
        Start::Main => core::ptr::null_mut(),
    };
    set_result(result);
    result
}

/// Records what the calling thread returns to the one that joins it.
pub fn set_result(result: P) {
    runtime().threads[me()].result = result;
}

/// The destructor of this library's thread-specific value. Destructors of the program may run after
/// it in the same round, and set values again, so it sets its own value again and acts in the last
/// of the rounds that POSIX guarantees.
extern "C-unwind" fn end_of_round(_: P) {
    const ROUNDS: usize = 4;
    let slot = me();
    if slot == NOBODY {
        return;
    }
    let thread = &mut runtime().threads[slot];
    thread.rounds += 1;
    if thread.rounds < ROUNDS {
        // SAFETY: the key was created.
        unsafe { pthread_setspecific(KEY.load(Relaxed), 1 as P) };
        return;
    }
    finish(slot)
}

/// Ends the calling thread: it is parked until the process ends. The last thread ends the process.
fn finish(slot: usize) -> ! {
    point(Next::on(Op::Finish, slot as u64, 0));
    if !runtime().has_others(slot) {
        // SAFETY: handlers of the program run as after the end of `main`.
        unsafe { exit(0) };
    }
    let choice = choose();
    let chosen = choice.thread as usize;
    runtime().threads[chosen].alternative = choice.alternative;
    hand_over(chosen);
    loop {
        park(slot);
    }
}

/// The slot of a thread by its handle.
pub fn slot_of(handle: u64) -> Option<usize> {
    let threads = runtime().threads.iter();
    threads
        .enumerate()
        .find(|(_, thread)| thread.stage != Stage::Vacant && thread.pthread == handle)
        .map(|(slot, _)| slot)
}

/// Waits for the end of a thread. Returns its result.
pub fn join(slot: usize, pc: usize) -> P {
    point(Next::on(Op::Join, slot as u64, pc));
    runtime().threads[slot].result
}
