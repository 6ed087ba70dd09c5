//! Linearizability of small histories.
//!
//! **Paper.** Line-Up (Burckhardt, Dern, Musuvathi, Tan; PLDI 2010): a structure is given by a
//! constructor and operations. All small concurrent *scenarios* are generated; the serial
//! executions of a scenario are its specification; every concurrent execution needs a serial one
//! with the same results that keeps the order of calls that did not overlap. The search for that
//! *witness* is Wing and Gong's (1993).
//!
//! **Guarantees.** An alarm is a proof that no deterministic sequential specification explains the
//! results, provided that all serial executions were recorded. A pass concerns the given history
//! only; the search that produces histories determines which of them are checked.
//!
//! **Map.** The paper's test matrix is a [`Scenario`], its set of serial histories a
//! [`SerialTree`], its stuck history a [`History`] with [pending](Answer::Pending) calls.
//!
//! **Deviations.**
//! 1. The tree may have several results for one call after the same calls, so a specification need
//!    not be deterministic: a call's result is then one of them.
//! 2. Weaker criteria than linearizability drop part of the real-time order: [`Criterion`].
//!
//! **Cost.** Exponential in the number of calls in the worst case. The search for histories of a
//! few calls visits about as many nodes as there are calls, because results leave little choice.
//!
//! The crate runs no code under test and knows no runtime: calls are numbers, and so are results,
//! of which only equality matters. A front end records histories and maps them to these numbers.
//!
//! - [`scenario`]: which threads call what, smallest first
//! - [`history`]: results and real-time order of one execution
//! - [`serial`]: the serial executions of a scenario
//! - [`witness`]: the search for a serial execution that explains a history
//! - [`table`]: a history as text
//! - [`explain`]: why a history has no witness, as text
//!
//! # Example
//!
//! Two threads call `pop` on a queue of one element, and both get it:
//!
//! ```
//! use preempt_linearize::{Criterion, History, CallOutcome, SerialTree, witness};
//!
//! const ONE: u32 = 1; // Some(1)
//! const NONE: u32 = 0;
//!
//! // Serially, the first call gets the element.
//! let mut tree = SerialTree::default();
//! for order in [[0, 1], [1, 0]] {
//!     let first = tree.extend(SerialTree::ROOT, order[0], CallOutcome::Returned(ONE));
//!     tree.extend(first, order[1], CallOutcome::Returned(NONE));
//! }
//! let mut both = History::new(&[0, 1]);
//! both.call(0);
//! both.call(1);
//! both.returned(0, ONE);
//! both.returned(1, ONE);
//! assert!(witness::search(&both, &tree, Criterion::Linearizable).is_err());
//! ```
#![forbid(unsafe_code)]

pub mod explain;
pub mod history;
pub mod scenario;
pub mod serial;
pub mod table;
pub mod witness;

pub use history::{Answer, Criterion, History};
pub use scenario::{Instance, Rules, Scenario, Symmetry};
pub use serial::{CallOutcome, SerialTree};
pub use witness::{Specification, Unexplained, Witness};

/// The maximum number of calls of a history: a set of calls is a 64-bit word.
pub const MAX_CALLS: usize = 64;
