//! Values as bytes, for checkpoints.
//!
//! [`bytes`] defines the encoding of numbers and the checksum; [`values`] encodes the types of std
//! and of `preempt_system`. A type of this crate gets its encoding from a macro: [`save_fields`]
//! for structs, [`save_variants`] for enums, [`save_as`] for a type that is written as another one,
//! and [`save_in_place`] for structures that workers share. Only containers with an encoding of
//! their own implement [`Save`] or [`SaveInPlace`] by hand.
//!
//! The order of the fields is the format: [`checkpoint`](crate::engine::checkpoint) counts its
//! versions.

mod bytes;
mod values;

pub(crate) use bytes::{BLOCK, CHECKSUM, checksum};
pub use bytes::{Damaged, Reader, Writer};
pub(crate) use values::Reserved;

/// A value that can be a part of a checkpoint.
pub trait Save: Sized {
    /// Writes the value. An element of a sequence must write at least one byte: a reader refuses a
    /// sequence with more elements than bytes.
    fn save(&self, to: &mut Writer<'_>);

    /// Reads what [`save`](Save::save) has written.
    fn load(from: &mut Reader) -> Result<Self, Damaged>;
}

/// A structure that others refer to while it is written and read: tables and counters that workers
/// share.
pub trait SaveInPlace {
    /// Writes the contents.
    fn save_contents(&self, to: &mut Writer<'_>);

    /// Reads what [`save_contents`](SaveInPlace::save_contents) has written, into a structure that
    /// is still empty.
    fn load_contents(&self, from: &mut Reader) -> Result<(), Damaged>;
}

/// Implements [`Save`] for a struct: its fields in the given order. Generic parameters come first,
/// in brackets. Fields after a semicolon are not written; they are read as their default values.
macro_rules! save_fields {
    ([$($generics:tt)*] $type:ty {
        $($field:tt),* $(,)? $(; $($unsaved:ident),*)?
    }) => {
        impl<$($generics)*> $crate::codec::Save for $type {
            fn save(&self, to: &mut $crate::codec::Writer<'_>) {
                $(to.put(&self.$field);)*
            }

            fn load(from: &mut $crate::codec::Reader) -> Result<Self, $crate::codec::Damaged> {
                // Fields of a struct expression are evaluated in the order in which they stand.
                Ok(Self {
                    $($field: from.get()?,)*
                    $($($unsaved: Default::default(),)*)?
                })
            }
        }
    };
    ($type:ty { $($fields:tt)* }) => {
        $crate::codec::save_fields!([] $type { $($fields)* });
    };
}

/// Implements [`Save`] for an enum: a byte that tells the variant, then its fields.
macro_rules! save_variants {
    ($type:ident {
        $($tag:literal => $variant:ident $(($($item:ident),*))? $({ $($field:ident),* })?),* $(,)?
    }) => {
        impl $crate::codec::Save for $type {
            fn save(&self, to: &mut $crate::codec::Writer<'_>) {
                match self {
                    $($type::$variant $(($($item),*))? $({ $($field),* })? => {
                        to.put::<u8>(&$tag);
                        $($(to.put($item);)*)?
                        $($(to.put($field);)*)?
                    })*
                }
            }

            fn load(from: &mut $crate::codec::Reader) -> Result<Self, $crate::codec::Damaged> {
                Ok(match from.get::<u8>()? {
                    $($tag => {
                        $($(let $item = from.get()?;)*)?
                        $($(let $field = from.get()?;)*)?
                        $type::$variant $(($($item),*))? $({ $($field),* })?
                    })*
                    _ => return Err($crate::codec::Damaged),
                })
            }
        }
    };
}

/// Implements [`Save`] for a type that is written as a value of another one. The second function
/// returns `None` for what is not the form of a value.
macro_rules! save_as {
    ($type:ty as $form:ty, $to_form:expr, $from_form:expr) => {
        impl $crate::codec::Save for $type {
            fn save(&self, to: &mut $crate::codec::Writer<'_>) {
                let to_form: fn(&$type) -> $form = $to_form;
                to.put(&to_form(self));
            }

            fn load(from: &mut $crate::codec::Reader) -> Result<Self, $crate::codec::Damaged> {
                let from_form: fn($form) -> Option<$type> = $from_form;
                from_form(from.get()?).ok_or($crate::codec::Damaged)
            }
        }
    };
}

/// Implements [`SaveInPlace`] for a struct whose given fields implement it.
macro_rules! save_in_place {
    ([$($generics:tt)*] $type:ty { $($field:ident),* $(,)? }) => {
        impl<$($generics)*> $crate::codec::SaveInPlace for $type {
            fn save_contents(&self, to: &mut $crate::codec::Writer<'_>) {
                $(self.$field.save_contents(to);)*
            }

            fn load_contents(
                &self,
                from: &mut $crate::codec::Reader,
            ) -> Result<(), $crate::codec::Damaged> {
                $(self.$field.load_contents(from)?;)*
                Ok(())
            }
        }
    };
    ($type:ty { $($fields:tt)* }) => {
        $crate::codec::save_in_place!([] $type { $($fields)* });
    };
}

pub(crate) use {save_as, save_fields, save_in_place, save_variants};

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Pair<T> {
        first: T,
        second: Shape,
        scratch: Vec<u8>,
    }

    save_fields!([T: Save] Pair<T> { first, second; scratch });

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Shape {
        Point,
        Circle(u32),
        Square { side: u64 },
    }

    save_variants!(Shape { 0 => Point, 1 => Circle(radius), 7 => Square { side } });

    #[derive(Default)]
    struct Counters {
        steps: AtomicU64,
        shapes: Mutex<Vec<Shape>>,
    }

    save_in_place!(Counters { steps, shapes });

    fn reader(write: impl FnOnce(&mut Writer<'_>)) -> Reader {
        let bytes = Writer::collect(write);
        Reader::new(Box::new(Cursor::new(bytes.clone())), bytes.len() as u64)
    }

    #[test]
    fn what_macros_write_they_read() {
        for second in [Shape::Point, Shape::Circle(5), Shape::Square { side: 1 << 40 }] {
            let pair = |scratch| Pair { first: "text".to_owned(), second, scratch };
            let mut from = reader(|to| to.put(&pair(vec![1])));
            assert_eq!(from.get(), Ok(pair(Vec::new())), "scratch memory is not written");
            assert!(from.is_at_its_end());
        }
        assert_eq!(reader(|to| to.put(&2u8)).get::<Shape>(), Err(Damaged), "no such variant");
        let (written, read) = (Counters::default(), Counters::default());
        written.steps.store(7, std::sync::atomic::Ordering::Relaxed);
        written.shapes.lock().expect("mutex poisoned").push(Shape::Circle(2));
        let mut from = reader(|to| written.save_contents(to));
        assert_eq!(read.load_contents(&mut from), Ok(()));
        assert_eq!(read.steps.into_inner(), 7);
        assert_eq!(read.shapes.into_inner().expect("mutex poisoned"), [Shape::Circle(2)]);
    }
}
