//! The functions of shuttle, so that `use preempt as shuttle` ports a test. Parameters are in
//! shuttle's order.

pub mod rand;
mod runner;
pub mod scheduler;

use std::path::Path;

use preempt_explore::Order;

use crate::check::Check;

pub use self::runner::{Config, FailurePersistence, MaxSteps, PortfolioRunner, Runner};

/// Checks `f` under `iterations` random schedules.
#[track_caller]
pub fn check_random<F: Fn() + Send + Sync + 'static>(f: F, iterations: usize) {
    check_random_with_seed(f, 0, iterations);
}

/// Checks `f` under `iterations` random schedules, with a seed.
#[track_caller]
pub fn check_random_with_seed<F: Fn() + Send + Sync + 'static>(f: F, seed: u64, iterations: usize) {
    Check::new().order(Order::Random).seed(seed).runs(iterations as u64).check(f);
}

/// Checks `f` under `iterations` schedules with random priorities: finds errors of depth `depth`
/// with a known probability.
#[track_caller]
pub fn check_pct<F: Fn() + Send + Sync + 'static>(f: F, iterations: usize, depth: usize) {
    let depth = u32::try_from(depth).unwrap_or(u32::MAX);
    Check::new().order(Order::Pct { depth }).runs(iterations as u64).check(f);
}

/// Checks `f` under `iterations` random schedules; where nothing blocks, all interleavings are
/// equally likely.
#[track_caller]
pub fn check_urw<F: Fn() + Send + Sync + 'static>(f: F, iterations: usize) {
    Check::new().order(Order::Urw).runs(iterations as u64).check(f);
}

/// Checks `f` under all schedules, or at most `max_iterations`. Unlike in shuttle, every
/// happens-before graph is explored once.
#[track_caller]
pub fn check_dfs<F: Fn() + Send + Sync + 'static>(f: F, max_iterations: Option<usize>) {
    let check = Check::new().unbounded();
    match max_iterations {
        Some(most) => check.executions(most as u64).allow_incomplete().check(f),
        None => check.check(f),
    }
}

/// Finds tests that depend on anything but their schedule. All checks detect that; this one takes
/// the first `max_iterations` schedules in the order of a depth-first search, which repeats the
/// most steps.
#[track_caller]
pub fn check_uncontrolled_nondeterminism<F: Fn() + Send + Sync + 'static>(
    f: F,
    max_iterations: usize,
) {
    Check::new()
        .order(Order::Executions)
        .executions(max_iterations as u64)
        .allow_incomplete()
        .check(f);
}

/// Replays the schedule of a token from a report.
#[track_caller]
pub fn replay<F: Fn() + Send + Sync + 'static>(f: F, schedule: &str) {
    Check::new().replay(schedule).check(f);
}

/// Replays the schedule of a token in a file, as [`FailurePersistence::File`] writes it.
#[track_caller]
pub fn replay_from_file<F: Fn() + Send + Sync + 'static>(f: F, path: impl AsRef<Path>) {
    replay(f, &read(path.as_ref()));
}

/// The token in a file.
#[track_caller]
fn read(path: &Path) -> String {
    match std::fs::read_to_string(path) {
        Ok(token) => token.trim().to_owned(),
        Err(why) => panic!("the schedule in {} cannot be read: {why}", path.display()),
    }
}
