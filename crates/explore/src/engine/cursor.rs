//! An execution in progress: the interface of every strategy that explores executions rather than
//! states.
//!
//! A cursor is at the end of an execution. It knows the next step of each thread and whether the
//! thread is enabled, takes steps, and goes back to any earlier point. The
//! [system](preempt_system::System) decides how to go back: by copies of states, or by executing
//! again.
//!
//! The next step of a thread does not change while other threads take steps that are independent of
//! it. So after a step the cursor queries only those threads again whose next step depends on it,
//! because queries are most of the cost of a step. An answer is written once and stays in place
//! until the execution goes back before it; steps and threads refer to it by its index.

mod forward;

use preempt_system::{
    Capacity, Choice, Failure, Fingerprint, Footprint, HbGraph, Model, Pending, Preemptions,
    Schedule, Status, System, ThreadId, ThreadSet, delay,
};

use smallvec::SmallVec;

use crate::engine::expand::{deadlock, livelock};
use crate::engine::model::ModelExecution;
use crate::engine::spin_cycle::{FARTHEST_START, LONGEST_CYCLE};
use crate::plan::Cost;

/// One step of the execution.
#[derive(Clone, Copy, Debug)]
struct Taken {
    choice: Choice,
    /// The thread's pending entry, as an index into [`Cursor::known`], and the position of the
    /// alternative in it.
    pending: u32,
    nth: u32,
    enabled: ThreadSet,
    preemptions: Preemptions,
    delays: u32,
    forced: u32,
    /// The length of [`Cursor::undo`] before the step.
    undo: u32,
}

/// An execution in progress.
pub struct Cursor<S> {
    system: S,
    steps: Vec<Taken>,
    /// Pending entries of the execution: one for each slot at its beginning, and one for each entry
    /// of `undo`. Later elements are left over from executions that were taken back, and are
    /// overwritten: their memory is reused.
    known: Vec<Pending>,
    /// For each slot, the index of its current entry in `known`.
    pending: Vec<u32>,
    /// The indices of entries that steps have replaced.
    undo: Vec<(ThreadId, u32)>,
    /// The threads whose status is [`Status::Enabled`], [`Status::Spinning`], and
    /// [`Status::Vacant`].
    ready: ThreadSet,
    held: ThreadSet,
    vacant: ThreadSet,
    enabled: ThreadSet,
    preemptions: Preemptions,
    /// What the search bounds.
    cost: Cost,
    /// The number of delays and stale steps so far, if the search bounds delays.
    delays: u32,
    /// The number of consecutive steps by threads that are held back, because no other thread could
    /// move.
    forced: u32,
    /// Whether threads that spin are held back.
    fair: bool,
    /// Whether a thread was held back in any execution so far.
    has_held: bool,
    /// The happens-before graph of the execution, if the cursor records it.
    graph: Option<HbGraph>,
    /// Whether it [keeps no past steps](Cursor::forward_only). Then `undo` is empty, and `known`
    /// has two entries for each slot: one for the beginning, one for the present.
    forward_only: bool,
    /// For each slot that was vacant, the step that started its thread; only if `forward_only`.
    starts: Vec<u32>,
}

impl<'m, M: Model> Cursor<ModelExecution<'m, M>> {
    /// A cursor at the beginning of an execution of `model`.
    pub fn new(model: &'m M) -> Result<Self, Capacity> {
        Cursor::over(ModelExecution::new(model)?)
    }
}

impl<S: System> Cursor<S> {
    /// A cursor over `system`, which is at the beginning of an execution.
    pub fn over(mut system: S) -> Result<Self, S::Need> {
        let mut known = vec![Pending::vacant(); system.threads()];
        for (slot, pending) in known.iter_mut().enumerate() {
            system.ask(ThreadId::new(slot), pending)?;
        }
        let preemptions = Preemptions::starting_with(system.initially_running());
        let mut cursor = Cursor {
            system,
            steps: Vec::new(),
            pending: (0..known.len() as u32).collect(),
            known,
            undo: Vec::new(),
            ready: ThreadSet::EMPTY,
            held: ThreadSet::EMPTY,
            vacant: ThreadSet::EMPTY,
            enabled: ThreadSet::EMPTY,
            preemptions,
            cost: Cost::Preemptions,
            delays: 0,
            forced: 0,
            fair: false,
            has_held: false,
            graph: None,
            forward_only: false,
            starts: Vec::new(),
        };
        (0..cursor.pending.len()).for_each(|slot| cursor.update_sets(ThreadId::new(slot)));
        cursor.enabled = cursor.count_enabled();
        Ok(cursor)
    }

    /// Builds the happens-before graph of the execution from now on, which has to be its beginning.
    pub fn recording(mut self) -> Self {
        assert!(self.is_empty(), "a happens-before graph has all steps of its execution");
        self.graph = Some(HbGraph::new());
        self
    }

    /// Starts recording, unless the cursor records already.
    pub(crate) fn record(&mut self) {
        assert!(self.is_empty(), "a happens-before graph has all steps of its execution");
        self.graph.get_or_insert_default();
    }

    /// Holds back threads that spin, from now on: threads whose steps have led them back to where
    /// they were, while others changed nothing that they read. They can only repeat these steps
    /// until another thread does.
    pub fn fair(mut self) -> Self {
        self.fair = true;
        self
    }

    /// Counts the cost of steps in this unit from now on, which has to be the beginning of the
    /// execution.
    pub fn counting(mut self, cost: Cost) -> Self {
        assert!(self.is_empty(), "the cost of an execution includes all its steps");
        self.cost = cost;
        self
    }

    /// The happens-before graph of the execution, of a cursor that is
    /// [recording](Cursor::recording).
    pub fn graph(&self) -> Option<&HbGraph> {
        self.graph.as_ref()
    }

    /// The name of the execution: of its happens-before graph, or what the program
    /// [says](System::name). `None` if the cursor does not [record](Cursor::recording).
    pub fn name(&self) -> Option<Fingerprint> {
        let graph = self.graph.as_ref()?;
        Some(self.system.name().unwrap_or_else(|| graph.fingerprint()))
    }

    /// The program.
    pub fn system(&self) -> &S {
        &self.system
    }

    /// The program, for queries about parts of the current execution.
    pub fn system_mut(&mut self) -> &mut S {
        &mut self.system
    }

    /// The number of thread slots.
    pub fn threads(&self) -> usize {
        self.pending.len()
    }

    /// The number of steps of the execution.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether no step was taken yet.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The threads that can take a step.
    pub fn enabled(&self) -> ThreadSet {
        self.enabled
    }

    /// The slots in which there is no thread.
    pub(crate) fn vacant(&self) -> ThreadSet {
        self.vacant
    }

    /// The next step of a thread.
    #[inline]
    pub fn pending(&self, thread: ThreadId) -> &Pending {
        &self.known[self.pending[thread.index()] as usize]
    }

    /// Whether the last step gave the thread another [next step](Cursor::pending) than it had
    /// before: it was the thread's own, started it, or changed what it does or waits for.
    pub(crate) fn has_changed(&self, thread: ThreadId) -> bool {
        let Some(last) = self.steps.last() else { return false };
        self.undo[last.undo as usize..].iter().any(|&(changed, _)| changed == thread)
    }

    /// The footprint of a step that can be taken now.
    pub fn footprint(&self, choice: Choice) -> &Footprint {
        &self.pending(choice.thread).footprints[self.nth(choice)].1
    }

    /// The position of a step, which can be taken now, among the alternatives of its thread.
    #[inline]
    fn nth(&self, choice: Choice) -> usize {
        let footprints = &self.pending(choice.thread).footprints[..];
        // Most threads have one alternative.
        if let [(alternative, _), ..] = footprints
            && *alternative == choice.alternative
        {
            return 0;
        }
        let found =
            footprints.iter().position(|&(alternative, _)| alternative == choice.alternative);
        found.expect("the alternative exists")
    }

    /// Whether the execution runs forever from here although every thread gets its turns: all
    /// threads that could move spin.
    pub fn is_livelock(&self) -> bool {
        self.enabled.is_empty() && !self.held.is_empty() && !self.system.has_failed()
    }

    /// Whether the execution ends here with threads that wait where they may not wait forever.
    pub fn is_deadlock(&self) -> bool {
        self.enabled.is_empty()
            && self.held.is_empty()
            && !self.system.has_failed()
            && self.pending.iter().any(|&at| self.known[at as usize].status == Status::Blocked)
    }

    /// The failure of an execution that ends here with threads that wait or spin forever, unless
    /// the program [accepts](System::judge_stuck) that.
    pub fn stuck(&mut self) -> Option<Failure> {
        let dead = self.is_deadlock().then(deadlock);
        let failure = dead.or_else(|| self.is_livelock().then(livelock))?;
        self.system.judge_stuck(failure)
    }

    /// The preemptions so far, and the thread of the last step.
    pub fn preemptions(&self) -> Preemptions {
        self.preemptions
    }

    /// The cost so far: preemptions or [delays](Cursor::counting), and stale steps.
    pub(crate) fn cost(&self) -> u32 {
        match self.cost {
            Cost::Preemptions => self.preemptions.count(),
            Cost::Delays => self.delays,
        }
    }

    /// The cost after `choice`, which can be taken now.
    #[inline]
    pub fn cost_with(&self, choice: Choice) -> u32 {
        // Alternative 0 is never stale.
        let stale =
            choice.alternative != 0 && self.pending(choice.thread).is_stale(choice.alternative);
        let switched = match self.cost {
            Cost::Preemptions => self.preemptions_with(choice.thread),
            Cost::Delays => self.delays_with(choice.thread),
        };
        switched + u32::from(stale)
    }

    /// The number of delays after a step of `thread`.
    fn delays_with(&self, thread: ThreadId) -> u32 {
        self.delays + delay::delays(self.running(), thread, self.enabled)
    }

    /// The same where the execution had `len` steps.
    fn delays_with_at(&self, len: usize, thread: ThreadId) -> u32 {
        let Some(step) = self.steps.get(len) else { return self.delays_with(thread) };
        let running = match len.checked_sub(1) {
            Some(last) => Some(self.choice(last).thread),
            None => self.system.initially_running(),
        };
        step.delays + delay::delays(running, thread, step.enabled)
    }

    /// The same for a step that could be taken where the execution had `len` steps.
    pub(crate) fn cost_with_at(&self, len: usize, choice: Choice) -> u32 {
        let switched = match self.cost {
            Cost::Preemptions => self.preemptions_with_at(len, choice.thread),
            Cost::Delays => self.delays_with_at(len, choice.thread),
        };
        if choice.alternative == 0 {
            return switched;
        }
        // The pending entry of a thread changes by its own steps at the latest. Another step may
        // have changed its alternatives, but not from which number on they are stale.
        let own = (len..self.steps.len()).find(|&at| self.choice(at).thread == choice.thread);
        let pending = own.map_or_else(|| self.pending(choice.thread), |at| self.pending_before(at));
        switched + u32::from(pending.is_stale(choice.alternative))
    }

    /// The number of preemptions after a step of `thread`.
    pub fn preemptions_with(&self, thread: ThreadId) -> u32 {
        self.preemptions.count() + u32::from(self.preemptions.would_preempt(thread, self.enabled))
    }

    /// The same where the execution had `len` steps.
    pub(crate) fn preemptions_with_at(&self, len: usize, thread: ThreadId) -> u32 {
        let (preemptions, enabled) = match self.steps.get(len) {
            Some(step) => (step.preemptions, step.enabled),
            None => (self.preemptions, self.enabled),
        };
        preemptions.count() + u32::from(preemptions.would_preempt(thread, enabled))
    }

    /// Whether a thread was held back in any execution so far.
    pub(crate) fn has_held(&self) -> bool {
        self.has_held
    }

    /// The thread that took the last step, or was running before the first one.
    pub fn running(&self) -> Option<ThreadId> {
        self.steps
            .last()
            .map_or_else(|| self.system.initially_running(), |step| Some(step.choice.thread))
    }

    /// The steps that a thread can take now, if it is enabled: one for each of its alternatives, in
    /// their order.
    pub fn choices(&self, thread: ThreadId) -> impl DoubleEndedIterator<Item = Choice> + '_ {
        let pending = self.pending(thread);
        let existing = if self.enabled.contains(thread) { &pending.footprints[..] } else { &[] };
        existing.iter().map(move |&(alternative, _)| Choice { thread, alternative })
    }

    /// Whether a step can be taken: the thread is enabled, or only held back, which a reduction
    /// that reorders steps may ignore.
    pub fn can(&self, choice: Choice) -> bool {
        let pending = self.pending(choice.thread);
        matches!(pending.status, Status::Enabled | Status::Spinning)
            && pending.footprints.iter().any(|&(alternative, _)| alternative == choice.alternative)
    }

    /// The step that was taken `at` steps after the beginning.
    pub fn choice(&self, at: usize) -> Choice {
        self.steps[at].choice
    }

    /// The footprint of that step.
    pub fn taken(&self, at: usize) -> &Footprint {
        debug_assert!(!self.forward_only, "a forward-only cursor does not keep footprints");
        let Taken { pending, nth, .. } = self.steps[at];
        &self.known[pending as usize].footprints[nth as usize].1
    }

    /// The pending entry of the thread before that step, with all its alternatives.
    #[inline]
    pub(crate) fn pending_before(&self, at: usize) -> &Pending {
        debug_assert!(!self.forward_only, "a forward-only cursor does not keep alternatives");
        &self.known[self.steps[at].pending as usize]
    }

    /// The threads that could take a step before it.
    pub fn enabled_before(&self, at: usize) -> ThreadSet {
        self.steps[at].enabled
    }

    /// The steps so far.
    pub fn schedule(&self) -> Schedule {
        Schedule::new(self.steps.iter().map(|step| step.choice).collect())
    }

    /// Takes a step of an enabled thread. If it fails, the thread takes no further step; the others
    /// may continue.
    #[inline]
    pub fn step(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, S::Need> {
        debug_assert!(self.can(choice), "only a thread that can step is stepped");
        if self.forward_only { self.step_forward(choice) } else { self.step_and_keep(choice) }
    }

    /// Takes a step such that it can be taken back.
    fn step_and_keep(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, S::Need> {
        let (taken, nth) = (self.pending[choice.thread.index()], self.nth(choice));
        let cost = if self.cost == Cost::Delays { self.cost_with(choice) } else { 0 };
        let failure = self.system.step(choice)?;
        let start = self.graph.is_some().then(|| self.start(choice.thread)).flatten();
        let (before, forced) = (self.enabled, self.forced);
        self.forced = self.forced_after(choice);
        let (preemptions, delays) = (self.preemptions, self.delays);
        if self.cost == Cost::Delays {
            self.delays = cost;
        }
        self.preemptions.step(choice.thread, before);
        if choice.alternative != 0 && self.known[taken as usize].is_stale(choice.alternative) {
            self.preemptions.stale_step();
        }
        if self.system.is_between_operations(choice.thread) {
            self.preemptions.release();
        }
        let undo = self.undo.len() as u32;
        let new = self.ask(choice.thread)?;
        if self.fair {
            self.hold_if_spinning(new, choice);
        }
        // The thread that stepped always gets a new pending entry, even an equal one: it is
        // another step.
        self.replace(choice.thread, new);
        for thread in self.possibly_affected(choice.thread).without(choice.thread).iter() {
            let (old, footprint) =
                (self.pending(thread), &self.known[taken as usize].footprints[nth].1);
            // A failure may end all threads, for example that of a process.
            let affected = failure.is_some()
                || self.system.affects_all()
                || old.status == Status::Vacant
                || old.footprints.iter().any(|(_, theirs)| theirs.depends(footprint));
            if affected {
                let new = self.ask(thread)?;
                if self.known[new] != *self.pending(thread) {
                    self.replace(thread, new);
                }
            }
        }
        debug_assert!(self.are_unaffected(choice.thread)?, "an unaffected thread has changed");
        self.enabled = self.count_enabled();
        if let Some(graph) = &mut self.graph {
            let footprint = &self.known[taken as usize].footprints[nth].1;
            match start {
                Some(start) => graph.push_first(choice, footprint, start),
                None => graph.push(choice, footprint),
            }
        }
        let nth = nth as u32;
        self.steps.push(Taken {
            choice,
            pending: taken,
            nth,
            enabled: before,
            preemptions,
            delays,
            forced,
            undo,
        });
        Ok(failure)
    }

    /// Makes `new` the pending entry of a thread, such that it can be taken back.
    #[inline(always)]
    fn replace(&mut self, thread: ThreadId, new: usize) {
        let old = std::mem::replace(&mut self.pending[thread.index()], new as u32);
        self.undo.push((thread, old));
        if self.known[old as usize].status != self.known[new].status {
            self.update_sets(thread);
        }
    }

    /// The value of `forced` after a step that can be taken now.
    #[inline]
    fn forced_after(&self, choice: Choice) -> u32 {
        if self.held.contains(choice.thread) {
            return self.forced + 1;
        }
        // The turn of a thread lasts until it is held back again.
        if self.forced > 0 && self.running() == Some(choice.thread) { self.forced } else { 0 }
    }

    /// The threads whose next step may have changed by a step of `moved`.
    #[inline]
    fn possibly_affected(&self, moved: ThreadId) -> ThreadSet {
        let settled = self.system.unaffected().without(moved);
        ThreadSet::from_bits(ThreadSet::first(self.pending.len()).bits() & !settled.bits())
    }

    /// Whether the threads that need not be queried after a step of `moved` would answer as before.
    fn are_unaffected(&mut self, moved: ThreadId) -> Result<bool, S::Need> {
        let settled = self.system.unaffected().without(moved).bits();
        let all = ThreadSet::first(self.pending.len()).bits();
        for thread in ThreadSet::from_bits(settled & all).iter() {
            let mut now = Pending::vacant();
            self.system.ask(thread, &mut now)?;
            if now != *self.pending(thread) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Queries the next step of a thread. The answer is written after the entries in use, and is
    /// kept if `undo` gets longer.
    #[inline]
    fn ask(&mut self, thread: ThreadId) -> Result<usize, S::Need> {
        let new = self.pending.len() + self.undo.len();
        if self.known.len() == new {
            self.known.push(Pending::vacant());
        }
        self.system.ask(thread, &mut self.known[new])?;
        Ok(new)
    }

    /// The step that started a thread which is about to take its first one; `None` if it was there
    /// from the beginning, or has taken a step already.
    fn start(&self, thread: ThreadId) -> Option<usize> {
        if self.graph.as_ref().is_some_and(|graph| graph.clock(thread).is_some()) {
            return None;
        }
        if self.forward_only {
            return Some(self.starts[thread.index()] as usize).filter(|&at| at < self.len());
        }
        let was_vacant = |&old: &u32| self.known[old as usize].status == Status::Vacant;
        let at =
            self.undo.iter().rposition(|(other, old)| *other == thread && was_vacant(old))? as u32;
        Some(self.steps.partition_point(|step| step.undo <= at) - 1)
    }

    /// Goes back to where the execution had `len` steps.
    pub fn rewind(&mut self, len: usize) {
        if self.forward_only {
            assert!(len == 0, "a forward-only cursor goes back only to the beginning");
            return self.rewind_all();
        }
        if let Some(graph) = &mut self.graph {
            graph.truncate(len);
        }
        if self.steps.len() > len {
            self.system.rewind(len);
        }
        let Some(&Taken { enabled, preemptions, delays, forced, undo, .. }) = self.steps.get(len)
        else {
            return;
        };
        self.steps.truncate(len);
        (self.enabled, self.preemptions, self.forced) = (enabled, preemptions, forced);
        self.delays = delays;
        let mut changed = ThreadSet::EMPTY;
        while self.undo.len() > undo as usize {
            let (thread, old) = self.undo.pop().expect("the step has made changes");
            self.pending[thread.index()] = old;
            changed.insert(thread);
        }
        changed.iter().for_each(|thread| self.update_sets(thread));
    }

    /// Checks the invariants in the current state.
    pub fn invariant(&mut self) -> Result<(), Box<Failure>> {
        self.system.invariant()
    }

    /// Holds back the thread of the step just taken if its last steps are a cycle: they lead back
    /// to where it was, and are independent of the steps of other threads between them. `next` is
    /// the index of its pending entry.
    fn hold_if_spinning(&mut self, next: usize, choice: Choice) {
        // A system without comparable states reports itself which threads spin.
        if self.known[next].status != Status::Enabled || self.system.words().is_none() {
            return;
        }
        // The first step of a cycle is also the next step after it. Most steps fail this test, and
        // no states have to be compared.
        let begins = |touched: &Footprint| {
            self.known[next].footprints.iter().all(|(_, next)| touched.includes(next))
        };
        let (mut round, mut others) = (self.footprint(choice).clone(), Footprint::new());
        let mut own: SmallVec<[Choice; LONGEST_CYCLE]> = SmallVec::from_slice(&[choice]);
        let mut is_round =
            begins(&round) && self.system.is_round(self.steps.len(), own.iter().copied());
        for at in (0..self.steps.len()).rev().take(FARTHEST_START) {
            if is_round || own.len() == LONGEST_CYCLE || round.depends(&others) {
                break;
            }
            if self.choice(at).thread != choice.thread {
                others.extend(self.taken(at));
                continue;
            }
            own.push(self.choice(at));
            round.extend(self.taken(at));
            is_round = begins(self.taken(at))
                && !round.depends(&others)
                && self.system.is_round(at, own.iter().rev().copied());
        }
        if is_round {
            let next = &mut self.known[next];
            next.status = Status::Spinning;
            next.footprints.iter_mut().for_each(|(_, footprint)| footprint.extend(&round));
        }
    }

    /// Updates the sets of threads by the status of `thread`.
    #[inline]
    fn update_sets(&mut self, thread: ThreadId) {
        let status = self.pending(thread).status;
        let noted = |set: ThreadSet, of: Status| {
            if status == of { set.with(thread) } else { set.without(thread) }
        };
        self.ready = noted(self.ready, Status::Enabled);
        self.held = noted(self.held, Status::Spinning);
        // This includes systems that report themselves that the thread spins.
        self.has_held |= status == Status::Spinning;
        self.vacant = noted(self.vacant, Status::Vacant);
    }

    /// The threads that can move: none if the execution is [cut](System::is_cut). A search that
    /// keeps going after failures would otherwise follow an endless execution forever. If all
    /// threads are held back, they get turns one after the other, until each has had
    /// [`System::livelock_rounds`] turns without effect.
    #[inline]
    fn count_enabled(&self) -> ThreadSet {
        if self.system.is_cut() {
            return ThreadSet::EMPTY;
        }
        if !self.ready.is_empty() || self.held.is_empty() {
            return self.ready;
        }
        let held = self.held.len() as u32;
        if self.forced >= held.saturating_mul(self.system.livelock_rounds()) {
            return self.ready;
        }
        self.held.iter().nth((self.forced % held) as usize).into_iter().collect()
    }
}
