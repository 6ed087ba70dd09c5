//! Plain memory whose accesses are checked for data races.
//!
//! Accesses to these cells are no scheduling points. They need none: if an execution has no data
//! race, a switch before a plain access changes nothing that a switch before the next
//! synchronisation would not. If it has one, that is the finding.
//!
//! What threads cannot share is std's: `RefCell` and its like.

mod plain;
mod pointer;

use std::fmt;
use std::panic::Location as Site;

use preempt_replay::{NO_OBJECT, OpKind};
use preempt_system::{Access, FailureKind, ThreadId};

use crate::runtime::identity::Identity;
use crate::runtime::restart::{RestartReason, restart};
use crate::runtime::{CellAccess, changes, inside, op, point, with};

pub use self::plain::Cell;
pub use self::pointer::{ConstPtr, MutPtr};
pub use std::cell::{BorrowError, BorrowMutError, LazyCell, OnceCell, Ref, RefCell, RefMut};

/// A cell for data that is shared without a lock: [`std::cell::UnsafeCell`] with the interface of
/// loom's.
///
/// A raw pointer says nothing about when it is followed. So the value is reached through closures,
/// or through pointers that record their uses.
pub struct UnsafeCell<T: ?Sized> {
    identity: Identity,
    value: std::cell::UnsafeCell<T>,
}

impl<T> UnsafeCell<T> {
    /// A cell with this value.
    #[track_caller]
    pub const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell { identity: Identity::new(), value: std::cell::UnsafeCell::new(value) }
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Reads the value. The pointer must not outlive the closure: what is done through it later is
    /// not seen.
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.access(Access::Read, Site::caller());
        f(self.value.get())
    }

    /// Writes the value. The pointer must not outlive the closure.
    #[track_caller]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.access(Access::Write, Site::caller());
        f(self.value.get())
    }

    /// A pointer to the value. Making it is a read, and so is every use of it.
    #[track_caller]
    pub fn get(&self) -> ConstPtr<T> {
        ConstPtr::new(self.value.get(), self.access(Access::Read, Site::caller()))
    }

    /// A pointer to the value. Making it is a write, and so is every use of it. This is loom's;
    /// where std's is meant, for a cell with one reference, [`UnsafeCell::exclusive`] does the
    /// same.
    #[track_caller]
    pub fn get_mut(&self) -> MutPtr<T> {
        MutPtr::new(self.value.get(), self.access(Access::Write, Site::caller()))
    }

    /// The value, through the only reference.
    pub fn exclusive(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Records an access. Returns what it takes to record another one by the same pointer.
    fn access(&self, access: Access, site: &'static Site<'static>) -> Option<Accessed> {
        if !self.identity.inside() {
            return None;
        }
        if access == Access::Write {
            changes();
        }
        if !with(|runtime| runtime.requirements.races) {
            restart(RestartReason::Races);
            return None;
        }
        let made = self.identity.site();
        let address = std::ptr::from_ref(&self.identity).addr();
        let cell = self.identity.number().unwrap_or_else(|| {
            self.identity.check_memory(None, "cell", site);
            let cell = with(|runtime| {
                let cell = runtime.races.variable();
                runtime.place_cell(address, cell, made);
                cell
            });
            self.identity.name(cell);
            cell
        });
        if with(|runtime| runtime.stops_before_access()) {
            point(op(OpKind::Yield, NO_OBJECT, "access", site));
            self.identity.is_there(cell, "cell", site);
        }
        let execution = with(|runtime| runtime.execution);
        let accessed = Accessed { cell, made, access, site, execution };
        accessed.note();
        Some(accessed)
    }
}

/// An access to a cell of an execution.
struct Accessed {
    cell: u32,
    made: &'static Site<'static>,
    access: Access,
    site: &'static Site<'static>,
    execution: u64,
}

impl Accessed {
    /// Records one more access by the same pointer, at `site`, if the pointer was made in the
    /// execution that runs.
    fn again(&self, site: &'static Site<'static>) {
        if !inside() || with(|runtime| runtime.execution) != self.execution {
            return;
        }
        if self.access == Access::Write {
            changes();
        }
        Accessed { site, ..*self }.note();
    }

    /// The access is made now. If that is a race, the step fails; the thread goes on, which does no
    /// harm: one thread runs at a time.
    fn note(&self) {
        with(|runtime| {
            let current = runtime.current;
            let nth = runtime.threads[current].cell_accesses;
            runtime.threads[current].cell_accesses += 1;
            let done = runtime.recording.state().counts()[current];
            let thread = ThreadId::new(current);
            let &Accessed { cell, access, site, .. } = self;
            let Some(racing) = runtime.races.conflicts(thread, cell, access).next() else {
                return runtime.races.record(thread, cell, access, CellAccess { done, nth, site });
            };
            // The same two accesses race in schedules in which the other one comes first: it is one
            // error, with one place and one text, or its simplest schedule would not be found.
            let mut both = [
                (site, current, access),
                (racing.about.site, racing.thread.index(), racing.access),
            ];
            both.sort_by_key(|&(site, thread, _)| {
                (site.file(), site.line(), site.column(), thread)
            });
            let [one, other] = both.map(|(site, thread, access)| {
                let verb = if access == Access::Write { "writes" } else { "reads" };
                format!("{} {verb} it at {site}", runtime.thread_name(thread))
            });
            let message = format!(
                "data race on the cell made at {}: {one}, and {other}; nothing orders these accesses",
                self.made
            );
            runtime.fail(FailureKind::Race, message, Some(both[0].0));
        });
    }
}

impl<T: Default> Default for UnsafeCell<T> {
    #[track_caller]
    fn default() -> UnsafeCell<T> {
        UnsafeCell::new(T::default())
    }
}

impl<T> From<T> for UnsafeCell<T> {
    #[track_caller]
    fn from(value: T) -> UnsafeCell<T> {
        UnsafeCell::new(value)
    }
}

impl<T: ?Sized> fmt::Debug for UnsafeCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsafeCell").finish_non_exhaustive()
    }
}
