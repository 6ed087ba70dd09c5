//! Searches in several processes, on one machine or on many.
//!
//! ```text
//! join ── connections, handshake ──▶ Links ──▶ Cluster: Exchange ──▶ Search::run_distributed
//! ```
//!
//! | file | contents |
//! | --- | --- |
//! | [`handshake`] | two processes prove that they know the key and run the same search |
//! | [`join`] | connects every two processes of a list of addresses |
//! | [`link`](mod@link) | a connection: sealed frames, heartbeats, faults |
//! | [`dataflow`] | the dataflow on timely: parcels, rounds, levels |
//! | [`Cluster`] | the exchange of states that the search uses |
//!
//! **Why timely does not use sockets.** Timely decodes its input without checks, prints while it
//! connects, waits forever for a process that was stopped, and panics in its own threads when a
//! connection breaks. So it reads from and writes to [`Link`](link::Link)s: bytes reach it only
//! after their frame was checked, and a broken connection is recorded in [`Faults`](faults::Faults)
//! while timely's thread waits. The search polls the record and ends as incomplete.
//!
//! **Trust.** Processes on other machines need a shared key. The handshake proves on both sides
//! that the key is known, and every frame carries a MAC with a key of that connection. Nothing is
//! encrypted. Without a key, processes listen on and connect to loopback addresses only.
#![forbid(unsafe_code)]

mod cluster;
mod dataflow;
pub mod faults;
pub mod handshake;
pub mod join;
pub mod key;
pub mod link;

pub use cluster::Cluster;
pub use handshake::Identity;
pub use join::{Hosts, Job, Joining, Refused, Unjoined};
pub use key::Key;
