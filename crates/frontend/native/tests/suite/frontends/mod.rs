//! The three front ends agree: programs written as a model, in Rust and in C.
//!
//! The Rust source of a program is used twice: as a closure, where `sync` and `thread` are those of
//! `preempt`, and as an executable, where they are std's. All four forms have the same verdict and
//! the same fewest preemptions, and the same number of happens-before graphs within each bound
//! unless `numbers.toml` says why not.
//!
//! `BLESS=1` rewrites the numbers and keeps the reasons. Read the difference.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use preempt::Check;
use preempt_explore::{Cache, Count, Order, Outcome, Plan, Points, Silent};
use preempt_lang::source::Source;
use preempt_native::{Compiler, Executable, Level, Native, flags};
use preempt_system::Verdict;

use crate::compile::{compile_once, gcc, runtime};

/// The bound of every search.
const BOUND: u32 = 2;

// Programs as users write them.
#[allow(clippy::unwrap_used)]
#[path = "../../../../../../corpus/frontends"]
mod closures {
    use preempt::{sync, thread};

    macro_rules! programs {
        ($($name:ident)*) => {
            $(mod $name;)*

            /// The name and the body of each program.
            pub const ALL: &[(&str, fn())] = &[$((stringify!($name), $name::run)),*];
        };
    }

    programs! {
        abba abba_ordered check_then_act counter election locked_counter lost_update lost_wakeup
        message message_early pair readers retry store_buffering swap_handover three_writers
        two_sections wakeup
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../corpus/frontends")
}

/// The result of one form of a program.
#[derive(Clone, Debug, PartialEq)]
struct Explored {
    verdict: &'static str,
    /// The fewest preemptions of a finding.
    preemptions: Option<u32>,
    /// Distinct happens-before graphs of complete executions within bound 0, 1, …
    graphs: Vec<u64>,
}

impl Explored {
    fn new(outcome: &Outcome) -> Explored {
        // A failed assertion of Rust code is a panic.
        let verdict = match outcome.verdict {
            Verdict::Panic => Verdict::Violation.word(),
            verdict => verdict.word(),
        };
        Explored {
            verdict,
            preemptions: outcome.findings.iter().map(|finding| finding.preemptions).min(),
            // A search that has covered everything ends before the last bound.
            graphs: (0..=BOUND as usize)
                .map(|bound| bound.min(outcome.bounds.len() - 1))
                .map(|bound| outcome.bounds[bound].all.traces.expect("the plan counts traces"))
                .collect(),
        }
    }
}

/// Explores all happens-before graphs within the bound, also after a failure. With this cache, each
/// is reached with its fewest preemptions.
fn plan() -> Plan {
    Plan {
        order: Order::Icb { cache: Cache::Hb },
        bound: Some(BOUND),
        count: Count::Traces,
        keep_going: true,
        ..Plan::new()
    }
}

fn model(name: &str) -> Explored {
    let file = folder().join(format!("{name}.pre"));
    let text = std::fs::read_to_string(&file).expect("the model can be read");
    let source = Source::new(format!("{name}.pre"), text);
    let machine = preempt_lang::load(&source, &[]).expect("the model is correct");
    // Threads are switched at synchronisation only, as in the other forms.
    let search = Plan { points: Points::Sync, ..plan() }.build().expect("the plan is possible");
    let (outcome, _) = search.run(machine, &Silent);
    Explored::new(&outcome)
}

fn closure(body: fn()) -> Explored {
    let check = Check::new()
        .order(Order::Icb { cache: Cache::Hb })
        .bound(BOUND)
        .count(Count::Traces)
        .keep_going()
        .quiet();
    Explored::new(&check.run(body))
}

fn executable(path: &Path, args: &[&str]) -> Explored {
    let search = plan().build_for_program().expect("the plan is possible");
    let args = args.iter().map(Into::into).collect();
    let executable = Executable::find(path, args).expect("the program can be explored");
    let (outcome, native) = search.run_program(Native::new(executable), &());
    assert_eq!(native.refusal(), None, "{}", path.display());
    Explored::new(&outcome)
}

/// The C form. It is instrumented only if it uses atomics.
fn c(name: &str) -> Explored {
    let text =
        std::fs::read_to_string(folder().join(format!("{name}.c"))).expect("the file is readable");
    let level = if text.contains("stdatomic.h") { Level::Memory } else { Level::Calls };
    let flags = flags(Compiler::Gcc, level, &runtime());
    executable(&gcc(&folder(), name, &flags.iter().map(String::as_str).collect::<Vec<_>>()), &[])
}

/// Compiles the Rust forms of all programs, with the threads, locks and atomics of std, into one
/// executable that runs the program named by its argument. Compiling each by itself would take
/// longer than all searches together.
fn rust_forms() -> PathBuf {
    let (mut modules, mut arms) = (String::new(), String::new());
    for (name, _) in closures::ALL {
        let program = folder().join(format!("{name}.rs"));
        let _ = writeln!(modules, "#[path = {program:?}]\nmod {name};");
        let _ = writeln!(arms, "        Some({name:?}) => {name}::run(),");
    }
    let text = format!(
        "use std::{{sync, thread}};\n{modules}fn main() {{\n    \
         match std::env::args().nth(1).as_deref() {{\n{arms}        \
         other => panic!(\"there is no program {{other:?}}\"),\n    }}\n}}\n"
    );
    let main = Path::new(env!("CARGO_TARGET_TMPDIR")).join("frontends.rs");
    std::fs::write(&main, text).expect("the target folder can be written");
    let out = main.with_extension("");
    let flags = flags(Compiler::Rustc, Level::Atomics, &runtime());
    let mut compiler = Command::new("rustc");
    compiler.args(["-g", "-O", "--edition", "2024"]).args(flags);
    compile_once(&mut compiler, &main, &out);
    out
}

/// An entry of `numbers.toml`.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
struct Expected {
    verdict: String,
    preemptions: Option<u32>,
    graphs: Vec<u64>,
    /// The graphs of a form that has other steps, and why.
    #[serde(default)]
    other: BTreeMap<String, Vec<u64>>,
    why: Option<String>,
}

impl Expected {
    fn to_toml(&self, name: &str) -> String {
        let mut text = format!("[{name}]\nverdict = {:?}\n", self.verdict);
        if let Some(preemptions) = self.preemptions {
            let _ = writeln!(text, "preemptions = {preemptions}");
        }
        let _ = writeln!(text, "graphs = {:?}", self.graphs);
        for (form, graphs) in &self.other {
            let _ = writeln!(text, "other.{form} = {graphs:?}");
        }
        if let Some(why) = &self.why {
            let _ = writeln!(text, "why = {why:?}");
        }
        text
    }
}

#[test]
fn a_program_has_the_same_verdict_in_every_form() {
    let path = folder().join("numbers.toml");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    let expected: BTreeMap<String, Expected> =
        toml::from_str(&text).expect("the file has this form");
    let mut actual = BTreeMap::new();
    let mut wrong = Vec::new();
    let rust_forms = rust_forms();
    for &(name, body) in closures::ALL {
        let model = model(name);
        let rust = executable(&rust_forms, &[name]);
        let mut other = BTreeMap::new();
        for (form, explored) in [("closure", closure(body)), ("rust", rust), ("c", c(name))] {
            let of = |explored: &Explored| (explored.verdict, explored.preemptions);
            if of(&explored) != of(&model) {
                wrong.push(format!("{name}: {form} has {explored:?}, the model {model:?}"));
            }
            if explored.graphs != model.graphs {
                other.insert(form.to_owned(), explored.graphs);
            }
        }
        let why = expected.get(name).and_then(|expected| expected.why.clone());
        assert!(
            other.is_empty() || why.is_some() || std::env::var_os("BLESS").is_some(),
            "{name}: {other:?} instead of {:?}, without a reason in numbers.toml",
            model.graphs
        );
        let Explored { verdict, preemptions, graphs } = model;
        let verdict = verdict.to_owned();
        actual.insert(name.to_owned(), Expected { verdict, preemptions, graphs, other, why });
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    if std::env::var_os("BLESS").is_some() {
        let head: String = text
            .lines()
            .take_while(|line| line.starts_with('#'))
            .fold(String::new(), |head, line| head + line + "\n");
        let entries: Vec<String> =
            actual.iter().map(|(name, expected)| expected.to_toml(name)).collect();
        std::fs::write(&path, format!("{head}\n{}", entries.join("\n")))
            .expect("the file is writable");
        return;
    }
    assert_eq!(actual, expected);
}
