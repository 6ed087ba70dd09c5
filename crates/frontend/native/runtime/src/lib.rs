//! The library that is loaded into an executable under test (`LD_PRELOAD`).
//!
//! It replaces the functions by which threads synchronise. Only one thread runs at a time: the one
//! that holds the *baton*. At every replaced function, before its effect, the running thread
//! announces its operation and the scheduler chooses which thread continues ([`schedule`]).
//!
//! ```text
//! hooks/*     the replaced functions: what the program calls
//! schedule    announces operations, chooses, hands over the baton, writes the log
//! objects     the states of all synchronisation objects, by address
//! descriptors which can make a thread wait, and when they are ready
//! entries     the beginnings of precompiled functions as scheduling points
//! trap        system calls that the program makes without libc
//! threads     creation, the baton, the end of a thread
//! race        data races on plain memory
//! spins       which threads wait by looping
//! heap        the memory that the program allocates
//! server      the start of the process, the fork server, the end of the process
//! sys, real   raw system calls; the functions that were replaced
//! ```
//!
//! # Rules
//!
//! 1. Objects are modelled, not wrapped: a mutex of the program is an entry of a table, and the
//!    real `pthread_mutex_lock` is never called. The table uses the same source as the rest of
//!    Preempt ([`object`]), so an object means the same here and in the controller.
//! 2. Only the thread with the baton runs, so only it touches the state of this library: no locks
//!    are needed, and there are none.
//! 3. Nothing here allocates, and nothing calls a function that may be replaced: system calls are
//!    made directly, and the tables have fixed sizes.
//! 4. Threads unwind through the hooks (`pthread_exit`, C++ exceptions), so hooks are `C-unwind`
//!    and have no values with destructors.
//! 5. A thread never ends for the kernel: it is parked after its last operation, and the end of the
//!    process ends it. Otherwise the C library would dismantle it while the next thread runs, and
//!    the addresses of later allocations would depend on which thread is faster.
//!
//! The build script of `preempt-native` compiles this crate by calling `rustc`, without cargo: the
//! result is embedded into the controller, so that there is no file to install. For that reason the
//! crate has no dependencies, and includes the files that it shares with other crates by their
//! paths.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")))]
compile_error!("the runtime is written for Linux on x86-64 with glibc");

#[path = "../../block/src/lib.rs"]
#[allow(dead_code, unused_attributes, reason = "the controller uses the rest")]
mod block;

/// The semantics of synchronisation objects: the same source as in `preempt-system`.
#[path = "../../../../system/src/object/mod.rs"]
#[allow(dead_code, unused_imports, reason = "strategies and other front ends use the rest")]
mod object;

#[path = "../../../../system/src/mover.rs"]
#[allow(dead_code, reason = "the semantics of objects mention movers, which only strategies use")]
mod mover;

#[path = "../../../../system/src/thread.rs"]
#[allow(dead_code, reason = "strategies use the rest")]
mod thread;

/// The part of `preempt_system::footprint` that the semantics of objects mention.
mod footprint {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Access {
        Read,
        Write,
    }
}

/// Which threads only wait by looping: the same source as in `preempt-replay`.
#[path = "../../../replay/src/spin.rs"]
#[allow(dead_code, reason = "closures use the rest")]
mod spin;

mod descriptors;
mod entries;
mod heap;
mod hooks;
mod objects;
mod op;
mod race;
mod real;
mod schedule;
mod server;
mod site;
mod spins;
mod sys;
mod threads;
mod trap;
