//! Programs on tokio's runtimes: see `tests/runtime.rs`.
