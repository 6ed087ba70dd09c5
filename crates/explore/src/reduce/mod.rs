//! Partial-order and other reductions: which steps need not be taken because others are equivalent.
//!
//! Two executions are equivalent if one results from the other by swapping adjacent independent
//! steps: they belong to the same *trace*. Every reduction here is a function over a
//! [`Cursor`](crate::engine::cursor::Cursor) that reports the steps it takes to a
//! [`Visitor`](crate::engine::execution::Visitor), and returns its counts:
//!
//! | function | explores | bound on preemptions |
//! | --- | --- | --- |
//! | [`sleep::sleep_sets`] | every trace once; every prefix of a trace once | no |
//! | [`dpor::source`] | every trace once, few of the prefixes | no |
//! | [`dpor::optimal`] | exactly one execution of every trace | no |
//! | [`dpor::flanagan_godefroid`] | the papers' baseline | no |
//! | [`budgeted_sleep::budgeted_sleep_sets`] | every trace within the bound, some twice | yes |
//! | [`cb_por::states`] | every state within the bound once | yes |
//! | [`cb_por::terminals`] | every trace within the bound once | yes |
//! | [`graphs`] | every execution graph of weak memory once | no |
//! | [`blocks::run_po_graphs`] | every trace of straight-line threads | no |
//!
//! [`cartesian`] is a search over states, with a loop of its own.
//!
//! The reductions by [transactions](cpc) are over states, and keep a table of their own.
//!
//! The others share `trace`, an execution with its happens-before graph under a chosen
//! [`Dependence`], and `policy`, which makes them depth-first searches: each of them decides which
//! steps are taken.

mod backtrack;
pub mod blocks;
pub mod budgeted_sleep;
pub mod cartesian;
pub mod cb_por;
pub mod cpc;
pub mod dpor;
pub mod graphs;
mod policy;
pub mod sleep;
mod trace;

pub use trace::ReductionStats;

pub use crate::plan::{Dependence, Reduction};
