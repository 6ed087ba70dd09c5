//! Phase 1: all serial executions of a scenario, which are its specification.
//!
//! One thread makes all calls, and [`choose`] decides which thread's call is next, so that one
//! check takes all orders. A call that blocks ends its execution; the point of the tree before it
//! then has no result for it but that.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use preempt_linearize::{CallOutcome, Criterion, SerialTree};
use preempt_system::{Failure, Verdict};

use super::scene::Scene;
use super::subject::perform;
use crate::check::Context;
use crate::report::Format;
use crate::runtime::harness::Harness;
use crate::runtime::{unobserved, with};
use crate::{Check, Refusal, choose};

/// The result of the serial executions.
pub(super) struct Serial {
    /// The number of executions.
    pub(super) executions: u64,
    /// The report of a serial execution that fails by itself.
    pub(super) failure: Option<String>,
}

/// Takes all serial executions of a scenario.
pub(super) fn explore<H: 'static>(
    scene: &Arc<Scene<H>>,
    check: &Check,
    context: &Context<'_>,
) -> Result<Serial, Refusal> {
    let check = Check {
        // Only these decide what a single thread does.
        options: check.options,
        limits: check.limits,
        max_turn: check.max_turn,
        allow_uncontrolled: true,
        ..Check::new().bound(0).quiet().shrink(Duration::ZERO)
    };
    let body = || execute(scene);
    let explored = check.try_explore_as_set(&body, Format::Failure, scene.place, context)?;
    let executions = explored.outcome.executions().unwrap_or(0);
    let failure = (explored.outcome.verdict != Verdict::Ok).then_some(explored.text);
    if failure.is_some() {
        scene.give_up_serial();
    }
    Ok(Serial { executions, failure })
}

/// The point of the tree at which an execution is.
struct Position<H> {
    scene: Arc<Scene<H>>,
    /// The point, and the call that was made and has not returned.
    at: Mutex<(usize, Option<usize>)>,
}

impl<H: 'static> Harness for Position<H> {
    fn judge_stuck(&self, failure: Failure) -> Option<Failure> {
        let (at, call) = *self.at.lock().unwrap_or_else(PoisonError::into_inner);
        match call {
            Some(call) => {
                self.scene.extend(at, call, CallOutcome::Blocks);
                None
            }
            None if at == SerialTree::ROOT && !self.scene.prefix.is_empty() => {
                self.scene.block_prefix();
                None
            }
            // The constructor or the observer waits.
            None => Some(failure),
        }
    }
}

/// One serial execution.
fn execute<H: 'static>(scene: &Arc<Scene<H>>) {
    let at = Mutex::new((SerialTree::ROOT, None));
    let position = unobserved(|| Arc::new(Position { scene: scene.clone(), at }));
    with(|runtime| {
        runtime.begin_harness(position.clone(), 0);
        runtime.out_of_order = scene.subject.criterion.out_of_order();
    });
    let set = |at: usize, call: Option<usize>| {
        *position.at.lock().unwrap_or_else(PoisonError::into_inner) = (at, call);
    };
    let mut subject = Specification::new(scene);
    let mut done = vec![false; scene.calls.len()];
    let mut at = SerialTree::ROOT;
    loop {
        let open = open_calls(scene, &done);
        let Some(&call) = open.get(choose(open.len().max(1) as u32) as usize) else { break };
        set(at, Some(call));
        let result = subject.call(scene, call);
        let number = unobserved(|| scene.number(call, result));
        at = unobserved(|| scene.extend(at, call, CallOutcome::Returned(number)));
        set(at, None);
        done[call] = true;
    }
    if let Some(seen) = subject.observe(scene) {
        unobserved(|| {
            let number = scene.number(scene.calls.len(), seen);
            scene.observe(at, number);
        });
    }
}

/// The calls that can come next: the first of each thread that was not made. Quiescent consistency
/// does not keep the order of a thread's calls, so there it is any call.
fn open_calls<H>(scene: &Scene<H>, done: &[bool]) -> Vec<usize> {
    if scene.subject.criterion == Criterion::Quiescent {
        return (0..done.len()).filter(|&call| !done[call]).collect();
    }
    let next = |calls: &Vec<usize>| calls.iter().copied().find(|&call| !done[call]);
    scene.programs.iter().filter_map(next).collect()
}

/// What serial calls are made on.
enum Specification<H> {
    /// The structure itself.
    Structure(Vec<H>),
    Model(Box<dyn std::any::Any>),
}

impl<H: 'static> Specification<H> {
    fn new(scene: &Scene<H>) -> Specification<H> {
        match &scene.subject.model {
            Some(make) => {
                let mut model = make();
                for (run, fresh) in scene.prefix_models() {
                    drop(run(&mut *model, fresh));
                }
                Specification::Model(model)
            }
            None => Specification::Structure(
                scene.subject.start(scene.programs.len(), &scene.prefix_runs()),
            ),
        }
    }

    fn call(&mut self, scene: &Scene<H>, call: usize) -> Box<dyn super::operation::Value> {
        let made = &scene.calls[call];
        match self {
            Specification::Structure(handles) => {
                perform(&made.run, made.may_panic, &mut handles[made.thread], made.fresh)
            }
            Specification::Model(model) => {
                let run = scene.subject.instances[made.instance].model.as_ref();
                run.expect("with a model, every operation has one")(&mut **model, made.fresh)
            }
        }
    }

    fn observe(&mut self, scene: &Scene<H>) -> Option<Box<dyn super::operation::Value>> {
        let none = super::operation::Fresh([0; 2]);
        match self {
            Specification::Structure(handles) => {
                let observer = scene.subject.observer.as_ref()?;
                Some(observer(handles.first_mut()?, none))
            }
            Specification::Model(model) => {
                Some(scene.subject.model_observer.as_ref()?(&mut **model, none))
            }
        }
    }
}
