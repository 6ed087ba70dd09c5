//! The front end for executables: runs an unmodified multithreaded program under every schedule.
//!
//! ```text
//! Executable     a dynamically linked program with its arguments and limits
//!   │            (elf: refuses files that cannot be run)
//! Native         a `Program`: its executions can be explored
//!   │
//! Execution      a `System`: follows the recorded trace, and deviates from it by running a child
//!   │  ├─ trace         the decoded log of a child
//!   │  ├─ names, state  which threads can step; runs no code of the program
//!   │  └─ verdict       the failure of an execution, from how its process ended
//! Server         the fork server of the executable, with the runtime loaded into it
//! ```
//!
//! The runtime (`preempt-native-runtime`) replaces the functions with which threads synchronise.
//! Controller and runtime share a block of memory (`preempt-native-block`). [`narrate`] describes
//! the execution of a schedule with lines of the source.
//!
//! # What a pass means
//!
//! An unmodified program has scheduling points at calls: pthread, C11 threads, semaphores, futexes,
//! sleep and yield, and at the start and the end of threads. If it was built with the
//! instrumentation of ThreadSanitizer, atomic operations are scheduling points too ([`Level`]); on
//! request, locked instructions of an unmodified program are.
//! Between two points a thread runs without interruption. For a program without data races whose
//! synchronisation is visible, this covers all behaviour: code between two points accesses nothing
//! that other threads access at the same time.

mod checkpoint;
mod describe;
mod elf;
mod entries;
mod executable;
mod fences;
mod flags;
mod instruction;
mod level;
mod locked;
mod names;
pub mod narrate;
mod opaque;
mod program;
mod ready;
mod server;
pub mod source;
mod state;
mod symbols;
mod system;
mod temporary;
mod trace;
mod unsupported;
mod verdict;
mod weak;

pub use executable::{Allocator, Executable, Harness};
pub use flags::{Compiler, flags, install_runtime};
pub use level::{Level, Races};
pub use program::{Native, Need, suits};
