//! Most tests of this crate in one program, because linking many programs takes longer than running
//! them. The tests outside this folder need programs of their own: they measure the memory of the
//! process, start it again, or compare line numbers with golden files.
#![cfg(feature = "check")]
#![allow(clippy::unwrap_used)]

mod agree;
mod api;
mod assume;
mod channels;
mod counts;
mod fairness;
mod findings;
mod freed;
mod futures;
mod given_up;
mod graphs;
mod heap;
mod histories;
mod initial_values;
mod kinds;
mod linearize;
mod loom_names;
mod loom_probe;
mod loops;
mod mirrors;
mod names;
mod newcomer;
mod peers;
mod ports;
mod races;
mod replays;
mod seq_cst;
mod std_semantics;
mod stealing;
mod thread_exits;
mod traces;
mod weak;
mod weak_classics;
mod weak_default;
mod weak_objects;
mod weak_structures;
mod weaken;
