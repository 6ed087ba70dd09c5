//! The recorder over a front end that is neither a model nor a closure: a system with a log of its
//! own, which has no packed states and can only be stepped forwards.

use preempt_explore::cursor::Cursor;
use preempt_report::recorder::{Numbering, Reason, Replayed, record};
use preempt_report::{Layout, Origin};
use preempt_system::{
    Access, Choice, Failure, FailureKind, Footprint, Location, LocationKind, Narrate, Narration,
    Pending, Schedule, Site, Status, StepNarration, System, ThreadId, Use, VariableValue,
};

/// Two processes. Each reads a counter, writes it back plus one, and ends; the second one is
/// started by the first step of the first. Schedules number them 5 and 3.
#[derive(Default)]
struct Process {
    counter: i64,
    copies: [i64; 2],
    done: [usize; 2],
    /// Whether each step has two alternatives, which do the same.
    chooses: bool,
    log: Vec<Choice>,
}

const COUNTER: Location = Location(2);
const NUMBERS: [usize; 2] = [5, 3];

impl Process {
    fn status(&self, slot: usize) -> Status {
        match (slot, self.done) {
            (1, [0, _]) => Status::Vacant,
            (slot, done) if done[slot] == 2 => Status::Ended,
            _ => Status::Enabled,
        }
    }

    fn narration(&self, slot: usize, done: usize, effects: Vec<String>) -> Narration {
        let (line, source) = [(7, "t = counter"), (8, "counter = t + 1")][done];
        let site = Some(Site { file: format!("part{slot}.c").into(), line, column: 1 });
        Narration { site, source: source.to_owned(), effects }
    }
}

impl System for Process {
    type Need = ();
    type State = ();

    fn threads(&self) -> usize {
        2
    }

    fn ask(&mut self, thread: ThreadId, pending: &mut Pending) -> Result<(), ()> {
        let slot = thread.index();
        pending.status = self.status(slot);
        pending.footprints.clear();
        if pending.status == Status::Enabled {
            let access = if self.done[slot] == 0 { Access::Read } else { Access::Write };
            let alternatives = 0..=u32::from(self.chooses);
            let footprint = |alternative| (alternative, Footprint::one(COUNTER, access));
            pending.footprints.extend(alternatives.map(footprint));
        }
        Ok(())
    }

    fn step(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, ()> {
        let slot = choice.thread.index();
        match self.done[slot] {
            0 => self.copies[slot] = self.counter,
            _ => self.counter = self.copies[slot] + 1,
        }
        self.done[slot] += 1;
        self.log.push(choice);
        let lost = self.done == [2, 2] && self.counter != 2;
        Ok(lost.then(|| {
            let (kind, message) = (FailureKind::Assertion, "an update is lost".to_owned());
            Box::new(Failure { kind, message, site: None })
        }))
    }

    fn rewind(&mut self, _: usize) {
        unreachable!("a recorder only steps forwards");
    }

    fn words(&self) -> Option<&[u64]> {
        None
    }

    fn location_kind(&self, _: Location) -> LocationKind {
        LocationKind::Synchronisation
    }

    fn location_name(&self, _: Location) -> String {
        "counter".to_owned()
    }

    fn initial(&self) {}

    fn advance(&mut self, (): &mut (), _: Choice) -> Result<(), ()> {
        unreachable!("a recorder asks about the execution only");
    }

    fn ask_at(&mut self, (): &(), _: ThreadId) -> Result<Pending, ()> {
        unreachable!("a recorder asks about the execution only");
    }
}

impl Narrate for Process {
    fn thread_name(&self, thread: ThreadId) -> String {
        format!("pid {}", NUMBERS[thread.index()])
    }

    fn number(&self, thread: ThreadId) -> ThreadId {
        ThreadId::new(NUMBERS[thread.index()])
    }

    fn numbered(&self, number: ThreadId) -> Option<ThreadId> {
        NUMBERS.iter().position(|&of| of == number.index()).map(ThreadId::new)
    }

    fn narrate(&mut self, choice: Choice) -> StepNarration {
        assert_eq!(self.log.last(), Some(&choice), "it is asked about the last step");
        let (slot, done) = (choice.thread.index(), self.done[choice.thread.index()] - 1);
        let narration = self.narration(slot, done, vec![format!("counter = {}", self.counter)]);
        let used = Use {
            location: COUNTER,
            name: "counter".to_owned(),
            value: Some(self.counter.to_string()),
            reads: done == 0,
            writes: done == 1,
        };
        let label = ["read", "write"][done].to_owned();
        StepNarration { narration, label, uses: vec![used], ..StepNarration::default() }
    }

    fn narrate_next(&mut self, choice: Choice) -> Narration {
        let slot = choice.thread.index();
        self.narration(slot, self.done[slot], Vec::new())
    }

    fn values(&mut self) -> Vec<VariableValue> {
        let shared = VariableValue {
            owner: None,
            name: "counter".to_owned(),
            value: self.counter.to_string(),
        };
        let own = (0..2).filter(|&slot| self.done[slot] > 0).map(|slot| VariableValue {
            owner: Some(ThreadId::new(slot)),
            name: "t".to_owned(),
            value: self.copies[slot].to_string(),
        });
        std::iter::once(shared).chain(own).collect()
    }
}

fn replayed(threads: &[usize]) -> (Replayed, Schedule) {
    let steps = threads.iter().map(|&number| Choice::of(ThreadId::new(number)));
    let schedule = Schedule::new(steps.collect());
    let mut cursor = Cursor::over(Process::default()).expect("this process never restarts");
    let mut replayed =
        record(&mut cursor, &schedule, Numbering::Portable).expect("this process never restarts");
    if let Some(failure) = replayed.failures.first().cloned() {
        replayed.explain(&mut cursor, failure);
    }
    (replayed, schedule)
}

#[test]
fn one_pass_records_everything_that_reports_show() {
    let (Replayed { trace, earlier, misfit, .. }, schedule) = replayed(&[5, 3, 3, 5]);
    assert_eq!((misfit, earlier), (None, Vec::new()));
    assert_eq!(trace.schedule(), schedule);
    assert_eq!(
        trace.steps.iter().map(|step| step.preempts).collect::<Vec<_>>(),
        [None, Some(ThreadId::new(0)), None, None],
        "the second process has ended when the first one continues"
    );
    assert_eq!(trace.arrows, [vec![], vec![0], vec![1], vec![2]], "a start is an arrow");
    let some = |variable: usize, value: &str| (variable, Some(value.to_owned()));
    let changes = [
        vec![some(0, "0")],
        vec![some(1, "0")],
        vec![some(2, "0")],
        vec![some(0, "1")],
        Vec::new(),
    ];
    assert_eq!(trace.values.changes, changes);
    let (variable, value) = ("counter".to_owned(), Some("0".to_owned()));
    let origin = Origin { variable, value, read: Some(0), written: None };
    assert_eq!(trace.origins, [origin], "the last step read nothing, the first one did");
    let text = "preempt schedule 1\nfailure assertion: an update is lost\n\
                5 pid 5: 1 | read\n3 pid 3: 2 | read\n5 pid 5: 1 | write\n";
    assert_eq!(trace.schedule_file().to_string(), text);
    let text = trace.to_text(&Layout::default());
    assert!(text.contains("part1.c:7") && text.contains("an update is lost"), "{text}");
}

/// After a failure a thread has no alternatives any more, so they must be counted before the step.
#[test]
fn a_step_with_a_choice_has_its_alternative_even_if_it_fails() {
    let alternatives = |chooses: bool| {
        let steps = [(5, 1), (3, 0), (3, 1), (5, 0)]
            .map(|(number, alternative)| (ThreadId::new(number), alternative * u32::from(chooses)));
        let steps = steps.map(|(thread, alternative)| Choice { thread, alternative });
        let process = Process { chooses, ..Process::default() };
        let mut cursor = Cursor::over(process).expect("this process never restarts");
        let schedule = Schedule::new(steps.to_vec());
        let replayed = record(&mut cursor, &schedule, Numbering::Portable)
            .expect("this process never restarts");
        assert_eq!(replayed.failures.len(), 1);
        replayed.trace.steps.iter().map(|step| step.alternative).collect::<Vec<_>>()
    };
    assert_eq!(alternatives(true), [1, 0, 1, 0].map(Some));
    assert_eq!(alternatives(false), [None; 4]);
}

#[test]
fn a_stopped_execution_shows_where_its_threads_are() {
    let (Replayed { trace, failures, .. }, _) = replayed(&[5]);
    assert_eq!(failures, []);
    let next: Vec<_> =
        trace.next.iter().map(|at| (trace.name(at.thread), at.narration.source.as_str())).collect();
    assert_eq!(next, [("pid 5", "counter = t + 1"), ("pid 3", "t = counter")]);
    assert_eq!(trace.variables, [("counter".to_owned(), "0".to_owned())]);
}

#[test]
fn a_step_that_cannot_be_taken_ends_the_trace() {
    let misfit = |threads: &[usize]| {
        let (replayed, _) = replayed(threads);
        let misfit = replayed.misfit.expect("a step cannot be taken");
        assert_eq!(replayed.trace.steps.len(), misfit.step);
        (misfit.step, misfit.to_string(), misfit.movers())
    };
    let ended = "one of `pid 3`, which has ended or was not started";
    assert_eq!(misfit(&[3]), (0, ended.to_owned(), "pid 5".to_owned()));
    assert_eq!(misfit(&[5, 5, 3, 3, 3]), (4, ended.to_owned(), "none".to_owned()));
    let unknown = "one of thread 9, which does not exist";
    assert_eq!(misfit(&[5, 9]), (1, unknown.to_owned(), "pid 5, pid 3".to_owned()));
    let second = Choice { thread: ThreadId::new(5), alternative: 1 };
    let mut cursor = Cursor::over(Process::default()).expect("this process never restarts");
    let schedule = Schedule::new(vec![second]);
    let replayed =
        record(&mut cursor, &schedule, Numbering::Portable).expect("this process never restarts");
    let misfit = replayed.misfit.expect("there is one alternative");
    assert!(matches!(misfit.reason, Reason::NoAlternative(_)));
    assert_eq!(
        misfit.to_string(),
        "one of `pid 5`, which has no alternative 1 at part0.c:7: t = counter"
    );
}
