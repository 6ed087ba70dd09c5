//! Searches that pause, and searches that go on from a checkpoint, against those that run through:
//! the same outcome in everything but the time.
//!
//! Nothing here depends on how fast the machine is: searches look at their keeper and their
//! observer after a number of steps, and these count how often they are looked at.

mod agree;
mod refused;
mod tape;
