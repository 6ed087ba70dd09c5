//! The partial-order reductions over executions: the figures of reference/bounded.md (`data/reductions.toml`), programs on which
//! unsound combinations lose something, errors put in on purpose, and random programs against all their interleavings.

mod figures;
mod mutants;
mod oracle;
mod watch;
mod witnesses;
