//! Checkpoints: what is left of a search, as bytes from which it goes on.
//!
//! A search *pauses* where what is left of its work is plain data: states that wait, steps that are open, numbers. All its workers
//! come to such a place, what they hold is collected and [written](crate::watch::Watch::pause), and they go on from what was collected. A
//! search that is [resumed](Checkpoints::resume) reads the same data and enters the same loop at the same place. So a search that was
//! killed and resumed has the numbers, the findings and the guarantee of one that ran through.
//!
//! What can be computed again is not written: executions are kept as their choices and stepped through once more, tables as their
//! entries and filled again, in the order in which they grow alike.
//!
//! | file | what it is |
//! | --- | --- |
//! | `bytes` | the form of the bytes, and their checksum |
//! | `values` | how values are written and read |
//! | `checkpoint` | what a checkpoint begins with, so that one that is damaged or of something else is refused |
//! | `pauses` | when to pause, and what the layers around a search add |
//!
//! This crate makes bytes and takes bytes. Files are for a [`Keeper`] to write.

mod bytes;
mod checkpoint;
mod pauses;
mod values;

pub use bytes::{Damaged, Reader, Writer};
pub use checkpoint::{Checkpoints, Keeper, Saved, program_hash};
pub(crate) use pauses::Pauses;

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
        impl $crate::save::Save for $type {
            fn save(&self, to: &mut $crate::save::Writer<'_>) {
                $(to.put(&self.$field);)*
            }

            fn load(from: &mut $crate::save::Reader) -> Result<Self, $crate::save::Damaged> {
                $(let $field = from.get()?;)*
                Ok(Self { $($field),* })
            }
        }
    };
}
pub(crate) use save_fields;
