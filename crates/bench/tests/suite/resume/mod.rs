//! Searches that pause, and searches that are resumed from a checkpoint, against uninterrupted
//! ones: the same outcome in everything but the time.
//!
//! Nothing here depends on how fast the machine is: searches call their keeper and their observer
//! after a number of steps, and these count the calls.

mod agree;
mod refused;
mod tape;
