//! One source text for each test, compiled with each tool's mirrors of std.
//!
//! A source uses `super::{sync, thread, cell, Arc}` and nothing of a tool. All orderings are
//! sequentially consistent, except in the litmus tests. Shared objects are in the tool's `Arc`,
//! except with loom: it explores ten times as many executions with its own `Arc`, so it gets std's.

/// The sources with the mirrors of one tool, and their names.
macro_rules! sources {
    ($(#[$doc:meta])* $of:ident, $tool:ident, $cell:path, $arc:path) => {
        $(#[$doc])*
        // The sources are next to this file and are compiled once for each tool, which is their
        // purpose.
        #[path = "."]
        #[allow(clippy::duplicate_mod)]
        pub mod $of {
            pub mod chase_lev;
            pub mod counters;
            pub mod litmus;
            pub mod locks;
            pub mod probes;
            pub mod the;
            pub mod treiber;

            use $arc as Arc;
            use $cell as cell;
            use ::$tool::{sync, thread};

            /// The body of a test or of a probe.
            pub fn body(name: &str) -> Option<fn()> {
                Some(match name {
                    "atomic 2x5" => || counters::atomic(2, 5),
                    "atomic 3x2" => || counters::atomic(3, 2),
                    "atomic 3x3" => || counters::atomic(3, 3),
                    "mutex 2x3" => || counters::mutex(2, 3),
                    "mutex 3x2" => || counters::mutex(3, 2),
                    "independent 3x3" => || counters::independent::<3>(3),
                    "independent 4x3" => || counters::independent::<4>(3),
                    "independent 3x3 in a Vec" => || counters::independent_vec(3, 3),
                    "Treiber 2+1" => treiber::two_push_one_pops,
                    "Chase-Lev 3,2,1" => || chase_lev::right(3, 2, 1),
                    "Chase-Lev 3,2,2" => || chase_lev::right(3, 2, 2),
                    "THE 2,2,1" => || the::taken_once(2, 2, 1),
                    "buffer of 1, 2 items" => || locks::buffer(2),
                    "spin lock, yields" => locks::spin,
                    "ABBA" => locks::abba,
                    "Chase-Lev bug, 1 steal" => || chase_lev::wrong(3, 2, 1),
                    "Chase-Lev bug, 2 steals" => || chase_lev::wrong(3, 2, 2),
                    "atomic 4x250" => || counters::atomic(4, 250),
                    "mutex 4x100" => || counters::mutex(4, 100),
                    "redundant load" => probes::redundant_load,
                    "store buffering" => probes::store_buffering,
                    "swap and store" => probes::swap_and_store,
                    "orders" => probes::orders,
                    "wait_timeout" => probes::wait_timeout,
                    "spin" => probes::spin,
                    "six threads" => probes::six_threads,
                    "panic and join" => probes::panic_and_join,
                    "race" => probes::race,
                    "leak" => probes::leak,
                    name if crate::peers::rust::litmus::choose(name) => litmus::execute,
                    _ => return None,
                })
            }
        }
    };
}

sources!(
    /// The sources with Preempt's mirrors.
    of_preempt, preempt, ::preempt::cell, ::preempt::sync::Arc
);
#[cfg(feature = "peers")]
sources!(
    /// The sources with loom's mirrors.
    of_loom, loom, ::loom::cell, ::std::sync::Arc
);
#[cfg(feature = "peers")]
sources!(
    /// The sources with shuttle's mirrors.
    of_shuttle, shuttle, crate::peers::rust::plain, ::shuttle::sync::Arc
);
