//! The models in stateright's API, step by step the same as `corpus/bench/phil.pre` and
//! `corpus/two-phase-commit/model.pre`.

use stateright::{Checker, Model, Property};

use super::Subject;

/// Distinct states, and steps taken between them.
pub(super) fn search(subject: Subject, size: u32, jobs: usize) -> (u64, u64) {
    match subject {
        Subject::Philosophers => explore(Philosophers { n: size }, jobs),
        Subject::TwoPhaseCommit => explore(TwoPhaseCommit { managers: size }, jobs),
    }
}

fn explore<M>(model: M, jobs: usize) -> (u64, u64)
where
    M: Model + Send + Sync + 'static,
    M::State: std::fmt::Debug + std::hash::Hash + Send + Sync + Clone + PartialEq + 'static,
    M::Action: std::fmt::Debug + Clone + PartialEq + Send + Sync,
{
    let checker = model.checker().threads(jobs).spawn_bfs().join();
    // It counts the initial state as generated too.
    (checker.unique_state_count() as u64, checker.state_count() as u64 - 1)
}

/// Take the left fork, take the right one, put the left one down, put the right one down; forever.
struct Philosophers {
    n: u32,
}

/// A bit for every fork that is taken, and two for the next action of every philosopher.
#[derive(Clone, Debug, PartialEq, Hash)]
struct Table {
    taken: u32,
    next: u64,
}

impl Model for Philosophers {
    type State = Table;
    type Action = u32;

    fn init_states(&self) -> Vec<Table> {
        vec![Table { taken: 0, next: 0 }]
    }

    fn actions(&self, table: &Table, actions: &mut Vec<u32>) {
        actions.extend((0..self.n).filter(|&i| match table.next >> (2 * i) & 3 {
            0 => table.taken >> i & 1 == 0,
            1 => table.taken >> ((i + 1) % self.n) & 1 == 0,
            _ => true,
        }));
    }

    fn next_state(&self, table: &Table, i: u32) -> Option<Table> {
        let place = table.next >> (2 * i) & 3;
        let fork = if place.is_multiple_of(2) { i } else { (i + 1) % self.n };
        let next = table.next & !(3 << (2 * i)) | ((place + 1) & 3) << (2 * i);
        Some(Table { taken: table.taken ^ 1 << fork, next })
    }

    fn properties(&self) -> Vec<Property<Self>> {
        // stateright searches only while some property has not failed.
        vec![Property::always("forks are counted", |model: &Philosophers, table: &Table| {
            table.taken >> model.n == 0
        })]
    }
}

struct TwoPhaseCommit {
    managers: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Hash)]
enum Decision {
    None,
    Commit,
    Abort,
}

/// Sets of managers, a bit for each. A manager in none of the first three is working.
#[derive(Clone, Debug, PartialEq, Hash)]
struct Protocol {
    prepared: u16,
    committed: u16,
    aborted: u16,
    sent: u16,
    received: u16,
    decision: Decision,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Move {
    Prepare(u32),
    GiveUp(u32),
    Learn(u32),
    Receive(u32),
    Commit,
    Abort,
}

impl Model for TwoPhaseCommit {
    type State = Protocol;
    type Action = Move;

    fn init_states(&self) -> Vec<Protocol> {
        vec![Protocol {
            prepared: 0,
            committed: 0,
            aborted: 0,
            sent: 0,
            received: 0,
            decision: Decision::None,
        }]
    }

    fn actions(&self, state: &Protocol, actions: &mut Vec<Move>) {
        let working = !(state.prepared | state.committed | state.aborted);
        let undecided = state.decision == Decision::None;
        for i in 0..self.managers {
            if working >> i & 1 == 1 {
                actions.extend([Move::Prepare(i), Move::GiveUp(i)]);
            }
            let learned = match state.decision {
                Decision::None => 1,
                Decision::Commit => state.committed >> i & 1,
                Decision::Abort => state.aborted >> i & 1,
            };
            if learned == 0 {
                actions.push(Move::Learn(i));
            }
            if undecided && (state.sent & !state.received) >> i & 1 == 1 {
                actions.push(Move::Receive(i));
            }
        }
        if undecided {
            if state.received == (1 << self.managers) - 1 {
                actions.push(Move::Commit);
            }
            actions.push(Move::Abort);
        }
    }

    fn next_state(&self, state: &Protocol, action: Move) -> Option<Protocol> {
        let mut next = state.clone();
        match action {
            Move::Prepare(i) => {
                next.prepared |= 1 << i;
                next.sent |= 1 << i;
            }
            Move::GiveUp(i) => next.aborted |= 1 << i,
            Move::Learn(i) => {
                next.prepared &= !(1 << i);
                match state.decision {
                    Decision::Commit => {
                        (next.committed, next.aborted) =
                            (next.committed | 1 << i, next.aborted & !(1 << i))
                    }
                    _ => {
                        (next.aborted, next.committed) =
                            (next.aborted | 1 << i, next.committed & !(1 << i))
                    }
                }
            }
            Move::Receive(i) => next.received |= 1 << i,
            Move::Commit => next.decision = Decision::Commit,
            Move::Abort => next.decision = Decision::Abort,
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("consistent", |_, state: &Protocol| {
            state.committed == 0 || state.aborted == 0
        })]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_have_the_expected_numbers_of_states() {
        assert_eq!(search(Subject::Philosophers, 5, 1).0, 3u64.pow(5) - 1);
        assert_eq!(search(Subject::TwoPhaseCommit, 3, 1), (288, 761));
        assert_eq!(search(Subject::TwoPhaseCommit, 5, 2).0, 8_832);
    }
}
