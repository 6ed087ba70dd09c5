//! No processes are left behind: those of the program die with the controller.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use preempt_explore::{Cache, Order, Plan};
use preempt_native::Native;

use crate::compile::{compiled, executable};

/// Set in the process that is killed.
const VICTIM: &str = "PREEMPT_NATIVE_TEST_VICTIM";

/// The number of processes whose executable is this file.
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

/// The children of fork servers: processes of an executable whose parents are processes of it too.
fn children(path: &std::path::Path) -> Vec<i32> {
    let all = std::fs::read_dir("/proc").expect("processes can be listed").flatten();
    let ids: Vec<i32> = all
        .filter(|entry| std::fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == path))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    let parent = |id: i32| -> Option<i32> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    ids.iter().copied().filter(|&id| parent(id).is_some_and(|p| ids.contains(&p))).collect()
}

/// Starts the test `name` again, as the process that is killed.
fn start_victim(name: &str) -> Child {
    Command::new(std::env::current_exe().expect("tests have a path"))
        .args(["--exact", name, "--nocapture"])
        .env(VICTIM, "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the test can be started again")
}

/// `preempt-bench robust` does the same with many more controllers and children.
#[test]
fn controllers_and_children_that_are_killed_at_random_moments_leave_nothing_behind() {
    const NAME: &str = "bounded_buffer";
    const MOST_ROUNDS: u32 = 5_000;
    let copy = |path: &std::path::Path| path.with_file_name("killed_at_random");
    let path = compiled(NAME).canonicalize().expect("the program was compiled");
    if std::env::var_os(VICTIM).is_some() {
        let executable = preempt_native::Executable::find(&copy(&path), Vec::new());
        let mut executable = executable.expect("the program can be explored");
        executable.max_turn = Duration::from_secs(60);
        loop {
            let order = Order::Icb { cache: Cache::None };
            let plan = Plan { order, bound: Some(2), keep_going: true, ..Plan::new() };
            let search = plan.build_for_program().expect("the plan is possible");
            search.run_program(Native::new(executable.clone()), &());
        }
    }
    std::fs::copy(&path, copy(&path)).expect("the folder can be written");
    let path = copy(&path);
    let name =
        "safety::controllers_and_children_that_are_killed_at_random_moments_leave_nothing_behind";
    let mut killed = 0;
    let mut moment = 1_u64;
    for _ in 0..3 {
        let mut controller = start_victim(name);
        assert!(await_processes(&path, |count| count >= 2), "a search was running");
        // Most children end before the signal arrives, so this continues until one was killed.
        let killed_before = killed;
        for round in 0.. {
            if round >= 10 && killed > killed_before {
                break;
            }
            assert!(round < MOST_ROUNDS, "no child was killed");
            moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            std::thread::sleep(Duration::from_micros((moment >> 33) % 20_000));
            for child in children(&path) {
                let mut kill = Command::new("kill");
                let kill = kill.args(["-9", &child.to_string()]).stderr(Stdio::null());
                killed += u32::from(kill.status().is_ok_and(|status| status.success()));
            }
        }
        controller.kill().expect("a child can be killed");
        controller.wait().expect("a child can be awaited");
        assert!(await_processes(&path, |count| count == 0), "processes are left");
    }
}

#[test]
fn a_controller_that_is_killed_leaves_no_process_behind() {
    if std::env::var_os(VICTIM).is_some() {
        // This process is killed; its search would take minutes.
        let mut spins = executable("spins");
        spins.max_turn = Duration::from_secs(600);
        let plan = Plan { order: Order::Icb { cache: Cache::Hb }, bound: Some(1), ..Plan::new() };
        let search = plan.build_for_program().expect("the plan is possible");
        search.run_program(Native::new(spins), &());
        return;
    }
    let path = compiled("spins").canonicalize().expect("the program was compiled");
    let name = "safety::a_controller_that_is_killed_leaves_no_process_behind";
    let mut controller = start_victim(name);
    let running = await_processes(&path, |count| count >= 2);
    controller.kill().expect("a child can be killed");
    controller.wait().expect("a child can be awaited");
    assert!(running, "the fork server and its child were running");
    assert!(await_processes(&path, |count| count == 0), "processes are left");
}
