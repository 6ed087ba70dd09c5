//! Recorded executions of programs that cannot copy their states.
//!
//! Real code can only be started again and brought back to the same point. A strategy still asks
//! such a program what its threads would do next, even in executions that never ran: the same steps
//! in another order, without some of them. This crate answers from a record. A front end reports
//! each operation at which a thread arrives and its outcome; the [`Recording`] keeps the histories
//! of the threads and the states of the objects, and implements the pure half of
//! [`System`](preempt_system::System).
//!
//! The front end for Rust closures uses it. Executables have a record of their own
//! (`preempt_native::state`), because the end of their process, deadlines and descriptors concern
//! all threads at once, and no operation here does; their runtime shares only the source of
//! [`spin`]. The crate knows no coroutine, no process and no source position. A place in the
//! program is a number ([`SiteId`]) that the front end resolves.
//!
//! - [`op`]: operations ([`Op`]) and their outcomes
//! - [`names`]: names of threads and objects that are the same in every schedule
//! - [`recording`]: the current execution, fed by the front end and asked by strategies
//! - [`spin`]: which threads only wait by looping, so that others have to run first
//! - [`past`]: what happens before what
//! - [`race`]: what synchronises, for the [race detector](preempt_system::race)
//!
//! # Example
//!
//! A front end runs a program of two threads that lock a mutex, and gets back its trace:
//!
//! ```
//! use std::num::NonZeroU64;
//!
//! use preempt_replay::{Event, LoopRounds, Names, Op, OpKind, Outcome, Recording, SiteId};
//! use preempt_system::{Action, Choice, Kind, Status, ThreadId};
//!
//! let (main, child) = (ThreadId::new(0), ThreadId::new(1));
//! let site = SiteId::new(NonZeroU64::new(0x401_000).expect("a program counter is not 0"));
//!
//! // Objects are identified by something that does not depend on the schedule, such as the offset
//! // of a static variable. Here it is a number.
//! let mut names = Names::<u64>::new(2);
//! assert_eq!(names.child(0, 0), Ok(1), "the first child of the first thread");
//! let mutex = names.locate(0x10, Some(Kind::Mutex), "mutex", site);
//! let op = |action, verb| Op::new(OpKind::Object(action), mutex, verb, site);
//!
//! // Before the first step the main thread has started the child, and both want the mutex.
//! let mut recording = Recording::new(names, LoopRounds::default());
//! recording.begin();
//! recording.arrive(main, &op(Action::Lock, "lock")).expect("nothing was recorded before");
//! recording.arrive(child, &op(Action::Lock, "lock")).expect("nothing was recorded before");
//! recording.start([child].into_iter().collect());
//! recording.ready();
//! assert_eq!(recording.ask(child).status, Status::Enabled);
//!
//! // The main thread locks it and arrives at the unlock.
//! let locked = Event {
//!     choice: Choice::of(main),
//!     outcome: Outcome::default(),
//!     next: Some(op(Action::Unlock, "unlock")),
//!     started: Vec::new(),
//! };
//! recording.feed(&locked).expect("the mutex was free");
//! assert_eq!(recording.ask(child).status, Status::Blocked);
//!
//! // What if the child had been first? Nothing runs for the answer.
//! assert_eq!(recording.ask_at(&recording.initial(), child).status, Status::Enabled);
//!
//! // Back to the beginning, again without running anything.
//! recording.rewind(&[]);
//! assert_eq!(recording.ask(child).status, Status::Enabled);
//! ```
#![forbid(unsafe_code)]

pub mod history;
pub mod names;
pub mod objects;
pub mod op;
pub mod past;
pub mod race;
pub mod recording;
pub mod site;
pub mod spin;
pub mod state;
#[cfg(test)]
mod tests;

pub use history::History;
pub use names::{Description, Names};
pub use objects::Objects;
pub use op::{EarlyWake, Lookahead, NO_OBJECT, Op, OpKind, Outcome, Returns, Versions};
pub use recording::{Divergence, Event, Mode, Recording, Saved, StartedStep};
pub use site::SiteId;
pub use spin::LoopRounds;
pub use state::State;
