//! A mirror of [`std::thread_local!`].

use std::any::Any;
use std::fmt;
use std::rc::Rc;

use crate::runtime::{is_set, with};

/// A mirror of [`std::thread::LocalKey`].
pub struct LocalKey<T: 'static> {
    real: fn() -> &'static std::thread::LocalKey<T>,
    init: fn() -> T,
}

/// A mirror of [`std::thread::AccessError`]: the value is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessError;

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the thread has ended, and its values are gone")
    }
}

impl std::error::Error for AccessError {}

/// The values of a thread of an execution, in the order of their creation.
#[derive(Default)]
pub(crate) struct Locals(Vec<Local>);

struct Local {
    /// The address of its key.
    key: usize,
    /// The value, until it is dropped.
    value: Option<Rc<dyn Any>>,
    has_destructor: bool,
}

impl fmt::Debug for Locals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} values", self.0.len())
    }
}

impl Locals {
    /// Removes all values without dropping them.
    #[inline]
    pub(crate) fn forget(&mut self) {
        if !self.0.is_empty() {
            self.0.drain(..).for_each(std::mem::forget);
        }
    }

    /// Whether there are no values, as in most threads.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes out the next value whose destructor is to run at the end of the thread: as in std, the
    /// one that was created last. Its destructor can still use the others, and can create more.
    pub(crate) fn next_to_drop(&mut self) -> Option<Rc<dyn Any>> {
        let has_destructor = |local: &&mut Local| local.has_destructor && local.value.is_some();
        self.0.iter_mut().rfind(has_destructor)?.value.take()
    }

    /// Takes out the values without destructors, which can be used until all others are dropped.
    pub(crate) fn rest(&mut self) -> Vec<Rc<dyn Any>> {
        self.0.iter_mut().filter_map(|local| local.value.take()).collect()
    }
}

impl<T: 'static> LocalKey<T> {
    #[doc(hidden)]
    pub const fn new(
        real: fn() -> &'static std::thread::LocalKey<T>,
        init: fn() -> T,
    ) -> LocalKey<T> {
        LocalKey { real, init }
    }

    /// Calls `f` with the thread's value, which is created at the first use.
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        self.try_with(f).expect("the thread has not destroyed its values")
    }

    /// Like [`LocalKey::with`]; an error if the thread has ended.
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Result<R, AccessError> {
        if !is_set() {
            return (self.real)().try_with(f).map_err(|_| AccessError);
        }
        let key = std::ptr::from_ref(self).addr();
        let known = with(|runtime| {
            runtime.depends_on_thread();
            let locals = &runtime.threads[runtime.current].locals.0;
            locals.iter().find(|local| local.key == key).map(|local| local.value.clone())
        });
        let value = match known {
            Some(value) => value.ok_or(AccessError)?,
            None => {
                let value: Rc<dyn Any> = Rc::new((self.init)());
                let has_destructor = std::mem::needs_drop::<T>();
                let local = Local { key, value: Some(value.clone()), has_destructor };
                with(|runtime| runtime.threads[runtime.current].locals.0.push(local));
                value
            }
        };
        Ok(f(value.downcast_ref().expect("a key has values of one type")))
    }
}

impl<T: 'static> LocalKey<std::cell::Cell<T>> {
    /// Replaces the value.
    pub fn set(&'static self, value: T) {
        self.with(|cell| cell.set(value));
    }

    /// A copy of the value.
    pub fn get(&'static self) -> T
    where
        T: Copy,
    {
        self.with(std::cell::Cell::get)
    }

    /// Takes the value, and leaves the default.
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(std::cell::Cell::take)
    }

    /// Replaces the value and returns the old one.
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T: 'static> LocalKey<std::cell::RefCell<T>> {
    /// Uses the value.
    pub fn with_borrow<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        self.with(|cell| f(&cell.borrow()))
    }

    /// Uses and changes the value.
    pub fn with_borrow_mut<R>(&'static self, f: impl FnOnce(&mut T) -> R) -> R {
        self.with(|cell| f(&mut cell.borrow_mut()))
    }

    /// Replaces the value.
    pub fn set(&'static self, value: T) {
        self.with(|cell| *cell.borrow_mut() = value);
    }

    /// Takes the value, and leaves the default.
    pub fn take(&'static self) -> T
    where
        T: Default,
    {
        self.with(std::cell::RefCell::take)
    }

    /// Replaces the value and returns the old one.
    pub fn replace(&'static self, value: T) -> T {
        self.with(|cell| cell.replace(value))
    }
}

impl<T> fmt::Debug for LocalKey<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalKey").finish_non_exhaustive()
    }
}

/// A mirror of [`std::thread_local!`]: inside a check every thread of the execution has its own
/// value.
#[macro_export]
macro_rules! thread_local {
    () => {};
    ($(#[$attr:meta])* $vis:vis static $name:ident: $t:ty = const { $init:expr } $(; $($rest:tt)*)?) => {
        $crate::thread_local!($(#[$attr])* $vis static $name: $t = $init $(; $($rest)*)?);
    };
    ($(#[$attr:meta])* $vis:vis static $name:ident: $t:ty = $init:expr $(; $($rest:tt)*)?) => {
        $(#[$attr])*
        $vis static $name: $crate::thread::LocalKey<$t> = {
            fn init() -> $t {
                $init
            }
            fn real() -> &'static ::std::thread::LocalKey<$t> {
                ::std::thread_local! {
                    static REAL: $t = init();
                }
                &REAL
            }
            $crate::thread::LocalKey::new(real, init)
        };
        $($crate::thread_local!($($rest)*);)?
    };
}
