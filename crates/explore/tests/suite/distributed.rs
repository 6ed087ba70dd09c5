//! A search in several processes, which are threads here, compared with one worker: the same
//! outcome at every depth, so the same counts in every level.

mod checkpoints;

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::toy::{Pcg, Toy, grid, philosophers, random};
use preempt_explore::exchange::{Exchange, Form, Inbox, Lost, Place, Round};
use preempt_explore::{
    Limit, Limits, Observer, Outcome, Plan, Progress, Search, Silent, StoreKind,
};
use preempt_system::Verdict;

/// Connects the threads of a test. Parcels arrive late and out of order.
struct Network {
    processes: usize,
    form: Form,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    random: Pcg,
    /// Parcels in flight to each process.
    parcels: Vec<VecDeque<Vec<u8>>>,
    /// The number of levels that each process has ended.
    ended: Vec<u64>,
    /// The data that each process has contributed to each gathering.
    gathered: Vec<Vec<Vec<u8>>>,
    /// The gathering before which a process wants to stop.
    stop: Option<usize>,
    /// Whether a process has left.
    lost: bool,
}

impl Network {
    fn new(processes: usize, form: Form, seed: u64) -> Network {
        let state = State {
            random: Pcg::new(seed),
            parcels: vec![VecDeque::new(); processes],
            ended: vec![0; processes],
            gathered: vec![Vec::new(); processes],
            stop: None,
            lost: false,
        };
        Network { processes, form, state: Mutex::new(state), changed: Condvar::new() }
    }
}

struct Process<'n> {
    network: &'n Network,
    process: usize,
    /// The number of the gathering at which the process leaves without notice.
    dies_at: Option<usize>,
}

/// Other processes must not wait for a process that has panicked.
impl Drop for Process<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.network.state.lock().expect("mutex poisoned").lost = true;
            self.network.changed.notify_all();
        }
    }
}

impl Exchange for Process<'_> {
    fn place(&self) -> Place {
        let Network { processes, form, .. } = *self.network;
        Place { process: self.process, processes, form }
    }

    fn send(&self, to: usize, parcel: Vec<u8>) {
        assert_ne!(to, self.process, "a process keeps its own states");
        let mut state = self.network.state.lock().expect("mutex poisoned");
        let waiting = state.parcels[to].len() as u64;
        let at = state.random.below(waiting + 1) as usize;
        state.parcels[to].insert(at, parcel);
    }

    fn stop(&self) {
        let mut state = self.network.state.lock().expect("mutex poisoned");
        state.stop = Some(state.gathered[self.process].len());
        self.network.changed.notify_all();
    }

    fn end_round(&self, round: Round, inbox: &mut dyn Inbox) -> Result<(), Lost> {
        let mut state = self.network.state.lock().expect("mutex poisoned");
        if round == Round::Last {
            state.ended[self.process] += 1;
            self.network.changed.notify_all();
        }
        loop {
            if state.lost {
                return Err(Lost);
            }
            if state.stop == Some(state.gathered[self.process].len()) {
                inbox.stop();
            }
            let late = round == Round::More && state.random.below(3) == 0;
            if !late && let Some(parcel) = state.parcels[self.process].pop_front() {
                drop(state);
                inbox.receive(&parcel);
                state = self.network.state.lock().expect("mutex poisoned");
                continue;
            }
            let ended = state.ended[self.process];
            if round == Round::More || state.ended.iter().all(|&other| other >= ended) {
                return Ok(());
            }
            let pause = Duration::from_millis(20);
            let waited = self.network.changed.wait_timeout(state, pause).expect("mutex poisoned");
            state = waited.0;
            if waited.1.timed_out() {
                drop(state);
                inbox.idle();
                state = self.network.state.lock().expect("mutex poisoned");
            }
        }
    }

    fn gather(&self, data: Vec<u8>) -> Result<Vec<Vec<u8>>, Lost> {
        let mut state = self.network.state.lock().expect("mutex poisoned");
        let number = state.gathered[self.process].len();
        if self.dies_at == Some(number) {
            state.lost = true;
        }
        state.gathered[self.process].push(data);
        self.network.changed.notify_all();
        loop {
            if state.lost {
                self.network.changed.notify_all();
                return Err(Lost);
            }
            if state.gathered.iter().all(|own| own.len() > number) {
                return Ok(state.gathered.iter().map(|own| own[number].clone()).collect());
            }
            state = self.network.changed.wait(state).expect("mutex poisoned");
        }
    }
}

/// The outcome of each process.
fn outcomes(
    plan: Plan,
    toy: &Toy,
    network: &Network,
    observer: &dyn Observer,
    dies: Option<(usize, usize)>,
) -> Vec<Outcome> {
    run_all(&plan.build().expect("the plan is valid"), toy, network, observer, dies)
}

fn run_all(
    search: &Search,
    toy: &Toy,
    network: &Network,
    observer: &dyn Observer,
    dies: Option<(usize, usize)>,
) -> Vec<Outcome> {
    search.distributes().expect("the search can be distributed");
    thread::scope(|scope| {
        let run = |process: usize| {
            let dies_at = dies.filter(|&(dies, _)| dies == process).map(|(_, at)| at);
            let exchange = Process { network, process, dies_at };
            search.run_distributed(toy.clone(), observer, &exchange).0
        };
        let processes: Vec<_> =
            (0..network.processes).map(|process| scope.spawn(move || run(process))).collect();
        processes
            .into_iter()
            .map(|process| process.join().expect("the process does not panic"))
            .collect()
    })
}

/// The parts of an outcome that must not depend on the number of processes.
fn essence(outcome: &Outcome) -> impl PartialEq + std::fmt::Debug + use<> {
    let mut coverage = outcome.coverage;
    coverage.frontier = 0;
    let findings: Vec<_> = outcome
        .findings
        .iter()
        .map(|finding| (finding.failure.clone(), finding.schedule.clone(), finding.preemptions))
        .collect();
    let ends = (outcome.verdict, outcome.complete, outcome.stopped, outcome.at_finding);
    (ends, coverage, findings, outcome.guarantee())
}

fn agrees(plan: Plan, toy: &Toy, processes: usize, seed: u64) {
    let plan = Plan { shrink: None, ..plan };
    let alone = plan.jobs(1).build().expect("the plan is valid").run(toy.clone(), &Silent).0;
    let form = if seed.is_multiple_of(2) { Form::Raw } else { Form::Sorted };
    let network = Network::new(processes, form, seed);
    for (process, outcome) in outcomes(plan, toy, &network, &Silent, None).iter().enumerate() {
        assert_eq!(
            essence(outcome),
            essence(&alone),
            "process {process} of {processes}, seed {seed}, {toy:?}"
        );
    }
}

#[test]
fn random_programs_have_one_outcome_for_any_number_of_processes() {
    for seed in 0..120 {
        let toy = random(seed).words([1, 2, 3, 4, 6][seed as usize % 5]);
        let processes = 1 + seed as usize % 4;
        agrees(Plan::new(), &toy, processes, seed);
        agrees(Plan::new().keep_going(), &toy, processes, seed);
        agrees(Plan::new().jobs(2), &toy, 1 + (processes + 1) % 4, seed);
        let sorted = Plan::new().store(StoreKind::Sorted);
        agrees(sorted, &toy, processes, seed);
        agrees(sorted.keep_going().jobs(2), &toy, processes, seed);
    }
}

#[test]
fn every_level_has_the_same_counts() {
    for (toy, depths) in [(grid(3, 6), 20), (philosophers(4), 14), (random(7), 12)] {
        for depth in 0..depths {
            let limits = Limits { depth: Some(depth), ..Limits::default() };
            for processes in [1, 2, 3, 4] {
                let plan = Plan::new().keep_going().limits(limits);
                agrees(plan, &toy, processes, depth.into());
                agrees(plan.store(StoreKind::Sorted), &toy, processes, depth.into());
            }
        }
    }
}

#[test]
fn stores_of_whole_states_and_fingerprints_are_distributed() {
    for (seed, store) in
        [StoreKind::Exact, StoreKind::Tree, StoreKind::Fingerprint].iter().enumerate()
    {
        for words in [1, 3, 5] {
            let toy = philosophers(5).words(words);
            agrees(Plan::new().store(*store), &toy, 3, seed as u64);
        }
    }
}

#[test]
fn large_levels_are_cut_into_rounds_and_shared_by_workers() {
    for jobs in [1, 3] {
        agrees(Plan::new().jobs(jobs), &grid(5, 14), 2, 1);
        agrees(Plan::new().jobs(jobs).store(StoreKind::Sorted), &grid(4, 20), 2, 1);
    }
}

#[test]
fn sorted_runs_of_several_processes_continue_in_files() {
    let folder = std::env::temp_dir().join(format!("preempt-{}-runs", std::process::id()));
    std::fs::create_dir_all(&folder).expect("there is a folder for temporary files");
    for (toy, plan, memory) in [
        (grid(4, 20), Plan::new(), 200_000),
        (philosophers(10), Plan::new(), 120_000),
        (philosophers(8).words(3), Plan::new().keep_going(), 250_000),
    ] {
        let plan = Plan { shrink: None, ..plan };
        let alone = plan.build().expect("the plan is valid").run(toy.clone(), &Silent).0;
        let limits = Limits { memory: Some(memory), ..Limits::default() };
        let search = plan.store(StoreKind::Sorted).limits(limits).build().expect("valid");
        let search = search.spill_to(folder.clone());
        let network = Network::new(3, Form::Sorted, 9);
        for outcome in run_all(&search, &toy, &network, &Silent, None) {
            assert_eq!(essence(&outcome), essence(&alone), "{toy:?}");
            assert!(outcome.spilled_bytes > 0, "a part of the runs is in files");
        }
    }
    std::fs::remove_dir_all(folder).expect("it is ours");
}

#[test]
fn a_directory_that_cannot_be_written_is_a_limit_of_all_processes() {
    let plan = Plan::new().store(StoreKind::Sorted);
    let limits = Limits { memory: Some(200_000), ..Limits::default() };
    let search = plan.limits(limits).build().expect("valid");
    let search = search.spill_to("/nonexistent/folder".into());
    let network = Network::new(2, Form::Raw, 9);
    for outcome in run_all(&search, &grid(4, 20), &network, &Silent, None) {
        assert_eq!(outcome.verdict, Verdict::Incomplete);
        assert_eq!(outcome.stopped, Some(Limit::Disk));
    }
}

#[test]
fn a_state_that_needs_more_room_restarts_all_processes() {
    let toy = Toy { bits: 2, ..grid(3, 9) };
    for processes in 1..=4 {
        agrees(Plan::new(), &toy, processes, 5);
        agrees(Plan::new().store(StoreKind::Sorted), &toy, processes, 5);
    }
}

#[test]
fn a_lost_process_ends_the_others_as_incomplete() {
    let toy = grid(4, 6);
    for (at, store) in
        (0..8).flat_map(|at| [StoreKind::Exact, StoreKind::Sorted].map(|store| (at, store)))
    {
        let (network, plan) = (Network::new(3, Form::Raw, at as u64), Plan::new().store(store));
        for outcome in outcomes(plan, &toy, &network, &Silent, Some((1, at))) {
            assert_eq!(outcome.verdict, Verdict::Incomplete);
            assert_eq!(outcome.stopped, Some(Limit::Process));
            assert!(!outcome.complete);
            // The levels before the loss count: `at` gatherings complete `at - 1` levels.
            assert_eq!(outcome.coverage.settled, (at as u32).checked_sub(2), "{at}");
        }
    }
}

/// Interrupts the search of one process after some polls.
struct Interrupting(Mutex<u32>);

impl Observer for Interrupting {
    fn progress(&self, _: &Progress) {}

    fn interrupted(&self) -> bool {
        let mut polls = self.0.lock().expect("mutex poisoned");
        *polls += 1;
        *polls == 9
    }
}

#[test]
fn an_interrupt_of_one_process_ends_all_of_them() {
    let network = Network::new(3, Form::Raw, 3);
    let observer = Interrupting(Mutex::new(0));
    let outcomes = outcomes(Plan::new(), &grid(6, 14), &network, &observer, None);
    for outcome in &outcomes {
        assert_eq!(outcome.stopped, Some(Limit::Interrupt));
        assert_eq!(outcome.coverage.states, outcomes[0].coverage.states);
    }
}

#[test]
fn a_limit_of_one_process_ends_all_of_them() {
    let limits = Limits { states: Some(1_000), ..Limits::default() };
    let network = Network::new(2, Form::Sorted, 3);
    for outcome in outcomes(Plan::new().limits(limits), &grid(5, 8), &network, &Silent, None) {
        assert_eq!((outcome.verdict, outcome.stopped), (Verdict::Incomplete, Some(Limit::States)));
    }
}

#[test]
fn searches_that_cannot_be_distributed_are_refused_by_name() {
    use preempt_explore::{Order, Reduction};
    for (plan, name) in [
        (Plan::new().order(Order::DepthFirst), "Order::DepthFirst"),
        (Plan::new().order(Order::Executions), "Order::Executions"),
        (Plan::new().reduction(Reduction::Cartesian { reading: Default::default() }), "Cartesian"),
        (Plan::new().store(StoreKind::Bitstate { bytes: 1 << 20 }), "StoreKind::Bitstate"),
    ] {
        let refusal = plan.build().expect("the plan is valid").distributes().unwrap_err();
        assert!(refusal.to_string().contains(name), "{refusal}");
    }
}
