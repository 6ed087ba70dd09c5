//! Generates random closure programs.
//!
//! Every program either ends or waits forever in a way that [`reference`](crate::reference) can
//! detect: loops have few iterations or wait for an atomic to change. The same seed gives the same
//! program on every machine.

use std::collections::BTreeMap;

use crate::program::{
    ATOMICS, AtomicOp, Counter, LOOKED_AHEAD, Ordering, Program, Statement, Wait,
};
use crate::random::Random;

/// All constructs, for measuring coverage: see [`Statement::construct`].
pub const CONSTRUCTS: [&str; 83] = [
    "load",
    "store",
    "swap",
    "compare_exchange",
    "compare_exchange_weak",
    "fetch_add",
    "fetch_sub",
    "fetch_and",
    "fetch_nand",
    "fetch_or",
    "fetch_xor",
    "fetch_max",
    "fetch_min",
    "fetch_update",
    "fence",
    "acquire fence",
    "release fence",
    "lock",
    "try_lock",
    "two guards",
    "read",
    "write",
    "try_read",
    "try_write",
    "downgrade",
    "wait",
    "wait_timeout",
    "wait_while",
    "wait_timeout_while",
    "notify_one",
    "notify_all",
    "barrier",
    "park",
    "park_timeout",
    "unpark main",
    "unpark",
    "spawn",
    "join",
    "detach",
    "is_finished",
    "scope",
    "choose",
    "cell read",
    "cell write",
    "thread local",
    "thread local with a destructor",
    "yield_now",
    "spin loop",
    "yield loop",
    "yield loop that counts",
    "yield loop that takes a flag",
    "yield loop that takes a lock",
    "loop without a yield",
    "loop without a yield that allocates",
    "loop that ends by itself",
    "long loop that ends by itself",
    "future that polls itself",
    "repeat",
    "panic",
    "catch_unwind",
    "asserting destructor",
    "call_once",
    "get_or_init",
    "set of a OnceLock",
    "get of a OnceLock",
    "send",
    "try_send",
    "recv",
    "try_recv",
    "recv_timeout",
    "drop of an Arc",
    "strong_count",
    "upgrade of a Weak",
    "into_inner of an Arc",
    "try_unwrap of an Arc",
    "pointer swap and free",
    "pointer compare_exchange",
    "use of a node that may be freed",
    "atomic in a freed box",
    "future that wakes itself",
    "future with a waker",
    "wake",
    "atomic in a Vec",
];

/// Constructs that the library does not support correctly yet: programs that contain one are
/// skipped.
pub const AWAITED: &[&str] = &[];

/// The kinds of statements that a program prefers. A program about everything would rarely have two
/// statements that interact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Theme {
    Atomics,
    Mutexes,
    Locks,
    Condvars,
    Parking,
    Lifetimes,
    Cells,
    Loops,
    Polls,
    Panics,
    Onces,
    Channel,
    Counts,
    Pointers,
    Futures,
    Mixed,
}

/// Some themes are listed several times: races between plain accesses, and unwinding, need many
/// programs.
const THEMES: [Theme; 19] = [
    Theme::Cells,
    Theme::Cells,
    Theme::Panics,
    Theme::Atomics,
    Theme::Mutexes,
    Theme::Locks,
    Theme::Condvars,
    Theme::Parking,
    Theme::Lifetimes,
    Theme::Cells,
    Theme::Loops,
    Theme::Polls,
    Theme::Panics,
    Theme::Onces,
    Theme::Channel,
    Theme::Counts,
    Theme::Pointers,
    Theme::Futures,
    Theme::Mixed,
];

/// The number of occurrences of each construct in a program.
pub fn coverage(program: &Program) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    program.visit(|statement| {
        *counts.entry(statement.construct()).or_insert(0) += 1;
        if let Statement::Atomic(2.., ..) = statement {
            *counts.entry("atomic in a Vec").or_insert(0) += 1;
        }
    });
    counts
}

/// The program of this seed, in which some threads also make an assumption.
pub fn assuming(seed: u64) -> Program {
    let mut program = program(seed);
    let mut random = Random::new(seed ^ 0x6173_7375_6d65);
    let threads = program.threads.len();
    for thread in (0..threads).filter(|_| random.percent(60)).collect::<Vec<_>>() {
        let statements = &mut program.threads[thread];
        let assumption = Statement::Assume(random.below(2), random.below(3) as i64);
        statements.insert(random.below(statements.len() + 1), assumption);
    }
    program
}

/// The program of this seed, which mostly shares a pointer to a node that threads replace and free.
pub fn of_pointers(seed: u64) -> Program {
    themed(Random::new(seed ^ 0x706f_696e_7465_7273), Theme::Pointers)
}

/// The program of this seed.
pub fn program(seed: u64) -> Program {
    let mut random = Random::new(seed ^ 0x636c_6f73_7572_6573);
    let theme = *random.pick(&THEMES);
    themed(random, theme)
}

fn themed(mut random: Random, theme: Theme) -> Program {
    let count = if random.percent(55) { 2 } else { 3 };
    let most = if count == 2 { 4 } else { 2 };
    let mut generator =
        Generator { random, theme, me: 0, budget: 0, inside: Inside::default(), receiver: 0 };
    generator.receiver = generator.random.below(count);
    let mut threads: Vec<Vec<Statement>> = Vec::new();
    for me in 0..count {
        generator.me = me;
        let statements = 1 + generator.random.below(most);
        generator.budget = statements + 1;
        threads.push((0..statements).map(|_| generator.statement()).collect());
    }
    generator.start(&mut threads);
    let capacity = *generator.random.pick(&[None, Some(0), Some(1)]);
    let weak = generator.random.percent(50);
    let mut program = Program {
        threads,
        capacity,
        receiver: generator.receiver,
        spurious_wakeups: generator.random.percent(10),
        weak_failures: false,
    };
    let is_weak = |op: AtomicOp| matches!(op, AtomicOp::Update | AtomicOp::CompareExchangeWeak(..));
    program.weak_failures = weak
        && program
            .any(|statement| matches!(statement, Statement::Atomic(_, op, _) if is_weak(*op)));
    if program.any(|statement| matches!(statement, Statement::TrySend(_))) {
        program.capacity = Some(1);
    }
    // A loop around a wait that may always end early would never end.
    let loops = |statement: &Statement| {
        matches!(statement, Statement::WaitWhile(..) | Statement::WaitTimeoutWhile(..))
    };
    let waits = program.has_channel() || program.any(loops);
    program.spurious_wakeups &= !waits;
    program
}

/// The context of a statement.
#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    depth: u32,
    /// Statements here must not panic.
    calm: bool,
    /// A panic here is caught.
    caught: bool,
}

struct Generator {
    random: Random,
    theme: Theme,
    me: usize,
    /// The number of statements that the thread may still get, including those in blocks.
    budget: usize,
    inside: Inside,
    receiver: usize,
}

impl Generator {
    /// Adds the statements that spawn, unpark and join threads.
    fn start(&mut self, threads: &mut [Vec<Statement>]) {
        let count = threads.len();
        // Where all threads must own something from the start, main has to spawn them before
        // anything else.
        let early = matches!(self.theme, Theme::Channel | Theme::Counts);
        for child in (1..count).rev() {
            let parent =
                if early || self.random.percent(75) { 0 } else { self.random.below(child) };
            let at = if early || self.random.percent(60) {
                0
            } else {
                self.random.below(threads[parent].len() + 1)
            };
            // A scope may end before the thread-local values of its threads are dropped.
            let guarded = has_guard(&threads[child]);
            if !early && self.random.percent(12) && !guarded {
                let mut block = Vec::new();
                if at < threads[parent].len() && !starts(&threads[parent][at]) {
                    block.push(threads[parent].remove(at));
                }
                threads[parent].insert(at, Statement::Scope(vec![child], block));
                continue;
            }
            threads[parent].insert(at, Statement::Spawn(child));
            for _ in 0..2 {
                let after = at + 1 + self.random.below(threads[parent].len() - at);
                match self.random.below(8) {
                    0 if self.theme == Theme::Parking || self.theme == Theme::Mixed => {
                        threads[parent].insert(after, Statement::Unpark(child));
                    }
                    1 if self.theme == Theme::Lifetimes || self.theme == Theme::Mixed => {
                        threads[parent].insert(after, Statement::IsFinished(child));
                    }
                    _ => {}
                }
            }
            if self.random.percent(40) {
                let used = |statement: &Statement| matches!(statement, Statement::Unpark(of) | Statement::IsFinished(of) if *of == child);
                let first = threads[parent].iter().rposition(used).unwrap_or(at) + 1;
                let after = first + self.random.below(threads[parent].len() + 1 - first);
                let detach = self.random.percent(25);
                let end = if detach { Statement::Detach(child) } else { Statement::Join(child) };
                threads[parent].insert(after, end);
            }
        }
    }

    fn small(&mut self) -> i64 {
        self.random.below(3) as i64
    }

    fn two(&mut self) -> usize {
        self.random.below(2)
    }

    fn atomic(&mut self) -> usize {
        if self.random.percent(80) { self.two() } else { self.random.below(ATOMICS) }
    }

    fn ordering(&mut self) -> Ordering {
        *self.random.pick(&[
            Ordering::SeqCst,
            Ordering::SeqCst,
            Ordering::AcquireRelease,
            Ordering::Relaxed,
        ])
    }

    /// A block of one or two statements, or none.
    fn block(&mut self, inside: Inside) -> Vec<Statement> {
        let depth = self.inside.depth + 1;
        let outer = std::mem::replace(&mut self.inside, Inside { depth, ..inside });
        let many = self.random.below(3).min(self.budget);
        let block = (0..many).map(|_| self.statement()).collect();
        self.inside = outer;
        block
    }

    fn inner(&mut self) -> Vec<Statement> {
        if self.inside.depth >= 2 { Vec::new() } else { self.block(self.inside) }
    }

    fn statement(&mut self) -> Statement {
        self.budget = self.budget.saturating_sub(1);
        let theme = match self.theme {
            Theme::Mixed => *self.random.pick(&THEMES),
            theme if self.random.percent(70) => theme,
            _ => Theme::Atomics,
        };
        match theme {
            Theme::Atomics | Theme::Mixed => self.access(),
            Theme::Mutexes => match self.random.below(6) {
                0..=2 => Statement::Lock(self.two(), self.inner()),
                3 => Statement::TryLock(self.two(), self.inner()),
                4 => {
                    let first = self.two();
                    Statement::Crossed(first, 1 - first)
                }
                _ => self.access(),
            },
            Theme::Locks => match self.random.below(6) {
                0 => Statement::Read(self.two(), self.inner()),
                1 => Statement::Write(self.two(), self.inner()),
                2 => Statement::TryRead(self.two()),
                3 => Statement::TryWrite(self.two()),
                4 => Statement::Downgrade(self.two(), self.inner()),
                _ => Statement::Read(0, self.inner()),
            },
            Theme::Condvars => match self.random.below(7) {
                0 => Statement::Wait { condvar: self.two(), mutex: self.two(), timeout: false },
                1 => Statement::Wait { condvar: 0, mutex: self.two(), timeout: true },
                2 => Statement::WaitWhile(0, self.two()),
                3 => Statement::NotifyOne(self.two()),
                4 => Statement::NotifyAll(0),
                5 => Statement::WaitTimeoutWhile(0, self.two()),
                _ => Statement::Lock(self.two(), self.inner()),
            },
            Theme::Parking => match self.random.below(5) {
                0 => Statement::Park,
                1 => Statement::ParkTimeout,
                2 => Statement::UnparkMain,
                3 => Statement::Barrier(self.two()),
                _ => self.access(),
            },
            Theme::Lifetimes => match self.random.below(6) {
                0 => Statement::Choose(2),
                1 => Statement::Local,
                2 => Statement::Repeat(2, self.inner()),
                3 => Statement::BoxedAtomic,
                4 => Statement::LocalGuard,
                _ => self.access(),
            },
            Theme::Cells => match self.random.below(6) {
                0 => Statement::CellRead(self.two()),
                1 => Statement::CellWrite(self.two()),
                2 => match self.random.below(3) {
                    0 => Statement::Fence,
                    1 => Statement::AcquireFence,
                    _ => Statement::ReleaseFence,
                },
                3 => Statement::Lock(0, vec![Statement::CellWrite(0)]),
                4 => match self.random.below(4) {
                    0 => Statement::Read(0, vec![Statement::CellRead(0)]),
                    1 => Statement::Write(0, vec![Statement::CellWrite(0)]),
                    2 => Statement::Downgrade(0, vec![Statement::CellRead(0)]),
                    _ => Statement::Read(0, vec![Statement::CellWrite(0)]),
                },
                _ => self.access(),
            },
            Theme::Loops => match self.random.below(8) {
                0 | 1 => {
                    Statement::WaitFor(self.two(), *self.random.pick(&[Wait::Spin, Wait::Yield]))
                }
                2 => Statement::WaitFor(
                    self.two(),
                    *self.random.pick(&[Wait::Counting, Wait::Flag, Wait::Locked]),
                ),
                3 => Statement::YieldNow,
                4 => Statement::Repeat(3, self.inner()),
                _ => Statement::Atomic(self.two(), AtomicOp::Store(1), Ordering::SeqCst),
            },
            Theme::Polls => match self.random.below(6) {
                0..=2 => self.poll(),
                3 => Statement::WaitFor(
                    self.two(),
                    *self.random.pick(&[Wait::Bare, Wait::Bare, Wait::Allocating]),
                ),
                _ => Statement::Atomic(self.two(), AtomicOp::Store(1), Ordering::SeqCst),
            },
            Theme::Panics if self.inside.calm => self.access(),
            Theme::Panics => match self.random.below(6) {
                0 | 1 if self.inside.caught || self.random.percent(30) => {
                    Statement::PanicIf(self.two(), self.small())
                }
                2 | 3 => {
                    let block = self.block(Inside { caught: true, ..self.inside });
                    Statement::Catch(block)
                }
                4 => Statement::Invariant(self.block(Inside { calm: true, ..self.inside })),
                5 => Statement::Lock(self.two(), self.inner()),
                _ => self.access(),
            },
            Theme::Onces => match self.random.below(5) {
                0 => Statement::CallOnce(
                    self.two(),
                    self.block(Inside { calm: true, ..self.inside }),
                ),
                1 => Statement::GetOrInit(self.two(), self.me as i64 + 1),
                2 => Statement::SetOnce(self.two(), self.me as i64 + 4),
                3 => Statement::GetOnce(self.two()),
                _ => self.access(),
            },
            Theme::Channel if self.theme != Theme::Channel => self.access(),
            Theme::Channel if self.me == self.receiver => match self.random.below(4) {
                0 => Statement::TryReceive,
                1 => Statement::ReceiveTimeout,
                _ => Statement::Receive,
            },
            Theme::Channel if self.random.percent(15) => Statement::TrySend(self.me as i64 + 4),
            Theme::Channel => Statement::Send(self.me as i64 + 1),
            Theme::Counts if self.theme != Theme::Counts => self.access(),
            Theme::Counts => match self.random.below(7) {
                0 | 1 => Statement::DropArc,
                2 => Statement::CountArc,
                3 => Statement::Upgrade,
                4 => Statement::IntoInner,
                5 => Statement::TryUnwrap,
                _ => Statement::Atomic(1, AtomicOp::Load, Ordering::SeqCst),
            },
            Theme::Pointers => match self.random.below(4) {
                0 => Statement::Exchange(self.me as i64 * 10 + self.small() + 1),
                1 => Statement::ExchangeIfSame(self.me as i64 * 10 + self.small() + 1),
                2 => Statement::UseNode,
                _ => Statement::BoxedAtomic,
            },
            Theme::Futures => match self.random.below(5) {
                0 => Statement::SelfWaking(1 + self.random.below(2) as u32),
                1 => Statement::Awaits(0, self.two()),
                2 | 3 => Statement::Wakes(0, self.two()),
                _ => Statement::WaitFor(self.two(), Wait::Future),
            },
        }
    }

    /// A loop without a yield that ends by itself: at once, while the library follows it, or later.
    fn poll(&mut self) -> Statement {
        let rounds = *self.random.pick(&[2, 5, 8, LOOKED_AHEAD / 4, LOOKED_AHEAD + 30]);
        let counter = *self.random.pick(&[Counter::Stack, Counter::Heap, Counter::Local]);
        Statement::Poll { atomic: self.two(), rounds, counter }
    }

    fn access(&mut self) -> Statement {
        let (a, b) = (self.small(), self.small());
        let op = match self.random.below(20) {
            0..=3 => AtomicOp::Load,
            4..=7 => AtomicOp::Store(a),
            8 => AtomicOp::Swap(a),
            9 => AtomicOp::CompareExchange(a, b),
            10 => AtomicOp::CompareExchangeWeak(a, b),
            11 => AtomicOp::Update,
            12 => AtomicOp::Sub(a + 1),
            13 => AtomicOp::And(a),
            14 => AtomicOp::Nand(a),
            15 => AtomicOp::Or(a),
            16 => AtomicOp::Xor(a + 1),
            17 => AtomicOp::Max(a),
            18 => AtomicOp::Min(a),
            _ => AtomicOp::Add(a + 1),
        };
        Statement::Atomic(self.atomic(), op, self.ordering())
    }
}

/// Whether a thread has a thread-local value with a destructor.
fn has_guard(block: &[Statement]) -> bool {
    let guards = |statement: &Statement| {
        *statement == Statement::LocalGuard
            || statement.blocks().is_some_and(|block| has_guard(block))
    };
    block.iter().any(guards)
}

/// Whether a statement starts threads.
fn starts(statement: &Statement) -> bool {
    matches!(statement, Statement::Spawn(_) | Statement::Scope(..))
}
