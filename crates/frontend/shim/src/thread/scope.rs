//! A mirror of [`std::thread::scope`].

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, Location as Site, catch_unwind, resume_unwind};

use super::Result;
use super::packet::Packet;
use super::park::Thread;
use super::spawn::{Builder, job, start, wait_for_end, wait_for_return};
use crate::runtime::coroutine::Job;
use crate::runtime::inside;

/// A mirror of [`std::thread::Scope`].
pub struct Scope<'scope, 'env: 'scope> {
    /// std's scope, outside a check.
    real: Option<*const std::thread::Scope<'scope, 'env>>,
    /// The slots of the threads that were not joined yet.
    open: RefCell<Vec<usize>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

// SAFETY: std's scope is `Sync`; the list is only used inside a check, where one thread runs at a
// time.
unsafe impl Sync for Scope<'_, '_> {}

/// A mirror of [`std::thread::ScopedJoinHandle`].
pub struct ScopedJoinHandle<'scope, T>(Handle<'scope, T>);

enum Handle<'scope, T> {
    Real(std::thread::ScopedJoinHandle<'scope, T>, Thread),
    Checked { slot: usize, packet: Packet<T>, thread: Thread, open: *const RefCell<Vec<usize>> },
}

// SAFETY: the pointer is only followed inside a check, where one thread runs at a time.
unsafe impl<T: Send> Send for ScopedJoinHandle<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for ScopedJoinHandle<'_, T> {}

/// A mirror of [`std::thread::scope`]: threads may borrow from the caller, and the functions of all
/// of them return before it does. As in std, it does not wait for the destructors of their
/// thread-local values.
#[track_caller]
pub fn scope<'env, F, T>(f: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let site = Site::caller();
    let mut scope =
        Scope { real: None, open: RefCell::default(), scope: PhantomData, env: PhantomData };
    if !inside() {
        let scope: *mut Scope<'_, 'env> = &raw mut scope;
        return std::thread::scope(move |real| {
            // SAFETY: our scope was created before std's and lives until that has joined all its
            // threads.
            let scope = unsafe { &mut *scope.cast::<Scope<'_, 'env>>() };
            scope.real = Some(std::ptr::from_ref(real));
            // SAFETY: as above.
            f(unsafe { &*std::ptr::from_ref(scope) })
        });
    }
    // SAFETY: the scope lives until the end of this function, which joins all threads that borrow
    // from it.
    let result = catch_unwind(AssertUnwindSafe(|| f(unsafe { &*std::ptr::from_ref(&scope) })));
    let mut panicked = false;
    while let Some(slot) = next(&scope.open) {
        if !inside() {
            break;
        }
        panicked |= wait_for_return(slot, site);
        scope.open.borrow_mut().retain(|&other| other != slot);
    }
    // Panics only after all threads have ended: they may borrow what unwinding would drop.
    if panicked && result.is_ok() {
        panic!("a scoped thread panicked");
    }
    result.unwrap_or_else(|payload| resume_unwind(payload))
}

fn next(open: &RefCell<Vec<usize>>) -> Option<usize> {
    open.borrow().first().copied()
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Starts a thread that may borrow from outside the scope.
    #[track_caller]
    pub fn spawn<F, T>(&'scope self, f: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        Builder::new().spawn_scoped(self, f).expect("starting a thread does not fail")
    }
}

impl Builder {
    /// Starts a thread that may borrow from outside the scope.
    #[track_caller]
    pub fn spawn_scoped<'scope, 'env, F, T>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        f: F,
    ) -> std::io::Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        if let Some(real) = scope.real {
            // SAFETY: std's scope lives as long as ours is lent out.
            let handle = self.std().spawn_scoped(unsafe { &*real }, f)?;
            let thread = Thread::real(handle.thread());
            return Ok(ScopedJoinHandle(Handle::Real(handle, thread)));
        }
        let packet = Packet::new();
        let job: Box<dyn FnOnce() + 'scope> = Box::new(job(f, packet.clone()));
        // SAFETY: the function of the thread returns, and its result is stored, before the scope
        // ends, which waits for that; the destructors of its thread-local values come later and
        // borrow nothing from the scope. In an abandoned execution no thread runs after its stack
        // or the stack that it borrows from was dropped.
        let job: Job = unsafe { std::mem::transmute::<Box<dyn FnOnce() + 'scope>, Job>(job) };
        let slot = start(self.name, job);
        scope.open.borrow_mut().push(slot);
        Ok(ScopedJoinHandle(Handle::Checked {
            slot,
            packet,
            thread: Thread::checked(slot),
            open: &raw const scope.open,
        }))
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits for the thread to end. `Err` if it panicked.
    #[track_caller]
    pub fn join(self) -> Result<T> {
        match self.0 {
            Handle::Real(handle, _) => handle.join(),
            Handle::Checked { slot, packet, open, thread } => {
                if thread.belongs(Site::caller()) {
                    wait_for_end(slot, Site::caller());
                    // SAFETY: the handle does not outlive the scope.
                    unsafe { (*open).borrow_mut().retain(|&other| other != slot) };
                }
                super::spawn::taken(&packet)
            }
        }
    }

    /// The thread.
    pub fn thread(&self) -> &Thread {
        match &self.0 {
            Handle::Real(_, thread) | Handle::Checked { thread, .. } => thread,
        }
    }

    /// Whether the function of the thread has returned. Its thread-local values may not have been
    /// dropped yet.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        match &self.0 {
            Handle::Real(handle, _) => handle.is_finished(),
            Handle::Checked { slot, .. } => super::spawn::is_finished(*slot, Site::caller()),
        }
    }
}

impl fmt::Debug for Scope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for ScopedJoinHandle<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedJoinHandle").finish_non_exhaustive()
    }
}
