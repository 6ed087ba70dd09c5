//! Weak memory: the litmus tests of `corpus/litmus` as C programs, with exactly the outcomes that
//! the memory model allows, and programs whose orderings suffice.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Once;

use preempt_explore::{Cache, Order, Outcome, Plan, Reduction};
use preempt_litmus::{
    Expected, Graph, Instruction, Operand, Order as Ordering, Program, expected, graph,
};
use preempt_native::narrate::narrate;
use preempt_native::{Allocator, Compiler, Executable, Level, Native, flags};
use preempt_report::recorder::Numbering;
use preempt_system::{Failure, FailureKind, MemoryModel, Stale, Verdict};

use crate::compile::{compiled, gcc, instrumented, runtime};

/// The C program of all litmus tests. Its argument is the number of the test. At its end each
/// execution fails with a message that has its registers, the number of stores to each location,
/// and the final values.
fn source(tests: &[Expected]) -> String {
    let mut text = String::from(
        "#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
         extern void __assert_fail(const char *, const char *, unsigned, const char *);\n\
         enum { MOST = 8 };\n\
         static unsigned long at[MOST];\n\
         static pthread_mutex_t mutex[MOST] = {\n\
         [0 ... MOST - 1] = PTHREAD_MUTEX_INITIALIZER };\n\
         static unsigned long r[MOST][4], stores[MOST][MOST];\n",
    );
    for (nth, test) in tests.iter().enumerate() {
        for (thread, code) in test.program.threads.iter().enumerate() {
            writeln!(text, "static void *t{nth}_{thread}(void *unused) {{").expect("a string");
            text += &block(thread, code);
            text += "return unused;\n}\n";
        }
        writeln!(text, "static void *(*const test{nth}[])(void *) = {{").expect("a string");
        for thread in 0..test.program.threads.len() {
            writeln!(text, "t{nth}_{thread},").expect("a string");
        }
        text += "0};\n";
    }
    text += "static void *(*const *const tests[])(void *) = {\n";
    (0..tests.len()).for_each(|nth| writeln!(text, "test{nth},").expect("a string"));
    text + "};\n\
            int main(int argc, char **argv) {\n\
            void *(*const *test)(void *) = tests[atoi(argv[argc - 1])];\n\
            pthread_t threads[MOST];\n\
            int n = 0;\n\
            for (; test[n]; n++) pthread_create(&threads[n], 0, test[n], 0);\n\
            for (int i = 0; i < n; i++) pthread_join(threads[i], 0);\n\
            char words[900], *to = words;\n\
            for (int i = 0; i < n; i++)\n\
            for (int j = 0; j < 4; j++) to += sprintf(to, \"%lu \", r[i][j]);\n\
            for (int x = 0; x < MOST; x++) {\n\
            unsigned long all = 0;\n\
            for (int i = 0; i < n; i++) all += stores[i][x];\n\
            to += sprintf(to, \"%lu %lu \", all, at[x]);\n\
            }\n\
            __assert_fail(words, \"litmus.c\", 1, \"main\");\n\
            }\n"
}

/// The code of a thread, or a part of it.
fn block(thread: usize, code: &[Instruction]) -> String {
    let order = |order: Ordering| match order {
        Ordering::Plain => unreachable!("a plain access has no ordering"),
        Ordering::Relaxed => "__ATOMIC_RELAXED",
        Ordering::Acquire => "__ATOMIC_ACQUIRE",
        Ordering::Release => "__ATOMIC_RELEASE",
        Ordering::AcqRel => "__ATOMIC_ACQ_REL",
        Ordering::SeqCst => "__ATOMIC_SEQ_CST",
    };
    let stored = |x: usize| format!("stores[{thread}][{x}]++;");
    let (mut text, mut at) = (String::new(), 0);
    while at < code.len() {
        text += &match code[at] {
            Instruction::Load(i, x, Ordering::Plain) => format!("r[{thread}][{i}] = at[{x}];"),
            Instruction::Load(i, x, o) => {
                format!("r[{thread}][{i}] = __atomic_load_n(&at[{x}], {});", order(o))
            }
            Instruction::Store(x, value, o) => {
                let value = match value {
                    Operand::Constant(value) => value.to_string(),
                    Operand::Register(i, summand) => format!("r[{thread}][{i}] + {summand}"),
                };
                let store = match o {
                    Ordering::Plain => format!("at[{x}] = {value};"),
                    o => format!("__atomic_store_n(&at[{x}], {value}, {});", order(o)),
                };
                store + &stored(x)
            }
            Instruction::Add(i, x, by, o) => {
                let add = format!("__atomic_fetch_add(&at[{x}], {by}, {})", order(o));
                format!("r[{thread}][{i}] = {add}; {}", stored(x))
            }
            Instruction::Swap(i, x, new, o) => {
                let swap = format!("__atomic_exchange_n(&at[{x}], {new}, {})", order(o));
                format!("r[{thread}][{i}] = {swap}; {}", stored(x))
            }
            Instruction::CompareExchange(i, x, old, new, success, failure) => {
                let (success, failure) = (order(success), order(failure));
                format!(
                    "r[{thread}][{i}] = {old}; if (__atomic_compare_exchange_n(&at[{x}], \
                     &r[{thread}][{i}], {new}, 0, {success}, {failure})) {}",
                    stored(x)
                )
            }
            Instruction::Fence(o) => format!("__atomic_thread_fence({});", order(o)),
            Instruction::If(i, value, skipped) => {
                let inner = block(thread, &code[at + 1..=at + skipped]);
                at += skipped;
                format!("if (r[{thread}][{i}] == {value}) {{\n{inner}}}")
            }
            Instruction::Lock(x) => format!("pthread_mutex_lock(&mutex[{x}]);"),
            Instruction::Unlock(x) => format!("pthread_mutex_unlock(&mutex[{x}]);"),
        };
        text.push('\n');
        at += 1;
    }
    text
}

/// The outcome in the words of the corpus, from the message with which an execution has failed.
fn words(program: &Program, message: &str) -> String {
    let is_digit = |c: char| c.is_ascii_digit() || c == ' ';
    let from = message.find(|c: char| c.is_ascii_digit()).expect("the message has numbers");
    let to = message[from..].find(|c: char| !is_digit(c)).map_or(message.len(), |at| from + at);
    let numbers: Vec<u64> = message[from..to]
        .split_whitespace()
        .map(|number| number.parse().expect("the program prints numbers"))
        .collect();
    let locations = 4 * program.threads.len();
    let mut stores = Graph::new(program);
    for (location, order) in stores.orders.iter_mut().enumerate() {
        *order = vec![(0, 0); numbers[locations + 2 * location] as usize];
    }
    let register = |thread: usize, register: usize| numbers[4 * thread + register];
    let last = |location: usize| numbers[locations + 2 * location + 1];
    graph::outcome(program, &stores, register, |_| false, last)
}

/// Compiles the program of all litmus tests.
fn litmus(tests: &[Expected]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    static WRITTEN: Once = Once::new();
    WRITTEN.call_once(|| {
        std::fs::write(folder.join("litmus.c"), source(tests))
            .expect("the target folder can be written");
    });
    let flags = flags(Compiler::Gcc, Level::Memory, &runtime());
    gcc(folder, "litmus", &flags.iter().map(String::as_str).collect::<Vec<_>>())
}

fn weak(path: &Path, argument: &str) -> Executable {
    let mut executable =
        Executable::find(path, vec![argument.into()]).expect("the program can be explored");
    executable.memory = MemoryModel::Weak;
    executable
}

fn explore(executable: Executable, plan: Plan) -> (Outcome, Native) {
    let plan = Plan { memory: executable.memory, ..plan };
    executable.suits(&plan).expect("the plan suits the executable");
    let search = plan.build_for_program().expect("the plan is possible");
    let (outcome, native) = search.run_program(Native::new(executable), &());
    assert_eq!(native.refusal(), None);
    (outcome, native)
}

/// All executions with at most `bound` preemptions and stale accesses, past failures.
fn all_within(bound: u32) -> Plan {
    let order = Order::Icb { cache: Cache::Hb };
    Plan { order, bound: Some(bound), keep_going: true, shrink: None, ..Plan::new() }
}

/// Compares the outcomes of a litmus test with the corpus, within the preemptions and stale
/// accesses that the most expensive of them needs.
fn compare(path: &Path, nth: usize, test: &Expected) {
    let bound = test.outcomes.iter().map(|outcome| outcome.cost.0 + outcome.cost.1).max();
    let plan = all_within(bound.expect("a test has outcomes"));
    let (outcome, _) = explore(weak(path, &nth.to_string()), plan);
    assert_eq!(outcome.stopped, None, "{}", test.name);
    let found: BTreeSet<String> = outcome
        .findings
        .iter()
        .map(|finding| {
            let Failure { kind, message, .. } = &finding.failure;
            assert_eq!(*kind, FailureKind::Assertion, "{}: {message}", test.name);
            words(&test.program, message)
        })
        .collect();
    let allowed: BTreeSet<String> =
        test.outcomes.iter().map(|outcome| outcome.text.clone()).collect();
    assert_eq!(found, allowed, "{}: {}", test.name, test.program.show());
}

/// The tests that are compared: those of two threads, and larger ones for multi-copy atomicity,
/// release sequences and read-modify-writes.
const LARGER: [&str; 6] =
    ["WRC+rel+acq", "RWC+sc+sc", "inc3+acqrel", "cas3", "rmw-store-load", IRIW];

/// Independent reads of independent writes: the readers see the two stores in different orders.
const IRIW: &str = "IRIW+rel+acq";

#[test]
fn litmus_tests_have_exactly_the_allowed_outcomes() {
    let tests = expected::all();
    let path = litmus(&tests);
    let is_compared = |test: &Expected| {
        let is_small = test.program.threads.len() == 2 && test.graphs <= 4;
        is_small || LARGER.contains(&&*test.name)
    };
    let has_verdict = |test: &Expected| test.racy > 0 || test.stuck > 0;
    let mut compared = 0;
    for (nth, test) in tests.iter().enumerate() {
        if is_compared(test) && !has_verdict(test) {
            compare(&path, nth, test);
            compared += 1;
        }
    }
    assert!(compared >= 40, "{compared}");
}

/// The number of a litmus test.
fn number_of(tests: &[Expected], name: &str) -> String {
    tests.iter().position(|test| test.name == name).expect("the corpus has it").to_string()
}

#[test]
fn litmus_tests_with_races_and_deadlocks_fail() {
    let tests = expected::all();
    let path = litmus(&tests);
    for (name, kind) in [
        ("MP+na+unconditional", FailureKind::Race),
        ("arc-drop-relaxed", FailureKind::Race),
        ("mutex-deadlock", FailureKind::Deadlock),
    ] {
        let (outcome, _) = explore(weak(&path, &number_of(&tests, name)), all_within(1));
        let found = outcome.findings.iter().any(|finding| finding.failure.kind == kind);
        assert!(found, "{name}: {:?}", outcome.findings);
    }
}

fn locks(kind: &str) -> Executable {
    weak(&instrumented("weak_locks", Level::Atomics), kind)
}

fn icb(bound: u32) -> Plan {
    Plan { order: Order::Icb { cache: Cache::Hb }, bound: Some(bound), ..Plan::new() }
}

/// Locks, channels and other objects of std are partly precompiled, and synchronise invisibly.
#[test]
fn correct_synchronisation_has_no_false_alarm() {
    for (kind, bound) in [
        ("mutex", 2),
        ("rwlock", 2),
        ("condvar", 1),
        ("channel", 1),
        ("once", 1),
        ("barrier", 2),
        ("park", 2),
        ("scope", 1),
        ("spin", 2),
        ("arc", 2),
        ("std_arc", 2),
    ] {
        let (outcome, _) = explore(locks(kind), icb(bound));
        assert_eq!(outcome.findings, [], "{kind}");
        assert_eq!(outcome.verdict, Verdict::Ok, "{kind}");
    }
}

#[test]
fn an_ordering_that_is_too_weak_is_found_only_under_weak_memory() {
    for kind in ["wrong_spin", "wrong_arc"] {
        let (outcome, native) = explore(locks(kind), icb(2));
        let finding = outcome.findings.first().unwrap_or_else(|| panic!("{kind} is found"));
        assert_eq!((finding.failure.kind, finding.preemptions), (FailureKind::Panic, 2), "{kind}");
        let narrated = narrate(&native, &finding.schedule, Numbering::Slots, |_| None);
        let replayed = narrated.expect("a finding can be described").replayed;
        let failures = &replayed.failures;
        assert_eq!(failures.first().map(|failure| failure.kind), Some(FailureKind::Panic));
        let effects: Vec<&String> =
            replayed.trace.steps.iter().flat_map(|step| &step.narration.effects).collect();
        let is_told = effects.iter().any(|words| {
            words.contains("although t1 stored 1 in step")
                && words.contains("nothing orders the two. ")
                && words.ends_with("this would be 1")
        });
        assert!(is_told, "{kind}: {effects:?}");
        let is_stale = |at: usize| match replayed.trace.steps[at].stale {
            Some(Stale::Read { newest, .. }) => newest.is_some_and(|newest| newest < at),
            _ => false,
        };
        assert_eq!((0..replayed.trace.steps.len()).filter(|&at| is_stale(at)).count(), 1);
        assert_eq!(replayed.trace.stale_words(), "1 stale read");
        let mut sc = locks(kind);
        sc.memory = MemoryModel::Sc;
        let (outcome, native) = explore(sc, icb(2));
        assert_eq!(outcome.verdict, Verdict::Ok, "{kind}");
        let words = native.memory_words().expect("its atomics are visible");
        assert!(words.contains("was not explored (--memory weak)"), "{words}");
    }
}

/// A loop that reads old values ends, and the result says what it relies on.
#[test]
fn a_loop_reads_old_values_for_a_few_rounds() {
    let (outcome, native) = explore(locks("spin"), Plan { bound: Some(5), ..icb(5) });
    assert_eq!(outcome.findings, []);
    assert_eq!(outcome.stopped, None);
    let assumptions = native.assumptions();
    let is_named = |text: &String| text.contains("reads old values for a few rounds only");
    assert!(assumptions.iter().any(is_named), "{assumptions:?}");
}

#[test]
fn variables_of_several_sizes_are_sequentially_consistent() {
    let (outcome, native) =
        explore(weak(&instrumented("atomic_operations", Level::Memory), ""), icb(1));
    assert_eq!(outcome.findings, [], "the program checks each result");
    let words = native.memory_words().expect("its atomics are visible");
    assert!(words.contains("explored as sequentially consistent"), "{words}");
}

/// Everything that a report shows and that does not depend on the machine.
fn report(plan: Plan) -> String {
    let tests = expected::all();
    let executable = weak(&litmus(&tests), &number_of(&tests, "SB+rlx+rlx"));
    let (outcome, native) = explore(executable, plan);
    let Outcome { verdict, complete, findings, tally, bounds, .. } = outcome;
    let assumptions = native.assumptions();
    format!("{verdict:?} {complete} {tally:?} {bounds:?} {findings:?} {assumptions:?}")
}

#[test]
fn any_number_of_workers_has_the_same_counts_and_findings() {
    let plan = all_within(2);
    assert_eq!(report(Plan { jobs: 2, ..plan }), report(plan));
}

#[test]
fn every_kind_of_strategy_finds_a_stale_access() {
    let tests = expected::all();
    let path = litmus(&tests);
    let nth = number_of(&tests, "SB+rlx+rlx");
    let sample = |order| Plan { order, runs: 60, ..Plan::new() };
    let plans = [
        Plan { order: Order::DfsHb, ..Plan::new() },
        sample(Order::Random),
        sample(Order::Pct { depth: 2 }),
        sample(Order::Urw),
    ];
    for plan in plans {
        let plan = Plan { keep_going: true, shrink: None, ..plan };
        let (outcome, _) = explore(weak(&path, &nth), plan);
        let weak = "0 0 0 0 0 0 0 0 1 1 1 1 ";
        let found = outcome.findings.iter().any(|finding| finding.failure.message.contains(weak));
        assert!(found, "{:?}: {:?}", plan.order, outcome.findings);
    }
}

#[test]
fn what_cannot_be_explored_under_weak_memory_is_refused() {
    let refused = |executable: &Executable, plan: Plan| {
        let plan = Plan { memory: MemoryModel::Weak, ..plan };
        executable.suits(&plan).expect_err("it is refused")
    };
    let normal = weak(&compiled("abba"), "");
    assert!(refused(&normal, icb(1)).contains("orderings are not visible"));
    let mut system = locks("spin");
    system.allocator = Allocator::System;
    assert!(refused(&system, icb(1)).contains("--allocator system"));
    let graphs = Plan { order: Order::Executions, reduction: Reduction::Graphs, ..Plan::new() };
    let spin = weak(&instrumented("spin_lock", Level::Memory), "");
    assert!(refused(&spin, graphs).contains("--reduce graphs"));
    let sleep = Plan { order: Order::Executions, reduction: Reduction::Sleep, ..Plan::new() };
    let sleep = Plan { memory: MemoryModel::Weak, ..sleep };
    assert!(sleep.build_for_program().is_err(), "the table of strategies refuses it");
}

/// Without line tables, variables of std cannot be distinguished from others.
#[test]
fn an_executable_of_rust_without_line_tables_is_refused() {
    let path = instrumented("weak_locks", Level::Atomics);
    let stripped = path.with_file_name("weak_locks_stripped");
    let mut strip = std::process::Command::new("strip");
    let status = strip.args(["-g", "-o"]).args([&stripped, &path]).status();
    assert!(status.expect("strip belongs to gcc").success());
    let executable = weak(&stripped, "mutex");
    let plan = Plan { memory: MemoryModel::Weak, ..icb(1) };
    let search = plan.build_for_program().expect("the plan is possible");
    let (_, native) = search.run_program(Native::new(executable), &());
    let why = native.refusal().expect("the input is refused");
    assert!(why.contains("--memory weak needs line tables"), "{why}");
}
