//! The constructors of [`Arc`]: those of std, and conversions from std's `Arc`.

use std::borrow::Cow;
use std::mem::ManuallyDrop;
use std::panic::Location as Site;
use std::sync::{Arc as Std, Weak as StdWeak};

use super::count::{Owners, address, register};
use super::{Arc, Weak};
use crate::runtime::{inside, with};

impl<T> Arc<T> {
    /// Creates an `Arc`.
    #[track_caller]
    pub fn new(value: T) -> Arc<T> {
        Arc::from_std(Std::new(value))
    }

    /// Creates an `Arc` whose value has a weak reference to itself.
    #[track_caller]
    pub fn new_cyclic<F: FnOnce(&Weak<T>) -> T>(f: F) -> Arc<T> {
        let site = Site::caller();
        let mut execution = 0;
        let std = Std::new_cyclic(|weak: &StdWeak<T>| {
            execution =
                register(weak.as_ptr().cast::<()>().addr(), size_of::<T>(), Owners::Ours, site);
            f(&Weak::of(weak.clone(), execution))
        });
        if inside() {
            with(|runtime| runtime.publish(address(&std)));
        }
        Arc { std: ManuallyDrop::new(std), execution }
    }

    /// Creates a pinned `Arc`.
    #[track_caller]
    pub fn pin(value: T) -> std::pin::Pin<Arc<T>> {
        // SAFETY: a pinned `Arc` is reached only through the pin, which does not move the value
        // out.
        unsafe { std::pin::Pin::new_unchecked(Arc::new(value)) }
    }
}

impl<T: ?Sized> Arc<T> {
    /// Wraps an `Arc` of std, so that a check observes it, for example an `Arc<dyn Trait>`.
    /// `Arc::from` does the same, and also exists without the feature `check`.
    #[track_caller]
    pub fn from_std(std: Std<T>) -> Arc<T> {
        let owners = if Std::strong_count(&std) == 1 { Owners::Ours } else { Owners::Others };
        let execution = register(address(&std), size_of_val(&*std), owners, Site::caller());
        Arc { std: ManuallyDrop::new(std), execution }
    }
}

impl<T: Default> Default for Arc<T> {
    #[track_caller]
    fn default() -> Arc<T> {
        Arc::new(T::default())
    }
}

// std's empty values share one allocation that is never dropped; wrapping it would look like a
// leak.
impl Default for Arc<str> {
    #[track_caller]
    fn default() -> Arc<str> {
        Arc::from("")
    }
}

impl<T> Default for Arc<[T]> {
    #[track_caller]
    fn default() -> Arc<[T]> {
        Arc::from(Vec::new())
    }
}

impl<T> From<T> for Arc<T> {
    #[track_caller]
    fn from(value: T) -> Arc<T> {
        Arc::new(value)
    }
}

/// Conversions that std's `Arc` has.
macro_rules! from {
    ($([$($param:tt)*] $from:ty, $to:ty;)*) => {$(
        impl<$($param)*> From<$from> for Arc<$to> {
            #[track_caller]
            fn from(value: $from) -> Arc<$to> {
                Arc::from_std(Std::from(value))
            }
        }
    )*};
}

from! {
    [T: ?Sized] Std<T>, T;
    [T: ?Sized] Box<T>, T;
    [T: Clone] &[T], [T];
    [T: Clone] &mut [T], [T];
    [T] Vec<T>, [T];
    [T, const N: usize] [T; N], [T];
    [] &str, str;
    [] &mut str, str;
    [] String, str;
    [] &std::path::Path, std::path::Path;
    [] std::path::PathBuf, std::path::Path;
    [] &std::ffi::OsStr, std::ffi::OsStr;
    [] std::ffi::OsString, std::ffi::OsStr;
    [] &std::ffi::CStr, std::ffi::CStr;
    [] std::ffi::CString, std::ffi::CStr;
}

impl From<Arc<str>> for Arc<[u8]> {
    #[track_caller]
    fn from(value: Arc<str>) -> Arc<[u8]> {
        let execution = value.execution;
        Arc { std: ManuallyDrop::new(Std::from(value.into_std())), execution }
    }
}

impl<'a, B> From<Cow<'a, B>> for Arc<B>
where
    B: ToOwned + ?Sized,
    Arc<B>: From<&'a B> + From<B::Owned>,
{
    #[track_caller]
    fn from(value: Cow<'a, B>) -> Arc<B> {
        match value {
            Cow::Borrowed(value) => Arc::from(value),
            Cow::Owned(value) => Arc::from(value),
        }
    }
}

impl<T> FromIterator<T> for Arc<[T]> {
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Arc<[T]> {
        Arc::from_std(Std::from_iter(values))
    }
}

impl<T, const N: usize> TryFrom<Arc<[T]>> for Arc<[T; N]> {
    type Error = Arc<[T]>;

    fn try_from(value: Arc<[T]>) -> Result<Arc<[T; N]>, Arc<[T]>> {
        let execution = value.execution;
        let std = Std::try_from(value.into_std());
        std.map(|std| Arc { std: ManuallyDrop::new(std), execution })
            .map_err(|std| Arc { std: ManuallyDrop::new(std), execution })
    }
}
