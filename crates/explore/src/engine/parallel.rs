//! Workers as threads of the operating system.

use std::panic::resume_unwind;
use std::thread;

use crate::codec::{Damaged, Save, SaveInPlace};
use crate::engine::control::SearchControl;
#[cfg(feature = "mutants")]
use crate::engine::mutants;
use crate::engine::queue::{Items, Queue};

/// Gives each worker its input: `first` runs on the current thread and need not be sent to another
/// one, `other` on one thread for each of the other inputs. Returns the results in the order of the
/// inputs.
///
/// A worker that leaves, even by a panic, calls `leave`, because other workers may be waiting for
/// it. A panic is propagated when all workers have left.
pub(crate) fn run<I: Send, R: Send>(
    inputs: Vec<I>,
    leave: impl Fn() + Sync,
    first: impl FnOnce(I) -> R,
    other: impl Fn(usize, I) -> R + Sync,
) -> Vec<R> {
    let other = |number: usize, input: I| {
        let _leaving = Leaving(&leave);
        other(number, input)
    };
    // Errors are seeded per thread; the other workers inherit the one of this thread.
    #[cfg(feature = "mutants")]
    let other = {
        let error = mutants::seeded_error();
        move |number: usize, input: I| mutants::with(error, || other(number, input))
    };
    thread::scope(|scope| {
        let other = &other;
        let mut inputs = inputs.into_iter().enumerate();
        let (_, input) = inputs.next().expect("a search has a worker");
        let others: Vec<_> =
            inputs.map(|(number, input)| scope.spawn(move || other(number, input))).collect();
        let mut results = {
            let _leaving = Leaving(&leave);
            vec![first(input)]
        };
        results.extend(
            others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic))),
        );
        results
    })
}

struct Leaving<'l>(&'l dyn Fn());

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// The remaining work of one worker of a search over states, whose queue contains `Q`.
pub(crate) trait Paused<Q>: Save + Send {
    fn is_done(&self) -> bool;

    /// Whether it belongs to states of `words` words. Checked for what a checkpoint contains.
    fn fits(&self, words: usize) -> bool;

    /// The same for the contents of the queue.
    fn fit(items: &Q, words: usize) -> bool;
}

/// Runs the workers of a search over states until nothing is left or the search is stopped, and
/// writes a checkpoint whenever they pause. Starts from a checkpoint if there is one, else with
/// what `begin` returns. `None` if the search is over before it has started.
///
/// `shared` is everything that the workers share, including the queue; a state has `words` words.
pub(crate) fn run_workers<T: Paused<Q>, Q: Items + Send>(
    control: &SearchControl,
    (shared, queue): (&impl SaveInPlace, &Queue<Q>),
    words: usize,
    begin: impl FnOnce() -> Option<Vec<T>>,
    work: impl Fn(T) -> T + Sync,
) -> Option<Vec<T>> {
    let resumed = control.resume(|from| {
        shared.load_contents(from)?;
        let remaining: Vec<T> = from.get()?;
        let fits = remaining.len() == queue.workers()
            && remaining.iter().all(|worker| worker.fits(words))
            && queue.with(|items| T::fit(items, words));
        if fits { Ok(remaining) } else { Err(Damaged) }
    });
    let mut remaining = match resumed {
        Some(remaining) => remaining,
        None if control.stopped() => return None,
        None => begin()?,
    };
    while !control.stopped() {
        queue.open();
        remaining = run(remaining, || queue.close(), &work, |_, worker| work(worker));
        let is_done = queue.is_empty() && remaining.iter().all(T::is_done);
        if control.stopped() || is_done || !control.is_pausing() {
            break;
        }
        control.pause(|to| {
            shared.save_contents(to);
            to.put(&remaining);
        });
    }
    Some(remaining)
}
