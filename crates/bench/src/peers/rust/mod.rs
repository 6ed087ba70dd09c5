//! loom and shuttle on the same sources as Preempt.

pub mod child;
pub mod meter;
pub mod plain;
pub mod sources;
pub mod tools;

pub use self::child::Ask;
pub use self::tools::{Tool, Way};

/// What to do if loom and shuttle were not built.
pub const HOW: &str = "loom and shuttle are built on request only: \
    cargo run --release -p preempt-bench --features peers -- peers rust";

/// Prints the tables.
pub fn compare(_quick: bool) -> anyhow::Result<bool> {
    if !cfg!(feature = "peers") {
        anyhow::bail!("{HOW}");
    }
    Ok(true)
}
