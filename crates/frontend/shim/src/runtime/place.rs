//! Places: identities of objects that are the same in every execution.
//!
//! An object gets its name at its first use in an execution, and the name must not depend on which
//! thread uses it first. So the name is where the object *is*: on which thread's stack and at which
//! depth, or in which [`Arc`](crate::sync::Arc) and at which offset, or in which memory block, if
//! the program uses the [allocator](crate::alloc::Allocator). All others, including statics, are
//! named by the source position at which they were created.

use preempt_replay::SiteId;

use super::blocks::Block;

/// The identity of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// On the stack of a thread, `depth` bytes from its start; the `nth` object found there.
    Stack { slot: u8, depth: u32, nth: u32 },
    /// In shared memory that has an owner.
    Shared { owner: Owner, offset: u32 },
    /// In memory that a thread has allocated.
    Block { block: Block, offset: usize },
    /// The returns of one of the `threads` callers of the `nth` history that a thread has begun:
    /// see [`harness`](super::harness).
    Returns { slot: u8, nth: u32, threads: u8, thread: u8 },
    /// The return of the function of a thread: see [`exits`](super::exits).
    Exit { slot: u8 },
    /// Created at this source position; the `nth` such object that was used.
    Made { site: SiteId, nth: u32 },
}

/// The identity of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// Allocated by this thread, as its `nth`.
    Thread { slot: u8, nth: u32 },
    /// The variable that `lazy_static!` declared, by its address.
    Static(usize),
}
