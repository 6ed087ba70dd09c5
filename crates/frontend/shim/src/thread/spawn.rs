//! Spawning and joining threads.

use std::fmt;
use std::panic::{AssertUnwindSafe, Location as Site, catch_unwind};

use preempt_replay::OpKind;
use preempt_system::{Action, ThreadId, ThreadSet};

use super::Result;
use super::packet::Packet;
use super::park::Thread;
use crate::runtime::coroutine::{Job, suspend};
use crate::runtime::exits::{self, Exit};
use crate::runtime::{describe, inside, look, op, point, with};

/// A mirror of [`std::thread::JoinHandle`].
pub struct JoinHandle<T> {
    handle: Option<Handle<T>>,
    thread: Thread,
}

enum Handle<T> {
    /// Outside a check.
    Real(std::thread::JoinHandle<T>),
    /// Inside a check: the slot, and the result.
    Checked { slot: usize, packet: Packet<T> },
}

/// Starts a thread. [`loom::thread::spawn`](crate::loom::thread::spawn) is the same without `Send`.
#[track_caller]
pub fn spawn<F, T>(f: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().spawn(f).expect("a thread can be started")
}

/// A mirror of [`std::thread::Builder`].
#[derive(Debug, Default)]
pub struct Builder {
    pub(super) name: Option<String>,
    stack_size: Option<usize>,
}

impl Builder {
    /// A builder of threads without a name.
    pub fn new() -> Builder {
        Builder::default()
    }

    /// Gives the thread a name, which reports use.
    pub fn name(self, name: String) -> Builder {
        Builder { name: Some(name), ..self }
    }

    /// Sets the stack size outside a check. Inside, [`Check::stack_size`](crate::Check::stack_size)
    /// applies to all threads.
    pub fn stack_size(self, size: usize) -> Builder {
        Builder { stack_size: Some(size), ..self }
    }

    /// Starts a thread.
    #[track_caller]
    pub fn spawn<F, T>(self, f: F) -> std::io::Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        if !inside() {
            let handle = self.std().spawn(f)?;
            let thread = Thread::real(handle.thread());
            return Ok(JoinHandle { handle: Some(Handle::Real(handle)), thread });
        }
        Ok(self.spawn_checked(f))
    }

    /// Starts a thread of the check that is running. It is a coroutine of this OS thread, so
    /// nothing has to be `Send`.
    #[track_caller]
    pub(crate) fn spawn_checked<F, T>(self, f: F) -> JoinHandle<T>
    where
        F: FnOnce() -> T + 'static,
        T: 'static,
    {
        let packet = Packet::new();
        let job = job(f, packet.clone());
        let slot = start(self.name, Box::new(job));
        JoinHandle { handle: Some(Handle::Checked { slot, packet }), thread: Thread::checked(slot) }
    }

    pub(super) fn std(self) -> std::thread::Builder {
        let builder = std::thread::Builder::new();
        let builder = self.name.into_iter().fold(builder, std::thread::Builder::name);
        self.stack_size.into_iter().fold(builder, std::thread::Builder::stack_size)
    }
}

/// Runs the code of a thread and stores its result.
pub(super) fn job<T>(f: impl FnOnce() -> T, packet: Packet<T>) -> impl FnOnce() {
    move || {
        let result = catch_unwind(AssertUnwindSafe(f));
        if let Err(payload) = &result {
            with(|runtime| runtime.panicked(&**payload));
        }
        // The result is dropped before the thread-local values if no handle can take it.
        packet.put(result);
        drop(packet);
        exits::returns();
        end_locals();
    }
}

/// Drops the thread-local values, one after the other. With std a panic of a destructor aborts the
/// program; here it is a panic of the thread, so that it is reported.
pub(crate) fn end_locals() {
    if look(|runtime| runtime.threads[runtime.current].locals.is_empty()) {
        return;
    }
    with(|runtime| {
        let exit = &mut runtime.threads[runtime.current].exit;
        // Neither a scope nor a handle observes the first thread.
        if *exit == Exit::Before && runtime.current != 0 {
            *exit = Exit::DropsLocals;
        }
    });
    let next = || with(|runtime| runtime.threads[runtime.current].locals.next_to_drop());
    while let Some(value) = next() {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
            with(|runtime| runtime.panicked(&*payload));
        }
    }
    if !with(|runtime| runtime.threads[runtime.current].locals.is_empty()) {
        drop(with(|runtime| runtime.threads[runtime.current].locals.rest()));
    }
    // The end of the thread, which comes next, is not an operation of a destructor.
    with(|runtime| {
        let exit = &mut runtime.threads[runtime.current].exit;
        if *exit == Exit::DropsLocals {
            *exit = Exit::Before;
        }
    });
}

/// Starts a coroutine. If there are too few slots, the search starts over, and the spawning thread
/// never continues.
#[track_caller]
pub(super) fn start(name: Option<String>, job: Job) -> usize {
    let site = Site::caller();
    let slot = with(|runtime| {
        runtime.spawned = Some(site);
        let slot = runtime.spawn(name, job);
        if let Some(slot) = slot {
            runtime.threads[slot].started = Some(site);
        }
        slot
    });
    match slot {
        Some(slot) => {
            describe(|| format!("spawn {}", with(|runtime| runtime.thread_name(slot))));
            slot
        }
        None => loop {
            suspend();
        },
    }
}

/// Waits for a thread of the execution to end.
///
/// Returns whether it panicked.
pub(super) fn wait_for_end(slot: usize, site: &'static Site<'static>) -> bool {
    let act = OpKind::Object(Action::Join);
    point(op(act, slot as u32, "join", site));
    describe(|| format!("join {}", with(|runtime| runtime.thread_name(slot))));
    with(|runtime| {
        let before = runtime.threads[slot].joined.with(ThreadId::new(slot));
        let joined = &mut runtime.threads[runtime.current].joined;
        *joined = ThreadSet::from_bits(joined.bits() | before.bits());
    });
    see_panics(slot)
}

/// Waits for the function of a thread to return, as a scope does.
///
/// Returns whether it panicked.
pub(super) fn wait_for_return(slot: usize, site: &'static Site<'static>) -> bool {
    if exits::wait_for_return(slot, site) { see_panics(slot) } else { wait_for_end(slot, site) }
}

/// Whether a thread has panicked. Its panics so far have been observed.
fn see_panics(slot: usize) -> bool {
    with(|runtime| {
        let mut panicked = false;
        for panic in runtime.verdict.panics.iter_mut().filter(|panic| panic.thread == slot) {
            (panic.seen, panicked) = (true, true);
        }
        panicked
    })
}

/// Whether the function of a thread has returned.
pub(super) fn is_finished(slot: usize, site: &'static Site<'static>) -> bool {
    !inside() || exits::has_returned(slot, site)
}

/// The result that a thread has stored.
pub(super) fn taken<T>(packet: &Packet<T>) -> Result<T> {
    packet.take().unwrap_or_else(|| Err(Box::new("the execution was abandoned")))
}

impl<T> JoinHandle<T> {
    /// Waits for the thread to end. `Err` if it panicked.
    #[track_caller]
    pub fn join(mut self) -> Result<T> {
        match self.handle.take().expect("a handle is joined once") {
            Handle::Real(handle) => handle.join(),
            Handle::Checked { slot, packet } => {
                if self.thread.belongs(Site::caller()) {
                    wait_for_end(slot, Site::caller());
                }
                taken(&packet)
            }
        }
    }

    /// The thread.
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Whether the function of the thread has returned. Its thread-local values may not have been
    /// dropped yet.
    #[track_caller]
    pub fn is_finished(&self) -> bool {
        match self.handle.as_ref().expect("the handle was not joined") {
            Handle::Real(handle) => handle.is_finished(),
            Handle::Checked { slot, .. } => is_finished(*slot, Site::caller()),
        }
    }
}

impl<T> Drop for JoinHandle<T> {
    /// The thread cannot be joined any more, so a panic in it is not the result of a join.
    fn drop(&mut self) {
        if let Some(Handle::Checked { slot, .. }) = self.handle
            && inside()
        {
            with(|runtime| runtime.threads[slot].detached = true);
        }
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinHandle").finish_non_exhaustive()
    }
}
