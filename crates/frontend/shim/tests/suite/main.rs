//! The tests of this crate in one program: linking many of them takes longer than running them. The
//! ones beside this folder need a program of their own: they look at its memory, run it again, or
//! print where their lines stand.
#![cfg(feature = "check")]
#![allow(clippy::unwrap_used)]

mod agree;
mod api;
mod counts;
mod fairness;
mod findings;
mod freed;
mod futures;
mod given_up;
mod graphs;
mod heap;
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
mod stealing;
mod traces;
mod weak;
mod weak_classics;
mod weak_default;
mod weak_objects;
mod weak_structures;
mod weaken;
