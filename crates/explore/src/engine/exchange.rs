//! What a search in several processes needs from the network.
//!
//! Every state belongs to one process, its [owner](owner_of), which stores and expands it. A
//! process that finds a state of another one sends it there. The search is level-synchronous: all
//! processes expand level k, then all of them have received level k + 1. A level is cut into
//! *rounds*, so that a fast process does not flood a slow one: no process begins a round before
//! everything that was sent two rounds ago has arrived.
//!
//! The engine decides nothing that depends on when messages arrive. All decisions follow from data
//! that every process [gathers](Exchange::gather) between two levels, so every process makes the
//! same ones and none of them leads.

use std::fmt;

/// The position of a process in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The number of this process, from 0.
    pub process: usize,
    /// The number of processes.
    pub processes: usize,
    /// How states are sent.
    pub form: Form,
}

/// The form in which states are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As they are: the least CPU time. For processes on one machine, and for fast networks.
    Raw,
    /// Sorted, as differences: the fewest bytes. For slow networks.
    Sorted,
}

/// Another process has ended or does not answer, so the search cannot continue. The implementation
/// of [`Exchange`] knows more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("another process of the search has ended or does not answer")
    }
}

impl std::error::Error for Lost {}

/// What a process does after a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// It may send more states of this level.
    More,
    /// It sends nothing more in this level.
    Last,
}

/// Takes what arrives while a process waits.
pub trait Inbox {
    /// Takes a parcel that another process has sent.
    fn receive(&mut self, parcel: &[u8]);

    /// Another process asks to [stop](Exchange::stop).
    fn stop(&mut self);

    /// Called several times per second while nothing arrives.
    fn idle(&mut self);
}

/// Connects a process with the others.
///
/// All processes call [`end_round`](Exchange::end_round) with [`Round::Last`] and
/// [`gather`](Exchange::gather) in the same order, the former at most once between two calls of the
/// latter. Several threads may send; one calls the other functions.
pub trait Exchange: Sync {
    /// The position of this process.
    fn place(&self) -> Place;

    /// Sends a parcel to another process. Never waits.
    fn send(&self, to: usize, parcel: Vec<u8>);

    /// Asks all processes to end the level early. The reason follows in the data that is gathered
    /// next.
    fn stop(&self);

    /// Ends a round. Returns when the next one may begin; after the last one, when everything that
    /// any process has sent in this level was received.
    fn end_round(&self, round: Round, inbox: &mut dyn Inbox) -> Result<(), Lost>;

    /// Sends `data` to all processes and returns what each of them has sent, in their order.
    fn gather(&self, data: Vec<u8>) -> Result<Vec<Vec<u8>>, Lost>;
}

/// The process that stores the state with this hash. Stores place states by the upper half of the
/// hash; with the lower half here, the states of one process are spread over its whole table.
#[inline(always)]
pub(crate) fn owner_of(hash: u64, processes: usize) -> usize {
    (((hash & 0xffff_ffff) * processes as u64) >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::store::hash::hash;

    #[test]
    fn every_process_owns_about_as_many_states() {
        for processes in 1..=9 {
            let mut owned = vec![0u32; processes];
            for state in 0..90_000u64 {
                owned[owner_of(hash::<1>(&[2 * state + 1]), processes)] += 1;
            }
            let share = 90_000 / processes as u32;
            let fair = |&count: &u32| count.abs_diff(share) < share / 20;
            assert!(owned.iter().all(fair), "{owned:?}");
        }
    }

    #[test]
    fn the_owner_is_the_lower_half_of_the_hash_in_equal_parts() {
        let owners = [0, 0x3fff_ffff, 0x4000_0000, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
        assert_eq!(owners.map(|hash| owner_of(hash, 4)), [0, 0, 1, 1, 2, 3]);
        assert_eq!(owners.map(|hash| owner_of(hash | 7 << 40, 4)), [0, 0, 1, 1, 2, 3]);
    }
}
