//! A mirror of [`std::sync::Condvar`].
//!
//! A wait is two steps: unlocking the mutex and starting to wait, and, after a notification,
//! locking the mutex and continuing. `notify_one` chooses any of the waiting threads. A spurious
//! wakeup, if the check allows them, is possible whenever the thread has not been notified and the
//! mutex is free; [`EarlyWake::Spurious`] says why that is enough.
//!
//! A timeout may fire whenever the thread has not been notified, even while another thread holds
//! the mutex. Locking the mutex is then a third step: in between, other threads may make the
//! awaited condition true, although the wait returns that it timed out.

use std::fmt;
use std::panic::Location as Site;
use std::sync::LockResult;
use std::time::Duration;

use preempt_replay::{EarlyWake, OpKind};
use preempt_system::{Action, Kind};

use super::mutex::MutexGuard;
use crate::runtime::identity::Identity;
use crate::runtime::{act, describe, inside, op, point, with};

/// A mirror of [`std::sync::Condvar`].
pub struct Condvar {
    identity: Identity,
    real: std::sync::Condvar,
}

/// A mirror of [`std::sync::WaitTimeoutResult`]: whether a wait ended by its timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether the wait timed out.
    pub fn timed_out(&self) -> bool {
        self.0
    }
}

/// Whether a wait has a timeout.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Timeout {
    None,
    Some,
}

impl Condvar {
    /// A condition variable without waiting threads.
    #[track_caller]
    pub const fn new() -> Condvar {
        Condvar { identity: Identity::new(), real: std::sync::Condvar::new() }
    }

    /// Unlocks the mutex, waits for a notification and locks the mutex again.
    #[track_caller]
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        let site = Site::caller();
        if guard.is_inside() {
            return self.wait_inside(guard, Timeout::None, site).0;
        }
        let (mutex, real) = guard.into_parts();
        let real = real
            .map(|real| self.real.wait(real).unwrap_or_else(std::sync::PoisonError::into_inner));
        mutex.guard(real, site)
    }

    /// Waits until `condition` is false.
    #[track_caller]
    pub fn wait_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        mut condition: F,
    ) -> LockResult<MutexGuard<'a, T>>
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(guard.value_mut()) {
            guard = self.wait(guard)?;
        }
        Ok(guard)
    }

    /// Waits for at most `timeout`. Inside a check the timeout may fire at any time.
    #[track_caller]
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        time: Duration,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)> {
        let site = Site::caller();
        let (guard, over) = if guard.is_inside() {
            self.wait_inside(guard, Timeout::Some, site)
        } else {
            let (mutex, real) = guard.into_parts();
            let real = real.expect("a guard from outside of checks has std's guard");
            let (real, result) = self
                .real
                .wait_timeout(real, time)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            (mutex.guard(Some(real), site), WaitTimeoutResult(result.timed_out()))
        };
        match guard {
            Ok(guard) => Ok((guard, over)),
            Err(poisoned) => Err(std::sync::PoisonError::new((poisoned.into_inner(), over))),
        }
    }

    /// Waits until `condition` is false, for at most `timeout`.
    #[track_caller]
    pub fn wait_timeout_while<'a, T, F>(
        &self,
        mut guard: MutexGuard<'a, T>,
        time: Duration,
        mut condition: F,
    ) -> LockResult<(MutexGuard<'a, T>, WaitTimeoutResult)>
    where
        F: FnMut(&mut T) -> bool,
    {
        while condition(guard.value_mut()) {
            let (next, over) = self.wait_timeout(guard, time)?;
            guard = next;
            if over.timed_out() {
                let over = WaitTimeoutResult(condition(guard.value_mut()));
                return Ok((guard, over));
            }
        }
        Ok((guard, WaitTimeoutResult(false)))
    }

    /// Wakes one waiting thread, if there is any.
    #[track_caller]
    pub fn notify_one(&self) {
        if !self.identity.inside() {
            return self.real.notify_one();
        }
        act(
            &self.identity,
            Kind::Condvar,
            "condvar",
            Action::NotifyOne { nth: 0 },
            "notify_one",
            Site::caller(),
        );
        describe(|| "notify_one()".into());
    }

    /// Wakes all waiting threads.
    #[track_caller]
    pub fn notify_all(&self) {
        if !self.identity.inside() {
            return self.real.notify_all();
        }
        act(
            &self.identity,
            Kind::Condvar,
            "condvar",
            Action::NotifyAll,
            "notify_all",
            Site::caller(),
        );
        describe(|| "notify_all()".into());
    }

    fn wait_inside<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        timeout: Timeout,
        site: &'static Site<'static>,
    ) -> (LockResult<MutexGuard<'a, T>>, WaitTimeoutResult) {
        let (mutex, _) = guard.into_parts();
        if !inside() {
            return (mutex.guard(None, site), WaitTimeoutResult(true));
        }
        let object = self.identity.locate(Some(Kind::Condvar), "condvar", site);
        let other = mutex.locate(site);
        let verb = if timeout == Timeout::Some { "wait_timeout" } else { "wait" };
        point(op(OpKind::Wait, object, verb, site).and(other));
        describe(|| format!("{verb}() begins"));
        let early = match timeout {
            Timeout::Some => EarlyWake::Timeout,
            Timeout::None => with(|runtime| runtime.options.spurious_wakeups()),
        };
        point(op(OpKind::Wake { early }, object, verb, site).and(other));
        let early = with(|runtime| runtime.outcome.alternative == 1);
        let over = early && timeout == Timeout::Some;
        describe(|| {
            let why = if over {
                ": timeout"
            } else if early {
                ": spurious"
            } else {
                ""
            };
            format!("{verb}() ends{why}")
        });
        if over {
            point(op(OpKind::Object(Action::Lock), other, "lock", site));
            describe(|| "lock".into());
        }
        if early {
            with(|runtime| runtime.yields(site));
        }
        (mutex.guard(None, site), WaitTimeoutResult(over))
    }
}

impl Default for Condvar {
    #[track_caller]
    fn default() -> Condvar {
        Condvar::new()
    }
}

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}
