//! Statics that are initialised in every execution.
//!
//! A static of std keeps its value from one execution to the next, so that only the first one would
//! initialise it. These are initialised by the first thread that uses them in each execution, and
//! dropped when all its threads have ended.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::panic::Location as Site;
use std::sync::OnceLock as Real;

use preempt_system::fingerprint::Mixer;

use crate::runtime::arena::absorb_memory;
use crate::runtime::{Runtime, is_set, with};
use crate::sync::OnceLock;

/// A static that [`lazy_static!`](crate::lazy_static!) declares.
pub struct Lazy<T: 'static> {
    real: Real<T>,
    init: fn() -> T,
    site: &'static Site<'static>,
}

/// The statics that an execution has used, by their addresses.
#[derive(Default)]
pub(crate) struct Statics(Vec<(usize, Box<dyn Any>)>);

impl Statics {
    /// Removes all values without dropping them.
    #[inline]
    pub(crate) fn forget(&mut self) {
        if !self.0.is_empty() {
            self.0.drain(..).for_each(std::mem::forget);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds all values to `mixer`. Heap memory that they own is not included.
    pub(crate) fn absorb(&self, mixer: &mut Mixer) {
        for (_, value) in &self.0 {
            let value: &dyn Any = &**value;
            let (address, size) =
                (std::ptr::from_ref(value).expose_provenance(), size_of_val(value));
            // SAFETY: the value is borrowed, and threads that could write to it are suspended.
            unsafe { absorb_memory(mixer, address, size) };
        }
    }
}

impl<T: 'static> Lazy<T> {
    #[doc(hidden)]
    #[track_caller]
    pub const fn new(init: fn() -> T) -> Lazy<T> {
        Lazy { real: Real::new(), init, site: Site::caller() }
    }

    /// The value in the execution that runs. The pointer is valid until the execution ends.
    fn inside(&self, runtime: &mut Runtime) -> *const OnceLock<T> {
        let key = std::ptr::from_ref(self).addr();
        if let Some((_, value)) = runtime.statics.0.iter().find(|(other, _)| *other == key) {
            return value.downcast_ref().expect("a static has one type");
        }
        let value = Box::new(OnceLock::<T>::new());
        let pointer: *const OnceLock<T> = &raw const *value;
        runtime.cover_static(key, pointer.addr(), size_of::<OnceLock<T>>(), self.site);
        runtime.statics.0.push((key, value));
        pointer
    }
}

impl<T: 'static> Deref for Lazy<T> {
    type Target = T;

    // The steps of the initialisation are shown at the use of the static.
    #[track_caller]
    fn deref(&self) -> &T {
        if !is_set() {
            return self.real.get_or_init(self.init);
        }
        let value = with(|runtime| self.inside(runtime));
        // SAFETY: the value lives in its own box until all threads of the execution have ended. The
        // reference has the lifetime of the static, so a test could keep it longer, unobserved by
        // the check. That would be a use of another execution's value, which the assumptions of a
        // check rule out.
        unsafe { &*value }.get_or_init(self.init)
    }
}

impl<T: fmt::Debug> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
