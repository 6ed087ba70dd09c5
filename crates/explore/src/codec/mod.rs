//! Values as bytes: what checkpoints are made of.
//!
//! [`bytes`] is the form of the bytes and their checksum, [`values`] how values of std and of
//! `preempt_system` are written. Other types implement [`Save`], most of them with [`save_fields`].
//! What a checkpoint consists of is in [`checkpoint`](crate::engine::checkpoint).

mod bytes;
mod values;

pub(crate) use bytes::{BLOCK, CHECKSUM, checksum};
pub use bytes::{Damaged, Reader, Writer};

/// A value that can be a part of a checkpoint.
pub trait Save: Sized {
    /// Writes it.
    fn save(&self, to: &mut Writer<'_>);

    /// Reads what [`save`](Save::save) has written.
    fn load(from: &mut Reader) -> Result<Self, Damaged>;
}

/// The same for a struct: its fields in their order.
macro_rules! save_fields {
    ($type:ty { $($field:ident),* $(,)? }) => {
        impl $crate::codec::Save for $type {
            fn save(&self, to: &mut $crate::codec::Writer<'_>) {
                $(to.put(&self.$field);)*
            }

            fn load(from: &mut $crate::codec::Reader) -> Result<Self, $crate::codec::Damaged> {
                $(let $field = from.get()?;)*
                Ok(Self { $($field),* })
            }
        }
    };
}
pub(crate) use save_fields;
