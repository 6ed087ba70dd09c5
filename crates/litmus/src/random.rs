//! Random litmus programs.

use crate::program::{Instruction, Operand, Order, Program};

/// Numbers of a linear congruential generator with a mixed output (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % limit as u64) as usize
    }

    fn pick(&mut self, orders: &[Order]) -> Order {
        orders[self.below(orders.len())]
    }
}

/// The shape of random programs.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The maximum number of threads.
    pub threads: usize,
    /// The maximum number of instructions of a thread.
    pub length: usize,
    /// Whether threads lock mutexes.
    pub mutexes: bool,
}

/// A random program of this shape, with two to `threads` threads and up to two locations.
pub fn program(random: &mut Random, shape: Shape) -> Program {
    use Order::{AcqRel, Acquire, Relaxed, Release, SeqCst};
    let mut program = Program::default();
    let locations = 1 + random.below(2);
    for name in &["x", "y"][..locations] {
        program.location(name, false);
    }
    let mutex = shape.mutexes.then(|| program.location("m", true));
    for _ in 0..2 + random.below(shape.threads - 1) {
        let (mut code, mut read, mut holds) = (Vec::new(), 0, false);
        for _ in 0..1 + random.below(shape.length) {
            let (location, register) = (random.below(locations), usize::min(read, 2));
            match random.below(if mutex.is_some() { 17 } else { 14 }) {
                0..=3 => {
                    let order = random.pick(&[Relaxed, Relaxed, Acquire, SeqCst, SeqCst]);
                    code.push(Instruction::Load(register, location, order));
                    read += 1;
                }
                4..=7 => {
                    let order = random.pick(&[Relaxed, Relaxed, Release, SeqCst, SeqCst]);
                    let value = if read > 0 && random.below(5) == 0 {
                        Operand::Register(usize::min(read - 1, 2), 1)
                    } else {
                        Operand::Constant(1 + random.below(2) as u64)
                    };
                    code.push(Instruction::Store(location, value, order));
                }
                8 | 9 => {
                    let order = random.pick(&[Relaxed, Acquire, Release, AcqRel, SeqCst]);
                    let value = random.below(2) as u64;
                    code.push(match random.below(3) {
                        0 => Instruction::Add(register, location, 1, order),
                        1 => Instruction::Swap(register, location, 1 + value, order),
                        _ => {
                            let failure = random.pick(&[Relaxed, Acquire, SeqCst]);
                            let new = (value, 2);
                            Instruction::CompareExchange(
                                register, location, new.0, new.1, order, failure,
                            )
                        }
                    });
                    read += 1;
                }
                10..=12 => code.push(Instruction::Fence(
                    random.pick(&[Acquire, Release, AcqRel, SeqCst, SeqCst]),
                )),
                13 if read > 0 => {
                    let order = random.pick(&[Relaxed, Release, SeqCst]);
                    let register = usize::min(read - 1, 2);
                    code.push(Instruction::If(register, random.below(2) as u64, 1));
                    code.push(Instruction::Store(location, Operand::Constant(1), order));
                }
                13 => {}
                _ => {
                    let mutex = mutex.expect("only programs with mutexes choose this");
                    code.push(match holds {
                        true => Instruction::Unlock(mutex),
                        false => Instruction::Lock(mutex),
                    });
                    holds = !holds;
                }
            }
        }
        // Usually unlocks the mutex that it has locked.
        if let (true, Some(mutex)) = (holds && random.below(6) > 0, mutex) {
            code.push(Instruction::Unlock(mutex));
        }
        program.threads.push(code);
    }
    program
}
