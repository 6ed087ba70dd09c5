//! shuttle's functions, so that `use preempt as shuttle` is a port. The numbers are in shuttle's
//! order.

pub mod rand;
mod runner;
pub mod scheduler;

use std::path::Path;

use preempt_explore::Order;

use crate::check::Check;

pub use self::runner::{Config, FailurePersistence, MaxSteps, PortfolioRunner, Runner};

/// So many random schedules.
#[track_caller]
pub fn check_random<F: Fn() + Send + Sync + 'static>(f: F, iterations: usize) {
    check_random_with_seed(f, 0, iterations);
}

/// So many random schedules from a seed.
#[track_caller]
pub fn check_random_with_seed<F: Fn() + Send + Sync + 'static>(f: F, seed: u64, iterations: usize) {
    Check::new().order(Order::Random).seed(seed).runs(iterations as u64).check(f);
}

/// So many schedules with random priorities: finds errors of this depth with a known probability.
#[track_caller]
pub fn check_pct<F: Fn() + Send + Sync + 'static>(f: F, iterations: usize, depth: usize) {
    let depth = u32::try_from(depth).unwrap_or(u32::MAX);
    Check::new().order(Order::Pct { depth }).runs(iterations as u64).check(f);
}

/// So many random schedules, each interleaving as likely as any other where nothing blocks.
#[track_caller]
pub fn check_urw<F: Fn() + Send + Sync + 'static>(f: F, iterations: usize) {
    Check::new().order(Order::Urw).runs(iterations as u64).check(f);
}

/// All schedules, or so many of them. shuttle's are not reduced; here every happens-before graph is
/// explored once.
#[track_caller]
pub fn check_dfs<F: Fn() + Send + Sync + 'static>(f: F, max_iterations: Option<usize>) {
    let check = Check::new().unbounded();
    match max_iterations {
        Some(most) => check.executions(most as u64).allow_incomplete().check(f),
        None => check.check(f),
    }
}

/// Schedules of which each is taken twice: a test that depends on anything else is found out. All
/// checks find that; this one looks at the first `max_iterations` schedules in the order of a
/// depth-first search, which goes back and forth most.
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

/// One schedule again: that of a token from a report.
#[track_caller]
pub fn replay<F: Fn() + Send + Sync + 'static>(f: F, schedule: &str) {
    Check::new().replay(schedule).check(f);
}

/// One schedule again: that of a token in a file, as [`FailurePersistence::File`] leaves it.
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
