//! The interpreter.

use preempt_system::{
    Access, Action, Allocation, Capacity, Choice, Failure, FailureKind, Step, ThreadId,
};

use super::code::{Address, Cell, Instr};
use super::new_thread::NewThread;
use super::objects::Object;
use super::record::Recorder;
use super::{Machine, Part};
use crate::arith;

/// The most alternatives of one step.
pub(super) const MAX_ALTERNATIVES: u32 = 1 << 16;

/// The most jumps of one step; with more it counts as endless.
pub(super) const FUEL: u32 = 1_000_000;

/// Executes the steps of one machine.
#[derive(Debug)]
pub struct Stepper<'m> {
    pub(super) machine: &'m Machine,
    pub(super) regs: [i64; 256],
    result: i64,
    /// The remaining digits of the alternative: the choices of the step are its digits, the first
    /// one lowest, each in the base of its number of values. A step with a remainder does not
    /// exist.
    pub(super) alternative: u32,
    /// The product of these bases: the alternatives below it are worth trying.
    pub(super) alternatives: u32,
    /// The remaining jumps of the step.
    pub(super) fuel: u32,
    /// The state before the step, for threads that may fail, or may block after they have changed
    /// something.
    pub(super) before: Vec<u64>,
    /// The state before a thread runs to its first rest point.
    pub(super) before_start: Vec<u64>,
    /// Threads created by the step, which must run to their first rest points.
    pub(super) spawned: Vec<NewThread>,
    /// The [straight lines](Instr::Mark) that the interpreter has completed.
    pub(super) reached: Vec<bool>,
    /// The nodes of diagrams at which the tests of steps have ended.
    pub(super) taken: Vec<bool>,
    heap: super::heap::Scratch,
    owners: super::owners::Scratch,
}

/// Why a step does not complete.
pub(super) enum Halt {
    Blocked { resting: bool },
    Failed(Box<Failure>),
    Full(Capacity),
}

impl<'m> Stepper<'m> {
    pub(super) fn new(machine: &'m Machine) -> Stepper<'m> {
        Stepper {
            machine,
            regs: [0; 256],
            result: 0,
            alternative: 0,
            alternatives: 1,
            fuel: FUEL,
            before: vec![0; machine.layout.words],
            before_start: Vec::new(),
            spawned: Vec::new(),
            reached: vec![false; machine.code.marks.len()],
            taken: vec![false; machine.diagrams.len()],
            heap: super::heap::Scratch::default(),
            owners: super::owners::Scratch::default(),
        }
    }

    /// Takes a step. A step that fails only changes its thread, which has failed and has no locals
    /// any more.
    pub(super) fn take_step<R: Recorder>(
        &mut self,
        state: &mut [u64],
        choice: Choice,
        recorder: &mut R,
    ) -> Step {
        let step = self.take_step_with_effects(state, choice, recorder);
        if let Step::Failed(_) = step {
            recorder.fails(&self.before);
            state.copy_from_slice(&self.before);
            self.machine.clear_frames(state, choice.thread);
            self.mark_failed(state, choice.thread);
            if let Err(Halt::Full(capacity)) = self.settle(state) {
                return Step::Full(capacity);
            }
        }
        step
    }

    pub(super) fn mark_failed(&self, state: &mut [u64], thread: ThreadId) {
        let slot = &self.machine.slots[thread.index()];
        let marked = slot.counter.set(state, slot.wrong);
        debug_assert!(marked, "a thread that can fail has a value for it");
    }

    /// The same, but the effects of a failing step remain. Inlined, as [`run`](Stepper::run) is.
    #[inline(always)]
    pub(super) fn take_step_with_effects<R: Recorder>(
        &mut self,
        state: &mut [u64],
        choice: Choice,
        recorder: &mut R,
    ) -> Step {
        let machine = self.machine;
        let slot = &machine.slots[choice.thread.index()];
        let at = slot.counter.get(state);
        if at >= slot.rests {
            let vacant = at == slot.absent && machine.code.slots[choice.thread.index()].spare;
            if vacant {
                recorder.vacant(choice.thread);
                return Step::Vacant;
            }
            return Step::Ended;
        }
        let code = &machine.code.slots[choice.thread.index()];
        let rest = &code.rests[at as usize];
        if code.waits_late || code.fails {
            self.before.copy_from_slice(state);
        }
        self.alternative = choice.alternative;
        self.alternatives = 1;
        // A step that failed or blocked may have left some.
        self.spawned.clear();
        if code.spare {
            // A new thread runs after the step that created it.
            recorder.life(choice.thread, Action::Begin);
        }
        let halt = match self.run(state, choice.thread, rest.address, recorder) {
            Ok(()) => self.start_spawned(state, recorder),
            Err(Halt::Failed(failure)) if !self.spawned.is_empty() => {
                Err(self.first_failure(state, failure))
            }
            Err(halt) => Err(halt),
        };
        let halt = halt.and_then(|()| self.settle(state));
        match halt {
            Ok(()) if self.alternative != 0 => Step::Absent,
            Ok(()) => Step::Moved { alternatives: self.alternatives },
            Err(Halt::Blocked { resting }) => {
                if code.waits_late {
                    state.copy_from_slice(&self.before);
                }
                Step::Blocked { resting: resting || rest.end }
            }
            Err(Halt::Failed(failure)) => {
                if self.alternative != 0 {
                    return Step::Absent;
                }
                match self.settle(state) {
                    Err(Halt::Full(capacity)) => Step::Full(capacity),
                    _ => Step::Failed(failure),
                }
            }
            Err(Halt::Full(capacity)) => Step::Full(capacity),
        }
    }

    /// Renames heap records canonically.
    #[inline(always)]
    pub(super) fn settle(&mut self, state: &mut [u64]) -> Result<(), Halt> {
        if self.machine.stable || self.machine.heap.is_empty() {
            return Ok(());
        }
        if self.machine.capacities.owners {
            self.machine.mark_shared(state, &mut self.owners);
        }
        let settled = self.machine.heap.canonicalise(self.machine, state, &mut self.heap);
        settled.map_err(|(cell, value)| self.misfit(cell, value, 0))
    }

    /// Runs from `address` to the next rest point. Inlined: a call with its result in memory costs
    /// as much as two instructions of the interpreter.
    #[inline(always)]
    pub(super) fn run<R: Recorder>(
        &mut self,
        state: &mut [u64],
        thread: ThreadId,
        address: Address,
        recorder: &mut R,
    ) -> Result<(), Halt> {
        let done = self.interpret(state, Some(thread), address, recorder);
        if let Err(Halt::Failed(_)) = done {
            self.mark_failed(state, thread);
        }
        done
    }

    pub(super) fn interpret<R: Recorder>(
        &mut self,
        state: &mut [u64],
        thread: Option<ThreadId>,
        address: Address,
        recorder: &mut R,
    ) -> Result<(), Halt> {
        let machine = self.machine;
        let fields = &machine.layout.fields[..];
        let instrs = &machine.code.instrs[..];
        let mut at = address as usize;
        self.fuel = FUEL;
        macro_rules! reg {
            ($r:expr) => {
                self.regs[$r as usize]
            };
        }
        macro_rules! jump {
            ($to:expr) => {{
                self.fuel -= 1;
                if self.fuel == 0 {
                    return Err(self.endless(at));
                }
                at = $to as usize;
                continue;
            }};
        }
        loop {
            recorder.at(at as Address);
            match instrs[at] {
                Instr::Rest(number) => {
                    let thread = thread.expect("only threads rest");
                    let fits = machine.slots[thread.index()].counter.set(state, i64::from(number));
                    debug_assert!(fits, "a counter holds all rest points");
                    return Ok(());
                }
                Instr::End => {
                    if let Some(thread) = thread {
                        let slot = &machine.slots[thread.index()];
                        let fits = slot.counter.set(state, slot.ended);
                        debug_assert!(
                            fits,
                            "a counter of a thread that can end has a value for it"
                        );
                        recorder.life(thread, Action::Finish);
                    }
                    return Ok(());
                }
                Instr::Mark(line) => self.reached[line as usize] = true,
                Instr::Const { dst, value } => reg!(dst) = value,
                Instr::Move { dst, src } => reg!(dst) = reg!(src),
                Instr::Load { dst, cell } => {
                    recorder.cell(cell, Access::Read);
                    reg!(dst) = fields[cell as usize].get(state);
                }
                Instr::LoadAt { dst, addr } => {
                    let cell = reg!(addr) as Cell;
                    recorder.cell(cell, Access::Read);
                    reg!(dst) = fields[cell as usize].get(state);
                }
                Instr::Store { cell, src } => {
                    recorder.cell(cell, Access::Write);
                    if !fields[cell as usize].set(state, reg!(src)) {
                        return Err(self.misfit(cell, reg!(src), at));
                    }
                    recorder.wrote(cell, reg!(src));
                }
                Instr::StoreAt { addr, src } => {
                    let cell = reg!(addr) as Cell;
                    recorder.cell(cell, Access::Write);
                    if !fields[cell as usize].set(state, reg!(src)) {
                        return Err(self.misfit(cell, reg!(src), at));
                    }
                    recorder.wrote(cell, reg!(src));
                }
                Instr::Clear { from, to } => {
                    fields[from as usize..to as usize].iter().for_each(|f| f.clear(state))
                }
                Instr::Index { addr, index, stride, len } => {
                    let index = reg!(index);
                    if index as u64 >= u64::from(len) {
                        let message = format!("index {index} is out of range: the length is {len}");
                        return Err(self.fails(at, FailureKind::Runtime, message));
                    }
                    reg!(addr) += index * i64::from(stride);
                }
                Instr::Deref { addr, .. } => {
                    if reg!(addr) == 0 {
                        return Err(self.fails(
                            at,
                            FailureKind::Runtime,
                            "a null pointer is used".into(),
                        ));
                    }
                    reg!(addr) -= 1;
                }
                Instr::Offset { addr, offset } => reg!(addr) += i64::from(offset),
                Instr::Unary { op, dst, src } => match arith::unary(op, reg!(src)) {
                    Ok(value) => reg!(dst) = value,
                    Err(error) => {
                        return Err(self.fails(at, FailureKind::Runtime, error.message().into()));
                    }
                },
                Instr::Binary { op, dst, a, b } => match arith::binary(op, reg!(a), reg!(b)) {
                    Ok(value) => reg!(dst) = value,
                    Err(error) => {
                        return Err(self.fails(at, FailureKind::Runtime, error.message().into()));
                    }
                },
                Instr::BinaryConst { op, dst, a, b } => {
                    match arith::binary(op, reg!(a), i64::from(b)) {
                        Ok(value) => reg!(dst) = value,
                        Err(error) => {
                            return Err(self.fails(
                                at,
                                FailureKind::Runtime,
                                error.message().into(),
                            ));
                        }
                    }
                }
                Instr::Jump(to) => jump!(to),
                Instr::JumpIf { condition, to } => {
                    if reg!(condition) != 0 {
                        jump!(to);
                    }
                }
                Instr::JumpUnless { condition, to } => {
                    if reg!(condition) == 0 {
                        jump!(to);
                    }
                }
                Instr::JumpUnlessWithin { value, range, to } => {
                    let (lo, hi) = machine.code.ranges[range as usize];
                    if !(lo..=hi).contains(&reg!(value)) {
                        jump!(to);
                    }
                }
                Instr::JumpTable { index, table } => {
                    jump!(machine.code.tables[table as usize][reg!(index) as usize])
                }
                Instr::Await { condition, resting } => {
                    if reg!(condition) == 0 {
                        return Err(Halt::Blocked { resting });
                    }
                }
                Instr::Assert { condition, message } => {
                    if reg!(condition) == 0 {
                        let text = &machine.code.messages[message as usize];
                        return Err(self.fails(at, FailureKind::Assertion, text.clone()));
                    }
                }
                Instr::Choose { dst, lo, hi } => {
                    let (lo, hi) = (reg!(lo), reg!(hi));
                    if lo >= hi {
                        let message = format!("nothing to choose from: {lo}..{hi} is empty");
                        return Err(self.fails(at, FailureKind::Runtime, message));
                    }
                    let count = u32::try_from(hi - lo).unwrap_or(u32::MAX);
                    reg!(dst) = lo + i64::from(self.choose(count, at)?);
                }
                Instr::Object { dst, arg, operation, addr } => {
                    // The `init` block acts for the first thread.
                    let thread = thread.unwrap_or(ThreadId::new(0));
                    self.object(state, thread, recorder, (dst, arg, operation, addr), at)?;
                }
                Instr::Guard { operation, addr } => {
                    let thread = thread.expect("nothing waits in an `init` block");
                    let operation = machine.code.operations[operation as usize];
                    let cell = reg!(addr) as usize;
                    let object = Object { fields: &fields[cell..], state, misfit: None };
                    if !operation.kind.enabled(&object, thread, operation.action) {
                        recorder.waits(cell as Cell, operation.kind, operation.action);
                        return Err(Halt::Blocked { resting: false });
                    }
                }
                Instr::Swap { dst, addr, src } => {
                    let cell = reg!(addr) as Cell;
                    recorder.cell(cell, Access::Write);
                    let value = reg!(src);
                    reg!(dst) = fields[cell as usize].get(state);
                    if !fields[cell as usize].set(state, value) {
                        return Err(self.misfit(cell, value, at));
                    }
                    recorder.wrote(cell, value);
                }
                Instr::CompareAndSwap { dst, addr, old, new } => {
                    let (cell, new) = (reg!(addr) as Cell, reg!(new));
                    recorder.expects(reg!(old));
                    recorder.cell(cell, Access::Write);
                    let equal = fields[cell as usize].get(state) == reg!(old);
                    if equal && !fields[cell as usize].set(state, new) {
                        return Err(self.misfit(cell, new, at));
                    }
                    if equal {
                        recorder.wrote(cell, new);
                    }
                    reg!(dst) = i64::from(equal);
                }
                Instr::CompareExchange { dst, addr, old, new } => {
                    let (cell, new) = (reg!(addr) as Cell, reg!(new));
                    recorder.expects(reg!(old));
                    recorder.cell(cell, Access::Write);
                    let value = fields[cell as usize].get(state);
                    if value == reg!(old) {
                        if !fields[cell as usize].set(state, new) {
                            return Err(self.misfit(cell, new, at));
                        }
                        recorder.wrote(cell, new);
                    }
                    reg!(dst) = value;
                }
                Instr::Fetch { op, dst, addr, src } => {
                    let cell = reg!(addr) as Cell;
                    recorder.cell(cell, Access::Write);
                    let old = fields[cell as usize].get(state);
                    let new = match arith::binary(op, old, reg!(src)) {
                        Ok(new) => new,
                        Err(error) => {
                            return Err(self.fails(
                                at,
                                FailureKind::Runtime,
                                error.message().into(),
                            ));
                        }
                    };
                    if !fields[cell as usize].set(state, new) {
                        return Err(self.misfit(cell, new, at));
                    }
                    recorder.wrote(cell, new);
                    reg!(dst) = old;
                }
                Instr::Fence(order) => recorder.fence(order),
                Instr::Save(frame) => self.save(state, frame, at)?,
                Instr::Result { src, range } => {
                    let (value, (lo, hi)) = (reg!(src), machine.code.ranges[range as usize]);
                    if !(lo..=hi).contains(&value) {
                        let message =
                            format!("{value} is outside the range of the result: {lo} to {hi}");
                        return Err(self.fails(at, FailureKind::Runtime, message));
                    }
                    self.result = value;
                }
                Instr::TakeResult { dst } => reg!(dst) = self.result,
                Instr::Return(frame) => jump!(self.unwind(state, frame)),
                Instr::Spawn { dst, function, args } => {
                    recorder.cell(machine.cells.threads, Access::Write);
                    let slot = self.spawn(state, function as usize, args, at)?;
                    recorder.life(ThreadId::new(slot), Action::Start);
                    reg!(dst) = slot as i64 + 1;
                }
                Instr::Join { thread } => {
                    let handle = reg!(thread);
                    if handle == 0 {
                        return Err(self.fails(
                            at,
                            FailureKind::Runtime,
                            "there is no thread to join: it is null".into(),
                        ));
                    }
                    let slot = &machine.slots[handle as usize - 1];
                    recorder.life(ThreadId::new(handle as usize - 1), Action::Join);
                    if slot.counter.get(state) != slot.ended {
                        return Err(Halt::Blocked { resting: false });
                    }
                    machine.mark_joined(state, handle as usize - 1);
                }
                Instr::New { dst, record } => {
                    let record = record as usize;
                    let pool = &machine.cells.pools[&record];
                    let live = fields[pool.live as usize].get(state);
                    if live == i64::from(pool.capacity) {
                        recorder.take(pool.live, Allocation::Exhausted);
                        return Err(self.full(Part::Records(record), at));
                    }
                    recorder.take(pool.live, Allocation::Succeeded);
                    fields[pool.live as usize].set(state, live + 1);
                    reg!(dst) = i64::from(pool.base) + live * i64::from(pool.size) + 1;
                }
                Instr::UpdateCell { op, cell, b } => {
                    let field = &fields[cell as usize];
                    let result = arith::binary(op, field.get(state), i64::from(b));
                    // Three instructions in one: a value that fails to compute is never written.
                    recorder.cell(cell, if result.is_ok() { Access::Write } else { Access::Read });
                    match result {
                        Ok(value) if field.set(state, value) => at += 2,
                        Ok(value) => return Err(self.misfit(cell, value, at)),
                        Err(error) => {
                            return Err(self.fails(
                                at,
                                FailureKind::Runtime,
                                error.message().into(),
                            ));
                        }
                    }
                }
                Instr::JumpUnlessCell { op, cell, b, to, length } => {
                    recorder.cell(cell, Access::Read);
                    match arith::binary(op, fields[cell as usize].get(state), i64::from(b)) {
                        Ok(0) => jump!(to),
                        Ok(_) => at += length as usize - 1,
                        Err(error) => {
                            return Err(self.fails(
                                at,
                                FailureKind::Runtime,
                                error.message().into(),
                            ));
                        }
                    }
                }
                Instr::AwaitCell { op, cell, b, resting } => {
                    recorder.cell(cell, Access::Read);
                    match arith::binary(op, fields[cell as usize].get(state), i64::from(b)) {
                        Ok(0) => return Err(Halt::Blocked { resting }),
                        Ok(_) => at += 2,
                        Err(error) => {
                            return Err(self.fails(
                                at,
                                FailureKind::Runtime,
                                error.message().into(),
                            ));
                        }
                    }
                }
                Instr::CopyCell { from, to } => {
                    recorder.cell(from, Access::Read);
                    recorder.cell(to, Access::Write);
                    let value = fields[from as usize].get(state);
                    if !fields[to as usize].set(state, value) {
                        return Err(self.misfit(to, value, at + 1));
                    }
                    at += 1;
                }
                Instr::StoreConst { cell, value } => {
                    recorder.cell(cell, Access::Write);
                    if !fields[cell as usize].set(state, value) {
                        return Err(self.misfit(cell, value, at + 1));
                    }
                    at += 1;
                }
            }
            at += 1;
        }
    }

    /// One of `count` possibilities, chosen by a digit of the alternative.
    pub(super) fn choose(&mut self, count: u32, at: usize) -> Result<u32, Halt> {
        let digit = self.alternative % count;
        self.alternatives = self.alternatives.saturating_mul(count);
        if self.alternatives > MAX_ALTERNATIVES {
            // There is only this failure, whatever the digit.
            self.alternatives = 1;
            let message = format!(
                "more than {MAX_ALTERNATIVES} alternatives in one step: choose from fewer values"
            );
            return Err(self.fails(at, FailureKind::Runtime, message));
        }
        self.alternative /= count;
        Ok(digit)
    }
}
