//! Wakeup trees: the beginnings of executions that have to be explored from a place, in their order.

use std::collections::VecDeque;

use preempt_system::{Choice, Footprint};

use crate::save::{Damaged, Reader, Save, Writer, save_fields};

/// A step and what it touches.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) choice: Choice,
    pub(super) footprint: Footprint,
}

save_fields!(Event { choice, footprint });

impl Event {
    /// Whether the order of the two matters.
    pub(super) fn depends(&self, other: &Event) -> bool {
        self.choice.thread == other.choice.thread || self.footprint.depends(&other.footprint)
    }
}

/// The trees of a place: what to explore first, second, and so on. A branch ends where the search is free.
#[derive(Clone, Debug, Default)]
pub(super) struct WakeupTree(VecDeque<(Event, WakeupTree)>);

impl Save for WakeupTree {
    /// Each step with how many branches there are after it: trees are as deep as executions, and nothing here calls itself.
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.0.len());
        let mut rest: Vec<&(Event, WakeupTree)> = self.0.iter().rev().collect();
        while let Some((event, tree)) = rest.pop() {
            to.put(event);
            to.put(&tree.0.len());
            rest.extend(tree.0.iter().rev());
        }
    }

    fn load(from: &mut Reader) -> Result<WakeupTree, Damaged> {
        let mut whole = WakeupTree::default();
        // The branches on the way, each with how many are still to be read after it.
        let mut way: Vec<(Option<Event>, WakeupTree, usize)> = vec![(None, WakeupTree::default(), from.count()?)];
        while let Some((_, _, left)) = way.last_mut() {
            if *left > 0 {
                *left -= 1;
                let event = from.get()?;
                way.push((Some(event), WakeupTree::default(), from.count()?));
                continue;
            }
            let (event, tree, _) = way.pop().expect("there is a last");
            match (event, way.last_mut()) {
                (Some(event), Some((_, before, _))) => before.0.push_back((event, tree)),
                _ => whole = tree,
            }
        }
        Ok(whole)
    }
}

impl WakeupTree {
    /// Whether nothing is prescribed.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a step after all that are there.
    pub(super) fn push(&mut self, event: Event) {
        self.0.push_back((event, WakeupTree::default()));
    }

    /// Takes the first step, with what is prescribed after it.
    pub(super) fn pop(&mut self) -> Option<(Event, WakeupTree)> {
        self.0.pop_front()
    }

    /// Sees to it that an execution equivalent to one that begins with `sequence` is explored.
    pub(super) fn insert(&mut self, sequence: &[Event]) {
        let mut tree = self;
        let mut rest: Vec<Event> = sequence.to_vec();
        loop {
            let found = tree.0.iter().position(|(event, _)| strip(event, &mut rest));
            let Some(at) = found else { break };
            tree = &mut tree.0[at].1;
            if tree.is_empty() {
                // Whatever follows here is explored.
                return;
            }
        }
        for event in rest {
            tree.push(event);
            tree = &mut tree.0.back_mut().expect("it was just added").1;
        }
    }
}

/// Whether a step is a *weak initial* of a sequence: whether an execution that begins with the sequence is equivalent to one that
/// begins with the step.
pub(super) fn is_weak_initial(event: &Event, sequence: &[Event]) -> bool {
    is_weak_initial_of(event, sequence.iter().map(|event| (event.choice, &event.footprint)))
}

/// The same of steps that are told one by one.
pub(super) fn is_weak_initial_of<'f>(
    event: &Event,
    mut sequence: impl Iterator<Item = (Choice, &'f Footprint)>,
) -> bool {
    let thread = event.choice.thread;
    let first = sequence.find(|(choice, touched)| choice.thread == thread || event.footprint.depends(touched));
    first.is_none_or(|(choice, _)| choice == event.choice)
}

/// Takes a step out of the sequence if it is a weak initial of it. Says whether it is.
fn strip(event: &Event, sequence: &mut Vec<Event>) -> bool {
    let is = is_weak_initial(event, sequence);
    if is && let Some(at) = sequence.iter().position(|other| other.choice.thread == event.choice.thread) {
        sequence.remove(at);
    }
    is
}

#[cfg(test)]
mod tests {
    use preempt_system::{Access, Location, ThreadId};

    use super::*;

    /// A step of a thread that writes a location.
    fn write(thread: usize, location: u32) -> Event {
        let footprint = [(Location(location), Access::Write)].into_iter().collect();
        Event { choice: Choice::of(ThreadId::new(thread)), footprint }
    }

    fn branches(tree: &WakeupTree) -> Vec<Vec<usize>> {
        let below = |(event, tree): &(Event, WakeupTree)| {
            let rests = if tree.is_empty() { vec![Vec::new()] } else { branches(tree) };
            let thread = event.choice.thread.index();
            rests.into_iter().map(move |rest| [vec![thread], rest].concat()).collect::<Vec<_>>()
        };
        tree.0.iter().flat_map(below).collect()
    }

    #[test]
    fn a_sequence_follows_what_it_is_equivalent_to_and_then_branches() {
        let mut tree = WakeupTree::default();
        tree.insert(&[write(0, 1), write(1, 2)]);
        tree.insert(&[write(1, 2), write(0, 1)]);
        assert_eq!(branches(&tree), [[0, 1]], "the same in another order");
        tree.insert(&[write(2, 2), write(0, 1), write(1, 2)]);
        assert_eq!(branches(&tree), [vec![0, 1], vec![0, 2, 1]], "the same at first");
        tree.insert(&[write(2, 1)]);
        assert_eq!(branches(&tree), [vec![0, 1], vec![0, 2, 1], vec![2]], "another beginning");
        tree.insert(&[write(3, 7)]);
        assert_eq!(branches(&tree).len(), 3, "independent of all of a branch that then is free");
    }

    #[test]
    fn another_alternative_is_another_step() {
        let other = Event { choice: Choice { thread: ThreadId::new(0), alternative: 1 }, ..write(0, 1) };
        assert!(!is_weak_initial(&other, &[write(1, 2), write(0, 1)]));
        assert!(is_weak_initial(&write(0, 1), &[write(1, 2), write(0, 1)]));
        assert!(!is_weak_initial(&write(0, 1), &[write(1, 1), write(0, 1)]));
    }
}
