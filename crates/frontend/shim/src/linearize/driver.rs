//! Generates scenarios, smallest first, and checks one after the other.

use std::collections::BTreeSet;
use std::panic::Location as Site;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use preempt_explore::{Outcome as SearchOutcome, Reduction};
use preempt_linearize::scenario::programs;
use preempt_linearize::{CallOutcome, Criterion, Scenario, SerialTree};
use preempt_system::{MemoryModel, Verdict};

use super::operation::Fresh;
use super::outcome::{LinearizeOutcome, ShapeCoverage, Words};
use super::scene::{Scene, fresh, prefix_fresh};
use super::subject::Subject;
use super::{concurrent, serial};
use crate::check::{Context, Explored};
use crate::program::Learned;
use crate::report::Format;
use crate::runtime::harness::Progress;
use crate::{Check, Refusal, settings};

/// Where scenarios come from.
struct Plan {
    /// The shape, and a scenario of it with the calls before it.
    shape: Vec<usize>,
    scenarios: Vec<(Scenario, Vec<usize>)>,
}

/// One scenario after its check.
pub(super) struct Checked {
    serial: u64,
    /// None if the prefix blocks, so that there is nothing to check.
    outcome: Option<Box<SearchOutcome>>,
    histories: u64,
    stuck: u64,
    nodes: u64,
    shares: bool,
    learned: Learned,
}

impl Checked {
    pub(super) fn passes(&self) -> bool {
        self.outcome.as_ref().is_none_or(|of| of.verdict == Verdict::Ok)
    }
}

/// Checks all scenarios.
pub(super) fn run<H: 'static>(
    subject: Subject<H>,
    place: &'static Site<'static>,
) -> Result<LinearizeOutcome, Refusal> {
    let subject = with_environment(subject)?;
    let plan = plans(&subject)?;
    let mut driver = Driver::new(Arc::new(subject), place);
    driver.check_all(plan)?;
    driver.finish()
}

/// The settings of the environment.
fn with_environment<H>(mut subject: Subject<H>) -> Result<Subject<H>, Refusal> {
    subject.check = settings::of_environment(subject.check)?;
    let numbers = [("OPERATIONS", &mut subject.calls), ("THREADS", &mut subject.threads)];
    for (name, setting) in numbers {
        if let Some(value) = settings::variable(name) {
            *setting = settings::number(name, &value)?;
        }
    }
    subject.scenario = settings::variable("SCENARIO").or(subject.scenario);
    Ok(subject)
}

/// The scenarios, shape by shape.
fn plans<H: 'static>(subject: &Subject<H>) -> Result<Vec<Plan>, Refusal> {
    refuse_invalid(subject)?;
    if let Some(text) = &subject.scenario {
        let (scenario, prefix) = parse(subject, text)?;
        let shape = scenario.0.iter().map(Vec::len).collect();
        return Ok(vec![Plan { shape, scenarios: vec![(scenario, prefix)] }]);
    }
    let rules = subject.rules();
    let prefixes: Vec<Vec<usize>> =
        (0..=subject.prefixes).flat_map(|calls| programs(rules.instances.len(), calls)).collect();
    let shapes = (2..=subject.calls).flat_map(|calls| rules.shapes(calls));
    let plans = shapes.map(|shape| {
        let scenarios = rules.scenarios(&shape);
        let all = prefixes
            .iter()
            .flat_map(|prefix| scenarios.iter().map(|scenario| (scenario.clone(), prefix.clone())));
        Plan { scenarios: all.collect(), shape }
    });
    Ok(plans.filter(|plan: &Plan| !plan.scenarios.is_empty()).collect())
}

fn refuse_invalid<H>(subject: &Subject<H>) -> Result<(), Refusal> {
    let why = if subject.instances.is_empty() {
        "there is no operation to call: add one with `op`"
    } else if !(2..=16).contains(&subject.threads) {
        "`threads` must be between 2 and 16"
    } else if !(2..=16).contains(&subject.calls) {
        "`operations` must be between 2 and 16"
    } else if subject.per_thread == 0 {
        "`per_thread` must be at least 1"
    } else if subject.check.keep_going {
        "`keep_going` has no effect: the first failing scenario is a smallest one"
    } else if matches!(subject.criterion, Criterion::OutOfOrder(_)) && subject.model.is_none() {
        "`Criterion::OutOfOrder` needs a `model`: the serial behaviour of a relaxed structure is \
         relaxed already, and says nothing about by how much"
    } else if subject.check.replay.is_some() && subject.scenario.is_none() {
        "a replay needs the scenario of its schedule: PREEMPT_SCENARIO, as the report shows it"
    } else if subject.progress != Progress::Any && subject.check.options.memory == MemoryModel::Weak
    {
        "`obstruction_free` and `lock_free` are checked under sequentially consistent memory only"
    } else if subject.progress != Progress::Any && subject.check.plan().reduction != Reduction::None
    {
        // See `system/progress.rs`.
        "`obstruction_free` and `lock_free` need a search that visits every state, without a \
         reduction: give a bound, as `Check::new().bound(3)` does"
    } else if !matches!(
        subject.check.reduction,
        None | Some(Reduction::None | Reduction::Optimal | Reduction::Graphs)
    ) {
        // The soundness arguments of the others rely on counting every switch as a preemption.
        "this reduction is not supported: use `Reduction::Optimal`, `Graphs` or none"
    } else {
        return Ok(());
    };
    Err(Refusal::Test(why.to_owned()))
}

/// Reads a scenario: `push(1); pop() || pop()`, with `after push(101): ` before it for calls that
/// come first.
fn parse<H: 'static>(subject: &Subject<H>, text: &str) -> Result<(Scenario, Vec<usize>), Refusal> {
    let (prefix, threads) = match text.strip_prefix("after ").and_then(|rest| rest.split_once(": "))
    {
        Some((prefix, threads)) => (prefix, threads),
        None => ("", text),
    };
    let words = |part: &str, separator: &str| -> Vec<String> {
        let parts = part.split(separator).map(|word| word.trim().to_owned());
        parts.filter(|word| !word.is_empty()).collect()
    };
    let threads: Vec<Vec<String>> =
        words(threads, "||").iter().map(|thread| words(thread, ";")).collect();
    let all: usize = threads.iter().map(Vec::len).sum();
    let find = |word: &String, fresh: Fresh| {
        let found = subject.instances.iter().position(|of| (of.label)(fresh) == *word);
        found.ok_or_else(|| {
            let known: Vec<String> = subject.instances.iter().map(|of| (of.label)(fresh)).collect();
            Refusal::Test(format!(
                "the scenario has `{word}`, which is not a call here: expected {}",
                known.join(" or ")
            ))
        })
    };
    let mut position = 0;
    let mut scenario = Vec::new();
    for thread in &threads {
        let mut program = Vec::new();
        for word in thread {
            program.push(find(word, fresh(position, all as u32))?);
            position += 1;
        }
        scenario.push(program);
    }
    let mut before = Vec::new();
    for (nth, word) in words(prefix, ";").iter().enumerate() {
        before.push(find(word, prefix_fresh(nth))?);
    }
    if scenario.is_empty() || all > preempt_linearize::MAX_CALLS {
        let why = "a scenario has at least one thread and at most 64 calls";
        return Err(Refusal::Test(why.to_owned()));
    }
    if !subject.rules().allows(&scenario) {
        let why = "the scenario violates a role (`only`) or repeats a call declared with `once`";
        return Err(Refusal::Test(why.to_owned()));
    }
    Ok((Scenario(scenario), before))
}

pub(super) struct Driver<H> {
    pub(super) subject: Arc<Subject<H>>,
    place: &'static Site<'static>,
    began: Instant,
    pub(super) outcome: LinearizeOutcome,
    learned: Learned,
    shares: bool,
}

impl<H: 'static> Driver<H> {
    fn new(subject: Arc<Subject<H>>, place: &'static Site<'static>) -> Driver<H> {
        let words = Words {
            criterion: subject.criterion.word().into_owned(),
            progress: match subject.progress {
                Progress::Any => None,
                Progress::ObstructionFree => Some("obstruction-free"),
                Progress::LockFree => Some("lock-free in all explored executions"),
            },
            operations: subject.operations.iter().map(|of| of.name.clone()).collect(),
            calls: subject.calls,
            threads: subject.threads,
            per_thread: Some(subject.per_thread).filter(|&most| most < subject.calls),
            prefixes: subject.prefixes,
            given: subject.scenario.clone(),
            memory: subject.check.options.memory,
            specification: match subject.model {
                Some(_) => "the model".to_owned(),
                None => format!("the serial behaviour of {} itself", subject.type_name),
            },
            ..Words::default()
        };
        let outcome = LinearizeOutcome { words, ..LinearizeOutcome::default() };
        let learned = Learned::default();
        Driver { subject, place, began: Instant::now(), outcome, learned, shares: false }
    }

    /// Checks shape by shape, until a scenario fails or a limit is reached.
    fn check_all(&mut self, plans: Vec<Plan>) -> Result<(), Refusal> {
        for Plan { shape, scenarios } in plans {
            self.outcome.shapes.push(ShapeCoverage {
                shape,
                scenarios: 0,
                executions: 0,
                histories: 0,
            });
            let checked = self.check_shape(&scenarios)?;
            for (nth, checked) in checked.into_iter().enumerate() {
                self.learned.merge(&checked.learned);
                if self.count(&checked) {
                    continue;
                }
                let (scenario, prefix) = &scenarios[nth];
                return self.stop(checked, scenario, prefix);
            }
        }
        Ok(())
    }

    /// Checks the scenarios of a shape, up to the first that does not pass, by as many workers as
    /// the check has jobs. What they learn is used by the next shape, and not by other scenarios of
    /// this one, so the result does not depend on the workers.
    fn check_shape(&self, scenarios: &[(Scenario, Vec<usize>)]) -> Result<Vec<Checked>, Refusal> {
        let (next, last) = (AtomicUsize::new(0), AtomicUsize::new(scenarios.len()));
        let results = Mutex::new(Vec::new());
        let work = || loop {
            let nth = next.fetch_add(1, Ordering::SeqCst);
            if nth >= last.load(Ordering::SeqCst) {
                return;
            }
            let (scenario, prefix) = &scenarios[nth];
            let checked = self.check(scenario, prefix);
            if !checked.as_ref().is_ok_and(Checked::passes) {
                last.fetch_min(nth + 1, Ordering::SeqCst);
            }
            results.lock().unwrap_or_else(PoisonError::into_inner).push((nth, checked));
        };
        let workers = self.subject.check.jobs.clamp(1, scenarios.len().max(1));
        if workers == 1 {
            work();
        } else {
            std::thread::scope(|scope| {
                for _ in 0..workers {
                    scope.spawn(work);
                }
            });
        }
        let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        results.sort_by_key(|(nth, _)| *nth);
        // Workers may have finished scenarios after the first that does not pass.
        results.truncate(last.load(Ordering::SeqCst));
        results.into_iter().map(|(_, checked)| checked).collect()
    }

    pub(super) fn scene(&self, scenario: &Scenario, prefix: &[usize]) -> Arc<Scene<H>> {
        let subject = self.subject.clone();
        Arc::new(Scene::new(subject, scenario.clone(), prefix.to_vec(), self.place))
    }

    /// The settings for one scenario, with the time that is left.
    pub(super) fn settings(&self) -> Check {
        let mut check = Check { jobs: 1, ..self.subject.check.clone() }.quiet();
        if let Some(time) = check.limits.time {
            check.limits.time = Some(time.saturating_sub(self.began.elapsed()));
        }
        check
    }

    /// Checks one scenario, without a report.
    pub(super) fn check(&self, scenario: &Scenario, prefix: &[usize]) -> Result<Checked, Refusal> {
        let scene = self.scene(scenario, prefix);
        let check = Check { html: None, save_schedule: None, ..self.settings() };
        let check = check.shrink(Duration::ZERO);
        let (serial, explored, learned) = self.explore(&scene, &check, Format::Failure)?;
        let (histories, stuck, nodes) = scene.counts();
        let shares = explored.as_ref().is_some_and(|explored| explored.shares);
        let outcome = explored.map(|explored| Box::new(explored.outcome));
        Ok(Checked { serial, outcome, histories, stuck, nodes, shares, learned })
    }

    /// Both phases. No exploration if the prefix of the scenario blocks.
    pub(super) fn explore(
        &self,
        scene: &Arc<Scene<H>>,
        check: &Check,
        format: Format,
    ) -> Result<(u64, Option<Explored>, Learned), Refusal> {
        let learned = Mutex::new(self.learned.clone());
        let text = scene.text();
        let context = Context { scenario: Some(&text), learned: Some(&learned) };
        let serial = serial::explore(scene, check, &context)?;
        if scene.is_prefix_blocked() {
            let learned = learned.into_inner().unwrap_or_else(PoisonError::into_inner);
            return Ok((serial.executions, None, learned));
        }
        self.refuse_ambiguous(scene)?;
        let body = || concurrent::execute(scene);
        let explored = check.try_explore_as_set(&body, format, self.place, &context)?;
        if let (Some(serial), Verdict::Ok) = (&serial.failure, explored.outcome.verdict) {
            // Concurrent executions include the serial ones, so this shows something uncommon: a
            // limit, or code that knows on which thread it runs.
            return Err(Refusal::Test(format!("a serial execution of {text} fails:\n\n{serial}")));
        }
        let learned = learned.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((serial.executions, Some(explored), learned))
    }

    /// Refuses a structure whose serial calls have several results, unless the operation is
    /// declared so.
    fn refuse_ambiguous(&self, scene: &Scene<H>) -> Result<(), Refusal> {
        let is_relaxed = matches!(self.subject.criterion, Criterion::OutOfOrder(_));
        let may = |call: usize| {
            let instance = &self.subject.instances[scene.calls[call].instance];
            is_relaxed || self.subject.operations[instance.operation].is_nondeterministic
        };
        let tree: SerialTree = scene.tree();
        let Some((path, call, outcomes)) = tree.ambiguous(may) else { return Ok(()) };
        let text = |call: usize, outcome: CallOutcome| match outcome {
            CallOutcome::Returned(number) => scene.result(call, number),
            CallOutcome::Blocks => "no result at all".to_owned(),
        };
        let before: Vec<String> = path
            .iter()
            .map(|&(call, of)| format!("{} = {}", scene.calls[call].label, text(call, of)))
            .collect();
        let before = if before.is_empty() {
            "at first".to_owned()
        } else {
            format!("after {}", before.join(", "))
        };
        let [one, other] = outcomes.map(|of| text(call, of));
        Err(Refusal::Test(format!(
            "the specification is not deterministic: {before}, {} returns {one} and {other}; \
             declare the operation with `sometimes`, or give a `model`",
            scene.calls[call].label
        )))
    }

    /// Adds a scenario to the coverage. Returns whether it passed.
    fn count(&mut self, checked: &Checked) -> bool {
        let outcome = &mut self.outcome;
        outcome.serial_executions += checked.serial;
        let Some(search) = &checked.outcome else {
            outcome.words.blocked_prefixes += 1;
            return true;
        };
        let executions = search.executions().unwrap_or(0);
        outcome.scenarios += 1;
        outcome.executions += executions;
        outcome.histories += checked.histories;
        outcome.stuck_histories += checked.stuck;
        outcome.witness_nodes += checked.nodes;
        if let Some(shape) = outcome.shapes.last_mut() {
            shape.scenarios += 1;
            shape.executions += executions;
            shape.histories += checked.histories;
        }
        self.shares |= checked.shares;
        if search.verdict != Verdict::Ok {
            return false;
        }
        let known: BTreeSet<String> = outcome.words.assumptions.drain(..).collect();
        let all: BTreeSet<String> = known.into_iter().chain(search.assumptions.clone()).collect();
        outcome.words.assumptions = all.into_iter().collect();
        if search.complete {
            outcome.exhaustive += 1;
        } else if search.strategy.is_sample() {
            outcome.words.sample = Some(search.guarantee());
        } else if let Some(bound) = search.bounds.last() {
            let words = &mut outcome.words;
            words.bound = Some(words.bound.map_or(bound.bound, |least| least.min(bound.bound)));
        }
        true
    }

    /// A scenario has not passed: it fails, or a limit was reached.
    fn stop(
        &mut self,
        checked: Checked,
        scenario: &Scenario,
        prefix: &[usize],
    ) -> Result<(), Refusal> {
        if checked.outcome.is_some_and(|search| search.findings.is_empty()) {
            let text = self.scene(scenario, prefix).text();
            let is_replay = self.subject.check.replay.is_some();
            let why =
                if is_replay { "nothing fails in this schedule" } else { "a limit was reached" };
            self.outcome.stopped = Some(format!("{why} in {text}"));
            return Ok(());
        }
        let failed = self.report(scenario, prefix)?;
        self.outcome.failed = Some(failed);
        Ok(())
    }

    fn finish(self) -> Result<LinearizeOutcome, Refusal> {
        let check = &self.subject.check;
        if self.outcome.is_ok() && !self.shares && !check.allow_uncontrolled {
            return Err(Refusal::Test(
                "the operations share nothing that preempt controls, so that every execution is \
                 serial: build the structure from the types of `preempt` instead of std's. If this \
                 is intended, `Check::allow_uncontrolled` accepts it"
                    .to_owned(),
            ));
        }
        Ok(self.outcome)
    }
}
