//! A litmus program, executed with the mirrors of one tool. Main starts the threads and joins them.

use super::Arc;
use super::cell::UnsafeCell;
use super::sync::Mutex;
use super::sync::atomic::{AtomicU64, Ordering, fence};
use super::thread;
use crate::peers::rust::litmus::{current, ordering, saw_outcome};
use preempt_litmus::program::{Change, Next, Position};
use preempt_litmus::{Order, Program};

/// A location that is accessed plainly.
struct Plain(UnsafeCell<u64>);

// SAFETY: the threads of a tool run one at a time, and the tools report racing accesses.
#[allow(unsafe_code)]
unsafe impl Sync for Plain {}

// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Send for Plain {}

impl Plain {
    #[allow(unsafe_code)]
    fn load(&self) -> u64 {
        // SAFETY: as above.
        self.0.with(|cell| unsafe { *cell })
    }

    #[allow(unsafe_code)]
    fn store(&self, value: u64) {
        // SAFETY: as above.
        self.0.with_mut(|cell| unsafe { *cell = value });
    }
}

/// What a location of the program is.
enum Location {
    Atomic(AtomicU64),
    Plain(Plain),
    Mutex(Mutex<()>),
}

impl Location {
    fn atomic(&self) -> &AtomicU64 {
        let Location::Atomic(atomic) = self else { unreachable!("the program says it is atomic") };
        atomic
    }
}

fn locations(program: &Program) -> Vec<Location> {
    let kinds = program.mutexes.iter().enumerate();
    let all = kinds.map(|(at, is_mutex)| match is_mutex {
        true => Location::Mutex(Mutex::new(())),
        false if program.is_plain(at) => Location::Plain(Plain(UnsafeCell::new(0))),
        false => Location::Atomic(AtomicU64::new(0)),
    });
    all.collect()
}

/// Runs one thread. Returns its registers and its number of stores per location.
fn run(program: &Program, thread: usize, locations: &[Location]) -> (Position, Vec<usize>) {
    let code = &program.threads[thread];
    let (mut position, mut stores) = (Position::default(), vec![0; locations.len()]);
    let mut guards: Vec<_> = locations.iter().map(|_| None).collect();
    loop {
        let mut value = 0;
        match position.next(code) {
            Next::End => break,
            Next::Load(x, order) => {
                value = match &locations[x] {
                    Location::Plain(plain) => plain.load(),
                    atomic => atomic.atomic().load(ordering(order)),
                }
            }
            Next::Store(x, new, order) => {
                match &locations[x] {
                    Location::Plain(plain) => plain.store(new),
                    atomic => atomic.atomic().store(new, ordering(order)),
                }
                stores[x] += 1;
            }
            Next::Update(x, change, success, failure) => {
                value = update(locations[x].atomic(), change, (success, failure));
                stores[x] += usize::from(change.new_value(value).is_some());
            }
            Next::Fence(order) => fence(ordering(order)),
            Next::Lock(m) => {
                let Location::Mutex(mutex) = &locations[m] else { unreachable!("it is locked") };
                guards[m] = Some(mutex.lock().expect("no thread panics"));
            }
            Next::Unlock(m) => drop(guards[m].take()),
        }
        position.advance(code, value);
    }
    // A mutex that was not released stays locked.
    std::mem::forget(guards);
    (position, stores)
}

fn update(atomic: &AtomicU64, change: Change, (success, failure): (Order, Order)) -> u64 {
    let order = ordering(success);
    match change {
        Change::Add(summand) => atomic.fetch_add(summand, order),
        Change::Swap(new) => atomic.swap(new, order),
        Change::Exchange(expected, new) => {
            let (Ok(old) | Err(old)) =
                atomic.compare_exchange(expected, new, order, ordering(failure));
            old
        }
    }
}

/// Executes the program that was chosen, and records its outcome.
pub fn execute() {
    let program = current();
    let shared = Arc::new(locations(program));
    let threads: Vec<_> = (0..program.threads.len())
        .map(|thread| {
            let shared = shared.clone();
            thread::spawn(move || run(program, thread, &shared))
        })
        .collect();
    let ends = threads.into_iter().map(|thread| thread.join().expect("no thread panics"));
    let ends: Vec<_> = ends.collect();
    saw_outcome(program, &ends, |location| match &shared[location] {
        Location::Plain(plain) => plain.load(),
        atomic => atomic.atomic().load(Ordering::SeqCst),
    });
}
