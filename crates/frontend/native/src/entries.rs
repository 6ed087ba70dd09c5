//! Finds precompiled functions of Rust's standard library that get a scheduling point at their
//! entry.
//!
//! `runtime/src/entries.rs` explains which functions these are and why. They are found by their
//! names in the symbol table; a function that the program does not use is not linked into it.

use object::{Object as _, ObjectSymbol as _, SymbolKind};
use preempt_native_block::{Entry, MAX_ENTRIES, Op};

/// A function, and its name in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) entry: Entry,
    pub(crate) name: String,
}

/// The precompiled functions of an executable that get a scheduling point at their entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Functions {
    pub(crate) found: Vec<Function>,
    /// Whether the executable has no symbols, so that no function can be found.
    pub(crate) stripped: bool,
}

impl Functions {
    pub(crate) fn of(file: &object::File<'_>) -> Functions {
        let mut found: Vec<Function> = file
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition())
            .filter_map(|symbol| {
                let (name, op) = operation(symbol.name().ok()?)?;
                let (address, size) = (symbol.address(), symbol.size() as u32);
                Some(Function { entry: Entry { address, op: op as u32, size }, name })
            })
            .collect();
        // Several symbols can name the same function.
        found.sort_by_key(|function| function.entry.address);
        found.dedup_by_key(|function| function.entry.address);
        found.truncate(MAX_ENTRIES);
        Functions { found, stripped: file.symbols().next().is_none() }
    }
}

/// The source name of a function and the operation at its entry, if that becomes a scheduling
/// point.
fn operation(symbol: &str) -> Option<(String, Op)> {
    // Demangling thousands of long names would take long.
    if !["Condvar", "Barrier", "Once", "park"].iter().any(|part| symbol.contains(part)) {
        return None;
    }
    // `<std::sync::barrier::Barrier>::wait`, or the same without brackets.
    let path = format!("{:#}", rustc_demangle::demangle(symbol)).replace(['<', '>'], "");
    let parts: Vec<&str> = path.split("::").collect();
    let ["std", .., class, function] = parts[..] else { return None };
    let op = match (class, function) {
        // `wait_timeout` calls one of these.
        ("Condvar", "wait" | "wait_optional_timeout") if path.contains("::futex::") => {
            Op::EnterWait
        }
        ("Condvar", "notify_one" | "notify_all") => Op::EnterWrite,
        ("Barrier", "wait") => Op::EnterWrite,
        // A search over all schedules does not need this one. It declares that the call writes.
        ("Once", "call" | "wait") if path.contains("::futex::") => Op::EnterWrite,
        ("Thread" | "thread" | "functions", "park" | "park_timeout") => Op::Enter,
        _ => return None,
    };
    Some((format!("{class}::{function}").replace("functions::", "thread::"), op))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_recognised_by_their_symbols() {
        let of = |symbol: &str| operation(symbol).map(|(name, op)| (name, op as u32));
        let known = |name: &str, op: Op| Some((name.to_owned(), op as u32));
        let condvar = "_RNvMNtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync7condvar5futexNtB2_7Condvar";
        assert_eq!(of(&format!("{condvar}4wait")), known("Condvar::wait", Op::EnterWait));
        assert_eq!(of(&format!("{condvar}12wait_timeout")), None);
        let legacy = "_ZN3std3sys4sync7condvar5futex7Condvar4wait17hcab2a95db88e1cf5E";
        assert_eq!(of(legacy), known("Condvar::wait", Op::EnterWait));
        let notify = "_RNvMNtNtNtCsjrHSEGnQ3l9_3std4sync6poison7condvarNtB2_7Condvar10notify_one";
        assert_eq!(of(notify), known("Condvar::notify_one", Op::EnterWrite));
        let barrier = "_RNvMs0_NtNtCsjrHSEGnQ3l9_3std4sync7barrierNtB5_7Barrier4wait";
        assert_eq!(of(barrier), known("Barrier::wait", Op::EnterWrite));
        let once = "_RNvMs0_NtNtNtNtCsjrHSEGnQ3l9_3std3sys4sync4once5futexNtB5_4Once4call";
        assert_eq!(of(once), known("Once::call", Op::EnterWrite));
        let park = "_RNvNtNtCsjrHSEGnQ3l9_3std6thread9functions4park";
        assert_eq!(of(park), known("thread::park", Op::Enter));
        assert_eq!(of("park"), None);
        assert_eq!(of("_ZN11parking_lot7Condvar4wait17hcab2a95db88e1cf5E"), None);
    }
}
