//! Threads as coroutines, on stacks that are used again in every execution.
//!
//! A slot keeps its stack for ever, so that what lies at a certain depth of a thread's stack lies there in every execution.

use std::ptr::null;

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::current::{self, Entered};
use super::{Runtime, overflow, with};

/// What a thread does. It catches the panics of the program itself.
pub(crate) type Job = Box<dyn FnOnce()>;

type Thread = Coroutine<(), (), (), DefaultStack>;

/// The coroutine of a slot, and what to know about it.
struct Slot {
    coroutine: Option<Thread>,
    stack: Option<DefaultStack>,
    yielder: *const Yielder<(), ()>,
    /// The stack's highest address, and its size.
    base: usize,
    size: usize,
}

/// All coroutines of an execution.
pub(crate) struct Coroutines(Vec<Slot>);

impl Coroutines {
    pub(crate) fn new(slots: usize) -> Coroutines {
        let slot = || Slot { coroutine: None, stack: None, yielder: null(), base: 0, size: 0 };
        Coroutines((0..slots).map(|_| slot()).collect())
    }

    /// On which slot's stack an address is, and how deep.
    pub(crate) fn depth_of(&self, address: usize) -> Option<(usize, usize)> {
        let mut slots = self.0.iter().enumerate();
        slots.find_map(|(at, slot)| {
            let depth = slot.base.wrapping_sub(address);
            (depth <= slot.size && slot.size > 0).then_some((at, depth))
        })
    }

    /// Whether a thread is suspended.
    pub(crate) fn is_suspended(&self, slot: usize) -> bool {
        self.0[slot].coroutine.is_some()
    }

    /// What the running thread suspends itself with.
    #[inline]
    pub(crate) fn yielder(&self, slot: usize) -> *const Yielder<(), ()> {
        self.0[slot].yielder
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if self.size > 0 {
            overflow::leave(self.base - self.size);
        }
    }
}

/// Makes a coroutine of a job. It does not run yet.
pub(crate) fn create(runtime: &mut Runtime, slot: usize, job: Job) {
    let size = runtime.options.stack_size;
    let of = &mut runtime.coroutines.0[slot];
    let stack = of.stack.take().unwrap_or_else(|| {
        let stack = DefaultStack::new(size).expect("there is memory for a stack");
        (of.base, of.size) = (stack.base().get(), stack.base().get() - stack.limit().get());
        overflow::enter(stack.limit().get());
        stack
    });
    of.coroutine = Some(Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
        with(|runtime| runtime.coroutines.0[slot].yielder = yielder);
        job();
    }));
}

/// Lets a thread run until it suspends itself or ends. Returns whether it has ended.
///
/// `runtime` points to a runtime that nobody has a reference to.
pub(crate) fn resume(runtime: *mut Runtime, slot: usize) -> bool {
    // Taken out while it runs: the runtime belongs to the thread then.
    let mut thread = enter(runtime, slot).expect("a thread that runs has a coroutine");
    let result = {
        let _entered = Entered::new(runtime);
        thread.resume(())
    };
    // SAFETY: the caller has no reference to the runtime, and those of the coroutine have ended: it is suspended.
    let of = unsafe { &mut (&mut *runtime).coroutines.0[slot] };
    match result {
        CoroutineResult::Yield(()) => {
            of.coroutine = Some(thread);
            false
        }
        CoroutineResult::Return(()) => {
            of.stack = Some(thread.into_stack());
            true
        }
    }
}

/// Makes a thread the running one, and takes its coroutine out if it has one.
fn enter(runtime: *mut Runtime, slot: usize) -> Option<Thread> {
    // SAFETY: the callers' caller has no reference to the runtime.
    let runtime = unsafe { &mut *runtime };
    runtime.current = slot;
    runtime.coroutines.0[slot].coroutine.take()
}

/// Ends all threads that are suspended: runs the destructors of what is on their stacks. Mirrors do nothing meanwhile.
///
/// `runtime` points to a runtime that nobody has a reference to.
pub(crate) fn unwind(runtime: *mut Runtime) {
    // SAFETY: the caller has no reference to the runtime; this one ends here.
    let (slots, fresh) = unsafe {
        let runtime = &mut *runtime;
        runtime.teardown = true;
        (runtime.coroutines.0.len(), std::mem::take(&mut runtime.fresh))
    };
    // The last first: a scoped thread borrows from the stack of the one that started it.
    for slot in (0..slots).rev() {
        let Some(mut thread) = enter(runtime, slot) else { continue };
        // SAFETY: as above.
        let panicking = unsafe { (&mut *runtime).threads[slot].panicking };
        {
            let _entered = Entered::new(runtime);
            if panicking {
                // It unwinds already, and is in a destructor: it only has to go on.
                while let CoroutineResult::Yield(()) = thread.resume(()) {}
            } else {
                thread.force_unwind();
            }
        }
        // SAFETY: as above.
        unsafe { (&mut *runtime).coroutines.0[slot].stack = Some(thread.into_stack()) };
    }
    let _entered = Entered::new(runtime);
    drop(fresh);
    drop(with(|runtime| std::mem::take(&mut runtime.statics)));
}

/// Drops what outlives the threads of an execution, which have all ended.
///
/// `runtime` points to a runtime that nobody has a reference to.
pub(crate) fn end_statics(runtime: *mut Runtime) {
    let set = |on| {
        // SAFETY: the caller has no reference to the runtime; this one ends here.
        let runtime = unsafe { &mut *runtime };
        (runtime.teardown, runtime.ending) = (on, on);
        std::mem::take(&mut runtime.statics)
    };
    let statics = set(true);
    {
        let _entered = Entered::new(runtime);
        drop(statics);
    }
    set(false);
}

/// Suspends the running thread.
#[inline]
pub(crate) fn suspend() {
    let yielder = with(|runtime| runtime.coroutines.yielder(runtime.current));
    debug_assert!(current::is_set(), "only a thread of an execution is suspended");
    // SAFETY: the yielder lives on the running coroutine's own stack, below the frame of the caller.
    unsafe { (*yielder).suspend(()) };
}
