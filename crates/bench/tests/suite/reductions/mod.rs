//! The partial-order reductions over executions: the figures of `data/reductions.toml`, seeded
//! errors, and random programs compared with all their interleavings.

mod figures;
mod mutants;
mod oracle;
mod rounds;
pub(crate) mod watch;
