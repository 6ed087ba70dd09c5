//! The library that is loaded into an executable under test (`LD_PRELOAD`).
//!
//! It replaces the functions with which threads synchronise. Only one thread runs at a time: the
//! one that holds the *baton*. When the running thread calls a replaced function, it announces its
//! operation, and the scheduler chooses which thread continues ([`schedule`]), before the function
//! has any effect.
//!
//! ```text
//! hooks/*     the functions that the program calls instead of the C library's
//! schedule    announces operations, chooses, hands over the baton, writes the log
//! objects     the states of all synchronisation objects, by address
//! descriptors descriptors that can block a thread, and when they are ready
//! entries     scheduling points at the entries of precompiled functions
//! locked      atomic instructions of programs without instrumentation
//! trap        system calls that the program makes without libc
//! threads     creation of threads, the baton, ends of threads
//! race        data races on plain memory
//! spins       threads that wait in a loop
//! heap        the memory that the program allocates
//! server      the start of the process, the fork server, fatal signals
//! sys, real   raw system calls; the functions of the C library that were replaced
//! ```
//!
//! # Rules
//!
//! 1. Objects are modelled, not wrapped: a mutex of the program is an entry of a table, and the
//!    real `pthread_mutex_lock` is never called. The table uses the same source as the rest of
//!    Preempt ([`object`]), so an object has the same meaning here and in the controller.
//! 2. Only the thread with the baton runs, so only it accesses the state of this library. There are
//!    no locks.
//! 3. Nothing here allocates, and nothing calls a function that may be replaced: system calls are
//!    made directly, and the tables have fixed sizes.
//! 4. Threads unwind through the hooks (`pthread_exit`, C++ exceptions), so hooks are `C-unwind`
//!    and have no values with destructors, except where unwinding has an effect (`hooks::once`).
//! 5. A kernel thread never ends by itself: it is parked after its last operation until the process
//!    ends. Otherwise the C library would clean it up while the next thread runs, and the addresses
//!    of later allocations would depend on which thread is faster.
//!
//! The build script of `preempt-native` compiles this crate by calling `rustc`, without cargo, and
//! embeds the result into the controller, so that there is no file to install. For that reason the
//! crate has no dependencies, and includes the files that it shares with other crates by path.

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

/// Detection of threads that wait in a loop: the same source as in `preempt-replay`.
#[path = "../../../replay/src/spin.rs"]
#[allow(dead_code, reason = "closures use the rest")]
mod spin;

mod descriptors;
mod entries;
mod heap;
mod hooks;
mod locked;
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
