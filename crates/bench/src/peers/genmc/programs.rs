//! Benchmarks of GenMC as closures, written from what they do: the numbers and orderings of their
//! accesses determine the counts. `size` is the benchmark's N, where it has one.

use std::sync::atomic::Ordering;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use preempt::sync::Arc;
use preempt::sync::atomic::{AtomicU64, fence};
use preempt::{assume, thread};

/// A benchmark.
pub type Program = fn(usize);

/// The benchmarks by name.
const PROGRAMS: [(&str, Program); 30] = [
    ("ainc", |n| same(n, 1, |m, _| add(m, 1))),
    ("binc", |n| same(n, 2, |m, _| add(m, 2))),
    ("cinc", |n| same(n, 3, |m, _| add(m, 3))),
    ("inc", |n| {
        same(n, 1, |m, at| {
            let old = m[0].load(Relaxed);
            m[0].store(old + (1 << at), Release);
        });
    }),
    ("rw", |n| {
        same(n, 1, |m, at| {
            m[0].load(Relaxed);
            m[0].store(at as u64, Release);
        });
    }),
    ("readers", |n| {
        same(n + 1, 1, |m, at| match at {
            0 => m[0].store(42, Release),
            _ => _ = m[0].load(Acquire),
        });
    }),
    ("N-writers", |n| {
        same(n + 2, 1, |m, at| match at {
            0 => _ = m[0].load(Acquire),
            _ => m[0].store(at as u64 - 1, Release),
        });
    }),
    ("wainc", |n| {
        same(n + 1, 1, |m, at| match at {
            0 => m[0].store(42, Release),
            _ => add(m, 1),
        });
    }),
    ("cas", |n| same(n, 1, |m, at| exchange(&m[0], 0, at as u64 + 1))),
    ("casrot", |n| same(n, 1, |m, at| exchange(&m[0], at as u64, at as u64 + 1))),
    ("casw", |n| {
        same(n, 1, |m, at| {
            exchange(&m[0], 0, 1);
            m[0].store(at as u64 + 3, Release);
        });
    }),
    ("wcas", |n| {
        same(n + 1, 1, |m, at| match at {
            0 => m[0].store(2, Release),
            _ => exchange(&m[0], 2, 3),
        });
    }),
    ("CoA", coa),
    ("lockinc", |n| locked(n, 1)),
    ("lock2inc", |n| locked(n, 2)),
    ("lastzero", last_zero),
    ("indexer", indexer),
    ("fib_bench", fibonacci),
    ("big0", |_| big()),
    ("eratosthenes", sieve),
    ("SharedPtr", shared_pointer),
    ("par_length", local_accesses),
    ("publish", |_| publish()),
    ("dekker_f", |_| dekker()),
    ("peterson", |_| peterson()),
    ("lamport", lamport),
    ("dq", |_| deque()),
    ("ticketlock", |n| {
        same(n, 3, |m, at| {
            let ticket = m[0].fetch_add(1, Relaxed);
            while m[1].load(Acquire) != ticket {}
            protected(&m[2], at);
            let owner = m[1].load(Relaxed);
            m[1].store(owner + 1, Release);
        });
    }),
    ("spinlock", |n| {
        same(n, 2, |m, at| {
            loop {
                while m[0].load(Relaxed) != 0 {}
                if m[0].compare_exchange(0, 1, Acquire, Acquire).is_ok() {
                    break;
                }
            }
            protected(&m[1], at);
            m[0].store(0, Release);
        });
    }),
    ("ttaslock", |n| {
        same(n, 2, |m, at| {
            loop {
                while m[0].load(Relaxed) != 0 {}
                if m[0].swap(1, Acquire) == 0 {
                    break;
                }
            }
            protected(&m[1], at);
            m[0].store(0, Release);
        });
    }),
];

/// The benchmark of this name.
pub fn program(name: &str) -> Option<Program> {
    PROGRAMS.iter().find(|(known, _)| *known == name).map(|(_, program)| *program)
}

/// The shared variables, 0 at first.
type Memory = Arc<Vec<AtomicU64>>;

fn memory(cells: usize) -> Memory {
    Arc::new((0..cells).map(|_| AtomicU64::new(0)).collect())
}

/// A thread with access to the shared variables.
fn spawn(m: &Memory, body: impl FnOnce(&[AtomicU64]) + Send + 'static) -> thread::JoinHandle<()> {
    let m = m.clone();
    thread::spawn(move || body(&m))
}

/// Waits for threads.
fn join(threads: impl IntoIterator<Item = thread::JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
}

/// Threads that run the same code with their numbers.
fn same(threads: usize, cells: usize, body: fn(&[AtomicU64], usize)) {
    let m = memory(cells);
    let threads: Vec<_> = (0..threads).map(|number| spawn(&m, move |m| body(m, number))).collect();
    join(threads);
}

/// Adds 1 to each of the first variables.
fn add(m: &[AtomicU64], cells: usize) {
    m[..cells].iter().for_each(|cell| _ = cell.fetch_add(1, Relaxed));
}

fn exchange(cell: &AtomicU64, expected: u64, new: u64) {
    let _ = cell.compare_exchange(expected, new, Relaxed, Relaxed);
}

/// Two threads write x and read a variable of their own and x; `size - 1` threads write the two
/// variables that they read.
fn coa(size: usize) {
    same(size + 1, 3, |m, at| match at {
        0 | 1 => {
            m[0].store(at as u64 + 1, Release);
            m[1 + at].load(Acquire);
            m[0].load(Acquire);
        }
        _ => {
            m[1].store(at as u64 - 2, Release);
            m[2].store(at as u64 - 2, Release);
        }
    });
}

/// Threads increment variables under a mutex by a load and a store.
fn locked(size: usize, cells: usize) {
    let shared = Arc::new((preempt::sync::Mutex::new(()), memory(cells)));
    let threads: Vec<_> = (0..size)
        .map(|_| {
            let shared = shared.clone();
            thread::spawn(move || {
                let _guard = shared.0.lock().expect("no thread panics");
                for cell in shared.1.iter() {
                    let old = cell.load(Relaxed);
                    cell.store(old + 1, Relaxed);
                }
            })
        })
        .collect();
    join(threads);
}

/// Writer `j` stores the successor of cell `j - 1` in cell `j`; a reader looks for the last zero.
fn last_zero(size: usize) {
    let m = memory(size + 1);
    let reader = spawn(&m, move |m| {
        let _ = (0..=size).rev().find(|&at| m[at].load(Acquire) == 0);
    });
    let writers: Vec<_> = (1..=size)
        .map(|at| {
            spawn(&m, move |m| {
                let previous = m[at - 1].load(Acquire);
                m[at].store(previous + 1, Release);
            })
        })
        .collect();
    join([reader].into_iter().chain(writers));
}

/// Threads insert four messages each into a hash table.
fn indexer(size: usize) {
    const SLOTS: usize = 128;
    same(size, SLOTS, |m, thread| {
        for round in 0..4 {
            let message = round * 11 + thread;
            let mut slot = message * 7 % SLOTS;
            while m[slot].compare_exchange(0, message as u64, Relaxed, Relaxed).is_err() {
                slot = (slot + 1) % SLOTS;
            }
        }
    });
}

/// Two threads add x and y in turns, and a third one reads both.
fn fibonacci(size: usize) {
    let m: Memory = Arc::new((0..2).map(|_| AtomicU64::new(1)).collect());
    let adds = |target: usize| {
        spawn(&m, move |m| {
            for _ in 0..size {
                let (x, y) = (m[0].load(Acquire), m[1].load(Acquire));
                m[target].store(x + y, Release);
            }
        })
    };
    let adders = [adds(0), adds(1)];
    let reader = spawn(&m, |m| assert!(m[0].load(Acquire) <= 144 && m[1].load(Acquire) <= 144));
    join(adders.into_iter().chain([reader]));
}

/// Two threads read four variables, two threads write two of them each.
fn big() {
    let m = memory(4);
    let read = |order: &'static [usize]| {
        spawn(&m, move |m| order.iter().for_each(|&cell| _ = m[cell].load(Acquire)))
    };
    let write = |cells: [usize; 2]| {
        spawn(&m, move |m| {
            for value in 1..=3 {
                cells.iter().for_each(|&cell| m[cell].store(value, Release));
            }
        })
    };
    let readers = [read(&[0, 1, 2, 3, 0, 1, 2]), read(&[0, 1, 2])];
    join(readers.into_iter().chain([write([0, 1]), write([2, 3])]));
}

/// Two threads run the sieve of Eratosthenes on the same array.
fn sieve(size: usize) {
    let m = memory(size);
    let run = || {
        spawn(&m, move |m| {
            for at in 0..size {
                if m[at].load(Acquire) == 0 {
                    m[at].store(1, Release);
                    (2 * at + 2..size).step_by(at + 2).for_each(|at| m[at].store(2, Release));
                }
            }
        })
    };
    join([run(), run()]);
}

/// Two threads store a pointer to different variables (here, an index), read the other variable
/// `size` times, and increment the one to which the pointer now points.
fn shared_pointer(size: usize) {
    let m: Memory = Arc::new([0, 3, 4].into_iter().map(AtomicU64::new).collect());
    let run = |own: usize| {
        spawn(&m, move |m| {
            m[0].store(own as u64, Release);
            for _ in 0..size {
                m[3 - own].load(Acquire);
            }
            let target = m[0].load(Acquire) as usize;
            let old = m[target].load(Acquire);
            m[target].store(old + 3, Release);
        })
    };
    join([run(2), run(1)]);
}

/// Two threads use a variable of their own `size` times, and then a shared one.
fn local_accesses(size: usize) {
    let m = memory(3);
    let run = |own: usize| {
        spawn(&m, move |m| {
            for round in 0..size {
                m[own].store(round as u64, SeqCst);
                m[own].load(SeqCst);
            }
            m[2].store(own as u64, SeqCst);
            m[2].load(SeqCst);
        })
    };
    join([run(0), run(1)]);
}

/// A reader polls a flag at most 41 times, and reads the message if it is set.
fn publish() {
    let m = memory(2);
    let reader = spawn(&m, |m| {
        if (0..41).any(|_| m[1].load(Acquire) == 1) {
            assert_eq!(m[0].load(Acquire), 42);
        }
    });
    let writer = spawn(&m, |m| {
        m[0].store(42, Release);
        m[1].store(1, Release);
    });
    join([reader, writer]);
}

/// Dekker's mutual exclusion with fences, without waiting.
fn dekker() {
    let m = memory(3);
    let run = |own: usize| {
        spawn(&m, move |m| {
            m[own].store(1, Relaxed);
            fence(SeqCst);
            if m[1 - own].load(Relaxed) == 0 {
                m[2].store(own as u64, Relaxed);
                assert_eq!(m[2].load(Relaxed), own as u64);
            }
        })
    };
    join([run(1), run(0)]);
}

/// Peterson's mutual exclusion; executions in which a thread would wait are discarded.
fn peterson() {
    let m = memory(4);
    let run = |own: usize| {
        spawn(&m, move |m| {
            let yields = 1 - own as u64;
            m[own].store(1, Release);
            m[2].store(yields, Release);
            assume(m[1 - own].load(Acquire) != 1 || m[2].load(Acquire) != yields);
            m[3].store(own as u64, Release);
            m[3].load(Acquire);
            m[own].store(0, Release);
        })
    };
    join([run(0), run(1)]);
}

/// Lamport's fast mutual exclusion; executions in which a thread would wait are discarded.
fn lamport(size: usize) {
    const ORDER: Ordering = SeqCst;
    let m = memory(size + 3);
    let run = |thread: usize| {
        spawn(&m, move |m| {
            let (x, y, wants, own) = (&m[0], &m[1], &m[2..], thread as u64);
            loop {
                wants[thread].store(1, ORDER);
                x.store(own, ORDER);
                if y.load(ORDER) != 0 {
                    wants[thread].store(0, ORDER);
                    assume(y.load(ORDER) == 0);
                    continue;
                }
                y.store(own, ORDER);
                if x.load(ORDER) == own {
                    break;
                }
                wants[thread].store(0, ORDER);
                (1..=size).for_each(|other| assume(wants[other].load(ORDER) == 0));
                if y.load(ORDER) == own {
                    break;
                }
                assume(y.load(ORDER) == 0);
            }
            y.store(0, ORDER);
            wants[thread].store(0, ORDER);
        })
    };
    let threads: Vec<_> = (1..=size).map(run).collect();
    join(threads);
}

/// A Chase–Lev deque: the owner pushes twice, pops once and pushes once; one thief tries to steal
/// twice, the other once. Elements are relaxed atomics here.
fn deque() {
    const LENGTH: u64 = 10;
    const BOTTOM: usize = 0;
    const TOP: usize = 1;
    fn element(m: &[AtomicU64], at: u64) -> &AtomicU64 {
        &m[2 + (at % LENGTH) as usize]
    }
    fn push(m: &[AtomicU64], value: u64) {
        let (bottom, top) = (m[BOTTOM].load(Relaxed), m[TOP].load(Acquire));
        if (bottom.wrapping_sub(top) as i64) < LENGTH as i64 {
            element(m, bottom).store(value, Relaxed);
            m[BOTTOM].store(bottom.wrapping_add(1), Release);
        }
    }
    fn pop(m: &[AtomicU64]) {
        let bottom = m[BOTTOM].load(Relaxed);
        m[BOTTOM].store(bottom.wrapping_sub(1), Relaxed);
        fence(SeqCst);
        let top = m[TOP].load(Relaxed);
        let length = bottom.wrapping_sub(top) as i64;
        if length <= 0 {
            m[BOTTOM].store(bottom, Relaxed);
            return;
        }
        element(m, bottom.wrapping_sub(1)).load(Relaxed);
        if length == 1 {
            let _ = m[TOP].compare_exchange(top, top + 1, AcqRel, Acquire);
            m[BOTTOM].store(bottom, Relaxed);
        }
    }
    fn steal(m: &[AtomicU64]) {
        let top = m[TOP].load(Relaxed);
        fence(SeqCst);
        let bottom = m[BOTTOM].load(Acquire);
        if bottom.wrapping_sub(top) as i64 > 0 {
            element(m, top).load(Relaxed);
            let _ = m[TOP].compare_exchange(top, top + 1, Release, Relaxed);
        }
    }
    let m = memory(2 + LENGTH as usize);
    let owner = spawn(&m, |m| {
        push(m, 1);
        push(m, 2);
        pop(m);
        push(m, 4);
    });
    let thieves = [2, 1].map(|times| spawn(&m, move |m| (0..times).for_each(|_| steal(m))));
    join([owner].into_iter().chain(thieves));
}

/// The critical section of a lock: a store to shared memory and a load of it.
fn protected(cell: &AtomicU64, value: usize) {
    cell.store(value as u64, Relaxed);
    assert_eq!(cell.load(Relaxed), value as u64);
}
