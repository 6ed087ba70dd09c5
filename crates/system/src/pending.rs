//! The next step of a thread, known before the thread takes it.
//!
//! A step is one operation followed by the local code up to the thread's next operation. The next
//! operation of every thread is therefore known in every state, enabled or not, and a strategy can
//! reason about steps that it never takes.

use smallvec::SmallVec;

use crate::footprint::{Access, Footprint, Location};

/// The number and the footprint of each alternative of a step. Most steps have one.
pub type Footprints = SmallVec<[(u32, Footprint); 1]>;

/// The next step of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Whether the thread can take the step now.
    pub status: Status,
    /// The number and the footprint of each alternative that exists. A blocked thread has one
    /// entry: the locations it waits for.
    pub footprints: Footprints,
    /// Alternatives from this number on are *stale*: the step reads an older store than the newest
    /// one, or stores before it. Each costs as much as a preemption. [`NEVER_STALE`] if none is.
    pub stale_from: u32,
}

/// The value of [`Pending::stale_from`] for a step without stale alternatives: it is not an access
/// to a [weak memory](crate::memory::Weak).
pub const NEVER_STALE: u32 = u32::MAX;

impl Pending {
    /// Whether alternatives have different footprints.
    #[inline]
    pub fn varies(&self) -> bool {
        let [(_, first), rest @ ..] = &self.footprints[..] else { return false };
        rest.iter().any(|(_, footprint)| footprint != first)
    }

    /// Whether there are several alternatives.
    #[inline]
    pub fn chooses(&self) -> bool {
        self.footprints.len() > 1
    }

    /// A step none of whose alternatives is stale.
    #[inline]
    pub fn new(status: Status, footprints: Footprints) -> Pending {
        Pending { status, footprints, stale_from: NEVER_STALE }
    }

    /// Whether an alternative is stale.
    #[inline]
    pub fn is_stale(&self, alternative: u32) -> bool {
        alternative >= self.stale_from
    }

    /// A slot without a thread.
    #[inline]
    pub fn vacant() -> Pending {
        Pending::new(Status::Vacant, Footprints::new())
    }

    /// Resets to a thread without a pending step.
    #[inline]
    pub fn set_nothing(&mut self, status: Status) {
        self.status = status;
        self.footprints.clear();
    }

    /// Resets to a step with one alternative and one access, or to a wait for one location.
    #[inline(always)]
    pub fn set_one(
        &mut self,
        status: Status,
        alternative: u32,
        location: Location,
        access: Access,
    ) {
        self.status = status;
        match &mut self.footprints[..] {
            [(number, footprint)] => {
                *number = alternative;
                footprint.set_one(location, access);
            }
            _ => {
                self.footprints.clear();
                self.footprints.push((alternative, Footprint::one(location, access)));
            }
        }
    }

    /// Resets to a step with these alternatives.
    pub fn set_alternatives(
        &mut self,
        status: Status,
        alternatives: impl IntoIterator<Item = (u32, Footprint)>,
    ) {
        self.set_nothing(status);
        self.footprints.extend(alternatives);
    }
}

/// Whether a thread can take a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// There is no thread in the slot.
    Vacant,
    /// The thread has ended or failed.
    Ended,
    /// The thread has to wait.
    Blocked,
    /// The thread waits where it may wait forever without that being a deadlock.
    Resting,
    /// The thread could step, but it spins: its last steps led back to where it was. A search holds
    /// it back until something that it reads changes, or no other thread can step.
    Spinning,
    /// The thread can step.
    Enabled,
}
