//! Macros: tests whose body is a check, and statics for tests.

/// Declares statics that are initialised at their first use, like the crate `lazy_static`. Inside a
/// check they are initialised in every execution.
///
/// ```
/// use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
///
/// preempt::lazy_static! {
///     static ref COUNT: AtomicUsize = AtomicUsize::new(0);
/// }
///
/// # #[cfg(feature = "check")]
/// preempt::check(|| {
///     preempt::thread::spawn(|| COUNT.fetch_add(1, SeqCst)).join().unwrap();
///     assert_eq!(COUNT.fetch_add(1, SeqCst), 1);
/// });
/// ```
#[macro_export]
macro_rules! lazy_static {
    ($($(#[$attr:meta])* $vis:vis static ref $name:ident: $t:ty = $init:expr;)*) => {$(
        $(#[$attr])*
        $vis static $name: $crate::Lazy<$t> = $crate::Lazy::new(|| $init);
    )*};
}

/// Declares tests whose bodies are checked.
///
/// ```
/// use preempt::Check;
///
/// preempt::test! {
///     /// With the usual settings.
///     fn nothing_is_lost() {
///         preempt::thread::spawn(|| ()).join().unwrap();
///     }
///
///     /// With others.
///     fn with_more_preemptions(Check::new().bound(3)) {
///         preempt::thread::spawn(|| ()).join().unwrap();
///     }
/// }
/// # fn main() {}
/// ```
///
/// Without the feature `check` each body runs once, on std's threads.
#[cfg(feature = "check")]
#[macro_export]
macro_rules! test {
    () => {};
    ($(#[$attr:meta])* fn $name:ident() $body:block $($rest:tt)*) => {
        $(#[$attr])*
        #[test]
        fn $name() {
            $crate::check(|| $body);
        }
        $crate::test! { $($rest)* }
    };
    ($(#[$attr:meta])* fn $name:ident($check:expr) $body:block $($rest:tt)*) => {
        $(#[$attr])*
        #[test]
        fn $name() {
            $check.check(|| $body);
        }
        $crate::test! { $($rest)* }
    };
}

/// Declares tests whose bodies are checked. Without the feature `check`, as in this build, each
/// body runs once.
#[cfg(not(feature = "check"))]
#[macro_export]
macro_rules! test {
    () => {};
    ($(#[$attr:meta])* fn $name:ident($($check:expr)?) $body:block $($rest:tt)*) => {
        $(#[$attr])*
        #[test]
        fn $name() {
            let body = || $body;
            body();
        }
        $crate::test! { $($rest)* }
    };
}
