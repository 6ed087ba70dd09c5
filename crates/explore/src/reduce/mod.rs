//! Reductions: which steps need not be taken because others show the same.
//!
//! None yet. Each will be one folder here, chosen by [`Reduction`] in a [`Plan`](crate::Plan), which refuses to combine it
//! with an order, a bound or a check under which it would be unsound.

/// Which steps a search leaves out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reduction {
    /// None: every step of every thread is taken in every state.
    #[default]
    None,
}
