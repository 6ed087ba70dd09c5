//! async-executor 1.14.0, fixed in 1.14.1 (#164).
//!
//! A waker that fires while the executor is dropped has already marked its task as scheduled. The
//! executor finds nothing to drain and frees its state, and the waker then pushes into it.

#[path = "../../common/mod.rs"]
#[allow(dead_code, reason = "each case uses a part of it")]
mod common;

use std::thread::spawn;

use async_executor::Executor;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

fn scenario() {
    let slot: Arc<Mutex<Option<Waker>>> = Arc::default();
    let executor: Executor<'static> = Executor::new();
    let store = slot.clone();
    let task = poll_fn(move |context| {
        *store.lock().unwrap() = Some(context.waker().clone());
        Poll::<()>::Pending
    });
    executor.spawn(task).detach();
    while executor.try_tick() {}
    let waker = slot.lock().unwrap().take().unwrap();
    let waking = spawn(move || waker.wake());
    let dropping = spawn(move || drop(executor));
    waking.join().unwrap();
    dropping.join().unwrap();
}

#[test]
fn bug() {
    scenario();
}

#[test]
#[ignore]
fn stress() {
    common::stress(scenario);
}
