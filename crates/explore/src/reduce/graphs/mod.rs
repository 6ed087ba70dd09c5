//! Every execution graph of a program under weak memory, each once.
//!
//! **Paper.** TruSt: Kokologiannakis, Marmanis, Gladstein, Vafeiadis, *Truly stateless, optimal
//! dynamic partial order reduction*, POPL 2022, Algorithm 1. An execution graph consists of the
//! steps of the threads, what each load reads, the modification order of each location, and the
//! order of conflicting operations on each object. The search adds one step after the other. A load
//! is added once for each store that it may read so far. A later store is given to an earlier load,
//! which then reads it (a *revisit*): what was added after the load is removed, except what the
//! store comes after.
//!
//! **Guarantees.** A completed search has taken one execution of every consistent graph, so every
//! assertion that can fail has failed, and every deadlock and data race was seen: both are
//! properties of the graph. Invariants between steps are not checked. Nothing is stored but the
//! remaining work. Operations that the argument below does not cover, and loops that repeat without
//! an effect, are refused by the front end when a thread reaches them
//! ([`System::graph_step`]).
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | graph G | [`Graph`] |
//! | insertion order < | [`Graph::items`] |
//! | rf, mo | [`Item::Read`], the modification orders of [`Graph`] |
//! | porf-prefix | [`graph::Past`] |
//! | VISIT | [`GraphSearch::visit`], with an explicit stack, [`Work`] |
//! | VISITNEXT, the next event | the first enabled thread |
//! | maximal extension, Deleted set | [`Graph::restrict`] |
//! | consistency | the memory of the program: a step that it does not offer is inconsistent |
//!
//! *Consistency.* The search has no axioms of its own. Every part of a consistent graph that is
//! closed under program order, reads-from and the order of objects is consistent, and the machine
//! below the cursor offers exactly the consistent extensions of what was executed. So the graph
//! that remains after a revisit is executed first, then the store at each offered position, then
//! the load that is to read it; if that is not offered, the graph is inconsistent.
//!
//! *Each once.* A graph with a revisited load is reached only from the graph in which everything
//! that was removed is *maximal*: as it would be added first, each load reading the newest store,
//! each store and operation last. Every consistent graph can be extended by a maximal step
//! (alternative 0 is always offered), so that graph exists, and it is the only one. The next thread
//! is a function of the graph, never of the way to it.
//!
//! **Deviations.**
//!
//! 1. *Read-modify-writes* are a read and a write of one step. A write that is missing is always
//!    added next, so the machine takes both halves as one step. The read is also tried on a store
//!    that another read-modify-write has read: its write is then inconsistent where it is, but may
//!    be given to that other one. Whether a compare-and-exchange writes is decided again when it
//!    reads something else.
//! 2. *Objects that block* have an order of conflicting steps instead of reads-from. The next step
//!    of a thread may come before steps that are in the graph ([`GraphSearch::displace`]). The
//!    first of these becomes a [stub](Item::Stub): it comes after the step that displaced it,
//!    whenever its thread can take it. Without stubs two locks would displace each other forever. A
//!    thread that waits when no thread can step still displaces: it may have come earlier.
//! 3. *Steps that conflict with several independent ones*: a step that writes after several that
//!    only read, or a wait, which accesses a condition variable and a mutex. Such a step may come
//!    after any set of them that is closed under the order, and chooses the set directly. Several
//!    independent steps that have to come before it displace it one at a time, in one order only:
//!    that of their threads ([`Graph::must_wait`]). That order must not depend on the search: if
//!    whichever is added first had to displace it, a search that adds what one of them comes after
//!    could add the other one first, and no path would lead to the graph.
//! 4. *An order of execution* is kept with each graph ([`Graph::path`]), because the order < is
//!    none: a revisited load reads a later event.
//! 5. *Choices* of the program are maximal if they are the first one.
//!
//! **Cost.** For a graph of n events, O(n) entries of work with a graph each, for every step on the
//! way to it: polynomial in n, however many graphs there are. A revisit executes the remaining part
//! again.

mod graph;

use preempt_system::memory::GraphStep;
use preempt_system::{Choice, Footprint, Location, Status, Swap, System, ThreadId};

use self::graph::{Graph, Item, StepId};
use crate::codec::{Damaged, Reader, Writer, save_variants};
use crate::engine::cursor::Cursor;
use crate::engine::execution::{Cut, ResumableSearch, Stop, Visitor, take_again};
use crate::engine::expand::nondeterminism;

/// The search over the execution graphs of a program. The cursor must be at the beginning of an
/// execution.
pub(crate) fn strategy<S: System>(cursor: &mut Cursor<S>) -> GraphSearch<'_, S> {
    GraphSearch { cursor, work: Vec::new() }
}

/// A search in progress.
pub(crate) struct GraphSearch<'c, S> {
    cursor: &'c mut Cursor<S>,
    /// What is to be done, the next one last. Plain data: whatever its origin, each entry leads to
    /// graphs that no other one leads to.
    work: Vec<Work>,
}

/// A graph that is to be made from one that was visited.
#[derive(Clone, Debug)]
enum Work {
    /// Adds the next step of a thread at the end.
    Extend { graph: Graph, choice: Choice },
    /// The next step of `by` writes, and the read `read`, which belongs to place `at`, reads from
    /// it. The positions of the write in modification order are to be found.
    Revisit { graph: Graph, by: ThreadId, read: StepId, at: usize },
    /// The same with a position.
    Reread { graph: Graph, write: Choice, read: StepId, at: usize },
    /// The next step of a thread comes before one of which a stub is left, if it can.
    Displace { graph: Graph, by: ThreadId },
}

save_variants!(Work {
    0 => Extend { graph, choice },
    1 => Revisit { graph, by, read, at },
    2 => Reread { graph, write, read, at },
    3 => Displace { graph, by },
});

impl<S: System> GraphSearch<'_, S> {
    /// Moves the cursor to the end of an execution of the graph.
    fn go_to(&mut self, graph: &Graph, visitor: &mut impl Visitor<S>) -> Result<(), Stop<S::Need>> {
        let choices = graph.choices();
        let shared = (0..self.cursor.len().min(choices.len()))
            .take_while(|&at| self.cursor.choice(at) == choices[at])
            .count();
        self.cursor.rewind(shared);
        take_again(self.cursor, &choices[shared..], visitor)
    }

    /// The alternatives of the next step of a thread, if it is enabled.
    fn offered(&self, thread: ThreadId) -> Vec<u32> {
        self.cursor.choices(thread).map(|choice| choice.alternative).collect()
    }

    /// The location that the next step of a thread accesses in memory.
    fn location(&self, thread: ThreadId) -> Location {
        let (_, footprint) = &self.cursor.pending(thread).footprints[0];
        footprint.accesses().first().expect("an access to memory has a location").0
    }

    /// Takes a step at the end of the graph, whose items the caller adds.
    fn take(
        &mut self,
        graph: &mut Graph,
        choice: Choice,
        visitor: &mut impl Visitor<S>,
    ) -> Result<(), Stop<S::Need>> {
        if !self.cursor.can(choice) {
            return self.diverge(visitor);
        }
        let (step, vacant) = (graph.next(choice.thread), self.cursor.vacant());
        let failure = self.cursor.step(choice)?;
        for started in vacant.iter().filter(|&thread| !self.cursor.vacant().contains(thread)) {
            graph.add_start(started, step);
        }
        graph.path.push(step);
        visitor.step(self.cursor, failure)
    }

    /// The program did not repeat its steps.
    #[cold]
    fn diverge(&mut self, visitor: &mut impl Visitor<S>) -> Result<(), Stop<S::Need>> {
        visitor.step(self.cursor, Some(Box::new(nondeterminism())))?;
        Err(Stop::Enough)
    }

    /// Adds the next step of a thread at the end of the graph.
    fn extend(
        &mut self,
        mut graph: Graph,
        choice: Choice,
        visitor: &mut impl Visitor<S>,
    ) -> Result<(), Stop<S::Need>> {
        let Choice { thread, alternative } = choice;
        let (step, half) = (graph.next(thread), graph.half());
        match self.cursor.system_mut().graph_step(thread)? {
            GraphStep::Store => {
                let location = self.location(thread);
                self.take(&mut graph, choice, visitor)?;
                graph.add_write(step, location, alternative);
            }
            GraphStep::Update(_) if half.is_some_and(|(other, ..)| other == step) => {
                let location = self.location(thread);
                self.take(&mut graph, choice, visitor)?;
                graph.add_write(step, location, alternative);
            }
            kind @ (GraphStep::Load | GraphStep::Update(_)) => {
                let location = self.location(thread);
                let source = graph.store(location, alternative);
                let updates = writes(&kind, alternative) == Some(true);
                self.take(&mut graph, choice, visitor)?;
                graph.items.push(Item::Read { step, location, source, updates });
                if updates {
                    graph.add_write(step, location, alternative);
                }
            }
            GraphStep::Other(_) => {
                let footprints = &self.cursor.pending(thread).footprints;
                let is_first = footprints.first().is_some_and(|&(first, _)| first == alternative);
                let own = footprints.iter().find(|&&(other, _)| other == alternative);
                let accesses = own.map_or(Vec::new(), |(_, own)| own.accesses().to_vec());
                self.take(&mut graph, choice, visitor)?;
                graph.items.push(Item::Act { step, alternative, is_first, accesses });
            }
        }
        self.visit(graph, visitor)
    }

    /// Explores a graph, at the end of which the cursor is.
    fn visit(&mut self, graph: Graph, visitor: &mut impl Visitor<S>) -> Result<(), Stop<S::Need>> {
        // A system in which threads are held back refuses that here.
        for slot in 0..self.cursor.threads() {
            let thread = ThreadId::new(slot);
            if self.cursor.pending(thread).status == Status::Spinning {
                self.cursor.system_mut().graph_step(thread)?;
            }
        }
        let (half, enabled) = (graph.half(), self.cursor.enabled());
        let next = match half {
            Some((step, ..)) => Some(step.thread),
            None => enabled.iter().find(|&thread| !self.must_wait(&graph, thread)),
        };
        let Some(thread) = next else {
            if enabled.is_empty() {
                visitor.end(self.cursor)?;
            } else {
                visitor.cut(self.cursor, Cut::Covered)?;
            }
            return self.displace_by_waiting(&graph);
        };
        let (step, offered, open) = (graph.next(thread), self.offered(thread), self.work.len());
        let mut extensions = offered.clone();
        match self.cursor.system_mut().graph_step(thread)? {
            GraphStep::Load => {}
            GraphStep::Store => {
                let past = graph.past(step, None);
                self.revisit(&graph, thread, self.location(thread), &past);
            }
            GraphStep::Update(reads) => match half {
                Some((_, location, source)) => {
                    let own = graph.after(location, source).len() as u32;
                    extensions.retain(|&alternative| alternative == own);
                    let past = graph.past_of_write(step, source);
                    self.revisit(&graph, thread, location, &past);
                }
                None => {
                    let location = self.location(thread);
                    for (back, _) in reads.into_iter().filter(|&(_, writes)| writes) {
                        let source = graph.store(location, back);
                        if !self.update(&graph, step, (location, source)) {
                            extensions.retain(|&alternative| alternative != back);
                        }
                    }
                }
            },
            GraphStep::Other(footprint) => self.displace(&graph, thread, &footprint),
        }
        let extensions = extensions.into_iter().rev().map(|alternative| Work::Extend {
            graph: graph.clone(),
            choice: Choice { thread, alternative },
        });
        self.work.extend(extensions);
        visitor.holds(self.work.len(), 0);
        if self.work.len() == open {
            visitor.cut(self.cursor, Cut::Covered)?;
        }
        Ok(())
    }

    /// Reads that a read-modify-write could be read by, if it reads `source`. Returns false if it
    /// can never write right behind it, because one in its past has done so.
    fn update(
        &mut self,
        graph: &Graph,
        step: StepId,
        (location, source): (Location, Option<StepId>),
    ) -> bool {
        let past = graph.past_of_write(step, source);
        let is_taken = |item: &Item| match *item {
            Item::Read { location: other, source: read, updates: true, .. } => {
                other == location && read == source && past.contains(item)
            }
            _ => false,
        };
        if graph.items.iter().any(is_taken) {
            return false;
        }
        let mut with_read = graph.clone();
        with_read.items.push(Item::Read { step, location, source, updates: true });
        self.revisit(&with_read, step.thread, location, &past);
        true
    }

    /// The next write of `by` may be read by each read of its location that does not come before
    /// it.
    fn revisit(&mut self, graph: &Graph, by: ThreadId, location: Location, past: &graph::Past) {
        for (at, item) in graph.items.iter().enumerate() {
            let Item::Read { step: read, location: other, .. } = *item else { continue };
            if other != location || past.contains(item) {
                continue;
            }
            if let Some(graph) = graph.restrict(at, past) {
                self.work.push(Work::Revisit { graph, by, read, at });
            }
        }
    }

    /// The positions in modification order that the write of a revisit can have.
    fn place(&mut self, graph: Graph, by: ThreadId, (read, at): (StepId, usize)) {
        let mut offered = self.offered(by);
        if let Some((_, location, source)) = graph.half_of(graph.next(by)) {
            let own = graph.after(location, source).len() as u32;
            offered.retain(|&alternative| alternative == own);
        }
        for alternative in offered.into_iter().rev() {
            let write = Choice { thread: by, alternative };
            self.work.push(Work::Reread { graph: graph.clone(), write, read, at });
        }
    }

    /// Takes the write of a revisit, and lets `read` read from it.
    fn reread(
        &mut self,
        mut graph: Graph,
        write: Choice,
        (read, at): (StepId, usize),
        visitor: &mut impl Visitor<S>,
    ) -> Result<(), Stop<S::Need>> {
        let (by, location) = (graph.next(write.thread), self.location(write.thread));
        self.take(&mut graph, write, visitor)?;
        graph.add_write(by, location, write.alternative);
        let alternative = graph.after(location, Some(by)).len() as u32;
        let kind = self.cursor.system_mut().graph_step(read.thread)?;
        if matches!(kind, GraphStep::Store | GraphStep::Other(_)) {
            return self.diverge(visitor);
        }
        // An event that cannot be added is inconsistent.
        let updates = match kind {
            GraphStep::Update(_) => match writes(&kind, alternative) {
                Some(updates) => updates,
                None => return Ok(()),
            },
            _ => false,
        };
        if !updates {
            if !self.offered(read.thread).contains(&alternative) {
                return Ok(());
            }
            self.take(&mut graph, Choice { thread: read.thread, alternative }, visitor)?;
        }
        let source = Some(by);
        graph.items.insert(at, Item::Read { step: read, location, source, updates });
        self.visit(graph, visitor)
    }

    /// The next step of `by`, which accesses objects, may come before those that it conflicts with.
    ///
    /// The first one in the order `<` that is to come after it becomes a stub. Conflicting steps
    /// before that one stay before `by`. Of later ones that do not depend on it, which are reads of
    /// the same object, any may stay before `by`, and the others are removed.
    fn displace(&mut self, graph: &Graph, by: ThreadId, footprint: &Footprint) {
        let (next, accesses) = (graph.next(by), footprint.accesses());
        let floor = graph.items.iter().rev().find_map(|item| match *item {
            Item::Stub { step, floor, .. } if step == next => Some(floor),
            _ => None,
        });
        for (at, item) in graph.items.iter().enumerate() {
            let later = item.step();
            if !item.conflicts(accesses) || self.must_precede(later, next) {
                continue;
            }
            let before: Vec<StepId> = graph.conflicting(at, accesses).chain(floor).collect();
            let past = graph.past(next, before.iter().copied());
            if past.has(later) {
                continue;
            }
            let is_free = |&step: &StepId| {
                !past.has(step) && !graph.past(next, [step]).has(later) && step != later
            };
            let after = graph.conflicting(graph.items.len(), accesses);
            let free: Vec<StepId> = after.filter(is_free).collect();
            for kept in subsets(&free) {
                let past = graph.past(next, before.iter().copied().chain(kept.iter().copied()));
                if free.iter().any(|&step| past.has(step) && !kept.contains(&step)) {
                    continue;
                }
                let Some(mut rest) = graph.restrict(at, &past) else { continue };
                if rest.must_wait(next, accesses, &past) {
                    continue;
                }
                graph.leave_stub(&mut rest, at, next);
                self.work.push(Work::Displace { graph: rest, by });
            }
        }
    }

    /// Whether the next step of a thread has to come after one that was displaced.
    fn must_wait(&self, graph: &Graph, thread: ThreadId) -> bool {
        let (next, (_, footprint)) =
            (graph.next(thread), &self.cursor.pending(thread).footprints[0]);
        let accesses = footprint.accesses();
        let before = graph.conflicting(graph.items.len(), accesses);
        graph.must_wait(next, accesses, &graph.past(next, before))
    }

    /// Whether `next` can never come before `step`, which it conflicts with.
    fn must_precede(&self, step: StepId, next: StepId) -> bool {
        let [earlier, later] = [step, next].map(|step| (step.thread, step.nth as usize));
        self.cursor.system().swap(earlier, later) == Swap::Impossible
    }

    /// No further step is added to the graph. The threads that wait may have come earlier. That
    /// holds too if other threads [must wait](Graph::must_wait) for a displaced step: the graph is
    /// not complete, but a step that waits displaces others here or nowhere.
    fn displace_by_waiting(&mut self, graph: &Graph) -> Result<(), Stop<S::Need>> {
        for slot in 0..self.cursor.threads() {
            let thread = ThreadId::new(slot);
            if self.cursor.pending(thread).status == Status::Blocked
                && let GraphStep::Other(footprint) = self.cursor.system_mut().graph_step(thread)?
            {
                self.displace(graph, thread, &footprint);
            }
        }
        Ok(())
    }
}

/// All subsets.
fn subsets(steps: &[StepId]) -> Vec<Vec<StepId>> {
    let mut subsets = vec![Vec::new()];
    for &step in steps {
        for at in 0..subsets.len() {
            let mut with_step = subsets[at].clone();
            with_step.push(step);
            subsets.push(with_step);
        }
    }
    subsets
}

/// Whether an update that reads the store with this number writes; `None` if it cannot read it, or
/// never writes.
fn writes(step: &GraphStep, back: u32) -> Option<bool> {
    let GraphStep::Update(reads) = step else { return None };
    reads.iter().find(|&&(store, _)| store == back).map(|&(_, writes)| writes)
}

impl<S: System> ResumableSearch<S> for GraphSearch<'_, S> {
    fn start(&mut self, visitor: &mut impl Visitor<S>) -> Result<(), Stop<S::Need>> {
        self.visit(Graph::default(), visitor)
    }

    fn advance(&mut self, visitor: &mut impl Visitor<S>) -> Result<bool, Stop<S::Need>> {
        let Some(work) = self.work.pop() else { return Ok(false) };
        match work {
            Work::Extend { graph, choice } => {
                self.go_to(&graph, visitor)?;
                self.extend(graph, choice, visitor)?;
            }
            Work::Revisit { graph, by, read, at } => {
                self.go_to(&graph, visitor)?;
                self.place(graph, by, (read, at));
            }
            Work::Reread { graph, write, read, at } => {
                self.go_to(&graph, visitor)?;
                self.reread(graph, write, (read, at), visitor)?;
            }
            Work::Displace { graph, by } => {
                self.go_to(&graph, visitor)?;
                for alternative in self.offered(by).into_iter().rev() {
                    let choice = Choice { thread: by, alternative };
                    self.work.push(Work::Extend { graph: graph.clone(), choice });
                }
            }
        }
        Ok(true)
    }

    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.work);
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), Damaged> {
        self.work = from.get()?;
        Ok(())
    }

    fn replay(&mut self, _: &mut impl Visitor<S>) -> Result<(), Stop<S::Need>> {
        // Every entry moves the cursor itself.
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor as Bytes;

    use super::*;
    use preempt_system::Access;

    #[test]
    fn work_is_read_as_it_was_written() {
        let [a, b] = [0, 1].map(|slot| StepId { thread: ThreadId::new(slot), nth: 7 });
        let location = Location(3);
        let mut graph = Graph::default();
        graph.items.push(Item::Read { step: a, location, source: None, updates: true });
        graph.add_write(a, location, 0);
        graph.path.push(a);
        graph.add_start(b.thread, a);
        let accesses = vec![(Location(5), Access::Write)];
        graph.items.push(Item::Act { step: b, alternative: 2, is_first: false, accesses });
        let accesses = vec![(Location(6), Access::Read)];
        graph.items.push(Item::Stub { step: b, floor: a, accesses });
        let choice = Choice { thread: b.thread, alternative: 4 };
        let work = vec![
            Work::Extend { graph: graph.clone(), choice },
            Work::Revisit { graph: graph.clone(), by: a.thread, read: b, at: 1 },
            Work::Reread { graph: graph.clone(), write: choice, read: b, at: 2 },
            Work::Displace { graph, by: b.thread },
        ];
        let bytes = Writer::collect(|to| to.put(&work));
        let length = bytes.len() as u64;
        let mut from = Reader::new(Box::new(Bytes::new(bytes)), length);
        let read: Vec<Work> = from.get().expect("the work was written");
        assert_eq!(format!("{read:?}"), format!("{work:?}"));
    }

    #[test]
    fn subsets_are_all_there() {
        let steps = [0, 1, 2].map(|nth| StepId { thread: ThreadId::new(0), nth });
        assert_eq!(subsets(&steps).len(), 8);
        assert_eq!(subsets(&[]), [[]]);
    }
}
