//! What every strategy is made of: models as programs, cursors over executions, stores, counts,
//! limits, checkpoints.

pub(crate) mod census;
pub mod checkpoint;
pub mod cursor;
pub mod estimate;
pub mod execution;
pub(crate) mod expand;
pub(crate) mod explored;
pub(crate) mod failures;
pub(crate) mod found;
pub mod memory;
pub mod model;
pub(crate) mod names;
pub mod observer;
pub mod pcg;
pub mod points;
pub mod race;
pub(crate) mod rounds;
pub(crate) mod sampler;
pub(crate) mod sharded;
pub(crate) mod store;
pub mod waits;
pub(crate) mod watch;
