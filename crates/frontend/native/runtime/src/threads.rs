//! Threads: their creation, slots and ends, and the baton.

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

/// The slot of the fork server and of threads that run code of this library: they are not threads
/// of the program.
pub const NO_THREAD: usize = usize::MAX;

/// The thread pointer of the thread that holds the baton; 0 if no thread of the program runs.
///
/// Only the thread with the baton runs code of the program, so one variable replaces a thread-local
/// one: in a shared library, each access to a thread-local variable is a function call. A thread
/// that libc has created for itself has another thread pointer.
static HOLDER: AtomicUsize = AtomicUsize::new(0);

/// The slot of the thread that holds the baton.
static HOLDER_SLOT: AtomicUsize = AtomicUsize::new(NO_THREAD);

/// The address of the calling thread's control block, which identifies the thread.
#[inline(always)]
fn thread_pointer() -> usize {
    let pointer;
    // SAFETY: the ABI of x86-64 puts the address of the block at its beginning.
    unsafe {
        asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    pointer
}

/// The slot of the calling thread, or [`NO_THREAD`].
#[inline(always)]
pub fn me() -> usize {
    match HOLDER.load(Relaxed) == thread_pointer() {
        true => HOLDER_SLOT.load(Relaxed),
        false => NO_THREAD,
    }
}

/// Makes the calling thread, which holds the baton, the one in `slot`.
pub fn become_thread(slot: usize) {
    HOLDER_SLOT.store(slot, Relaxed);
    HOLDER.store(if slot == NO_THREAD { 0 } else { thread_pointer() }, Relaxed);
}

/// The life cycle of a thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// There is no thread in the slot.
    Vacant,
    /// The thread has announced an operation and waits to be chosen.
    Waiting,
    Running,
    Ended,
}

/// A thread of the program.
pub struct Thread {
    pub stage: Stage,
    pub next: Next,
    /// The indices of the objects of its next operation, or [`NO_OBJECT`].
    pub objects: [u32; 2],
    /// While the thread runs, the operation that it has performed last.
    pub step: Option<Step>,
    /// The alternative with which it was chosen.
    pub alternative: u32,
    /// Whether its next operation and the one before are yields at the same place.
    pub yields_again: bool,
    /// The number of steps of all threads after its last step, without [idle](crate::spin) ones.
    pub stepped_at: usize,
    /// Its virtual time in nanoseconds: see [`crate::hooks::time`].
    pub time: u64,
    /// Whether the descriptors for which it waits are ready: see [`crate::descriptors`].
    pub ready: bool,
    /// One more than the number of operations on descriptors when the kernel was last asked for
    /// `ready`; 0 if it was not asked.
    pub asked: u64,
    /// The addresses of the condition variable on which precompiled code is about to wait, and of
    /// the mutex that it locks afterwards; 0 if there is none.
    pub waits_on: (u64, u64),
    /// 1 if the baton was handed to the thread. The only field that a thread without the baton
    /// accesses.
    baton: AtomicU32,
    pthread: u64,
    /// The number of threads that it has created.
    created: u32,
    start: Start,
    result: P,
    /// The state of its random number generator.
    pub random: u64,
    /// The number of rounds of destructors of thread-specific values so far.
    rounds: usize,
}

/// The start routine of a thread, and its argument.
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

/// Hands the baton to the thread in `slot`. The caller must park.
pub fn hand_over(slot: usize) {
    let baton = &runtime().threads[slot].baton;
    baton.store(1, Release);
    sys::wake(baton);
}

/// Waits for the baton. `slot` is that of the calling thread.
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

/// Creates the key whose destructor is called when a thread ends. Called once, before the program
/// begins.
pub fn prepare() {
    let mut key = 0;
    // SAFETY: the key is valid for writes.
    unsafe { pthread_key_create(&mut key, end_of_round) };
    KEY.store(key, Relaxed);
}

/// Prepares the calling thread, the only one, to be the main thread of the program. The fork server
/// does this once, and its children inherit it.
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

/// The lowest address, the size and the guard size of the main thread's stack; 0 if not known.
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

/// Writes the stack attributes of the main thread. libc would read and parse `/proc/self/maps` for
/// that, and Rust's standard library asks for them before `main`. Returns whether they were
/// written.
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

/// Fills libc's cache of stacks for the first threads of the program, by creating threads that end
/// at once. A child then neither maps these stacks nor prepares libc for its first thread. Their
/// addresses are the same in every execution, as those of new stacks are.
fn keep_stacks() {
    extern "C-unwind" fn end_at_once(_: P) -> P {
        core::ptr::null_mut()
    }
    const STACKS: usize = 3;
    type Create = extern "C" fn(*mut u64, P, extern "C-unwind" fn(P) -> P, P) -> c_int;
    let mut threads = [0; STACKS];
    // All are created before the first is joined: a new thread would reuse its stack.
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
    let identity = Slot { creator: creator as u32, nth };
    let block = crate::schedule::block();
    let known = block.slots_len.load(Relaxed) as usize;
    if let Some(at) = block.slots[..known].iter().position(|&slot| slot == identity) {
        return at + 1;
    }
    if known + 1 >= MAX_THREADS {
        full("the program creates more than 63 threads");
    }
    // SAFETY: the index is below the length, and the controller reads after the execution.
    unsafe { (*runtime.block).slots[known] = identity };
    block.slots_len.store(known as u32 + 1, Relaxed);
    known + 1
}

/// Creates a thread, which announces its beginning and waits to be chosen.
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
    // The new thread may run before its creator continues. If the creator's next operation were the
    // next scheduling point, its code up to there would always precede the new thread's.
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

/// Sets the result that the calling thread returns to the one that joins it.
pub fn set_result(result: P) {
    runtime().threads[me()].result = result;
}

/// The destructor of this library's thread-specific value. Destructors of the program may run after
/// it in the same round, and set values again. So it sets its own value again, and ends the thread
/// in the last round that POSIX guarantees.
extern "C-unwind" fn end_of_round(_: P) {
    const ROUNDS: usize = 4;
    let slot = me();
    if slot == NO_THREAD {
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
