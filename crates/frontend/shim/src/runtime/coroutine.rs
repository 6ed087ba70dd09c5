//! Threads as coroutines, on stacks that are reused in every execution.
//!
//! A slot keeps its stack for all executions of a runtime. After that the OS thread keeps some
//! stacks for the next check: mapping memory and touching it for the first time costs more than a
//! small search.

use std::cell::RefCell;
use std::ptr::null;

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use preempt_system::fingerprint::Mixer;
use preempt_system::{ThreadId, ThreadSet};

use super::current::{self, Entered};
use super::{Runtime, Stage, look, overflow, with};

/// The code of a thread. It catches the program's panics itself.
pub(crate) type Job = Box<dyn FnOnce()>;

type Thread = Coroutine<(), (), (), DefaultStack>;

/// The bytes at the base of a stack that belong to the coroutine: where it returns to, and the
/// stack pointer of the code that resumed it last. The latter is not a part of the thread's state.
/// It depends on the function that resumed the thread: one that takes a step, or one that repeats
/// the steps of a path. If it counted, the number of steps after which an execution is seen to
/// repeat itself would depend on what was executed before, and a livelock might not be found again
/// when its schedule is replayed.
const LINK: usize = 2 * size_of::<u64>();

/// The maximum number of bytes of a stack that are cleaned.
const CLEANED: usize = 64 << 10;

/// The maximum number of bytes of a stack that are cleaned after an execution that could not end.
/// What is left of its frames must not look like references to its memory, which would keep that
/// memory allocated (`arena/reclaim.rs`): frames of later executions contain parts that are never
/// written, and copies of these get into *their* memory.
const FORGOTTEN: usize = 16 << 10;

/// The most stacks that an OS thread keeps.
const KEPT: usize = 16;

thread_local! {
    /// Unused stacks, with the sizes that were requested.
    static STACKS: RefCell<Vec<(usize, DefaultStack)>> = const { RefCell::new(Vec::new()) };
}

/// A stack of this size: a kept one, or a new one.
fn stack(size: usize) -> DefaultStack {
    let kept = STACKS.with_borrow_mut(|stacks| {
        let at = stacks.iter().rposition(|&(other, _)| other == size)?;
        Some(stacks.swap_remove(at).1)
    });
    kept.unwrap_or_else(|| DefaultStack::new(size).expect("there is memory for a stack"))
}

/// The coroutine of a slot.
struct Slot {
    /// The coroutine, in a box of its own: while the thread runs it may borrow the runtime, which
    /// must not include the running coroutine.
    seat: *mut Option<Thread>,
    stack: Option<DefaultStack>,
    yielder: *const Yielder<(), ()>,
    /// The stack's highest address, and its size.
    base: usize,
    size: usize,
    /// The stack pointer when it was suspended last at a scheduling point; 0 if it is not known.
    low: usize,
    /// Its registers when it was suspended last, if that was watched.
    saved: Option<Saved>,
}

/// All coroutines of an execution.
pub(crate) struct Coroutines {
    slots: Vec<Slot>,
    /// The slots whose threads have begun and not ended, and do not run.
    suspended: ThreadSet,
    stack_size: usize,
    /// Whether stacks are zeroed before a thread starts. Necessary when states are compared, since
    /// frames have parts that are never written.
    pub(crate) clean: bool,
}

impl Coroutines {
    pub(crate) fn new(slots: usize, stack_size: usize) -> Coroutines {
        let slot = || {
            let seat = Box::into_raw(Box::default());
            Slot { seat, stack: None, yielder: null(), base: 0, size: 0, low: 0, saved: None }
        };
        let slots = (0..slots).map(|_| slot()).collect();
        Coroutines { slots, suspended: ThreadSet::EMPTY, stack_size, clean: false }
    }

    /// The slot whose stack contains an address, and the depth of the address.
    pub(crate) fn depth_of(&self, address: usize) -> Option<(usize, usize)> {
        let mut slots = self.slots.iter().enumerate();
        slots.find_map(|(at, slot)| {
            let depth = slot.base.wrapping_sub(address);
            // The base itself is the first address above the stack.
            (depth > 0 && depth <= slot.size).then_some((at, depth))
        })
    }

    /// Drops the saved registers of all threads: a new execution begins, or states are compared
    /// from now on.
    pub(crate) fn forget_registers(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.saved = None);
    }

    /// Adds the registers and the stack of a suspended thread to `mixer`. Returns whether they are
    /// known exactly.
    pub(crate) fn absorb(&self, slot: usize, mixer: &mut Mixer) -> bool {
        let of = &self.slots[slot];
        let is_suspended = self.is_suspended(slot);
        let Some(saved) = of.saved.filter(|saved| is_suspended && saved.registers[0] != 0) else {
            return false;
        };
        saved.registers.iter().for_each(|&register| mixer.absorb(register as u64));
        of.absorb_stack(saved.registers[0], mixer);
        true
    }

    /// Adds the stack of a thread that does not run between two compared states. Other threads may
    /// borrow from it, for example those of a scope. Its registers need not be known, since they do
    /// not change. Returns whether its extent is known.
    pub(crate) fn absorb_idle(&self, slot: usize, mixer: &mut Mixer) -> bool {
        let of = &self.slots[slot];
        let is_suspended = self.is_suspended(slot);
        if is_suspended && of.low != 0 {
            of.absorb_stack(of.low, mixer);
        }
        !is_suspended || of.low != 0
    }

    /// Records the stack pointer of a thread that is about to be suspended at a scheduling point.
    /// Returns its yielder.
    #[inline(always)]
    pub(crate) fn leave(&mut self, slot: usize) -> *const Yielder<(), ()> {
        let of = &mut self.slots[slot];
        of.low = stack_pointer();
        of.yielder
    }
}

impl Slot {
    /// Zeroes up to `most` bytes of the stack.
    ///
    /// # Safety
    ///
    /// There is a stack, and no thread uses it.
    unsafe fn clean(&self, most: usize) {
        // Less than the usable size of the stack, and more than most threads use.
        let size = (self.size / 2).min(most);
        let start = std::ptr::with_exposed_provenance_mut::<u8>(self.base - size);
        // SAFETY: the caller upholds the contract.
        unsafe { start.write_bytes(0, size) };
    }

    /// Adds the stack above `top` to `mixer`, without the words of the coroutine itself.
    fn absorb_stack(&self, top: usize, mixer: &mut Mixer) {
        for address in (top..self.base - LINK).step_by(size_of::<u64>()) {
            // SAFETY: the address is in the used part of the stack of a suspended coroutine.
            // Volatile, since the memory may be uninitialised.
            mixer.absorb(unsafe {
                std::ptr::with_exposed_provenance::<u64>(address).read_volatile()
            });
        }
    }
}

impl Coroutines {
    /// Whether a thread is suspended.
    #[inline]
    pub(crate) fn is_suspended(&self, slot: usize) -> bool {
        self.suspended.contains(ThreadId::new(slot))
    }

    /// Whether any thread is suspended.
    #[inline]
    pub(crate) fn has_suspended(&self) -> bool {
        !self.suspended.is_empty()
    }

    /// The yielder of the running thread.
    #[inline]
    pub(crate) fn yielder(&self, slot: usize) -> *const Yielder<(), ()> {
        self.slots[slot].yielder
    }
}

impl Drop for Coroutines {
    fn drop(&mut self) {
        let size = self.stack_size;
        let stacks = self.slots.iter_mut().filter_map(|slot| slot.stack.take());
        // An OS thread that is ending keeps no stacks.
        let _ = STACKS.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            let room = KEPT.saturating_sub(kept.len());
            kept.extend(stacks.take(room).map(|stack| (size, stack)));
        });
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and no thread runs when its slot is dropped.
        drop(unsafe { Box::from_raw(self.seat) });
        if self.size > 0 {
            overflow::leave(self.base - self.size);
        }
    }
}

/// Creates a coroutine for a job, without running it. If the coroutine is discarded, so is the job,
/// which must then not own memory that is not the program's.
pub(crate) fn create(runtime: &mut Runtime, slot: usize, job: impl FnOnce() + 'static) {
    let size = runtime.coroutines.stack_size;
    let of = &mut runtime.coroutines.slots[slot];
    let stack = of.stack.take().unwrap_or_else(|| {
        let stack = stack(size);
        (of.base, of.size) = (stack.base().get(), stack.base().get() - stack.limit().get());
        overflow::enter(stack.limit().get());
        stack
    });
    if runtime.coroutines.clean {
        // SAFETY: the stack is unused.
        unsafe { runtime.coroutines.slots[slot].clean(CLEANED) };
    }
    let thread = Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
        with(|runtime| runtime.coroutines.slots[slot].yielder = yielder);
        job();
    });
    let of = &mut runtime.coroutines.slots[slot];
    // SAFETY: the thread has not begun, so there is no reference to its seat.
    unsafe { *of.seat = Some(thread) };
    runtime.coroutines.suspended.insert(ThreadId::new(slot));
}

/// Lets a thread run until it suspends itself or ends. Returns whether it has ended.
///
/// `runtime` points to a runtime to which there is no reference.
#[inline(always)]
pub(crate) fn resume(runtime: *mut Runtime, slot: usize) -> bool {
    let seat = enter(runtime, slot).expect("a thread that is resumed is suspended");
    let result = {
        let _entered = Entered::new(runtime);
        // SAFETY: the thread was suspended, so there is no reference to its seat, and only this
        // function has one while it runs.
        unsafe { (*seat).as_mut() }.expect(SEATED).resume(())
    };
    // SAFETY: the caller has no reference to the runtime, and those of the coroutine have ended: it
    // is suspended.
    let coroutines = unsafe { &mut (&mut *runtime).coroutines };
    let ended = matches!(result, CoroutineResult::Return(()));
    if ended {
        // SAFETY: as above; it does not run any more.
        coroutines.slots[slot].stack = unsafe { (*seat).take() }.map(Thread::into_stack);
    } else {
        coroutines.suspended.insert(ThreadId::new(slot));
    }
    ended
}

/// The invariant of a suspended thread.
const SEATED: &str = "a thread that is suspended has a coroutine";

/// Makes a thread the running one. Returns its coroutine, if it is suspended.
#[inline]
fn enter(runtime: *mut Runtime, slot: usize) -> Option<*mut Option<Thread>> {
    // SAFETY: the callers guarantee that there is no reference to the runtime.
    let runtime = unsafe { &mut *runtime };
    runtime.current = slot;
    let Coroutines { slots, suspended, .. } = &mut runtime.coroutines;
    let thread = ThreadId::new(slot);
    let is_suspended = suspended.contains(thread);
    suspended.remove(thread);
    is_suspended.then(|| slots[slot].seat)
}

/// Releases the stacks of all suspended threads without running their remaining code: nothing on
/// them is dropped. Neither are threads that have not begun, thread-local values, and statics.
///
/// A thread that is suspended in a destructor while it unwinds is the exception. All coroutines
/// share the panic count of their OS thread, which would never return to zero; so this thread
/// unwinds to its end, and mirrors have no effect meanwhile.
///
/// `runtime` points to a runtime to which there is no reference.
pub(crate) fn discard(runtime: *mut Runtime) {
    // SAFETY: the caller has no reference to the runtime; this one ends here.
    let slots = unsafe {
        let runtime = &mut *runtime;
        runtime.stage = Stage::Discarded;
        runtime.forget_values();
        if runtime.coroutines.has_suspended() { runtime.coroutines.slots.len() } else { 0 }
    };
    for slot in (0..slots).rev() {
        let Some(seat) = enter(runtime, slot) else { continue };
        // SAFETY: the thread is suspended, so there is no reference to its seat.
        let mut thread = unsafe { (*seat).take() }.expect(SEATED);
        // SAFETY: as above.
        let (panicking, stuck) = unsafe {
            let runtime = &*runtime;
            (
                runtime.verdict.panicking.contains(ThreadId::new(slot)),
                runtime.stuck.0.contains(ThreadId::new(slot)),
            )
        };
        if stuck {
            // The code that it blocks in may still hold pointers into its stack.
            std::mem::forget(thread);
            continue;
        }
        if panicking && std::thread::panicking() {
            let _entered = Entered::new(runtime);
            while let CoroutineResult::Yield(()) = thread.resume(()) {}
        } else {
            // SAFETY: destructors on this stack do not run, like those of a thread that waits
            // forever. Nothing that continues to run borrows from the stack: no code of the program
            // continues, and the runtime keeps no reference into a stack. Scoped threads borrow
            // from their parents' stacks, but all of them are discarded here before any stack is
            // used again.
            unsafe { thread.force_reset() };
        }
        // SAFETY: as above.
        let of = unsafe { &mut (&mut *runtime).coroutines.slots[slot] };
        of.stack = Some(thread.into_stack());
    }
    if slots > 0 {
        // SAFETY: the caller has no reference to the runtime, and no thread is left.
        let coroutines = unsafe { &(&*runtime).coroutines };
        for of in coroutines.slots.iter().filter(|of| of.stack.is_some()) {
            // SAFETY: the stack is unused.
            unsafe { of.clean(FORGOTTEN) };
        }
    }
}

/// Whether memory that code of the execution allocates comes from its arena. It does not if the
/// process has another global allocator.
///
/// `runtime` points to a runtime to which there is no reference.
pub(crate) fn sees_allocations(runtime: *mut Runtime) -> bool {
    let _entered = Entered::new(runtime);
    let block = std::hint::black_box(Box::new(0_u64));
    let address = std::ptr::from_ref(&*block).addr();
    look(|runtime| runtime.arena.find(address).is_some())
}

/// Drops the values that outlive the threads of an execution, which have all ended.
///
/// `runtime` points to a runtime to which there is no reference.
pub(crate) fn end_statics(runtime: *mut Runtime) {
    let set = |stage| {
        // SAFETY: the caller has no reference to the runtime; this one ends here.
        let runtime = unsafe { &mut *runtime };
        runtime.stage = stage;
        std::mem::take(&mut runtime.statics)
    };
    let statics = set(Stage::Ending);
    {
        let _entered = Entered::new(runtime);
        drop(statics);
    }
    set(Stage::Running);
}

/// The stack pointer of the caller. Must be inlined.
#[cfg(all(target_arch = "x86_64", not(windows)))]
#[inline(always)]
fn stack_pointer() -> usize {
    let pointer: usize;
    // SAFETY: it only reads a register.
    unsafe {
        std::arch::asm!("mov {}, rsp", out(reg) pointer, options(nomem, nostack, preserves_flags))
    };
    pointer
}

/// Not supported on other machines.
#[cfg(not(all(target_arch = "x86_64", not(windows))))]
#[inline(always)]
fn stack_pointer() -> usize {
    0
}

/// The registers of a suspended thread.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Saved {
    /// The stack pointer, and the registers that a call preserves.
    registers: [usize; 12],
}

impl Saved {
    /// Reads the registers of the caller. All other values that its callers need are on the stack
    /// above the stack pointer: a call preserves these registers and nothing else. (On Windows it
    /// preserves more.)
    #[cfg(all(target_arch = "x86_64", not(windows)))]
    #[inline(always)]
    fn capture() -> Saved {
        let mut registers = [0; 12];
        // SAFETY: it only writes to the array.
        unsafe {
            std::arch::asm!(
                "mov [{0}], rsp",
                "mov [{0} + 8], rbp",
                "mov [{0} + 16], rbx",
                "mov [{0} + 24], r12",
                "mov [{0} + 32], r13",
                "mov [{0} + 40], r14",
                "mov [{0} + 48], r15",
                in(reg) registers.as_mut_ptr(),
                options(nostack, preserves_flags)
            );
        }
        Saved { registers }
    }

    /// Not supported on other machines.
    #[cfg(not(all(target_arch = "x86_64", not(windows))))]
    fn capture() -> Saved {
        Saved::default()
    }
}

/// Suspends the running thread where the state of the execution is to be compared with an earlier
/// one. The work of the runtime happens in frames of its own, so it leaves no data in the frames of
/// the program.
#[cold]
#[inline(never)]
pub(super) fn suspend_watched() {
    let yielder = note_registers(Saved::capture());
    suspend_by(yielder);
}

#[inline(never)]
fn note_registers(saved: Saved) -> *const Yielder<(), ()> {
    with(|runtime| {
        let of = &mut runtime.coroutines.slots[runtime.current];
        of.low = saved.registers[0];
        of.saved = Some(saved);
        of.yielder
    })
}

/// Suspends the running thread.
pub(crate) fn suspend() {
    suspend_by(with(|runtime| runtime.coroutines.yielder(runtime.current)));
}

/// Like [`suspend`], given the yielder.
#[inline]
pub(crate) fn suspend_by(yielder: *const Yielder<(), ()>) {
    debug_assert!(current::is_set(), "only a thread of an execution is suspended");
    // SAFETY: the yielder lives on the running coroutine's own stack, below the frame of the
    // caller.
    unsafe { (*yielder).suspend(()) };
}
