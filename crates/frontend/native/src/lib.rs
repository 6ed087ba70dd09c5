//! The front end for executables: an unmodified multithreaded program runs under every schedule.
//!
//! ```text
//! Executable     what is run: a dynamically linked program, its arguments, its limits
//!   │            (elf: what cannot be run is refused before)
//! Native         a `Program`: its executions can be explored
//!   │
//! Execution      a `System`: follows the recorded trace, and deviates from it by running a child
//!   │  ├─ trace      what a child has logged, decoded; names, state: the pure half
//!   │  └─ verdict    what went wrong, from how the process ended
//! Server         the fork server of the executable, with the runtime loaded into it
//! ```
//!
//! The runtime (`preempt-native-runtime`) replaces the functions by which threads synchronise; the
//! two sides share a block of memory (`preempt-native-block`). [`narrate`] describes the execution
//! of a schedule, with lines of the source.
//!
//! # What a pass means
//!
//! A program in which nothing was changed has scheduling points at calls: pthread, C11 threads,
//! semaphores, futexes, sleep and yield, and the start and the end of threads. If it was built with
//! the instrumentation of ThreadSanitizer, atomic operations are points too ([`Level`]). Between
//! two points a thread runs undisturbed. For a program without data races that synchronises by what
//! is visible, this covers all behaviour: code between two points touches nothing that other
//! threads use at the same time.

mod checkpoint;
mod describe;
mod elf;
mod entries;
mod executable;
mod flags;
mod level;
mod names;
pub mod narrate;
mod program;
mod ready;
mod server;
pub mod source;
mod state;
mod symbols;
mod system;
mod temporary;
mod trace;
mod verdict;

pub use executable::{Allocator, Executable, Harness};
pub use flags::{Compiler, flags, install_runtime};
pub use level::Level;
pub use program::{Native, Need, suits};
