//! The orderings that a program uses, and running it with one of them changed.
//!
//! An ordering is identified by its place in the source and its [`OrderingRole`] there: a
//! compare-and-exchange has two, and `fetch_update` has three. All accesses at that place have it,
//! whatever atomic they access.

use std::collections::BTreeMap;
use std::panic::Location as Site;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use preempt_replay::OpKind;

/// What an ordering applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum OrderingRole {
    /// A load.
    Load,
    /// A store.
    Store,
    /// A read-modify-write.
    Update,
    /// A compare-and-exchange that writes.
    Success,
    /// A compare-and-exchange that only reads.
    Failure,
    /// A fence.
    Fence,
}

/// An ordering of the program: its place and its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderingPlace {
    pub(crate) site: &'static Site<'static>,
    pub(crate) role: OrderingRole,
}

/// An ordering that is replaced by another one. A fence that is replaced by `None` does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replacement {
    pub(crate) place: OrderingPlace,
    pub(crate) by: Option<Ordering>,
}

/// The orderings that the executions of a check use.
#[derive(Debug, Default)]
pub(crate) struct Orderings {
    replacement: Option<Replacement>,
    /// The name of the operation and the ordering in the program. If an ordering is a variable of
    /// the program, the first value.
    used: Mutex<BTreeMap<OrderingPlace, (&'static str, Ordering)>>,
}

impl Orderings {
    /// Replaces an ordering.
    pub(crate) fn with(replacement: Replacement) -> Orderings {
        Orderings { replacement: Some(replacement), ..Orderings::default() }
    }

    /// The orderings so far.
    pub(crate) fn used(&self) -> BTreeMap<OrderingPlace, (&'static str, Ordering)> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The ordering that applies.
    pub(crate) fn apply(
        &self,
        (site, role): (&'static Site<'static>, OrderingRole),
        verb: &'static str,
        order: Ordering,
    ) -> Option<Ordering> {
        let place = OrderingPlace { site, role };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.entry(place).or_insert((verb, order));
        match self.replacement {
            Some(replacement) if replacement.place == place => replacement.by,
            _ => Some(order),
        }
    }

    /// The operation with the orderings that apply.
    #[cold]
    pub(crate) fn apply_to(
        &self,
        kind: OpKind,
        verb: &'static str,
        site: &'static Site<'static>,
    ) -> OpKind {
        let with = |role, order| {
            self.apply((site, role), verb, order).expect("only a fence can be removed")
        };
        match kind {
            OpKind::Load(order) => OpKind::Load(with(OrderingRole::Load, order)),
            OpKind::Store(order) => OpKind::Store(with(OrderingRole::Store, order)),
            OpKind::Update(order) => OpKind::Update(with(OrderingRole::Update, order)),
            OpKind::CompareExchange { success, failure } => {
                let (success, failure) =
                    (with(OrderingRole::Success, success), with(OrderingRole::Failure, failure));
                OpKind::CompareExchange { success, failure }
            }
            OpKind::WeakCompareExchange { success, failure } => {
                let (success, failure) =
                    (with(OrderingRole::Success, success), with(OrderingRole::Failure, failure));
                OpKind::WeakCompareExchange { success, failure }
            }
            other => other,
        }
    }
}
