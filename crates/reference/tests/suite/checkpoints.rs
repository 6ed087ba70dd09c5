//! Checkpoints whose contents were changed, with a checksum that fits the change. Every search
//! refuses them, or runs on without a panic, a hang or a false finding.
//!
//! A changed count, or a state that is missing in a table, cannot be detected. A search that
//! resumes from such a checkpoint must be as safe as any other.

use std::collections::BTreeSet;
use std::io::{self, Cursor, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use preempt_explore::{
    Checkpoints, Keeper, Limits, Observer, Order, Outcome, Plan, Progress, Saved, Silent,
    program_hash,
};
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_reference::compare::plans::{label, plans};
use preempt_reference::compare::weak::{graphs, weak};
use preempt_system::{Failure, FailureKind};

const PROGRAMS: [&str; 3] = [
    "mutex m; atomic var a = 0; var x = 0; var y: 0..4 = 0;
     thread t(i in 0..2) { m.lock(); y = y + 1; m.unlock(); a = a + 1; x = i; assert x == i; }",
    "var x = 0; var y = 0;
     thread t { x = 1; y = 2; x = 0; } thread u { y = 1; assert x == 0; y = x; }",
    "record Node { next: *Node } var top: *Node; fn f() { top = new Node { next: top }; }
     thread main { var h = spawn f(); choose { top = null; } or { skip; } join h; assert top != null; }
     thread other { if top == null { top = new Node { }; } }",
];

/// The number of mutants for each plan and program. `CHECKPOINT_MUTANTS` overrides it.
const MUTANTS: usize = 4;

/// The program of all checkpoints here.
const PROGRAM: u64 = 7;

/// The length of the checksum, and the bytes that it hashes together.
const CHECKSUM: usize = 8;
const BLOCK: usize = 1 << 16;

/// The last name in the header of a checkpoint.
const LAST_OF_HEADER: &[u8] = b"the limit of depth";

/// Keeps checkpoints in memory, one after every few polls.
#[derive(Default)]
struct Tape {
    asked: AtomicU64,
    kept: Mutex<Vec<Vec<u8>>>,
}

impl Keeper for Tape {
    fn is_due(&self) -> bool {
        self.asked.fetch_add(1, Relaxed) % 5 == 1
    }

    fn keep(&self, write: &dyn Fn(&mut dyn Write) -> io::Result<()>) {
        let mut bytes = Vec::new();
        write(&mut bytes).expect("writing to a vector succeeds");
        self.kept.lock().expect("mutex poisoned").push(bytes);
    }

    fn poll_interval(&self) -> u64 {
        3
    }
}

/// Interrupts a search after many polls: the change may prevent its end.
struct PollLimit(AtomicU64);

impl Observer for PollLimit {
    fn progress(&self, _: &Progress) {}

    fn wants_estimates(&self) -> bool {
        true
    }

    fn interrupted(&self) -> bool {
        self.0.fetch_add(1, Relaxed) > 2_000
    }
}

/// Random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
        (self.0 >> 33) as usize % most
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// The checkpoint after one or two random changes, with the checksum that belongs to them.
fn mutant(checkpoint: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = checkpoint[..checkpoint.len() - CHECKSUM].to_vec();
    let header = bytes.windows(LAST_OF_HEADER.len()).position(|window| window == LAST_OF_HEADER);
    let from = header.expect("a checkpoint has a header") + LAST_OF_HEADER.len();
    for _ in 0..1 + random.below(2) {
        let at = from + random.below(bytes.len() - from);
        match random.below(7) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.pick(&[0, 1, 2, 0x3f, 0x7f, 0x80, 0xff]),
            2 => bytes[at] = bytes[at].wrapping_add(random.pick(&[1, 0xff])),
            3 => bytes.insert(at, random.below(256) as u8),
            4 => _ = bytes.remove(at),
            5 => {
                let end = (at + 8).min(bytes.len());
                bytes[at..end].fill(random.pick(&[0, 0xff]));
            }
            _ => {
                let source = from + random.below(bytes.len() - from);
                let length = random.below(16).min(bytes.len() - at.max(source));
                bytes.copy_within(source..source + length, at);
            }
        }
    }
    sealed(bytes)
}

/// The contents with their checksum.
fn sealed(mut contents: Vec<u8>) -> Vec<u8> {
    let sum = program_hash(contents.chunks(BLOCK));
    contents.extend(sum.to_le_bytes());
    contents
}

/// The number of resumed searches by how they ended.
#[derive(Debug, Default)]
struct Ends {
    refused: usize,
    /// The last refusal.
    why: String,
    incomplete: usize,
    ended: usize,
}

impl Ends {
    /// Resumes a search. The error says how it misbehaved.
    fn resume(
        &mut self,
        plan: &Plan,
        machine: &Machine,
        checkpoint: Vec<u8>,
        known: &BTreeSet<String>,
    ) -> Result<(), String> {
        let Ok(saved) = Saved::open(Cursor::new(checkpoint)) else {
            self.refused += 1;
            return Ok(());
        };
        let search = plan.build().expect("the plan is valid");
        let (tape, limit) = (Tape::default(), PollLimit(AtomicU64::new(0)));
        let checkpoints = Checkpoints::of(PROGRAM, &tape).resume(saved);
        let run = || search.run_with(machine.clone(), &limit, checkpoints);
        match catch_unwind(AssertUnwindSafe(run)) {
            Err(_) => return Err("panics".to_owned()),
            Ok(Err(refusal)) => {
                self.refused += 1;
                self.why = refusal.to_string();
            }
            Ok(Ok((outcome, _))) => {
                let count =
                    if outcome.stopped.is_some() { &mut self.incomplete } else { &mut self.ended };
                *count += 1;
                if let Some(failure) = failures(&outcome).difference(known).next() {
                    return Err(format!("finds {failure}"));
                }
            }
        }
        Ok(())
    }
}

/// The failures. The text of a race is not checked: it names two of possibly many accesses.
fn failures(outcome: &Outcome) -> BTreeSet<String> {
    let text = |failure: &Failure| match failure.kind {
        FailureKind::Race => "a race".to_owned(),
        _ => format!("{failure:?}"),
    };
    outcome.findings.iter().map(|finding| text(&finding.failure)).collect()
}

fn machine(text: &str) -> Machine {
    preempt_lang::load(&Source::new("checkpoints.pre", text), &[]).expect("a program")
}

/// The plans for a program, within limits.
fn suitable(machine: &Machine) -> Vec<Plan> {
    let limited = |plan: Plan| {
        let executions = plan.order.is_of_executions().then_some(300);
        let memory = Some(200 << 20);
        plan.limits(Limits { memory, executions, ..plan.limits })
    };
    let suits = |plan: &Plan| plan.build().is_ok_and(|search| search.suits(machine).is_ok());
    plans().into_iter().filter(suits).map(limited).collect()
}

/// The checkpoints of a search that runs to its end.
fn checkpoints(plan: &Plan, machine: &Machine) -> Vec<Vec<u8>> {
    let tape = Tape::default();
    let search = plan.build().expect("the plan is valid");
    let run = search.run_with(machine.clone(), &Silent, Checkpoints::of(PROGRAM, &tape));
    run.unwrap_or_else(|refusal| panic!("{refusal}"));
    tape.kept.into_inner().expect("mutex poisoned")
}

#[test]
fn changed_contents_are_refused_or_harmless() {
    let mutants = std::env::var("CHECKPOINT_MUTANTS").ok().and_then(|number| number.parse().ok());
    let mutants: usize = mutants.unwrap_or(MUTANTS);
    let (mut ends, mut wrong, mut random) = (Ends::default(), Vec::new(), Random(7));
    for text in PROGRAMS {
        let machine = machine(text);
        let plans = suitable(&machine);
        assert!(plans.len() > 100, "only {} plans for\n{text}", plans.len());
        let run =
            |plan: &Plan| plan.build().expect("the plan is valid").run(machine.clone(), &Silent).0;
        let known: BTreeSet<String> = plans.iter().flat_map(|plan| failures(&run(plan))).collect();
        for plan in &plans {
            let kept = checkpoints(plan, &machine);
            for _ in 0..if kept.is_empty() { 0 } else { mutants } {
                let mutant = mutant(&kept[random.below(kept.len())], &mut random);
                if let Err(how) = ends.resume(plan, &machine, mutant, &known) {
                    wrong.push(format!("{}: {how}, on\n{text}", label(plan)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} beside {ends:?}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(ends.refused > 100 && ends.ended > 100, "{ends:?}");
}

#[test]
fn unchanged_contents_are_accepted() {
    let (mut ends, mut random) = (Ends::default(), Random(3));
    for text in PROGRAMS {
        let machine = machine(text);
        for plan in suitable(&machine) {
            let search = plan.build().expect("the plan is valid");
            let through = search.run(machine.clone(), &Silent).0;
            let kept = checkpoints(&plan, &machine);
            if kept.is_empty() {
                continue;
            }
            let kept = &kept[random.below(kept.len())];
            let contents = kept[..kept.len() - CHECKSUM].to_vec();
            ends.resume(&plan, &machine, sealed(contents), &failures(&through))
                .unwrap_or_else(|how| panic!("{}: {how}", label(&plan)));
            assert_eq!(ends.refused, 0, "{}: {}, on\n{text}", label(&plan), ends.why);
        }
    }
    assert!(ends.ended > 200, "{ends:?}");
}

/// A model with weak memory. Both threads can read the old value of the other's variable.
const WEAK: &str = "memory weak; atomic var x = 0; atomic var y = 0; mutex m; semaphore(0) s;
    thread t { store(x, 1, relaxed); var r = load(y, relaxed); m.lock(); m.unlock(); s.release(); }
    thread u { m.lock(); store(y, 1, relaxed); m.unlock(); var r = load(x, relaxed); s.acquire();
               assert r == 1; }";

#[test]
fn every_checkpoint_of_weak_memory_leads_to_the_same_outcome() {
    let machine = machine(WEAK);
    for plan in [weak(), graphs(), weak().order(Order::Executions), weak().order(Order::DfsHb)] {
        let plan = plan.keep_going();
        let search = plan.build().expect("the plan is valid");
        let through = search.run(machine.clone(), &Silent).0;
        assert!(through.complete && !through.findings.is_empty(), "{}", label(&plan));
        let kept = checkpoints(&plan, &machine);
        assert!(kept.len() >= 2, "{}: {} checkpoints", label(&plan), kept.len());
        for checkpoint in kept {
            let saved =
                Saved::open(Cursor::new(checkpoint)).expect("the checkpoint was just written");
            let tape = Tape::default();
            let resume = Checkpoints::of(PROGRAM, &tape).resume(saved);
            let resumed = search.run_with(machine.clone(), &Silent, resume);
            let resumed = resumed.unwrap_or_else(|refusal| panic!("{refusal}")).0;
            assert_eq!(resumed.tally, through.tally, "{}", label(&plan));
            assert_eq!(failures(&resumed), failures(&through), "{}", label(&plan));
            assert_eq!(resumed.complete, through.complete, "{}", label(&plan));
        }
    }
}
