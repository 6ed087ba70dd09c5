//! Phase 2: the threads of a scenario make their calls concurrently, and the history of every
//! execution is judged.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use preempt_linearize::History;
use preempt_replay::Returns;
use preempt_system::Failure;

use super::operation::{Fresh, Run};
use super::scene::Scene;
use super::subject::perform;
use crate::runtime::harness::{self, Harness, Progress};
use crate::runtime::{unobserved, with};
use crate::thread::Builder;

/// The names of the threads of a scenario.
pub(super) fn thread_name(thread: usize) -> String {
    char::from_u32('A' as u32 + thread as u32).unwrap_or('?').to_string()
}

/// The history of the execution that runs.
struct Recorder<H> {
    scene: Arc<Scene<H>>,
    history: Mutex<History>,
}

impl<H: 'static> Recorder<H> {
    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H: 'static> Harness for Recorder<H> {
    fn judge_stuck(&self, failure: Failure) -> Option<Failure> {
        let history = self.history().clone();
        // The constructor or the observer waits.
        if history.pending().next().is_none() {
            return Some(failure);
        }
        self.scene.judge(&history)
    }

    fn progress(&self) -> Progress {
        self.scene.subject.progress
    }

    fn judge_waiting(&self, thread: u8, how: &str) -> Failure {
        self.scene.no_progress(&self.history(), thread.into(), how)
    }
}

/// One execution of a scenario.
pub(super) fn execute<H: 'static>(scene: &Arc<Scene<H>>) {
    let threads = scene.programs.len();
    let recorder = unobserved(|| {
        let history = Mutex::new(History::new(&scene.scenario.thread_of_calls()));
        Arc::new(Recorder { scene: scene.clone(), history })
    });
    let first = with(|runtime| runtime.begin_harness(recorder.clone(), threads as u8));
    harness::name_thread("test");
    let handles = scene.subject.start(threads, &scene.prefix_runs());
    let joins: Vec<_> = handles
        .into_iter()
        .enumerate()
        .map(|(thread, handle)| {
            let returns = Returns { first, threads: threads as u8, caller: thread as u8 };
            // A thread that never ends is not dropped, and neither is what it owns. So it must not
            // own the recorder, and of the scenario only the code of its operations.
            let program = Program {
                returns,
                calls: scene.programs[thread]
                    .iter()
                    .map(|&call| {
                        let made = &scene.calls[call];
                        (call, made.run.clone(), made.may_panic, made.fresh)
                    })
                    .collect(),
                recorder: Arc::downgrade(&recorder),
            };
            let builder = Builder::new().name(thread_name(thread));
            builder.spawn_checked(move || program.run(handle))
        })
        .collect();
    let mut handles: Vec<H> = joins
        .into_iter()
        .map(|join| match join.join() {
            Ok(handle) => handle,
            // The panic of a thread has failed the check already.
            Err(payload) => std::panic::resume_unwind(payload),
        })
        .collect();
    if let (Some(observer), Some(handle)) = (&scene.subject.observer, handles.first_mut()) {
        let seen = observer(handle, Fresh([0; 2]));
        let failure = unobserved(|| {
            let number = scene.number(scene.calls.len(), seen);
            let mut history = recorder.history();
            history.observe(number);
            scene.judge(&history)
        });
        fail(failure);
    }
    drop(handles);
}

/// Makes the current step fail.
fn fail(failure: Option<Failure>) {
    if let Some(failure) = failure {
        with(|runtime| {
            runtime.verdict.failure.get_or_insert(Box::new(failure));
        });
    }
}

/// The calls of one thread.
struct Program<H> {
    returns: Returns,
    calls: Vec<(usize, Run<H>, bool, Fresh)>,
    recorder: std::sync::Weak<Recorder<H>>,
}

impl<H: 'static> Program<H> {
    fn run(self, mut handle: H) -> H {
        for (call, run, may_panic, fresh) in &self.calls {
            harness::call(self.returns, || self.with(|of| of.scene.calls[*call].label.clone()));
            self.with(|recorder| recorder.history().call(*call));
            let before = with(|runtime| runtime.done);
            let result = perform(run, *may_panic, &mut handle, *fresh);
            let steps = with(|runtime| runtime.done) - before;
            let number = unobserved(|| self.with(|of| of.scene.number(*call, result)));
            let label = || {
                self.with(|of| {
                    format!("{} = {}", of.scene.calls[*call].label, of.scene.result(*call, number))
                })
            };
            harness::returned(self.returns, label);
            self.with(|recorder| recorder.history().returned(*call, number));
            fail(self.judge(*call, steps));
        }
        handle
    }

    /// The failure that shows when an operation returns: it took more steps than a wait-free one
    /// may, or it was the last one, there is no observer, and nothing explains the history. Judged
    /// here, the trace of a failure ends with the last return.
    fn judge(&self, call: usize, steps: u32) -> Option<Failure> {
        self.with(|recorder| {
            let (scene, history) = (&recorder.scene, recorder.history());
            if scene.subject.most_steps.is_some_and(|most| steps > most) {
                return Some(scene.too_many_steps(&history, call, steps));
            }
            let is_last = history.complete().count_ones() as usize == history.calls();
            if is_last && scene.subject.observer.is_none() { scene.judge(&history) } else { None }
        })
    }

    /// The recorder, for as long as `f` runs: no reference to it stays on the stack of a thread
    /// that waits.
    fn with<T>(&self, f: impl FnOnce(&Recorder<H>) -> T) -> T {
        unobserved(|| f(&self.recorder.upgrade().expect("the recorder lives as its execution")))
    }
}
