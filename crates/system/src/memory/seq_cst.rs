//! The order of sequentially consistent accesses and fences: condition SC of the memory model,
//! checked step by step.
//!
//! **Paper.** RC11 (Lahav, Vafeiadis, Kang, Hur, Dreyer: *Repairing sequential consistency in
//! C/C++11*, PLDI 2017), section 3.4: an execution is consistent only if `psc` is acyclic,
//!
//! ```text
//! sb≠ = sb without pairs on one location        hb= = hb on one location
//! scb = sb ∪ (sb≠ ; hb ; sb≠) ∪ hb= ∪ mo ∪ rb
//! psc = ([SC] ∪ [Fsc];hb?) ; scb ; ([SC] ∪ hb?;[Fsc])  ∪  [Fsc] ; (hb ∪ hb;eco;hb) ; [Fsc]
//! ```
//!
//! **Guarantees.** After every step, a node reaches another in [`SeqCst::reach`] iff `psc⁺` relates
//! them. The tests compare the machine with an enumeration of all executions that is filtered by
//! the relations above.
//!
//! **Map.** A node is a sequentially consistent event; a read-modify-write is two, its read and its
//! write.
//!
//! **Why steps suffice.** A new event is last in its thread, nothing has read it, and it happens
//! before nothing. So the pairs that it adds to psc either end in it, or they start in it, or in a
//! fence that happens before it, and pass from it by `rb` or `mo` to a store that exists already.
//! The latter is possible only if the step is stale: its alternative is not 0. So a step with
//! alternative 0 never closes a cycle, and programs that take no stale steps pay for the edges into
//! new nodes only.
//!
//! Events of one thread that are nodes are a chain in psc, since `sb` is in `scb`. So of several
//! nodes of a thread that have an edge to the new node, the last one is enough for reachability,
//! and of several that the new node has an edge to, the first one.
//!
//! **Cost.** For k nodes, t threads and l locations: O(t) candidates for the edges of an access,
//! O(l·t²) for those of a fence, and O(k²/64) to add a node.

use smallvec::SmallVec;

use super::weak::{Accessed, LocationState};
use crate::clock::VectorClock;
use crate::sync_clocks::SyncClocks;
use crate::thread::ThreadId;

/// The number of a node.
pub(super) type Node = u32;

/// No node: the event is not sequentially consistent.
pub(super) const NO_NODE: Node = Node::MAX;

/// Later than everything.
const NEVER: u32 = u32::MAX;

pub(super) type Nodes = SmallVec<[Node; 8]>;

#[derive(Clone, Debug)]
struct NodeState {
    time: u32,
    /// The location, unless it is a fence.
    location: Option<u32>,
    /// The time of the next event of its thread.
    next: u32,
    /// The time of the next event of its thread that is not on the same location.
    elsewhere: u32,
}

#[derive(Clone, Debug)]
struct Fence {
    node: Node,
    time: u32,
    /// What happens before it.
    clock: VectorClock,
}

/// The events of a thread, as far as they matter here.
#[derive(Clone, Debug, Default)]
struct ThreadOrder {
    nodes: Vec<Node>,
    fences: Vec<Fence>,
    /// The location of its last events, if they are accesses of one location.
    run: Option<u32>,
    /// Its clock after the last event before this run.
    before_run: VectorClock,
    /// Its clock after its last event.
    last: VectorClock,
    /// Whether it has had an event.
    has_events: bool,
    /// The nodes at which [`NodeState::elsewhere`] is not known yet begin here.
    open: usize,
}

/// The nodes and what they reach.
#[derive(Clone, Debug, Default)]
pub(super) struct SeqCst {
    nodes: Vec<NodeState>,
    threads: Vec<ThreadOrder>,
    /// For each node the set of nodes that psc⁺ relates to it.
    reach: Vec<Bits>,
}

/// A set of nodes.
#[derive(Clone, Debug, Default)]
struct Bits(SmallVec<[u64; 2]>);

impl Bits {
    fn insert(&mut self, node: Node) {
        let word = node as usize / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (node % 64);
    }

    fn contains(&self, node: Node) -> bool {
        self.0.get(node as usize / 64).is_some_and(|word| word >> (node % 64) & 1 == 1)
    }

    fn extend(&mut self, other: &Bits) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(ours, theirs)| *ours |= theirs);
    }
}

/// An access whose edges are asked for.
#[derive(Clone, Copy)]
pub(super) struct NewAccess<'c> {
    pub(super) thread: ThreadId,
    pub(super) location: u32,
    /// What happens before it, without what it reads itself.
    pub(super) before: &'c VectorClock,
    /// What happens before it.
    pub(super) after: &'c VectorClock,
}

impl SeqCst {
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.reach.clear();
        for thread in &mut self.threads {
            thread.nodes.clear();
            thread.fences.clear();
            (thread.run, thread.has_events, thread.open) = (None, false, 0);
        }
    }

    /// Whether there are no nodes, so that every execution satisfies the condition.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    fn thread(&mut self, thread: ThreadId) -> &mut ThreadOrder {
        if self.threads.len() <= thread.index() {
            self.threads.resize_with(thread.index() + 1, ThreadOrder::default);
        }
        &mut self.threads[thread.index()]
    }

    /// Records an event at `location`, or elsewhere, at the thread's `time`. `before` and `after`
    /// are the clocks of the thread around it.
    pub(super) fn note(
        &mut self,
        thread: ThreadId,
        location: Option<u32>,
        time: u32,
        before: &VectorClock,
        after: &VectorClock,
    ) {
        let order = self.thread(thread);
        // Something synchronised since the last event and was not reported as an event.
        let unreported = order.has_events && order.last != *before;
        let (run, last) = (order.run, order.last.time(thread));
        let ends_run = run.is_none() || run != location || unreported;
        if ends_run {
            order.before_run.clone_from(before);
        }
        order.run = location;
        order.last.clone_from(after);
        order.has_events = true;
        let first = order.open;
        if ends_run {
            order.open = order.nodes.len();
        }
        let time = if unreported { last } else { time };
        // The nodes since `first` are on the location of the run.
        for &node in &self.threads[thread.index()].nodes[first..] {
            let state = &mut self.nodes[node as usize];
            state.next = state.next.min(time);
            if ends_run {
                state.elsewhere = time;
            }
        }
    }

    /// The time of a release of `thread` after its last event that was not reported as an event,
    /// such as the start of a thread.
    fn unreported_release(&self, clocks: &SyncClocks, thread: usize) -> u32 {
        let (order, id) = (&self.threads[thread], ThreadId::new(thread));
        let last = order.last.time(id);
        let now = clocks.now(id).map_or(0, |now| now.time(id));
        if order.has_events && now > last { last } else { NEVER }
    }

    /// The last fence of each thread that `clock` includes.
    fn fences_within<'a>(&'a self, clock: &'a VectorClock) -> impl Iterator<Item = Node> + 'a {
        self.threads.iter().enumerate().filter_map(|(slot, order)| {
            let known = clock.time(ThreadId::new(slot));
            let within = order.fences.partition_point(|fence| fence.time <= known);
            within.checked_sub(1).map(|last| order.fences[last].node)
        })
    }

    /// The fences that matter for the edges from an access: see [`SeqCst::closes_cycle`].
    pub(super) fn fences_before(&self, access: NewAccess<'_>) -> Nodes {
        self.fences_within(access.after).collect()
    }

    /// The last node of another thread for which `is_before` holds; it holds for a prefix of the
    /// nodes of each thread.
    fn last_of_others(
        &self,
        thread: ThreadId,
        is_before: impl Fn(usize, &NodeState) -> bool,
    ) -> Nodes {
        let others = self.threads.iter().enumerate().filter(|&(slot, _)| slot != thread.index());
        let last = others.filter_map(|(slot, order)| {
            let is_before = |&node: &Node| is_before(slot, &self.nodes[node as usize]);
            let count = order.nodes.partition_point(is_before);
            count.checked_sub(1).map(|last| order.nodes[last])
        });
        last.collect()
    }

    /// The last node of each other thread on `location` that `clock` includes.
    fn same_location(
        &self,
        thread: ThreadId,
        location: u32,
        clock: &VectorClock,
        found: &mut Nodes,
    ) {
        for (slot, order) in self.threads.iter().enumerate().filter(|(at, _)| *at != thread.index())
        {
            let known = clock.time(ThreadId::new(slot));
            let state = |node: Node| &self.nodes[node as usize];
            let within = order.nodes.partition_point(|&node| state(node).time <= known);
            let on = |node: &&Node| state(**node).location == Some(location);
            found.extend(order.nodes[..within].iter().rev().find(on).copied());
        }
    }

    /// The nodes with an edge to a sequentially consistent access, as far as it need not be a
    /// store: the last ones of their threads.
    pub(super) fn edges_to_access(
        &self,
        clocks: &SyncClocks,
        access: NewAccess<'_>,
        accessed: &LocationState,
    ) -> Nodes {
        let NewAccess { thread, location, before, after } = access;
        let mut found = Nodes::new();
        let own = self.threads.get(thread.index());
        // sb.
        found.extend(own.and_then(|order| order.nodes.last()).copied());
        // sb≠ ; hb ; sb≠: `elsewhere` is what the last event not on this location knows.
        let elsewhere = match own {
            Some(order)
                if order.has_events && order.run == Some(location) && order.last == *before =>
            {
                &order.before_run
            }
            _ => before,
        };
        found.extend(self.last_of_others(thread, |slot, node| {
            let known = elsewhere.time(ThreadId::new(slot));
            node.elsewhere.min(self.unreported_release(clocks, slot)) <= known
        }));
        // hb=.
        self.same_location(thread, location, after, &mut found);
        // [Fsc] ; hb ; sb.
        found.extend(self.fences_within(before));
        // [Fsc] ; hb ; hb=.
        for (slot, accesses) in accessed.others(thread) {
            let known = after.time(ThreadId::new(slot));
            let within = accesses.partition_point(|access| access.time <= known);
            if let Some(last) = within.checked_sub(1) {
                found.extend(self.fences_within(&accesses[last].clock));
            }
        }
        found
    }

    /// The further nodes with an edge to a store that is to have `place` stores before it.
    pub(super) fn edges_to_store(
        &self,
        thread: ThreadId,
        accessed: &LocationState,
        place: usize,
        found: &mut Nodes,
    ) {
        for (_, accesses) in accessed.others(thread) {
            let before = &accesses[..accessed.accesses_before(accesses, place)];
            // mo and rb.
            found.extend(last_node(before));
            found
                .extend(before.last().into_iter().flat_map(|last| self.fences_within(&last.clock)));
        }
    }

    /// The nodes with an edge to a fence of `thread`, whose past is `clock`.
    fn edges_to_fence<'l>(
        &self,
        clocks: &SyncClocks,
        thread: ThreadId,
        clock: &VectorClock,
        locations: impl Iterator<Item = (u32, &'l LocationState)>,
    ) -> Nodes {
        let mut found = Nodes::new();
        found.extend(self.threads.get(thread.index()).and_then(|own| own.nodes.last()).copied());
        found.extend(self.fences_within(clock));
        // sb ; hb, which includes sb≠ ; hb ; sb.
        found.extend(self.last_of_others(thread, |slot, node| {
            let known = clock.time(ThreadId::new(slot));
            node.next.min(self.unreported_release(clocks, slot)) <= known
        }));
        for (location, accessed) in locations {
            // The latest places in modification order that an access before the fence has: of
            // stores, and of all accesses.
            let (mut stored, mut known_place, mut read) = (0, 0, false);
            for (slot, accesses) in accessed.all() {
                let known = clock.time(ThreadId::new(slot));
                let within = &accesses[..accesses.partition_point(|access| access.time <= known)];
                let Some(last) = within.last() else { continue };
                let place = accessed.place(last.store);
                let is_read = !last.is_store;
                match place.cmp(&known_place) {
                    std::cmp::Ordering::Greater => (known_place, read) = (place, is_read),
                    std::cmp::Ordering::Equal => read |= is_read,
                    std::cmp::Ordering::Less => {}
                }
                if let Some(store) = within.iter().rev().find(|access| access.is_store) {
                    stored = stored.max(accessed.place(store.store));
                }
                // hb= ; hb.
                let other = ThreadId::new(slot);
                self.same_location(other, location, &last.clock, &mut found);
            }
            for (_, accesses) in accessed.all() {
                // mo ; hb and rb ; hb.
                found.extend(last_node(&accesses[..accessed.accesses_before(accesses, stored)]));
                // [Fsc] ; hb ; eco ; hb.
                let before = &accesses[..accessed.accesses_before(accesses, known_place)];
                let last = before.last();
                found.extend(last.into_iter().flat_map(|last| self.fences_within(&last.clock)));
                if read {
                    let is_it = |access: &&Accessed| {
                        access.is_store && accessed.place(access.store) == known_place
                    };
                    let store = accesses.iter().find(is_it);
                    found.extend(store.into_iter().flat_map(|it| self.fences_within(&it.clock)));
                }
            }
        }
        found
    }

    /// The nodes to which a stale access has edges: those that an access itself has edges to, if it
    /// is sequentially consistent, and those that fences before it have edges to. The stores from
    /// `place` on come after it.
    fn edges_from(&self, accessed: &LocationState, place: usize) -> (Nodes, Nodes) {
        let (mut from_access, mut from_fences) = (Nodes::new(), Nodes::new());
        for (slot, accesses) in accessed.all() {
            let later = &accesses[accessed.accesses_before(accesses, place)..];
            let Some(first) = later.first() else { continue };
            from_fences.extend(self.fences_after(slot, first.time));
            let mut stores = later.iter().filter(|access| access.is_store);
            if let Some(store) = stores.clone().next() {
                from_access.extend(self.fences_after(slot, store.time));
            }
            from_access.extend(stores.find(|store| store.node != NO_NODE).map(|store| store.node));
        }
        from_fences.extend_from_slice(&from_access);
        (from_access, from_fences)
    }

    /// The first fence of each thread that comes after what the thread in `slot` did at `time`.
    fn fences_after(&self, slot: usize, time: u32) -> impl Iterator<Item = Node> + '_ {
        let is_earlier = move |fence: &Fence| fence.clock.time(ThreadId::new(slot)) < time;
        self.threads.iter().filter_map(move |order| {
            order.fences.get(order.fences.partition_point(is_earlier)).map(|fence| fence.node)
        })
    }

    /// Whether a stale access, before the stores from `place` on, would close a cycle. `edges` lead
    /// to it if it is sequentially consistent, and `fences` happen before it.
    pub(super) fn closes_cycle(
        &self,
        edges: Option<&[Node]>,
        fences: &[Node],
        accessed: &LocationState,
        place: usize,
    ) -> bool {
        if edges.is_none() && fences.is_empty() {
            return false;
        }
        let (from_access, from_fences) = self.edges_from(accessed, place);
        let reaches = |from: Node, to: Node| from == to || self.reach[from as usize].contains(to);
        let any = |from: &[Node], to: &[Node]| {
            from.iter().any(|&from| to.iter().any(|&to| reaches(from, to)))
        };
        any(&from_fences, fences) || edges.is_some_and(|edges| any(&from_access, edges))
    }

    /// Adds a node for an event of `thread`, with edges from `edges`.
    pub(super) fn add(
        &mut self,
        thread: ThreadId,
        time: u32,
        location: Option<u32>,
        edges: &[Node],
    ) -> Node {
        let node = self.nodes.len() as Node;
        for (at, reach) in self.reach.iter_mut().enumerate() {
            if edges.iter().any(|&edge| edge as usize == at || reach.contains(edge)) {
                reach.insert(node);
            }
        }
        self.nodes.push(NodeState { time, location, next: NEVER, elsewhere: NEVER });
        self.reach.push(Bits::default());
        self.thread(thread).nodes.push(node);
        node
    }

    /// Adds the edges of a stale access. `node` is [`NO_NODE`] if it is not sequentially
    /// consistent.
    pub(super) fn add_edges_from(
        &mut self,
        node: Node,
        fences: &[Node],
        accessed: &LocationState,
        place: usize,
    ) {
        let (from_access, from_fences) = self.edges_from(accessed, place);
        let own: &[Node] = if node == NO_NODE { &[] } else { &[node] };
        for (from, to) in [(own, from_access), (fences, from_fences)] {
            let mut reached = Bits::default();
            for to in to {
                reached.insert(to);
                reached.extend(&self.reach[to as usize]);
            }
            for at in 0..self.reach.len() {
                let leads = |&from: &Node| from as usize == at || self.reach[at].contains(from);
                if from.iter().any(leads) {
                    self.reach[at].extend(&reached);
                }
            }
        }
    }

    /// Adds a sequentially consistent fence of `thread`, whose past is `clock`.
    pub(super) fn add_fence<'l>(
        &mut self,
        clocks: &SyncClocks,
        thread: ThreadId,
        clock: VectorClock,
        locations: impl Iterator<Item = (u32, &'l LocationState)>,
    ) {
        let edges = self.edges_to_fence(clocks, thread, &clock, locations);
        let time = clock.time(thread);
        let node = self.add(thread, time, None, &edges);
        self.thread(thread).fences.push(Fence { node, time, clock });
    }
}

/// The last node of a list of accesses.
fn last_node(accesses: &[Accessed]) -> Option<Node> {
    accesses.iter().rev().map(|access| access.node).find(|&node| node != NO_NODE)
}
