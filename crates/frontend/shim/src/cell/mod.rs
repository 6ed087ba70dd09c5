//! Plain memory whose accesses are checked for data races.
//!
//! Accesses to these cells are not scheduling points, and need not be: if an execution has no data
//! race, a switch before a plain access has the same effect as a switch before the next
//! synchronisation. If it has one, that is the finding.
//!
//! Types that threads cannot share, such as `RefCell`, are std's.

mod lasting;
mod plain;
mod pointer;

use std::fmt;
use std::panic::Location as Site;

use preempt_replay::{NO_OBJECT, OpKind};
use preempt_system::{Access, FailureKind, ThreadId};

use crate::runtime::exits::Exit;
use crate::runtime::identity::Identity;
use crate::runtime::restart::{RestartReason, restart};
use crate::runtime::{CellAccess, changes, inside, op, point, with};

pub(crate) use self::lasting::LastingAccesses;
pub use self::plain::Cell;
pub use self::pointer::{ConstPtr, MutPtr};
pub use std::cell::{BorrowError, BorrowMutError, LazyCell, OnceCell, Ref, RefCell, RefMut};

/// A cell for data that is shared without a lock: [`std::cell::UnsafeCell`] with the interface of
/// loom's.
///
/// Uses of a raw pointer cannot be observed. So the value is accessed through closures, or through
/// pointers that record their uses.
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
    /// Reads the value. The pointer must not outlive the closure: later uses of it are not
    /// observed. The whole closure counts as one access, as in loom.
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        let accessed = self.access(Access::Read, Site::caller());
        let _lasting = accessed.map(|accessed| accessed.lasts(Some(&self.identity)));
        f(self.value.get())
    }

    /// Writes the value. The pointer must not outlive the closure, and the whole closure counts as
    /// one access, as in loom.
    #[track_caller]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        let accessed = self.access(Access::Write, Site::caller());
        let _lasting = accessed.map(|accessed| accessed.lasts(Some(&self.identity)));
        f(self.value.get())
    }

    /// A pointer to the value. Making it is a read, and so is every use of it.
    #[track_caller]
    pub fn get(&self) -> ConstPtr<T> {
        ConstPtr::new(self.value.get(), self.access(Access::Read, Site::caller()))
    }

    /// A pointer to the value. Making it is a write, and so is every use of it. This is loom's
    /// method; for std's, which needs the only reference, use [`UnsafeCell::exclusive`].
    #[track_caller]
    pub fn get_mut(&self) -> MutPtr<T> {
        MutPtr::new(self.value.get(), self.access(Access::Write, Site::caller()))
    }

    /// A mutable reference to the value.
    pub fn exclusive(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Records an access. Returns the data with which further accesses by the same pointer are
    /// recorded.
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
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accessed {
    cell: u32,
    made: &'static Site<'static>,
    access: Access,
    site: &'static Site<'static>,
    execution: u64,
}

impl Accessed {
    /// Records one more access by the same pointer, at `site`, if the pointer was made in the
    /// execution that runs.
    fn again(&self, site: &'static Site<'static>) -> Option<Accessed> {
        if !inside() || with(|runtime| runtime.execution) != self.execution {
            return None;
        }
        if self.access == Access::Write {
            changes();
        }
        let accessed = Accessed { site, ..*self };
        accessed.note();
        Some(accessed)
    }

    /// Records the access. If it is a race, the step fails; the thread continues, which is harmless
    /// because only one thread runs at a time.
    fn note(&self) {
        with(|runtime| {
            let current = runtime.current;
            if runtime.threads[current].exit == Exit::DropsLocals {
                runtime.operates_late();
            }
            let nth = runtime.threads[current].cell_accesses;
            runtime.threads[current].cell_accesses += 1;
            let done = runtime.recording.state().counts()[current];
            let thread = ThreadId::new(current);
            let &Accessed { cell, access, site, .. } = self;
            let lasting = runtime.lasting.conflict(thread, cell, access);
            let Some((racing, racing_access, racing_site)) = lasting.or_else(|| {
                let racing = runtime.races.conflicts(thread, cell, access).next()?;
                Some((racing.thread, racing.access, racing.about.site))
            }) else {
                return runtime.races.record(thread, cell, access, CellAccess { done, nth, site });
            };
            // The same two accesses also race in schedules in which the other one comes first. Both
            // are one error with one place and one message, otherwise its simplest schedule would
            // not be found.
            let mut both = [(site, current, access), (racing_site, racing.index(), racing_access)];
            both.sort_by_key(|&(site, thread, _)| {
                (site.file(), site.line(), site.column(), thread)
            });
            let [one, other] = both.map(|(site, thread, access)| {
                let verb = if access == Access::Write { "writes" } else { "reads" };
                format!("{} {verb} it at {site}", runtime.thread_name(thread))
            });
            let message = format!(
                "data race on the cell made at {}: {one}, and {other}; nothing orders these \
                 accesses",
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
