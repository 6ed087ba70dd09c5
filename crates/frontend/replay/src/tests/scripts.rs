//! Executions as text, and which steps the threads could take after them.
//!
//! A word of a script is a step: a thread, an operation with its objects in parentheses, and its
//! line. `1:lock(m)@3` is "thread 1 locks `m` in line 3". What may follow: `~7`, the thread has
//! yielded in line 7 before; `=2`, the step learns the value 2; `#1`, it takes alternative 1; `+2`,
//! it starts thread 2. A word that begins with `?` is the next operation of a thread, not taken.
//!
//! Every script is run three times: recorded, repeated, and as the states of its prefixes. All of
//! them must agree after every step.

use std::sync::atomic::Ordering::SeqCst;

use preempt_system::{Access, Action, Choice, Kind, Location, Pending, ThreadId, ThreadSet};

use super::site;
use crate::op::{EarlyWake, Op, OpKind, Outcome};
use crate::{Event, LoopRounds, Mode, NO_OBJECT, Names, Recording};

const THREADS: usize = 3;

/// The objects of scripts: atomics without a kind, and others.
const OBJECTS: [(char, Option<Kind>); 9] = [
    ('a', None),
    ('b', None),
    ('m', Some(Kind::Mutex)),
    ('n', Some(Kind::Mutex)),
    ('c', Some(Kind::Condvar)),
    ('l', Some(Kind::RwLock)),
    ('s', Some(Kind::Semaphore { initial: 1 })),
    ('r', Some(Kind::Barrier { parties: 2 })),
    ('d', Some(Kind::Condvar)),
];

/// The location of an object by its letter. The lives of the threads are `0`, `1` and `2`, their
/// tokens `x`, `y` and `z`.
fn location(letter: char) -> u32 {
    match letter {
        '0'..='2' => letter.to_digit(10).expect("a digit is a thread"),
        'x'..='z' => THREADS as u32 + (letter as u32 - 'x' as u32),
        _ => {
            let nth = OBJECTS.iter().position(|&(known, _)| known == letter);
            2 * THREADS as u32 + nth.expect("a letter of the table") as u32
        }
    }
}

fn letter(Location(wanted): Location) -> char {
    let all = "012xyz".chars().chain(OBJECTS.map(|(letter, _)| letter));
    all.clone().find(|&letter| location(letter) == wanted).expect("a known location")
}

fn kind(verb: &str) -> OpKind {
    use OpKind::Object;
    match verb {
        "load" => OpKind::Load(SeqCst),
        "store" => OpKind::Store(SeqCst),
        "update" => OpKind::Update(SeqCst),
        "cas" => OpKind::CompareExchange { success: SeqCst, failure: SeqCst },
        "weak" => OpKind::WeakCompareExchange { success: SeqCst, failure: SeqCst },
        "touch" => OpKind::Touch,
        "peek" => OpKind::Peek,
        "wait" => OpKind::Wait,
        "wake" => OpKind::Wake { early: EarlyWake::Never },
        "wake-spurious" => OpKind::Wake { early: EarlyWake::Spurious },
        "wake-timeout" => OpKind::Wake { early: EarlyWake::Timeout },
        "park" => OpKind::Park { early: EarlyWake::Never },
        "park-spurious" => OpKind::Park { early: EarlyWake::Spurious },
        "park-timeout" => OpKind::Park { early: EarlyWake::Timeout },
        "downgrade" => OpKind::Downgrade,
        "choose" => OpKind::Choose(3),
        "yield" => OpKind::Yield,
        "finish" => OpKind::Finish,
        "lock" => Object(Action::Lock),
        "try-lock" => Object(Action::TryLock),
        "unlock" => Object(Action::Unlock),
        "read-lock" => Object(Action::ReadLock),
        "read-unlock" => Object(Action::ReadUnlock),
        "write-lock" => Object(Action::WriteLock),
        "write-unlock" => Object(Action::WriteUnlock),
        "acquire" => Object(Action::Acquire),
        "release" => Object(Action::Release),
        "arrive" => Object(Action::Arrive),
        "leave" => Object(Action::Leave),
        "unpark" => Object(Action::Unpark),
        "join" => Object(Action::Join),
        "notify-one" => Object(Action::NotifyOne { nth: 0 }),
        "notify-all" => Object(Action::NotifyAll),
        _ => panic!("no operation: {verb}"),
    }
}

/// One word of a script.
#[derive(Clone)]
struct Word {
    taken: bool,
    thread: ThreadId,
    op: Op,
    alternative: u32,
    value: u64,
    starts: Option<ThreadId>,
}

fn number(word: &str, mark: char) -> Option<u64> {
    let (_, rest) = word.split_once(mark)?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
    Some(rest[..end].parse().expect("a number after the mark"))
}

fn parse(word: &str) -> Word {
    let (taken, rest) = (!word.starts_with('?'), word.trim_start_matches('?'));
    let (thread, rest) = rest.split_once(':').expect("a thread and an operation");
    let (verb, rest) = rest.split_once('(').expect("an operation and its objects");
    let (objects, rest) = rest.split_once(')').expect("an end of the objects");
    let mut objects = objects.chars().map(location);
    let line = number(rest, '@').expect("an operation has a line");
    let mut op = Op::new(kind(verb), objects.next().unwrap_or(NO_OBJECT), "op", site(line));
    op = objects.next().map_or(op, |other| op.and(other));
    op.yielded = number(rest, '~').map(site);
    Word {
        taken,
        thread: ThreadId::new(thread.parse().expect("the number of a thread")),
        op,
        alternative: number(rest, '#').unwrap_or(0) as u32,
        value: number(rest, '=').unwrap_or(0),
        starts: number(rest, '+').map(|slot| ThreadId::new(slot as usize)),
    }
}

/// The operation of a word.
pub(super) fn operation(word: &str) -> Op {
    parse(word).op
}

/// As text: the status, then for each alternative its number and its accesses.
fn show(pending: &Pending) -> String {
    let mut text = format!("{:?}", pending.status);
    for (alternative, footprint) in &pending.footprints {
        let access = |&(location, access): &(Location, Access)| {
            let verb = if access == Access::Write { 'W' } else { 'R' };
            format!("{verb}{}", letter(location))
        };
        let accesses: Vec<String> = footprint.accesses().iter().map(access).collect();
        text += &format!(" {alternative}:{}", accesses.join(","));
    }
    text
}

/// An execution that was run as its script says.
pub(super) struct Run {
    pub(super) recording: Recording<u64>,
    pub(super) path: Vec<Choice>,
}

impl Run {
    /// Runs a script. Threads that another one starts are not there in the beginning.
    pub(super) fn new(script: &str, loops: LoopRounds) -> Run {
        let words: Vec<Word> = script.split_whitespace().map(parse).collect();
        let mut names = Names::new(THREADS);
        (0..THREADS as u32 - 1)
            .for_each(|nth| assert_eq!(names.child(0, nth), Ok(nth as usize + 1)));
        for (nth, (letter, kind)) in OBJECTS.into_iter().enumerate() {
            let found = names.locate(nth as u64, kind, "object", site(99));
            assert_eq!(found, location(letter));
        }
        let mut run = Run { recording: Recording::new(names, loops), path: Vec::new() };
        let recorded = run.record(&words);
        run.repeat(&words, &recorded);
        run
    }

    /// Starts the execution: the threads that no other thread starts arrive at their first
    /// operations.
    fn begin(&mut self, words: &[Word]) {
        let is_started = |thread| words.iter().any(|word| word.starts == Some(thread));
        let first: Vec<ThreadId> =
            (0..THREADS).map(ThreadId::new).filter(|&thread| !is_started(thread)).collect();
        self.recording.begin();
        self.recording.start(first.iter().copied().filter(|thread| thread.index() > 0).collect());
        for thread in first {
            if let Some(op) = next(words, thread) {
                self.recording.arrive(thread, &op).expect("the same operation as before");
            }
        }
        self.recording.ready();
    }

    /// Records the execution. Returns what all threads could do after each step.
    fn record(&mut self, words: &[Word]) -> Vec<[String; THREADS]> {
        self.begin(words);
        let mut all = vec![self.ask()];
        for (at, word) in words.iter().enumerate().filter(|(_, word)| word.taken) {
            let choice = Choice { thread: word.thread, alternative: word.alternative };
            let changed =
                matches!(word.op.kind, OpKind::Store(_) | OpKind::Update(_) | OpKind::Touch);
            let starts = word.starts.map(|thread| {
                (thread, next(&words[at + 1..], thread).expect("a thread has a first operation"))
            });
            let event = Event {
                choice,
                outcome: Outcome {
                    changed,
                    progress: changed,
                    value: word.value,
                    ..Outcome::default()
                },
                next: next(&words[at + 1..], word.thread),
                started: starts.into_iter().collect(),
            };
            self.recording.feed(&event).expect("no step of a script is a misuse");
            self.path.push(choice);
            let (before, after) = (all.last().expect("the beginning"), self.ask());
            for other in self.recording.unaffected().without(word.thread).iter() {
                if let (Some(before), Some(after)) =
                    (before.get(other.index()), after.get(other.index()))
                {
                    assert_eq!(before, after, "{other:?} is unaffected by {choice:?}");
                }
            }
            all.push(after);
        }
        let mut state = self.recording.initial();
        for (at, &choice) in self.path.iter().enumerate() {
            self.recording.advance(&mut state, choice);
            let found = threads(|thread| show(&self.recording.ask_at(&state, thread)));
            assert_eq!(found, all[at + 1], "the state of a prefix of {} steps", at + 1);
        }
        all
    }

    /// Repeats the recorded execution.
    fn repeat(&mut self, words: &[Word], recorded: &[[String; THREADS]]) {
        self.recording.set_mode(Mode::Repeat);
        self.begin(words);
        assert_eq!(self.ask(), recorded[0]);
        let taken = words.iter().enumerate().filter(|(_, word)| word.taken);
        for (&choice, (number, (at, word))) in self.path.clone().iter().zip((1..).zip(taken)) {
            assert!(self.recording.can_take(choice), "step {number} can be taken again");
            let (step, reply) = self.recording.start_repeated_step(choice);
            reply.expect("no step of a script is a misuse");
            let taken = self.path[..number].iter().filter(|before| before.thread == word.thread);
            assert_eq!(step.count(), taken.count());
            if matches!(word.op.kind, OpKind::Store(_) | OpKind::Update(_) | OpKind::Touch) {
                self.recording.change(word.op.object);
            }
            for thread in [Some(word.thread), word.starts].into_iter().flatten() {
                if let Some(op) = next(&words[at + 1..], thread) {
                    self.recording.arrive(thread, &op).expect("the same operation as before");
                }
            }
            self.recording.end_repeated_step(step, word.starts.into_iter().collect());
            assert_eq!(self.ask(), recorded[number], "step {number} of the repeated execution");
        }
        self.recording.set_mode(Mode::Record);
        self.recording.rewind(&self.path);
        assert_eq!(Some(&self.ask()), recorded.last());
    }

    fn ask(&self) -> [String; THREADS] {
        threads(|thread| {
            let mut pending = Pending::vacant();
            self.recording.ask_into(thread, &mut pending);
            assert_eq!(pending, self.recording.ask(thread));
            show(&pending)
        })
    }
}

fn threads(text: impl Fn(ThreadId) -> String) -> [String; THREADS] {
    [0, 1, 2].map(|slot| text(ThreadId::new(slot)))
}

/// The next operation of a thread in these words.
fn next(words: &[Word], thread: ThreadId) -> Option<Op> {
    words.iter().find(|word| word.thread == thread).map(|word| word.op)
}

/// What `thread` could do after a script.
pub(super) fn after(script: &str, thread: usize) -> String {
    after_with(LoopRounds::default(), script, thread)
}

/// The same for loops that are known to end.
pub(super) fn after_with(loops: LoopRounds, script: &str, thread: usize) -> String {
    show(&Run::new(script, loops).recording.ask(ThreadId::new(thread)))
}

#[test]
fn an_operation_is_enabled_by_the_objects_and_touches_them() {
    let cases: &[(&str, usize, &str)] = &[
        ("?0:load(a)@1", 0, "Enabled 0:Ra"),
        ("?0:peek(a)@1", 0, "Enabled 0:Ra"),
        ("?0:store(a)@1", 0, "Enabled 0:Wa"),
        ("?0:update(a)@1", 0, "Enabled 0:Wa"),
        ("?0:cas(a)@1", 0, "Enabled 0:Wa"),
        ("?0:touch(a)@1", 0, "Enabled 0:Wa"),
        ("?0:weak(a)@1", 0, "Enabled 0:Wa 1:Wa"),
        ("?0:yield()@1", 0, "Enabled 0:"),
        ("?0:choose()@1", 0, "Enabled 0: 1: 2:"),
        ("?0:finish(0)@1", 0, "Enabled 0:W0"),
        ("", 0, "Ended"),
        // Threads.
        ("?0:join(1)@1 ?1:finish(1)@2", 0, "Blocked 0:R1"),
        ("?0:join(1)@1 1:finish(1)@2", 0, "Enabled 0:R1"),
        ("?0:load(a)@1 ?0:yield()@2 ?1:yield()@3", 2, "Ended"),
        ("0:load(a)@1+2 ?0:yield()@2 ?2:load(b)@3", 2, "Enabled 0:Rb"),
        ("?0:load(a)@1+2 ?2:load(b)@3", 2, "Vacant"),
        // Mutexes.
        ("1:lock(m)@1 ?0:lock(m)@2", 0, "Blocked 0:Rm"),
        ("1:lock(m)@1 1:unlock(m)@3 ?0:lock(m)@2", 0, "Enabled 0:Wm"),
        ("1:try-lock(m)@1 ?0:lock(m)@2", 0, "Blocked 0:Rm"),
        ("1:lock(m)@1 ?0:lock(n)@2", 0, "Enabled 0:Wn"),
        ("1:lock(m)@1 ?1:unlock(m)@2", 1, "Enabled 0:Wm"),
        // Reader-writer locks: a lock that is downgraded admits readers, and no writers.
        ("1:write-lock(l)@1 ?0:read-lock(l)@2", 0, "Blocked 0:Rl"),
        ("1:write-lock(l)@1 ?1:downgrade(l)@3", 1, "Enabled 0:Wl"),
        ("1:write-lock(l)@1 1:downgrade(l)@3 ?0:read-lock(l)@2", 0, "Enabled 0:Rl"),
        ("1:write-lock(l)@1 1:downgrade(l)@3 ?0:write-lock(l)@2", 0, "Blocked 0:Wl"),
        ("1:read-lock(l)@1 1:read-unlock(l)@3 ?0:write-lock(l)@2", 0, "Enabled 0:Wl"),
        ("1:write-lock(l)@1 1:write-unlock(l)@3 ?0:write-lock(l)@2", 0, "Enabled 0:Wl"),
        // Semaphores and barriers.
        ("1:acquire(s)@1 ?0:acquire(s)@2", 0, "Blocked 0:Rs"),
        ("1:acquire(s)@1 1:release(s)@3 ?0:acquire(s)@2", 0, "Enabled 0:Ws"),
        ("0:arrive(r)@1 ?0:leave(r)@2", 0, "Blocked 0:Rr"),
        ("0:arrive(r)@1 1:arrive(r)@1 ?0:leave(r)@2", 0, "Enabled 0:Rr"),
        // Condition variables: a wait unlocks the mutex, and waking locks it again.
        ("1:lock(m)@1 ?1:wait(cm)@2", 1, "Enabled 0:Wm,Wc"),
        ("1:lock(m)@1 1:wait(cm)@2 ?0:lock(m)@3", 0, "Enabled 0:Wm"),
        ("1:lock(m)@1 1:wait(cm)@2 ?1:wake(cm)@3", 1, "Blocked 0:Rc"),
        ("1:lock(m)@1 1:wait(cm)@2 ?1:wake-spurious(cm)@3", 1, "Enabled 1:Wm,Wc"),
        ("1:lock(m)@1 1:wait(cm)@2 ?1:wake-timeout(cm)@3", 1, "Enabled 1:Wc"),
        ("1:lock(m)@1 1:wait(cm)@2 0:notify-one(c)@9 ?1:wake(cm)@3", 1, "Enabled 0:Wm,Rc"),
        ("1:lock(m)@1 1:wait(cm)@2 0:notify-all(c)@9 ?1:wake-timeout(cm)@3", 1, "Enabled 0:Wm,Rc"),
        ("1:lock(m)@1 1:wait(cm)@2 0:lock(m)@8 0:notify-one(c)@9 ?1:wake(cm)@3", 1, "Blocked 0:Rm"),
        ("1:lock(m)@1 1:wait(cm)@2 0:lock(m)@8 ?1:wake-spurious(cm)@3", 1, "Blocked 0:Rm"),
        // A timeout does not need the mutex, but a thread that was notified does.
        ("1:lock(m)@1 1:wait(cm)@2 0:lock(m)@8 ?1:wake-timeout(cm)@3", 1, "Enabled 1:Wc"),
        (
            "1:lock(m)@1 1:wait(cm)@2 0:lock(m)@8 0:notify-one(c)@9 ?1:wake-timeout(cm)@3",
            1,
            "Blocked 0:Rm",
        ),
        (
            "1:lock(m)@1 1:wait(cm)@2 0:lock(m)@8 1:wake-timeout(cm)@3#1 ?1:lock(m)@3",
            1,
            "Blocked 0:Rm",
        ),
        ("?0:notify-one(c)@1", 0, "Enabled 0:Wc"),
        (
            "1:lock(m)@1 1:wait(cm)@2 2:lock(m)@1 2:wait(cm)@2 ?0:notify-one(c)@3",
            0,
            "Enabled 0:Wc 1:Wc",
        ),
        // The alternative of a notification is the thread that is woken.
        (
            "1:lock(m)@1 1:wait(cm)@2 2:lock(m)@1 2:wait(cm)@2 0:notify-one(c)@3#1 ?1:wake(cm)@4",
            1,
            "Blocked 0:Rc",
        ),
        (
            "1:lock(m)@1 1:wait(cm)@2 2:lock(m)@1 2:wait(cm)@2 0:notify-one(c)@3#1 ?2:wake(cm)@4",
            2,
            "Enabled 0:Wm,Rc",
        ),
        // A wait that ended early is over. Its thread holds the mutex, except after a timeout.
        ("1:lock(m)@1 1:wait(cm)@2 1:wake-spurious(cm)@3#1 ?0:lock(m)@4", 0, "Blocked 0:Rm"),
        ("1:lock(m)@1 1:wait(cm)@2 1:wake-timeout(cm)@3#1 ?0:lock(m)@4", 0, "Enabled 0:Wm"),
        (
            "1:lock(m)@1 1:wait(cm)@2 2:lock(m)@1 2:wait(cm)@2 1:wake-timeout(cm)@3#1 \
             ?0:notify-one(c)@4",
            0,
            "Enabled 0:Wc",
        ),
        ("1:lock(m)@1 1:wait(cm)@2 0:notify-one(c)@4 1:wake(cm)@3 ?0:lock(m)@5", 0, "Blocked 0:Rm"),
        // Tokens.
        ("?0:park(x)@1", 0, "Blocked 0:Rx"),
        ("1:unpark(x)@2 ?0:park(x)@1", 0, "Enabled 0:Wx"),
        ("1:unpark(x)@2 0:park(x)@1 ?0:park(x)@3", 0, "Blocked 0:Rx"),
        // To continue without the token does not take it.
        ("0:park-timeout(x)@1#1 1:unpark(x)@2 ?0:park(x)@3", 0, "Enabled 0:Wx"),
        ("?0:park-timeout(x)@1", 0, "Enabled 1:Rx"),
        ("1:unpark(x)@2 ?0:park-timeout(x)@1", 0, "Enabled 0:Wx"),
    ];
    for &(script, thread, expected) in cases {
        assert_eq!(after(script, thread), expected, "{script}");
    }
}

#[test]
fn threads_that_started_and_ended_are_told_apart() {
    let run =
        Run::new("0:load(a)@1+2 ?0:yield()@2 2:load(b)@3 ?1:lock(m)@5", LoopRounds::default());
    let threads = [0, 1, 2].map(ThreadId::new);
    assert_eq!(threads.map(|thread| run.recording.has_ended(thread)), [false, false, true]);
    assert_eq!(threads.map(|thread| run.recording.can_step(thread)), [true, true, false]);
    assert_eq!(threads.map(|thread| run.recording.others_can_step(thread)), [true, true, true]);
    let last = threads.map(|thread| run.recording.last_op(thread).map(|op| op.site));
    assert_eq!(last, [Some(site(1)), None, Some(site(3))]);
    let all: ThreadSet = threads.into_iter().collect();
    assert_eq!(run.recording.state().started(), all);
    let alone = Run::new("1:lock(m)@1 ?0:lock(m)@2", LoopRounds::default());
    assert!(!alone.recording.others_can_step(threads[0]));
    assert!(!alone.recording.can_take(Choice::of(threads[0])), "the mutex is taken");
    let alternative = Run::new("?0:weak(a)@1", LoopRounds::default());
    let take = |alternative| Choice { thread: threads[0], alternative };
    let can_take = [0, 1, 2].map(|number| alternative.recording.can_take(take(number)));
    assert_eq!(can_take, [true, true, false]);
}
