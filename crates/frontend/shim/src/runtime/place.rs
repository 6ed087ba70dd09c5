//! What identifies an object in every execution.
//!
//! An object gets its name when an execution uses it first, and the name must not depend on which
//! thread came first. So it says where the object *is*: on which thread's stack and how deep, or in
//! which [`Arc`](crate::sync::Arc) and at which offset, or in which memory block, if the program
//! uses the [allocator](crate::alloc::Allocator). All others, statics among them, are named by the
//! place in the program where they were made.

use preempt_replay::SiteId;

use super::blocks::Block;

/// What identifies an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// On the stack of a thread, `depth` bytes from its start; the `nth` object that was met there.
    Stack { slot: u8, depth: u32, nth: u32 },
    /// In shared memory that has an owner.
    Shared { owner: Owner, offset: u32 },
    /// In memory that a thread has allocated.
    Block { block: Block, offset: usize },
    /// Made at this place of the program, the `nth` of these that was met.
    Made { site: SiteId, nth: u32 },
}

/// What shared memory belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// The thread that made it; it is the `nth` of that thread.
    Thread { slot: u8, nth: u32 },
    /// The variable that `lazy_static!` declared, by its address.
    Static(usize),
}
