//! The partial-order reductions over executions: the figures of `data/reductions.toml`, errors put
//! in on purpose, and random programs against all their interleavings.

mod figures;
mod mutants;
mod oracle;
mod rounds;
pub(crate) mod watch;
