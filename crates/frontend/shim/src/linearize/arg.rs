//! The arguments with which operations are called.

use std::fmt;

/// The values of an argument.
#[derive(Clone, Debug)]
pub enum Domain<A> {
    /// A value that no other call of the scenario has. The function gets a number that is different
    /// for every call: 1, 2, 3 and so on.
    Fresh(fn(u32) -> A),
    /// Each of these values. An operation counts once for each of them.
    Values(Vec<A>),
}

/// An argument of an operation.
///
/// Integers and strings are [fresh](Domain::Fresh): values that are put into a structure should be
/// different, so that a result shows which call it comes from. Fresh values also keep the number of
/// scenarios small. [`Key`] is for arguments that matter only if they coincide, such as the keys of
/// a map. Implement this trait for your own types:
///
/// ```
/// use preempt::linearize::{Arg, Domain};
///
/// #[derive(Clone, Debug)]
/// enum End {
///     Front,
///     Back,
/// }
///
/// impl Arg for End {
///     fn domain() -> Domain<End> {
///         Domain::Values(vec![End::Front, End::Back])
///     }
/// }
/// ```
pub trait Arg: Clone + fmt::Debug + Send + Sync + 'static {
    /// The values that the argument takes.
    fn domain() -> Domain<Self>;
}

macro_rules! fresh_integers {
    ($($integer:ty),*) => {
        $(impl Arg for $integer {
            fn domain() -> Domain<$integer> {
                Domain::Fresh(|number| number as $integer)
            }
        })*
    };
}

fresh_integers!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

impl Arg for String {
    fn domain() -> Domain<String> {
        Domain::Fresh(|number| format!("v{number}"))
    }
}

impl Arg for bool {
    fn domain() -> Domain<bool> {
        Domain::Values(vec![false, true])
    }
}

/// A key: 1 or 2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(
    /// The key as a number.
    pub u8,
);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Arg for Key {
    fn domain() -> Domain<Key> {
        Domain::Values(vec![Key(1), Key(2)])
    }
}

macro_rules! key_into {
    ($($integer:ty),*) => {
        $(impl From<Key> for $integer {
            fn from(key: Key) -> $integer {
                key.0 as $integer
            }
        })*
    };
}

key_into!(u8, u16, u32, u64, usize, i32, i64);
