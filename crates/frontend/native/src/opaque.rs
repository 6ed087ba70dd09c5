//! Which atomic variables are opaque under weak memory: precompiled code may access them too.
//!
//! [`crate::weak`] has the rule and the reasons.

use std::collections::{BTreeSet, HashMap};

use preempt_system::Site;

use crate::names::Names;
use crate::program::{Native, Need};
use crate::state::{Op, Outcome};
use crate::trace::Trace;

/// The code to which an operation belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Rust's std, parts of which are precompiled.
    Std,
    /// Other code, all of which is instrumented.
    Instrumented,
    /// There are no line tables.
    Unknown,
}

/// The folders of the standard library.
const STD: &str = "/library/std/src/";
const CORE: &str = "/library/core/src/";

/// The code to which an operation belongs whose source positions are `places`, the innermost first.
/// An atomic operation is a function of `core`, and belongs to the code that calls it.
pub(crate) fn origin(places: impl Iterator<Item = Site>) -> Origin {
    let mut origin = Origin::Unknown;
    for site in places {
        if site.file.contains(STD) {
            return Origin::Std;
        }
        if !site.file.contains(CORE) {
            return Origin::Instrumented;
        }
        // If all callers are unknown, the operation may be one of std.
        origin = Origin::Std;
    }
    origin
}

/// Finds the opaque variables of an execution. `Err` if the search has to start over because an
/// execution has shown that a variable is opaque, or if the code of an operation is not known.
pub(crate) fn find(program: &Native, trace: &Trace, names: &Names) -> Result<BTreeSet<u32>, Need> {
    let steps = trace.operations().map(|(_, _, op, step)| (op, step.outcome));
    let address = |location: u32| names.object(location).map(|object| object.address);
    let is_known = |location: &u32| {
        address(*location).is_some_and(|address| program.opaque.contains(&address))
    };
    let changed = changed_invisibly(steps);
    if changed.iter().any(|location| !is_known(location)) {
        return Err(program.hide(changed.iter().copied().filter_map(address)));
    }
    let mut opaque = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for (thread, nth, op, _) in trace.operations().filter(|(_, _, op, _)| op.kind.is_atomic()) {
        if !seen.insert(op.object) {
            continue;
        }
        let frames = trace.frames.get(&(thread, nth)).map_or(&[][..], Vec::as_slice);
        match program.origin(op.pc, frames) {
            Origin::Std => _ = opaque.insert(op.object),
            Origin::Instrumented if is_known(&op.object) => _ = opaque.insert(op.object),
            Origin::Instrumented => {}
            Origin::Unknown => return Err(program.refuse_without_lines()),
        }
    }
    Ok(opaque)
}

/// The variables that code without instrumentation has changed, as far as the values show it, that
/// are accessed by operations of different sizes, or whose values are too large for the machine.
fn changed_invisibly(steps: impl Iterator<Item = (Op, Outcome)>) -> BTreeSet<u32> {
    let mut left = HashMap::new();
    let mut changed = BTreeSet::new();
    for (op, outcome) in steps.filter(|(op, _)| op.kind.is_atomic()) {
        let size = op.detail.size;
        // A stale operation leaves memory as it is.
        let is_stale = outcome.alternative != 0;
        let after = if is_stale { outcome.memory } else { outcome.left };
        let before = left.insert(op.object, (size, after));
        if size > 8 || before.is_some_and(|before| before != (size, outcome.memory)) {
            changed.insert(op.object);
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use preempt_native_block::{NEVER, Op as OpKind};

    use super::*;
    use crate::state::Detail;

    #[test]
    fn the_caller_of_an_atomic_operation_decides_its_origin() {
        let of = |files: &[&str]| {
            let site = |file: &&str| Site { file: Arc::from(*file), line: 1, column: 1 };
            origin(files.iter().map(site))
        };
        let core = "/rustc/abc/library/core/src/sync/atomic.rs";
        let mutex = "/rustc/abc/library/std/src/sys/sync/mutex/futex.rs";
        let arc = "/usr/lib/rustlib/src/rust/library/alloc/src/sync.rs";
        assert_eq!(of(&[core, mutex, "src/main.rs"]), Origin::Std);
        assert_eq!(of(&[core, core, arc, mutex]), Origin::Instrumented);
        assert_eq!(of(&[core, "src/main.rs", mutex]), Origin::Instrumented);
        assert_eq!(of(&["lock.c"]), Origin::Instrumented);
        assert_eq!(of(&[core]), Origin::Std, "its caller is not known");
        assert_eq!(of(&[]), Origin::Unknown);
    }

    #[test]
    fn values_show_what_invisible_code_has_written() {
        let op = |object, size| Op {
            kind: OpKind::FetchAdd,
            object,
            other: crate::names::NOTHING,
            pc: 0,
            detail: Detail { size, ..Detail::default() },
            time: 0,
            deadline: NEVER,
        };
        let adds =
            |memory| Outcome { memory, found: memory, left: memory + 1, ..Outcome::default() };
        let stale = |memory, found| Outcome { memory, found, alternative: 1, ..Outcome::default() };
        let of = |steps: &[(Op, Outcome)]| -> Vec<u32> {
            changed_invisibly(steps.iter().copied()).into_iter().collect()
        };
        assert_eq!(of(&[(op(1, 4), adds(0)), (op(1, 4), adds(1)), (op(2, 4), adds(7))]), []);
        assert_eq!(of(&[(op(1, 4), adds(0)), (op(2, 4), adds(1)), (op(1, 4), adds(3))]), [1]);
        assert_eq!(of(&[(op(1, 4), adds(0)), (op(1, 2), adds(1))]), [1], "two sizes");
        assert_eq!(of(&[(op(1, 16), adds(0))]), [1], "too large");
        assert_eq!(of(&[(op(1, 4), adds(0)), (op(1, 4), stale(1, 0)), (op(1, 4), adds(1))]), []);
        assert_eq!(of(&[(op(1, 4), adds(0)), (op(1, 4), stale(2, 0))]), [1]);
    }
}
