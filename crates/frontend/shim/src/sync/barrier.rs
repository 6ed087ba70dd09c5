//! A mirror of [`std::sync::Barrier`].

use std::fmt;
use std::panic::Location as Site;

use preempt_system::{Action, Kind};

use crate::runtime::identity::Identity;
use crate::runtime::{act, describe};

/// A mirror of [`std::sync::Barrier`].
pub struct Barrier {
    identity: Identity,
    parties: u32,
    real: std::sync::Barrier,
}

/// A mirror of [`std::sync::BarrierWaitResult`].
#[derive(Clone, Copy, Debug)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Whether this thread was the last to arrive.
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

impl Barrier {
    /// A barrier for `n` threads.
    #[track_caller]
    pub const fn new(n: usize) -> Barrier {
        Barrier { identity: Identity::new(), parties: n as u32, real: std::sync::Barrier::new(n) }
    }

    /// Waits until all threads have arrived.
    #[track_caller]
    pub fn wait(&self) -> BarrierWaitResult {
        if !self.identity.inside() {
            // While an execution is discarded, no thread waits.
            let alone = crate::runtime::is_set();
            return BarrierWaitResult(alone || self.real.wait().is_leader());
        }
        let (kind, site) = (Kind::Barrier { parties: self.parties }, Site::caller());
        let leader = act(&self.identity, kind, "barrier", Action::Arrive, "wait", site) == 1;
        describe(|| format!("wait() arrives{}", if leader { " as the last" } else { "" }));
        if !leader {
            act(&self.identity, kind, "barrier", Action::Leave, "wait", site);
            describe(|| "wait() leaves".into());
        }
        BarrierWaitResult(leader)
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier").finish_non_exhaustive()
    }
}
