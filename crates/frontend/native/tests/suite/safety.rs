//! Nothing is left behind: processes of the program die with the controller.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use preempt_explore::{Cache, Order, Plan};
use preempt_native::Native;

use crate::compile::{compiled, executable};

/// Set in the process that is killed.
const VICTIM: &str = "PREEMPT_NATIVE_TEST_VICTIM";

/// The processes whose executable is this file.
fn processes(path: &std::path::Path) -> usize {
    let all = std::fs::read_dir("/proc").expect("processes can be listed");
    all.filter_map(|entry| std::fs::read_link(entry.ok()?.path().join("exe")).ok())
        .filter(|exe| exe == path)
        .count()
}

fn await_processes(path: &std::path::Path, wanted: impl Fn(usize) -> bool) -> bool {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(20) {
        if wanted(processes(path)) {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
fn a_controller_that_is_killed_leaves_no_process_behind() {
    if std::env::var_os(VICTIM).is_some() {
        // The process that is killed: it explores without end.
        let mut spins = executable("spins");
        spins.max_turn = Duration::from_secs(600);
        let plan = Plan { order: Order::Icb { cache: Cache::Hb }, bound: Some(1), ..Plan::new() };
        let search = plan.build_for_program().expect("the plan is possible");
        search.run_program(Native::new(spins), &());
        return;
    }
    let path = compiled("spins").canonicalize().expect("the program was compiled");
    let name = "safety::a_controller_that_is_killed_leaves_no_process_behind";
    let mut controller = Command::new(std::env::current_exe().expect("tests have a path"))
        .args(["--exact", name, "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the test can be started again");
    let running = await_processes(&path, |count| count >= 2);
    controller.kill().expect("a child can be killed");
    controller.wait().expect("a child can be awaited");
    assert!(running, "the fork server and its child were running");
    assert!(await_processes(&path, |count| count == 0), "processes are left");
}
