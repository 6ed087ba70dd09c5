//! Random numbers for tests, like shuttle's.
//!
//! A test may depend only on its schedule. So the check chooses small values: both truth values,
//! and all numbers of a range of at most [`FEW`], are [explored](crate::choose). Numbers of larger
//! ranges come from a fixed sequence for each thread, the same in every execution.

use std::ops::{Range, RangeInclusive};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use crate::runtime::{is_set, with};

/// The largest range whose numbers are all explored.
pub const FEW: u64 = 8;

/// The generator of the running thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct ThreadRng(());

/// The generator of the running thread.
pub fn thread_rng() -> ThreadRng {
    ThreadRng(())
}

/// A type of numbers that can be drawn.
pub trait Number: Copy {
    #[doc(hidden)]
    fn from_word(word: u64) -> Self;
    #[doc(hidden)]
    fn to_word(self) -> u64;
}

macro_rules! numbers {
    ($($number:ident)*) => {$(
        impl Number for $number {
            fn from_word(word: u64) -> $number {
                word as $number
            }

            // Sign-extended, so that differences are right.
            fn to_word(self) -> u64 {
                self as u64
            }
        }
    )*};
}

numbers!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

/// A range to draw from.
pub trait Between<T> {
    #[doc(hidden)]
    fn bounds(self) -> (T, T);
}

impl<T: Number> Between<T> for Range<T> {
    fn bounds(self) -> (T, T) {
        (self.start, T::from_word(self.end.to_word().wrapping_sub(1)))
    }
}

impl<T: Number> Between<T> for RangeInclusive<T> {
    fn bounds(self) -> (T, T) {
        self.into_inner()
    }
}

/// The part of the API of the crate `rand` that tests use.
pub trait Rng {
    /// The next word.
    fn next_u64(&mut self) -> u64;

    /// The next half of a word.
    fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Any number of this type.
    fn r#gen<T: Number>(&mut self) -> T {
        T::from_word(self.next_u64())
    }

    /// A number of a range.
    ///
    /// # Panics
    ///
    /// If the range is empty.
    #[track_caller]
    fn gen_range<T: Number + PartialOrd>(&mut self, range: impl Between<T>) -> T {
        let (low, high) = range.bounds();
        assert!(low <= high, "cannot draw from an empty range");
        let most = high.to_word().wrapping_sub(low.to_word());
        let drawn = match u32::try_from(most) {
            Ok(most) if u64::from(most) < FEW => u64::from(crate::choose(most + 1)),
            _ if most == u64::MAX => self.next_u64(),
            _ => self.next_u64() % (most + 1),
        };
        T::from_word(low.to_word().wrapping_add(drawn))
    }

    /// A truth value. Both are explored, unless one is impossible.
    #[track_caller]
    fn gen_bool(&mut self, probability: f64) -> bool {
        if probability <= 0.0 || probability >= 1.0 {
            probability >= 1.0
        } else {
            crate::choose(2) == 1
        }
    }
}

impl Rng for ThreadRng {
    fn next_u64(&mut self) -> u64 {
        static OUTSIDE: AtomicU64 = AtomicU64::new(0);
        let (thread, nth) = if is_set() {
            with(|runtime| {
                let current = runtime.current;
                let thread = &mut runtime.threads[current];
                thread.drawn += 1;
                (current as u64 + 1, thread.drawn)
            })
        } else {
            (0, OUTSIDE.fetch_add(1, Relaxed))
        };
        // SplitMix64 of the thread and the number of the draw.
        let mut word = (thread << 40 | nth).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        word = (word ^ word >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ word >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        word ^ word >> 31
    }
}
