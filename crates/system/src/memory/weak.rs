//! Weak memory: the memory model of Rust and C++20, as a machine that takes one access at a time.
//!
//! **Paper.** RC11 (Lahav et al., PLDI 2017), with the release sequences of C++20 (P0982). What is
//! consistent is defined there by axioms over complete executions; this is an operational form of
//! them. Adding the events of an execution in any order that extends program order and reads-from
//! leads through consistent executions only, so a machine that refuses inconsistent steps reaches
//! exactly the consistent executions.
//!
//! **Guarantees.** The executions that the machine can produce are the consistent ones of the
//! model. Load buffering is not among them: RC11 forbids cycles of program order and reads-from,
//! which C++ and Rust allow for relaxed accesses, and hardware shows on some processors. Accesses
//! of different sizes to one location, and consume, do not exist here.
//!
//! **Map.**
//!
//! | model | here |
//! | --- | --- |
//! | modification order of a location | [`LocationState::order`] |
//! | reads-from | [`Accessed::store`] of a read |
//! | what an acquiring read of a store synchronises with | [`Store::released`] |
//! | happens-before | [`SyncClocks`] |
//! | coherence | [`LocationState::floor`] |
//! | atomicity | [`Store::is_followed`] |
//! | condition SC | [`seq_cst`](super::seq_cst) |
//!
//! *Coherence.* The next access of a thread may not read, or be ordered before, a store that an
//! access which happens before it has overwritten or read past: each thread has a floor in the
//! modification order of a location, the latest store that such an access wrote or read. Accesses
//! of one thread to one location never go back in modification order, so for each thread the last
//! access that happens before is enough.
//!
//! *Atomicity.* A read-modify-write comes right after the store that it reads. So no store goes
//! between the two later, and no other read-modify-write reads the same store.
//!
//! *Compare-and-exchange.* It succeeds iff it reads the expected value, also an old one if that is
//! still possible, and a strong one never fails on the expected value. It may fail on an old value.
//!
//! **Deviations.** None in the set of executions. The alternatives count stores from the end of the
//! modification order, so they name a store only at one point of one execution.
//!
//! **Cost.** For t threads and n accesses of a location, O(t·log n) for the floor; a store before
//! others moves those.

use std::sync::atomic::Ordering;

use smallvec::{SmallVec, smallvec};

use super::seq_cst::{NO_NODE, NewAccess, Node, Nodes, SeqCst};
use super::{Alternatives, Memory, MemoryAccess, MemoryModel};
use crate::clock::VectorClock;
use crate::fingerprint::{Fingerprint, Mixer};
use crate::footprint::Access;
use crate::narrate::Stale;
use crate::sync_clocks::{SyncClocks, acquires};
use crate::thread::ThreadId;

/// An event, identified by its thread and the number of that thread's events before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId {
    /// The thread; `None` for the initial write of a location.
    pub thread: Option<ThreadId>,
    /// The number of events of the thread before this one; for an initial write, the number of
    /// initial writes of the location before.
    pub nth: u32,
}

impl EventId {
    fn word(self) -> u64 {
        let thread = self.thread.map_or(u64::from(u32::MAX), |thread| thread.index() as u64);
        thread << 32 | u64::from(self.nth)
    }
}

/// A store of a location.
#[derive(Clone, Debug)]
struct Store {
    event: EventId,
    value: u64,
    /// The step that [`Weak::set_step`] has announced; 0 for an initial write.
    step: u32,
    /// What an acquiring read of it comes after.
    released: VectorClock,
    /// Whether a read-modify-write has read it, which is the next store.
    is_followed: bool,
}

/// An access of a thread to a location. A read-modify-write is two: its read and its store.
#[derive(Clone, Debug)]
pub(super) struct Accessed {
    /// The time on the thread's clock.
    pub(super) time: u32,
    /// The store that it is or reads, as an index into [`LocationState::stores`].
    pub(super) store: u32,
    pub(super) is_store: bool,
    /// Its node in the order of sequentially consistent events, or [`NO_NODE`].
    pub(super) node: Node,
    /// What happens before it.
    pub(super) clock: VectorClock,
}

/// The stores and accesses of a location.
#[derive(Clone, Debug, Default)]
pub(super) struct LocationState {
    /// In the order in which they were performed. The first one is the initial one.
    stores: Vec<Store>,
    /// Indices into `stores` in modification order.
    order: Vec<u32>,
    /// For each store its position in `order`.
    places: Vec<u32>,
    /// For each thread its accesses. Their stores never go back in modification order.
    accesses: SmallVec<[Vec<Accessed>; 4]>,
    /// How many initial writes there were.
    initial: u32,
}

impl LocationState {
    /// The accesses of each thread.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &Vec<Accessed>)> {
        self.accesses.iter().enumerate()
    }

    /// The accesses of each thread but one.
    pub(super) fn others(&self, thread: ThreadId) -> impl Iterator<Item = (usize, &Vec<Accessed>)> {
        self.all().filter(move |&(slot, _)| slot != thread.index())
    }

    /// The number of stores before this one in modification order.
    pub(super) fn place(&self, store: u32) -> usize {
        self.places[store as usize] as usize
    }

    /// How many accesses of a thread read or are one of the first `place` stores.
    pub(super) fn accesses_before(&self, accesses: &[Accessed], place: usize) -> usize {
        accesses.partition_point(|access| self.place(access.store) < place)
    }

    /// The latest store in modification order that an access in `now` has written or read.
    fn floor(&self, now: &VectorClock) -> usize {
        let known = self.all().filter_map(|(slot, accesses)| {
            let time = now.time(ThreadId::new(slot));
            let within = accesses.partition_point(|access| access.time <= time);
            within.checked_sub(1).map(|last| self.place(accesses[last].store))
        });
        known.max().unwrap_or(0)
    }

    fn at(&self, place: usize) -> &Store {
        &self.stores[self.order[place] as usize]
    }

    /// The place of the store that `alternative` stores follow.
    fn place_of(&self, alternative: u32) -> usize {
        let newest = self.order.len() - 1;
        newest.checked_sub(alternative as usize).expect("an alternative counts existing stores")
    }

    /// Puts a store behind the first `place` ones.
    fn insert(&mut self, store: Store, place: usize) -> u32 {
        let index = self.stores.len() as u32;
        self.stores.push(store);
        self.order.insert(place, index);
        self.places.push(0);
        for (at, &store) in self.order.iter().enumerate().skip(place) {
            self.places[store as usize] = at as u32;
        }
        index
    }

    fn record(&mut self, thread: ThreadId, access: Accessed) {
        if self.accesses.len() <= thread.index() {
            self.accesses.resize_with(thread.index() + 1, Vec::new);
        }
        self.accesses[thread.index()].push(access);
    }
}

/// The operations on an object that is not an atomic, for the name of the execution.
#[derive(Clone, Copy, Debug, Default)]
struct Chain {
    /// The last operation that changed it.
    written: Fingerprint,
    /// Those since then that did not.
    read: Fingerprint,
}

/// Memory of the weak model.
#[derive(Clone, Debug, Default)]
pub struct Weak {
    locations: Vec<LocationState>,
    /// The number of events of each thread.
    events: Vec<u32>,
    order: SeqCst,
    chains: Vec<Chain>,
    name: Fingerprint,
    step: u32,
}

/// A store that a load may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The event.
    pub event: EventId,
    /// The value.
    pub value: u64,
    /// The step that was [announced](Weak::set_step) before it; 0 for an initial write.
    pub step: u32,
}

impl Stored {
    /// The number of the step that stored it, from 0; `None` for an initial write.
    pub fn number(&self) -> Option<usize> {
        self.step.checked_sub(1).map(|step| step as usize)
    }
}

/// What is mixed into names, by the kind of event.
#[derive(Clone, Copy)]
enum Part {
    Load = 1,
    Store,
    Update,
    Fence,
    Order,
    Initial,
    Object,
}

impl Weak {
    /// The name of the execution graph: equal for two executions, up to collisions of
    /// [fingerprints](crate::fingerprint), iff their threads have performed the same events with
    /// the same reads-from, modification orders and orders of conflicting operations on objects. It
    /// does not depend on the order in which the events were performed.
    pub fn name(&self) -> Fingerprint {
        self.name
    }

    /// `thread` performs an operation on `objects`, which are not atomics and synchronise by
    /// themselves, and takes `alternative`. `before` is its clock before that, and `after` the one
    /// after it.
    pub fn act(
        &mut self,
        thread: ThreadId,
        objects: impl Iterator<Item = (u32, Access)> + Clone,
        alternative: u32,
        (before, after): (&VectorClock, &VectorClock),
    ) {
        let event = self.next_event(thread);
        self.order.note(thread, None, before.time(thread), before, after);
        let mut mixer = Mixer::new();
        mixer.absorb(Part::Object as u64);
        mixer.absorb(event.word());
        mixer.absorb(alternative.into());
        for (object, access) in objects.clone() {
            let Chain { written, read } = *self.chain(object);
            absorb(&mut mixer, written);
            if access == Access::Write {
                absorb(&mut mixer, read);
            }
        }
        let name = mixer.finish();
        self.name ^= name;
        for (object, access) in objects {
            let chain = self.chain(object);
            match access {
                Access::Read => chain.read ^= name,
                Access::Write => *chain = Chain { written: name, read: Fingerprint::default() },
            }
        }
    }

    /// The events that another thread has performed on a location and that the present of `thread`
    /// does not come after: a plain access by `thread` races with them.
    pub fn unordered(
        &self,
        clocks: &SyncClocks,
        thread: ThreadId,
        location: u32,
    ) -> Option<ThreadId> {
        let now = clocks.now(thread);
        let accessed = self.locations.get(location as usize)?;
        let mut others = accessed.others(thread);
        others.find_map(|(slot, accesses)| {
            let other = ThreadId::new(slot);
            let known = now.map_or(0, |now| now.time(other));
            accesses.last().is_some_and(|last| last.time > known).then_some(other)
        })
    }

    /// The store that `alternative` reads.
    pub fn stored(&self, location: u32, alternative: u32) -> Stored {
        let accessed = &self.locations[location as usize];
        let &Store { event, value, step, .. } = accessed.at(accessed.place_of(alternative));
        Stored { event, value, step }
    }

    /// The stores that a read with this alternative does not see, unless it reads the newest one.
    pub fn stale_read(&self, location: u32, alternative: u32) -> Option<Stale> {
        let number = |nth| self.stored(location, nth).number();
        (alternative > 0).then(|| Stale::Read { store: number(alternative), newest: number(0) })
    }

    /// The store before which a write with this alternative comes in modification order, unless it
    /// is the newest one.
    pub fn stale_write(&self, location: u32, alternative: u32) -> Option<Stale> {
        let next = alternative.checked_sub(1)?;
        Some(Stale::Write { next: self.stored(location, next).number() })
    }

    /// Announces the number of the step whose accesses follow, for reports.
    #[inline]
    pub fn set_step(&mut self, step: u32) {
        self.step = step;
    }

    /// The number of initial writes of a location: more than one if the program has written it
    /// plainly after its creation.
    pub fn initial_writes(&self, location: u32) -> u32 {
        self.locations.get(location as usize).map_or(0, |state| state.initial)
    }

    /// The number of events of `thread` so far.
    pub fn events(&self, thread: ThreadId) -> u32 {
        self.events.get(thread.index()).copied().unwrap_or(0)
    }

    fn next_event(&mut self, thread: ThreadId) -> EventId {
        if self.events.len() <= thread.index() {
            self.events.resize(thread.index() + 1, 0);
        }
        let nth = self.events[thread.index()];
        self.events[thread.index()] += 1;
        EventId { thread: Some(thread), nth }
    }

    fn chain(&mut self, object: u32) -> &mut Chain {
        let at = object as usize;
        if self.chains.len() <= at {
            self.chains.resize(at + 1, Chain::default());
        }
        &mut self.chains[at]
    }

    /// Whether a load with alternative `nth` is consistent.
    fn can_load(
        &self,
        clocks: &SyncClocks,
        (thread, location): (ThreadId, u32),
        now: &VectorClock,
        order: Ordering,
        nth: u32,
    ) -> bool {
        if nth == 0 || self.order.is_empty() {
            return true;
        }
        let accessed = &self.locations[location as usize];
        let place = accessed.place_of(nth);
        let after = after_reading(now, &accessed.at(place).released, order);
        let access = NewAccess { thread, location, before: now, after: &after };
        let fences = self.order.fences_before(access);
        let edges = (order == Ordering::SeqCst)
            .then(|| self.order.edges_to_access(clocks, access, accessed));
        !self.order.closes_cycle(edges.as_deref(), &fences, accessed, place + 1)
    }

    /// Whether a store that is to have `place` stores before it is consistent.
    fn can_store(
        &self,
        clocks: &SyncClocks,
        (thread, location): (ThreadId, u32),
        now: &VectorClock,
        order: Ordering,
        place: usize,
    ) -> bool {
        let accessed = &self.locations[location as usize];
        if place == accessed.order.len() || self.order.is_empty() {
            return true;
        }
        let access = NewAccess { thread, location, before: now, after: now };
        let fences = self.order.fences_before(access);
        let edges = (order == Ordering::SeqCst).then(|| {
            let mut edges = self.order.edges_to_access(clocks, access, accessed);
            self.order.edges_to_store(thread, accessed, place, &mut edges);
            edges
        });
        !self.order.closes_cycle(edges.as_deref(), &fences, accessed, place)
    }

    /// Whether a read-modify-write with alternative `nth` is consistent.
    fn can_update(
        &self,
        clocks: &SyncClocks,
        (thread, location): (ThreadId, u32),
        now: &VectorClock,
        order: Ordering,
        nth: u32,
    ) -> bool {
        let accessed = &self.locations[location as usize];
        let place = accessed.place_of(nth);
        if accessed.at(place).is_followed {
            return false;
        }
        if nth == 0 || self.order.is_empty() {
            return true;
        }
        let after = after_reading(now, &accessed.at(place).released, order);
        let access = NewAccess { thread, location, before: now, after: &after };
        let fences = self.order.fences_before(access);
        let edges = (order == Ordering::SeqCst).then(|| {
            let mut edges = self.order.edges_to_access(clocks, access, accessed);
            self.order.edges_to_store(thread, accessed, place + 1, &mut edges);
            edges
        });
        !self.order.closes_cycle(edges.as_deref(), &fences, accessed, place + 1)
    }

    /// Performs the read of the store at `place`. Returns its value and the time of the read.
    fn read(
        &mut self,
        clocks: &mut SyncClocks,
        (thread, location): (ThreadId, u32),
        order: Ordering,
        place: usize,
    ) -> (u64, Store) {
        let time = clocks.epoch(thread).time;
        let before = clocks.now(thread).expect("a thread with an epoch has a clock").clone();
        let accessed = &self.locations[location as usize];
        let index = accessed.order[place];
        let store = accessed.at(place).clone();
        clocks.read(thread, &store.released, order);
        let after = clocks.now(thread).expect("a thread with an epoch has a clock").clone();
        let is_stale = place + 1 < accessed.order.len();
        let access = NewAccess { thread, location, before: &before, after: &after };
        let edges = (order == Ordering::SeqCst)
            .then(|| self.order.edges_to_access(clocks, access, accessed));
        let fences = if is_stale { self.order.fences_before(access) } else { Nodes::new() };
        self.order.note(thread, Some(location), time, &before, &after);
        let node =
            edges.map_or(NO_NODE, |edges| self.order.add(thread, time, Some(location), &edges));
        if is_stale && (node != NO_NODE || !fences.is_empty()) {
            self.order.add_edges_from(node, &fences, accessed, place + 1);
        }
        let access = Accessed { time, store: index, is_store: false, node, clock: after };
        self.locations[location as usize].record(thread, access);
        (store.value, store)
    }

    /// Performs a store behind the first `place` ones. `passed_on` is what a read-modify-write has
    /// read: it continues a release sequence.
    fn write(
        &mut self,
        clocks: &mut SyncClocks,
        (thread, location): (ThreadId, u32),
        (event, value): (EventId, u64),
        order: Ordering,
        place: usize,
        passed_on: Option<VectorClock>,
    ) {
        let time = clocks.epoch(thread).time;
        let before = clocks.now(thread).expect("a thread with an epoch has a clock").clone();
        let accessed = &self.locations[location as usize];
        let is_stale = place < accessed.order.len();
        let access = NewAccess { thread, location, before: &before, after: &before };
        let edges = (order == Ordering::SeqCst).then(|| {
            let mut edges = self.order.edges_to_access(clocks, access, accessed);
            self.order.edges_to_store(thread, accessed, place, &mut edges);
            edges
        });
        let fences = if is_stale { self.order.fences_before(access) } else { Nodes::new() };
        let mut released = clocks.stored(thread, order);
        if let Some(passed_on) = passed_on {
            released.join(&passed_on);
        }
        let after = clocks.now(thread).expect("a thread with an epoch has a clock");
        self.order.note(thread, Some(location), time, &before, after);
        let node =
            edges.map_or(NO_NODE, |edges| self.order.add(thread, time, Some(location), &edges));
        if is_stale && (node != NO_NODE || !fences.is_empty()) {
            self.order.add_edges_from(node, &fences, accessed, place);
        }
        // The name has one part for each pair of neighbours in modification order.
        let previous = accessed.at(place - 1).event;
        self.name ^= part(Part::Order, [u64::from(location), event.word(), previous.word()]);
        if let Some(&next) = accessed.order.get(place) {
            let next = accessed.stores[next as usize].event.word();
            self.name ^= part(Part::Order, [u64::from(location), next, previous.word()]);
            self.name ^= part(Part::Order, [u64::from(location), next, event.word()]);
        }
        let step = self.step;
        let accessed = &mut self.locations[location as usize];
        let store = Store { event, value, step, released, is_followed: false };
        let store = accessed.insert(store, place);
        accessed.record(thread, Accessed { time, store, is_store: true, node, clock: before });
    }
}

/// The clock of a thread after it has read a store.
fn after_reading(now: &VectorClock, released: &VectorClock, order: Ordering) -> VectorClock {
    let mut after = now.clone();
    if acquires(order) {
        after.join(released);
    }
    after
}

fn part(part: Part, words: [u64; 3]) -> Fingerprint {
    let mut mixer = Mixer::new();
    mixer.absorb(part as u64);
    words.into_iter().for_each(|word| mixer.absorb(word));
    mixer.finish()
}

fn absorb(mixer: &mut Mixer, name: Fingerprint) {
    mixer.absorb(name.0 as u64);
    mixer.absorb((name.0 >> 64) as u64);
}

impl Memory for Weak {
    const MODEL: MemoryModel = MemoryModel::Weak;

    fn clear(&mut self) {
        self.locations.clear();
        self.events.clear();
        self.order.clear();
        self.chains.clear();
        self.name = Fingerprint::default();
    }

    fn initialise(&mut self, location: u32, value: u64) {
        let at = location as usize;
        if self.locations.len() <= at {
            self.locations.resize_with(at + 1, LocationState::default);
        }
        let initial = self.locations[at].initial;
        if initial > 0 {
            self.name ^= part(Part::Initial, [u64::from(location), u64::from(initial), 0]);
        }
        let event = EventId { thread: None, nth: initial };
        let released = VectorClock::new();
        let store = Store { event, value, step: 0, released, is_followed: false };
        self.locations[at] = LocationState {
            stores: vec![store],
            order: vec![0],
            places: vec![0],
            accesses: SmallVec::new(),
            initial: initial + 1,
        };
    }

    fn latest(&self, location: u32) -> Option<u64> {
        let accessed = self.locations.get(location as usize)?;
        accessed.order.last().map(|&store| accessed.stores[store as usize].value)
    }

    fn alternatives(
        &self,
        clocks: &SyncClocks,
        thread: ThreadId,
        location: u32,
        access: MemoryAccess,
    ) -> Alternatives {
        let Some(accessed) = self.locations.get(location as usize) else { return smallvec![0] };
        if accessed.order.len() <= 1 && !matches!(access, MemoryAccess::Store(_)) {
            return smallvec![0];
        }
        let unknown = VectorClock::new();
        let now = clocks.now(thread).unwrap_or(&unknown);
        let at = (thread, location);
        let newest = accessed.order.len() - 1;
        let oldest = newest - accessed.floor(now);
        let is_possible = |nth: &u32| match access {
            MemoryAccess::Load(order) => self.can_load(clocks, at, now, order, *nth),
            MemoryAccess::Store(order) => {
                let place = accessed.place_of(*nth) + 1;
                let splits = accessed.at(place - 1).is_followed;
                !splits && self.can_store(clocks, at, now, order, place)
            }
            MemoryAccess::Update(order) => self.can_update(clocks, at, now, order, *nth),
            MemoryAccess::Exchange { expected, success, failure } => {
                if accessed.at(accessed.place_of(*nth)).value == expected {
                    self.can_update(clocks, at, now, success, *nth)
                } else {
                    self.can_load(clocks, at, now, failure, *nth)
                }
            }
        };
        (0..=oldest as u32).filter(is_possible).collect()
    }

    fn load(
        &mut self,
        clocks: &mut SyncClocks,
        thread: ThreadId,
        location: u32,
        order: Ordering,
        alternative: u32,
    ) -> u64 {
        let event = self.next_event(thread);
        let place = self.locations[location as usize].place_of(alternative);
        let (value, source) = self.read(clocks, (thread, location), order, place);
        let words = [event.word(), u64::from(location), source.event.word()];
        self.name ^= part(Part::Load, words);
        value
    }

    fn store(
        &mut self,
        clocks: &mut SyncClocks,
        thread: ThreadId,
        location: u32,
        value: u64,
        order: Ordering,
        alternative: u32,
    ) {
        let event = self.next_event(thread);
        let place = self.locations[location as usize].place_of(alternative) + 1;
        self.name ^= part(Part::Store, [event.word(), u64::from(location), 0]);
        self.write(clocks, (thread, location), (event, value), order, place, None);
    }

    fn update(
        &mut self,
        clocks: &mut SyncClocks,
        thread: ThreadId,
        location: u32,
        (success, failure): (Ordering, Ordering),
        alternative: u32,
        new: impl FnOnce(u64) -> Option<u64>,
    ) -> u64 {
        let accessed = &mut self.locations[location as usize];
        let place = accessed.place_of(alternative);
        let index = accessed.order[place] as usize;
        let old = accessed.stores[index].value;
        let Some(value) = new(old) else {
            return self.load(clocks, thread, location, failure, alternative);
        };
        debug_assert!(!accessed.stores[index].is_followed, "one update reads a store");
        accessed.stores[index].is_followed = true;
        let event = self.next_event(thread);
        let (_, source) = self.read(clocks, (thread, location), success, place);
        let words = [event.word(), u64::from(location), source.event.word()];
        self.name ^= part(Part::Update, words);
        let (at, passed_on) = ((thread, location), Some(source.released));
        self.write(clocks, at, (event, value), success, place + 1, passed_on);
        old
    }

    fn fence(&mut self, clocks: &mut SyncClocks, thread: ThreadId, order: Ordering) {
        let event = self.next_event(thread);
        let time = clocks.epoch(thread).time;
        let before = clocks.now(thread).expect("a thread with an epoch has a clock").clone();
        if order == Ordering::SeqCst {
            // The fence gets a time of its own. A clock with the time of the accesses before it
            // would not say whether it includes the fence, so that the fence would count as one
            // that happens before them. Nobody joins what is published here.
            drop(clocks.publish(thread));
        }
        let past = clocks.fence(thread, order);
        let after = clocks.now(thread).expect("a thread with an epoch has a clock");
        self.order.note(thread, None, time, &before, after);
        if order == Ordering::SeqCst {
            let accessed = self.locations.iter().enumerate();
            let accessed = accessed.map(|(location, state)| (location as u32, state));
            self.order.add_fence(clocks, thread, past, accessed);
        }
        self.name ^= part(Part::Fence, [event.word(), 0, 0]);
    }
}
