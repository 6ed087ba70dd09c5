//! Wakeup trees: the prefixes of executions that have to be explored from a place, in their order.

use std::collections::VecDeque;

use preempt_system::{Choice, Footprint, ThreadId};
use smallvec::SmallVec;

use crate::codec::{Damaged, Reader, Save, Writer, save_fields};

/// A step of a sequence that may have to be explored.
#[derive(Clone, Copy)]
pub(super) struct SequenceStep<'f> {
    pub(super) choice: Choice,
    pub(super) footprint: &'f Footprint,
    /// An execution that shares this many steps, from the beginning, with the current one contains
    /// the step too, and in its sequence the same steps come before it.
    pub(super) shown: usize,
    /// The same, counting only steps that are related to this step.
    pub(super) alone: usize,
    /// Whether the thread has [other alternatives](Event::chooses) there.
    pub(super) chooses: bool,
}

/// More steps than two executions can share: the claim holds for the current execution only.
pub(super) const THIS_ONE: usize = usize::MAX;

impl<'f> SequenceStep<'f> {
    /// A step that is not in the current execution.
    pub(super) fn new(choice: Choice, footprint: &'f Footprint, chooses: bool) -> Self {
        SequenceStep { choice, footprint, shown: THIS_ONE, alone: THIS_ONE, chooses }
    }

    /// The number of steps, from the beginning, that show that this is the first of its sequence
    /// that is related to an event, if it is.
    #[inline]
    pub(super) fn shows(&self, event: &Event) -> usize {
        let same = self.choice == event.choice && *self.footprint == event.footprint;
        if same { self.alone } else { self.shown }
    }
}

/// A step and what it touches.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) choice: Choice,
    pub(super) footprint: Footprint,
    /// Whether the thread has several alternatives there. Then this step covers nothing for the
    /// others.
    pub(super) chooses: bool,
}

save_fields!(Event { choice, footprint, chooses });

impl Event {
    /// Whether the two steps are dependent or the same.
    #[inline]
    pub(super) fn is_related(&self, choice: Choice, footprint: &Footprint) -> bool {
        self.choice.thread == choice.thread || self.footprint.depends(footprint)
    }
}

/// The ordered trees of a place: what to explore first, second, and so on. Where a branch ends, the
/// search is free to choose.
#[derive(Clone, Debug, Default)]
pub(super) struct WakeupTree(VecDeque<(Event, WakeupTree)>);

impl Save for WakeupTree {
    /// Each step with how many branches there are after it: trees are as deep as executions, so the
    /// encoding is not recursive.
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
        // The current path, with the number of branches still to be read at each node.
        let mut path: Vec<(Option<Event>, WakeupTree, usize)> =
            vec![(None, WakeupTree::default(), from.count()?)];
        while let Some((_, _, left)) = path.last_mut() {
            if *left > 0 {
                *left -= 1;
                let event = from.get()?;
                path.push((Some(event), WakeupTree::default(), from.count()?));
                continue;
            }
            let (event, tree, _) = path.pop().expect("the path is not empty");
            match (event, path.last_mut()) {
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

    /// Appends a step.
    pub(super) fn push(&mut self, event: Event) {
        self.0.push_back((event, WakeupTree::default()));
    }

    /// Takes the first step, with what is prescribed after it.
    pub(super) fn pop(&mut self) -> Option<(Event, WakeupTree)> {
        self.0.pop_front()
    }

    /// Ensures that an execution equivalent to one with the prefix `sequence` is explored.
    pub(super) fn insert<'f>(
        &mut self,
        sequence: impl Iterator<Item = SequenceStep<'f>>,
    ) -> Prescription {
        let (mut tree, mut shown) = (&mut *self, 0);
        let mut rest = Rest::new();
        sequence.for_each(|step| rest.push(step));
        let mut path: SmallVec<[(usize, Initial); 8]> = SmallVec::new();
        loop {
            let events = tree.0.iter().enumerate();
            let initial = |(at, (event, _)): (usize, &(Event, WakeupTree))| {
                Some((at, strip(event, &mut rest, &mut shown)?))
            };
            let Some((at, initial)) = { events }.find_map(initial) else { break };
            path.push((at, initial));
            if initial == Initial::Weak && tree.0[at].0.chooses {
                return self.open(&path);
            }
            tree = &mut tree.0[at].1;
            if tree.is_empty() {
                // Everything that follows is explored.
                return Prescription::Covered(shown);
            }
        }
        for SequenceStep { choice, footprint, chooses, .. } in rest {
            tree.push(Event { choice, footprint: footprint.clone(), chooses });
            tree = &mut tree.0.back_mut().expect("the child was just added").1;
        }
        Prescription::Prescribed
    }

    /// The open prescription where `path` ends at a step that is not in the sequence and whose
    /// thread has other alternatives.
    fn open(&self, path: &[(usize, Initial)]) -> Prescription {
        let (mut tree, mut also) = (self, Vec::new());
        for &(at, initial) in path {
            let (event, below) = &tree.0[at];
            also.extend((initial == Initial::Weak).then(|| event.clone()));
            tree = below;
        }
        let last = also.pop().expect("the path ends at a step that is not in the sequence");
        Prescription::Open { also, thread: last.choice.thread }
    }
}

/// The result for a prefix of executions that has to be explored.
#[derive(Debug)]
pub(super) enum Prescription {
    /// It is covered by what was explored or prescribed before. This many steps from the beginning
    /// of the present execution [show](SequenceStep::shown) it.
    Covered(usize),
    /// It was not covered, and is prescribed now.
    Prescribed,
    /// It is covered where `thread`, which has no step in it, takes a certain one of its
    /// alternatives after it, and the steps `also`, which are independent of it. Its other
    /// alternatives have to be checked one by one.
    Open { also: Vec<Event>, thread: ThreadId },
}

/// The rest of a sequence.
type Rest<'f> = SmallVec<[SequenceStep<'f>; 16]>;

/// The kinds of initials: steps with which a sequence can begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Initial {
    /// It is in the sequence, and depends on nothing before it.
    Strong,
    /// It is not in the sequence, is of a thread that has no step there, and is independent of all
    /// of it.
    Weak,
}

/// Takes a step out of the sequence if it is a *weak initial* of it: if an execution that begins
/// with the sequence is equivalent to one that begins with the step. Returns which kind of initial
/// it is; raises `shown` to the number of steps that show this.
fn strip(event: &Event, sequence: &mut Rest<'_>, shown: &mut usize) -> Option<Initial> {
    let Some(first) =
        sequence.iter().position(|step| event.is_related(step.choice, step.footprint))
    else {
        *shown = THIS_ONE;
        return Some(Initial::Weak);
    };
    *shown = sequence[first].shows(event).max(*shown);
    let is = sequence[first].choice == event.choice;
    if is {
        sequence.remove(first);
    }
    is.then_some(Initial::Strong)
}

#[cfg(test)]
mod tests {
    use preempt_system::{Access, Location, ThreadId};

    use super::*;

    /// A step of a thread that writes a location.
    fn write(thread: usize, location: u32) -> Event {
        let footprint = [(Location(location), Access::Write)].into_iter().collect();
        Event { choice: Choice::of(ThreadId::new(thread)), footprint, chooses: false }
    }

    fn step<'s>(sequence: &'s [Event]) -> impl Iterator<Item = SequenceStep<'s>> {
        let step = |(at, event): (usize, &'s Event)| SequenceStep {
            choice: event.choice,
            footprint: &event.footprint,
            shown: at + 1,
            alone: at + 1,
            chooses: event.chooses,
        };
        sequence.iter().enumerate().map(step)
    }

    /// Inserts a sequence.
    fn insert(tree: &mut WakeupTree, sequence: &[Event]) {
        tree.insert(step(sequence));
    }

    /// Whether a step is a weak initial of a sequence.
    fn is_weak_initial(event: &Event, sequence: &[Event]) -> bool {
        strip(event, &mut step(sequence).collect(), &mut 0).is_some()
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
        insert(&mut tree, &[write(0, 1), write(1, 2)]);
        insert(&mut tree, &[write(1, 2), write(0, 1)]);
        assert_eq!(branches(&tree), [[0, 1]], "the same in another order");
        insert(&mut tree, &[write(2, 2), write(0, 1), write(1, 2)]);
        assert_eq!(branches(&tree), [vec![0, 1], vec![0, 2, 1]], "the same at first");
        insert(&mut tree, &[write(2, 1)]);
        assert_eq!(branches(&tree), [vec![0, 1], vec![0, 2, 1], vec![2]], "another beginning");
        insert(&mut tree, &[write(3, 7)]);
        assert_eq!(branches(&tree).len(), 3, "independent of all of a branch that then is free");
    }

    /// The whole tree: branches may have the same threads and different steps.
    #[test]
    fn a_tree_is_read_as_it_was_written() {
        let mut tree = WakeupTree::default();
        insert(&mut tree, &[write(0, 1), write(1, 2), write(0, 3)]);
        insert(&mut tree, &[write(0, 1), write(2, 2), write(1, 2)]);
        insert(&mut tree, &[write(2, 1)]);
        insert(&mut tree, &[Event { chooses: true, ..write(3, 1) }, write(2, 1)]);
        for tree in [WakeupTree::default(), tree] {
            let bytes = Writer::collect(|to| to.put(&tree));
            let read = |bytes: Vec<u8>| {
                let length = bytes.len() as u64;
                Reader::new(Box::new(std::io::Cursor::new(bytes)), length).get::<WakeupTree>()
            };
            let copy = read(bytes.clone()).expect("the bytes were just written");
            assert_eq!(format!("{copy:?}"), format!("{tree:?}"));
            assert!(read(bytes[..bytes.len() - 1].to_vec()).is_err(), "without the last byte");
        }
    }

    #[test]
    fn a_step_with_other_alternatives_covers_only_what_goes_on_with_it() {
        let skip = |alternative: u32| Event {
            choice: Choice { thread: ThreadId::new(0), alternative },
            footprint: Footprint::new(),
            chooses: true,
        };
        let mut tree = WakeupTree::default();
        insert(&mut tree, &[write(2, 9), skip(0)]);
        let v = write(1, 1);
        let Prescription::Open { also, thread } = tree.insert(step(std::slice::from_ref(&v)))
        else {
            panic!("it is open")
        };
        assert_eq!((also.len(), also[0].choice, thread), (1, write(2, 9).choice, ThreadId::new(0)));
        assert!(matches!(
            tree.insert(step(&[v.clone(), write(2, 9), skip(0)])),
            Prescription::Covered(_)
        ));
        assert!(matches!(tree.insert(step(&[v, write(2, 9), skip(1)])), Prescription::Prescribed));
        assert_eq!(branches(&tree), [vec![2, 0], vec![2, 1, 0]]);
    }

    #[test]
    fn another_alternative_is_another_step() {
        let other =
            Event { choice: Choice { thread: ThreadId::new(0), alternative: 1 }, ..write(0, 1) };
        assert!(!is_weak_initial(&other, &[write(1, 2), write(0, 1)]));
        assert!(is_weak_initial(&write(0, 1), &[write(1, 2), write(0, 1)]));
        assert!(!is_weak_initial(&write(0, 1), &[write(1, 1), write(0, 1)]));
    }
}
