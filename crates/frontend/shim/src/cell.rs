//! Plain memory whose accesses are checked for data races.
//!
//! Accesses to these cells are no scheduling points. They need none: if an execution has no data race, a switch before a plain
//! access changes nothing that a switch before the next synchronisation would not. If it has one, that is the finding.

use std::fmt;
use std::panic::Location as Site;

use preempt_system::{Access, FailureKind};

use crate::runtime::identity::Identity;
use crate::runtime::needs::{Need, go_wrong, need};
use crate::runtime::{changes, with};

/// A cell for data that is shared without a lock, as [`std::cell::UnsafeCell`].
///
/// The closures get raw pointers, which must not outlive them: what is done through them later is not seen.
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
    /// Reads the value.
    #[track_caller]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        self.access(Access::Read, Site::caller());
        f(self.value.get())
    }

    /// Writes the value.
    #[track_caller]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        self.access(Access::Write, Site::caller());
        f(self.value.get())
    }

    /// The value, if this is the only reference.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    fn access(&self, access: Access, site: &'static Site<'static>) {
        if !self.identity.inside() {
            return;
        }
        if access == Access::Write {
            changes();
        }
        if !with(|runtime| runtime.needs.races) {
            need(Need::Races);
        }
        let cell = self.identity.number().unwrap_or_else(|| {
            let cell = with(|runtime| runtime.races.cell());
            self.identity.name(cell);
            cell
        });
        let raced = with(|runtime| {
            let current = runtime.current;
            let racing = runtime.races.access(current, cell, access, site)?;
            let word = |access| if access == Access::Write { "writes" } else { "reads" };
            let message = format!(
                "data race on the cell made at {}: {} {} it at {site}, and {} {} it at {}; nothing orders these accesses",
                self.identity.site(),
                runtime.thread_name(current),
                word(access),
                runtime.thread_name(racing.thread),
                word(racing.access),
                racing.site,
            );
            runtime.fail(FailureKind::Race, message, Some(site));
            Some(())
        });
        if raced.is_some() {
            go_wrong();
        }
    }
}

impl<T: Default> Default for UnsafeCell<T> {
    #[track_caller]
    fn default() -> UnsafeCell<T> {
        UnsafeCell::new(T::default())
    }
}

impl<T: ?Sized> fmt::Debug for UnsafeCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsafeCell").finish_non_exhaustive()
    }
}

/// A mirror of [`std::cell::Cell`] whose accesses are checked.
#[derive(Debug, Default)]
pub struct Cell<T>(UnsafeCell<T>);

impl<T> Cell<T> {
    /// A cell with this value.
    #[track_caller]
    pub const fn new(value: T) -> Cell<T> {
        Cell(UnsafeCell::new(value))
    }

    /// Replaces the value.
    #[track_caller]
    pub fn set(&self, value: T) {
        drop(self.replace(value));
    }

    /// Replaces the value and returns the old one.
    #[track_caller]
    pub fn replace(&self, value: T) -> T {
        // SAFETY: the cell is not shared between threads, and no reference to the value is ever given away.
        self.0.with_mut(|current| unsafe { std::mem::replace(&mut *current, value) })
    }

    /// The value, leaving the default.
    #[track_caller]
    pub fn take(&self) -> T
    where
        T: Default,
    {
        self.replace(T::default())
    }

    /// A copy of the value.
    #[track_caller]
    pub fn get(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: as above.
        self.0.with(|current| unsafe { *current })
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}
