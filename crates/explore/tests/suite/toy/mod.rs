//! A small machine for tests: threads are lists of instructions over a few shared cells, locks and
//! assertions.
//!
//! Its states are packed into fields of a given number of bits and have at least a given number of
//! words, so that stores of every width can be tested. A step whose value does not fit into a cell
//! returns [`Step::Full`].
#![allow(dead_code)]

use preempt_explore::oracle::Reachable;
use preempt_system::{
    Access, Capacity, Choice, Failure, FailureKind, Footprint, Location, Model, Shape, Step,
    Stepper, ThreadId,
};

/// One step of a thread. Jumps and guards are part of the instruction; every instruction is one
/// step.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Adds to a cell.
    Add { cell: usize, value: u64 },
    /// Adds 1 to a cell, modulo 4.
    Turn { cell: usize },
    /// Writes a cell.
    Set { cell: usize, value: u64 },
    /// Waits until a cell has a value.
    Await { cell: usize, value: u64 },
    /// Waits until a cell has a value; the thread may rest there.
    Rest { cell: usize, value: u64 },
    /// The thread does not exist until a cell is not 0.
    Start { cell: usize },
    /// Waits until a cell is 0, then sets it to 1.
    Lock { cell: usize },
    /// Sets a cell to 0; fails if it is already 0.
    Unlock { cell: usize },
    /// Writes one of `count` values to a cell. Only those above `absent` exist, apart from 0.
    Choose { cell: usize, count: u64, absent: u64 },
    /// Writes one of `count` values to a cell; fails if it is `bad`.
    Pick { cell: usize, count: u64, bad: u64 },
    /// Fails if a cell has a value.
    AssertNot { cell: usize, value: u64 },
    /// Goes to an instruction if a cell has a value, else to the next one.
    JumpIf { cell: usize, value: u64, to: u64 },
}

/// A program.
#[derive(Clone, Debug)]
pub struct Toy {
    pub threads: Vec<Vec<Op>>,
    pub cells: usize,
    /// The number of bits of a cell.
    pub bits: u32,
    /// The minimum number of words of a state.
    pub words: usize,
    /// The invariant: cells 0 and 1 do not have these values together.
    pub invariant: Option<(u64, u64)>,
    /// Whether the initial state fails.
    pub fails_initially: bool,
}

/// The position of a thread that has failed.
const WRONG: u64 = 63;

/// The number of bits of a thread's position.
const PLACE: u32 = 6;

impl Toy {
    pub fn new(cells: usize, threads: Vec<Vec<Op>>) -> Toy {
        Toy { threads, cells, bits: 4, words: 1, invariant: None, fails_initially: false }
    }

    pub fn words(self, words: usize) -> Toy {
        Toy { words, ..self }
    }

    /// Word and shift of a field. Fields are distributed over all words.
    fn field(&self, number: usize) -> (usize, u32, u32) {
        let words = self.shape().words;
        let width = PLACE.max(self.bits);
        let bits = if number < self.threads.len() { PLACE } else { self.bits };
        (number % words, 1 + width * (number / words) as u32, bits)
    }

    fn get(&self, state: &[u64], number: usize) -> u64 {
        let (word, shift, bits) = self.field(number);
        state[word] >> shift & ((1 << bits) - 1)
    }

    fn put(&self, state: &mut [u64], number: usize, value: u64) -> Result<(), Step> {
        let (word, shift, bits) = self.field(number);
        if value >> bits != 0 {
            return Err(Step::Full(Capacity { part: number as u32, value: value as i64 }));
        }
        state[word] = state[word] & !(((1 << bits) - 1) << shift) | value << shift;
        Ok(())
    }

    /// The value of a cell.
    pub fn cell(&self, state: &[u64], cell: usize) -> u64 {
        self.get(state, self.threads.len() + cell)
    }

    /// The number of failed steps, states that violate the invariant, and deadlocks.
    pub fn failed(&self, all: &Reachable) -> u64 {
        let fails = |state: &[u64], thread, alternative| {
            let choice = Choice { thread, alternative };
            matches!(self.attempt(&mut state.to_vec(), choice), Ok(Step::Failed(_)))
        };
        let mut failed = u64::from(self.fails_initially) + all.deadlocks.len() as u64;
        for state in &all.states {
            let steps = (0..self.threads.len()).flat_map(|t| (0..8).map(move |a| (t, a)));
            let steps =
                steps.filter(|&(t, alternative)| fails(state, ThreadId::new(t), alternative));
            let mut stepper = self.stepper();
            failed += steps.count() as u64 + u64::from(stepper.invariant(state).is_err());
        }
        failed
    }

    fn attempt(&self, state: &mut [u64], choice: Choice) -> Result<Step, Step> {
        let t = choice.thread.index();
        let place = self.get(state, t);
        let Some(&op) = self.threads[t].get(place as usize) else { return Ok(Step::Ended) };
        let cell = |cell: usize| self.threads.len() + cell;
        let wrong = |state: &mut [u64], kind: FailureKind, message: String| {
            self.put(state, t, WRONG).expect("every position fits");
            Ok(Step::Failed(Box::new(Failure { kind, message, site: None })))
        };
        let (mut next, mut alternatives) = (place + 1, 1);
        match op {
            Op::Choose { count, .. } | Op::Pick { count, .. } => alternatives = count as u32,
            _ => {}
        }
        if choice.alternative >= alternatives {
            return Ok(Step::Absent);
        }
        let chosen = u64::from(choice.alternative);
        match op {
            Op::Add { cell: c, value } => self.put(state, cell(c), self.cell(state, c) + value)?,
            Op::Turn { cell: c } => self.put(state, cell(c), (self.cell(state, c) + 1) % 4)?,
            Op::Set { cell: c, value } => self.put(state, cell(c), value)?,
            Op::Await { cell: c, value } if self.cell(state, c) != value => {
                return Ok(Step::Blocked { resting: false });
            }
            Op::Rest { cell: c, value } if self.cell(state, c) != value => {
                return Ok(Step::Blocked { resting: true });
            }
            Op::Start { cell: c } if self.cell(state, c) == 0 => return Ok(Step::Vacant),
            Op::Lock { cell: c } if self.cell(state, c) != 0 => {
                return Ok(Step::Blocked { resting: false });
            }
            Op::Await { .. } | Op::Rest { .. } | Op::Start { .. } => {}
            Op::Lock { cell: c } => self.put(state, cell(c), 1)?,
            Op::Unlock { cell: c } if self.cell(state, c) == 0 => {
                return wrong(state, FailureKind::Runtime, format!("lock {c} is not held"));
            }
            Op::Unlock { cell: c } => self.put(state, cell(c), 0)?,
            Op::Choose { absent, .. } if chosen != 0 && chosen <= absent => {
                return Ok(Step::Absent);
            }
            Op::Choose { cell: c, .. } => self.put(state, cell(c), chosen)?,
            Op::Pick { bad, .. } if chosen == bad => {
                return wrong(state, FailureKind::Assertion, format!("picked {bad}"));
            }
            Op::Pick { cell: c, .. } => self.put(state, cell(c), chosen)?,
            Op::AssertNot { cell: c, value } if self.cell(state, c) == value => {
                return wrong(state, FailureKind::Assertion, format!("cell {c} is {value}"));
            }
            Op::AssertNot { .. } => {}
            Op::JumpIf { cell: c, value, to } if self.cell(state, c) == value => next = to,
            Op::JumpIf { .. } => {}
        }
        self.put(state, t, next)?;
        Ok(Step::Moved { alternatives })
    }
}

impl Model for Toy {
    type Stepper<'m> = &'m Toy;

    fn shape(&self) -> Shape {
        let width = PLACE.max(self.bits) as usize;
        let fields = self.threads.len() + self.cells;
        Shape { words: self.words.max(fields.div_ceil(63 / width)), threads: self.threads.len() }
    }

    fn stepper(&self) -> &Toy {
        self
    }

    fn grow(&self, capacity: Capacity) -> Toy {
        let bits = u64::BITS - (capacity.value as u64).leading_zeros();
        assert!(bits > self.bits, "only cells that overflowed grow");
        Toy { bits, ..self.clone() }
    }
}

impl Stepper for &Toy {
    fn initial(&mut self, state: &mut [u64]) -> Step {
        state.fill(0);
        state[0] = 1;
        if self.fails_initially {
            let message = "born wrong".into();
            return Step::Failed(Box::new(Failure {
                kind: FailureKind::Runtime,
                message,
                site: None,
            }));
        }
        Step::Moved { alternatives: 1 }
    }

    fn step(&mut self, state: &mut [u64], choice: Choice) -> Step {
        self.attempt(state, choice).unwrap_or_else(|full| full)
    }

    fn alternatives(&self) -> u32 {
        8 // No step has more; those that do not exist are absent.
    }

    fn invariant(&mut self, state: &[u64]) -> Result<(), Box<Failure>> {
        match self.invariant {
            Some(bad) if bad == (self.cell(state, 0), self.cell(state, 1)) => {
                Err(Box::new(Failure {
                    kind: FailureKind::Invariant,
                    message: format!("cells 0 and 1 are {} and {}", bad.0, bad.1),
                    site: None,
                }))
            }
            _ => Ok(()),
        }
    }

    fn invariant_with_footprint(
        &mut self,
        state: &[u64],
        footprint: &mut Footprint,
    ) -> Result<(), Box<Failure>> {
        if self.invariant.is_some() {
            (0..2).for_each(|cell| footprint.add(Location(cell), Access::Read));
        }
        self.invariant(state)
    }

    fn step_with_footprint(
        &mut self,
        state: &mut [u64],
        choice: Choice,
        footprint: &mut Footprint,
    ) -> Step {
        let t = choice.thread.index();
        let (cell, access) = match self.threads[t].get(self.get(state, t) as usize) {
            None => return Step::Ended,
            Some(&Op::Start { cell }) => (cell, Access::Read),
            Some(&Op::Await { cell, .. } | &Op::Rest { cell, .. }) => (cell, Access::Read),
            Some(&Op::AssertNot { cell, .. } | &Op::JumpIf { cell, .. }) => (cell, Access::Read),
            Some(&Op::Add { cell, .. } | &Op::Set { cell, .. } | &Op::Lock { cell }) => {
                (cell, Access::Write)
            }
            Some(&Op::Turn { cell, .. }) => (cell, Access::Write),
            Some(&Op::Unlock { cell } | &Op::Choose { cell, .. } | &Op::Pick { cell, .. }) => {
                (cell, Access::Write)
            }
        };
        footprint.add(Location(cell as u32), access);
        self.step(state, choice)
    }
}

/// PCG-32, so that a seed gives the same program in every version.
pub struct Pcg(u64);

impl Pcg {
    pub fn new(seed: u64) -> Pcg {
        Pcg(seed.wrapping_mul(2).wrapping_add(1))
    }

    pub fn below(&mut self, n: u64) -> u64 {
        let old = self.0;
        self.0 =
            old.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (((old >> 18) ^ old) >> 27) as u32;
        u64::from(mixed.rotate_right((old >> 59) as u32)) % n
    }
}

/// A program of random instructions.
pub fn random(seed: u64) -> Toy {
    let mut r = Pcg::new(seed);
    let cells = 2 + r.below(3) as usize;
    let count = 2 + r.below(3) as usize;
    let threads =
        (0..count).map(|_| (0..1 + r.below(6)).map(|_| op(&mut r, cells)).collect()).collect();
    let invariant = (r.below(2) == 0).then(|| (r.below(4), r.below(4)));
    Toy { invariant, words: 1 + r.below(6) as usize, ..Toy::new(cells, threads) }
}

fn op(r: &mut Pcg, cells: usize) -> Op {
    let cell = r.below(cells as u64) as usize;
    let value = r.below(3);
    match r.below(13) {
        0 => Op::Turn { cell },
        1 | 2 => Op::Set { cell, value },
        3 => Op::Await { cell, value },
        4 => Op::Rest { cell, value },
        5 | 6 => Op::Lock { cell },
        7 => Op::Unlock { cell },
        8 => Op::Choose { cell, count: 1 + r.below(4), absent: r.below(3) },
        9 => Op::Pick { cell, count: 2 + r.below(3), bad: r.below(4) },
        10 => Op::AssertNot { cell, value },
        _ => Op::JumpIf { cell, value, to: r.below(4) },
    }
}

/// `n` threads count to `k`, each in its own place: (k + 1)^n states.
pub fn grid(n: usize, k: usize) -> Toy {
    let threads = (0..n).map(|_| vec![Op::Set { cell: 0, value: 0 }; k]).collect();
    Toy::new(1, threads)
}

/// `n` philosophers, each of whom eats once.
pub fn philosophers(n: usize) -> Toy {
    let threads = (0..n)
        .map(|i| {
            let (left, right) = (i, (i + 1) % n);
            vec![
                Op::Lock { cell: left },
                Op::Lock { cell: right },
                Op::Unlock { cell: left },
                Op::Unlock { cell: right },
            ]
        })
        .collect();
    Toy::new(n, threads)
}
