//! An execution graph, and the order in which the search has added its events.

use preempt_system::{Access, Choice, Location, ThreadId};

use crate::codec::{save_fields, save_variants};

/// A step of an execution, by its thread and the number of that thread's steps before it. It means
/// the same in every execution order of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StepId {
    pub(super) thread: ThreadId,
    pub(super) nth: u32,
}

save_fields!(StepId { thread, nth });

/// An event or a stub. A read-modify-write is two events of one step: its read and its write.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// A read of a location of the memory.
    Read {
        step: StepId,
        location: Location,
        /// The store that it reads, `None` for the initial value.
        source: Option<StepId>,
        /// Whether its step also writes the location.
        updates: bool,
    },
    /// A write of a location of the memory.
    Write { step: StepId, location: Location },
    /// A step that accesses no location of the memory.
    Act {
        step: StepId,
        alternative: u32,
        /// Whether that was the first of its alternatives.
        is_first: bool,
        accesses: Vec<(Location, Access)>,
    },
    /// A step that was in the graph at this place and was displaced: when its thread takes it, it
    /// comes after `floor`.
    Stub { step: StepId, floor: StepId, accesses: Vec<(Location, Access)> },
}

save_variants!(Item {
    0 => Read { step, location, source, updates },
    1 => Write { step, location },
    2 => Act { step, alternative, is_first, accesses },
    3 => Stub { step, floor, accesses },
});

impl Item {
    pub(super) fn step(&self) -> StepId {
        match *self {
            Item::Read { step, .. }
            | Item::Write { step, .. }
            | Item::Act { step, .. }
            | Item::Stub { step, .. } => step,
        }
    }

    fn is_stub(&self) -> bool {
        matches!(self, Item::Stub { .. })
    }

    /// Whether it is a step with an access that conflicts with one of `accesses`.
    pub(super) fn conflicts(&self, accesses: &[(Location, Access)]) -> bool {
        let Item::Act { accesses: own, .. } = self else { return false };
        conflict(own, accesses)
    }
}

/// Whether two steps with these accesses conflict.
fn conflict(one: &[(Location, Access)], other: &[(Location, Access)]) -> bool {
    one.iter().any(|&(location, access)| {
        let mut same = other.iter().filter(|&&(other, _)| other == location);
        same.any(|&(_, other)| access.conflicts(other))
    })
}

/// An execution graph. It is consistent, up to read-modify-writes whose write is missing.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    /// The events and stubs in the order `<` of the paper, in which they were added. That is not an
    /// order of execution: a read that was changed keeps its place and reads a later event.
    pub(super) items: Vec<Item>,
    /// The modification order of each location, without the initial value.
    orders: Vec<(Location, Vec<StepId>)>,
    /// An order of execution of all steps whose events are all there.
    pub(super) path: Vec<StepId>,
    /// For each thread the step that started it, unless it was there from the beginning.
    starts: Vec<Option<StepId>>,
}

save_fields!(Graph { items, orders, path, starts });

/// A read-modify-write of which only the read is in a graph: its step, location and source.
pub(super) type Half = (StepId, Location, Option<StepId>);

/// What an event comes after by program order, reads-from and the order of conflicting steps. With
/// a step it contains the earlier ones of its thread.
pub(super) struct Past {
    /// For each thread the number of its steps.
    counts: Vec<u32>,
    /// A read-modify-write of which only the read is included.
    half: Option<StepId>,
}

impl Past {
    pub(super) fn has(&self, step: StepId) -> bool {
        self.counts.get(step.thread.index()).is_some_and(|&count| step.nth < count)
    }

    pub(super) fn contains(&self, item: &Item) -> bool {
        self.has(item.step()) || matches!(item, Item::Read { step, .. } if Some(*step) == self.half)
    }
}

impl Graph {
    /// The next step of a thread.
    pub(super) fn next(&self, thread: ThreadId) -> StepId {
        let count = self.path.iter().filter(|step| step.thread == thread).count();
        StepId { thread, nth: count as u32 }
    }

    /// The read of a read-modify-write whose write is missing: its step, location and source. Of
    /// several that of the first thread.
    pub(super) fn half(&self) -> Option<Half> {
        self.halves().min_by_key(|(step, ..)| step.thread.index())
    }

    /// The same for a certain step.
    pub(super) fn half_of(&self, step: StepId) -> Option<Half> {
        self.halves().find(|&(other, ..)| other == step)
    }

    fn halves(&self) -> impl Iterator<Item = Half> + '_ {
        let is_write =
            |item: &Item, of: StepId| matches!(item, Item::Write { step, .. } if *step == of);
        self.items.iter().filter_map(move |item| match *item {
            Item::Read { step, location, source, updates: true } => {
                let is_whole = self.items.iter().any(|item| is_write(item, step));
                (!is_whole).then_some((step, location, source))
            }
            _ => None,
        })
    }

    fn order(&self, location: Location) -> &[StepId] {
        let order = self.orders.iter().find(|(other, _)| *other == location);
        order.map_or(&[], |(_, order)| order)
    }

    /// The stores after `store` in modification order; all of them after the initial value.
    pub(super) fn after(&self, location: Location, store: Option<StepId>) -> &[StepId] {
        let order = self.order(location);
        let Some(store) = store else { return order };
        let place = order.iter().position(|&other| other == store);
        &order[place.expect("a store is in its modification order") + 1..]
    }

    /// The store that `back` stores follow; `None` for the initial value.
    pub(super) fn store(&self, location: Location, back: u32) -> Option<StepId> {
        let order = self.order(location);
        order.len().checked_sub(back as usize + 1).map(|place| order[place])
    }

    /// Whether `next`, whose past is `past`, may not come before some step that was displaced and
    /// is not in the graph again: the graphs in which it does are reached by another path.
    ///
    /// Let `u` be the displaced step, and M the steps that conflict with `u`, come before it in
    /// the end, and were not there when `u` was added first: those after its stub. Of the minimal
    /// steps of M the one of the first thread has to displace `u`; only then each graph is reached
    /// by one path. So `next` is too late if it is minimal and its thread comes before that of the
    /// step which has displaced `u`. The floor of the stub is in M, so a step after it is not
    /// minimal.
    pub(super) fn must_wait(
        &self,
        next: StepId,
        accesses: &[(Location, Access)],
        past: &Past,
    ) -> bool {
        let is_too_late = |at: usize, item: &Item| {
            let Item::Stub { step, floor, accesses: displaced } = item else { return false };
            next.thread.index() < floor.thread.index()
                && *step != next
                && conflict(displaced, accesses)
                && !self.path.contains(step)
                && !self.items[at + 1..]
                    .iter()
                    .any(|later| later.conflicts(displaced) && past.has(later.step()))
        };
        self.items.iter().enumerate().any(|(at, item)| is_too_late(at, item))
    }

    /// Leaves a stub of item `at` of this graph, a step that `floor` has displaced, in `rest`,
    /// which is this graph [restricted](Graph::restrict).
    pub(super) fn leave_stub(&self, rest: &mut Graph, at: usize, floor: StepId) {
        let Item::Act { step, accesses, .. } = &self.items[at] else {
            unreachable!("only a step on objects is displaced")
        };
        rest.items.insert(at, Item::Stub { step: *step, floor, accesses: accesses.clone() });
    }

    /// Adds the write of `step` before the last `back` stores.
    pub(super) fn add_write(&mut self, step: StepId, location: Location, back: u32) {
        if self.order(location).is_empty() {
            self.orders.push((location, Vec::new()));
        }
        let is_it = |(other, _): &&mut (Location, Vec<StepId>)| *other == location;
        let (_, order) = self.orders.iter_mut().find(is_it).expect("the location was added");
        order.insert(order.len() - back as usize, step);
        self.items.push(Item::Write { step, location });
    }

    /// `step` has started a thread.
    pub(super) fn add_start(&mut self, thread: ThreadId, step: StepId) {
        if self.starts.len() <= thread.index() {
            self.starts.resize(thread.index() + 1, None);
        }
        self.starts[thread.index()] = Some(step);
    }

    /// The choices of the path.
    pub(super) fn choices(&self) -> Vec<Choice> {
        let choice = |at: usize| {
            let step = self.path[at];
            let placed = |store: &&StepId| self.path[..at].contains(store);
            let stores_after =
                |location, store| self.after(location, store).iter().filter(placed).count() as u32;
            let own = self.items.iter().find(|item| item.step() == step && !item.is_stub());
            let alternative = match *own.expect("a step of the path has events") {
                Item::Read { location, source, .. } => stores_after(location, source),
                Item::Write { location, .. } => stores_after(location, Some(step)),
                Item::Act { alternative, .. } => alternative,
                Item::Stub { .. } => unreachable!("stubs were passed over"),
            };
            Choice { thread: step.thread, alternative }
        };
        (0..self.path.len()).map(choice).collect()
    }

    /// What the next step of a thread comes after, if it comes after the steps of `others`.
    pub(super) fn past(&self, next: StepId, others: impl IntoIterator<Item = StepId>) -> Past {
        let mut past = Past { counts: Vec::new(), half: None };
        let mut open: Vec<StepId> = self.before(next).into_iter().chain(others).collect();
        while let Some(step) = open.pop() {
            let slot = step.thread.index();
            if past.counts.len() <= slot {
                past.counts.resize(slot + 1, 0);
            }
            // Earlier steps of the thread follow as its predecessors.
            if past.has(step) {
                continue;
            }
            let known = std::mem::replace(&mut past.counts[slot], step.nth + 1);
            for nth in known..=step.nth {
                let step = StepId { nth, ..step };
                open.extend(self.before(step).filter(|before| !past.has(*before)));
                self.add_sources(step, &mut open);
            }
        }
        past
    }

    /// The same for the write of a read-modify-write, whose read is in the graph.
    pub(super) fn past_of_write(&self, step: StepId, source: Option<StepId>) -> Past {
        Past { half: Some(step), ..self.past(step, source) }
    }

    /// The step before one in program order, or the one that started the thread.
    fn before(&self, step: StepId) -> Option<StepId> {
        match step.nth.checked_sub(1) {
            Some(nth) => Some(StepId { nth, ..step }),
            None => self.starts.get(step.thread.index()).copied().flatten(),
        }
    }

    /// Adds the store that a step reads, and the conflicting steps before it.
    fn add_sources(&self, step: StepId, to: &mut Vec<StepId>) {
        for (at, item) in self.items.iter().enumerate().filter(|(_, item)| item.step() == step) {
            match item {
                Item::Read { source, .. } => to.extend(source),
                Item::Act { accesses, .. } => to.extend(self.conflicting(at, accesses)),
                Item::Write { .. } | Item::Stub { .. } => {}
            }
        }
    }

    /// The steps among the first `at` items that conflict with `accesses`.
    pub(super) fn conflicting<'g>(
        &'g self,
        at: usize,
        accesses: &'g [(Location, Access)],
    ) -> impl Iterator<Item = StepId> + 'g {
        self.items[..at].iter().filter(|item| item.conflicts(accesses)).map(Item::step)
    }

    /// Whether item `at` is as the search would add it first, if only the items before it and those
    /// in `past` were there.
    fn is_maximal(&self, at: usize, past: &Past) -> bool {
        let previous = || {
            let items = self.items.iter().enumerate();
            items.filter(|&(other, item)| other <= at || past.contains(item)).map(|(_, item)| item)
        };
        let is_previous_store = |store: &StepId| {
            let is_it = |item: &Item| matches!(item, Item::Write { .. }) && item.step() == *store;
            previous().any(is_it)
        };
        match &self.items[at] {
            Item::Stub { .. } => true,
            Item::Read { location, source, .. } => {
                !self.after(*location, *source).iter().any(is_previous_store)
            }
            Item::Write { step, location } => {
                let reads_it = |item: &Item| match item {
                    Item::Read { source, .. } => *source == Some(*step),
                    _ => false,
                };
                !previous().any(reads_it)
                    && !self.after(*location, Some(*step)).iter().any(is_previous_store)
            }
            Item::Act { step, is_first, accesses, .. } => {
                let is_floor =
                    |item: &Item| matches!(item, Item::Stub { floor, .. } if floor == step);
                let later = &self.items[at + 1..];
                *is_first
                    && !previous().any(is_floor)
                    && !later.iter().any(|item| past.contains(item) && item.conflicts(accesses))
            }
        }
    }

    /// The graph without item `at` and without the later items that are not in `past`; `None` if
    /// one of those is not [maximal](Graph::is_maximal): then another graph leads to the result.
    /// Everything before `at` keeps its place.
    pub(super) fn restrict(&self, at: usize, past: &Past) -> Option<Graph> {
        let is_kept = |other: usize| other < at || other > at && past.contains(&self.items[other]);
        let mut removed = (at..self.items.len()).filter(|&other| !is_kept(other));
        if !removed.clone().all(|other| self.is_maximal(other, past)) {
            return None;
        }
        let mut rest = self.clone();
        for item in removed.by_ref().map(|other| &self.items[other]) {
            let step = item.step();
            if let Item::Write { location, .. } = item {
                let is_it = |(other, _): &&mut (Location, Vec<StepId>)| other == location;
                let (_, order) =
                    rest.orders.iter_mut().find(is_it).expect("the location has a store");
                order.retain(|&store| store != step);
            }
            if !item.is_stub() {
                rest.path.retain(|&other| other != step);
            }
        }
        let mut other = 0;
        rest.items.retain(|_| {
            other += 1;
            is_kept(other - 1)
        });
        Some(rest)
    }
}
