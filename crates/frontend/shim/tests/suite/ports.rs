//! Tests as users of loom and shuttle write them: only the name of the crate differs.

use std::panic::{AssertUnwindSafe, catch_unwind};

#[track_caller]
fn fails<T>(check: impl FnOnce() -> T) -> String {
    *catch_unwind(AssertUnwindSafe(check))
        .map(drop)
        .expect_err("the check fails")
        .downcast::<String>()
        .expect("a message")
}

mod from_loom {
    use preempt as loom;

    use super::fails;
    use loom::cell::UnsafeCell;
    use loom::sync::atomic::{AtomicUsize, Ordering, fence, spin_loop_hint};
    use loom::sync::{Arc, Mutex};
    use loom::thread;

    loom::lazy_static! {
        static ref TURN: AtomicUsize = AtomicUsize::new(0);
        static ref LOG: Mutex<Vec<Arc<usize>>> = Mutex::new(Vec::new());
    }

    loom::thread_local! {
        static SEEN: std::cell::Cell<usize> = std::cell::Cell::new(0);
    }

    #[test]
    fn statics_are_reset_for_every_execution() {
        for _ in 0..2 {
            let outcome = preempt::Check::new().unbounded().run(|| {
                let t = thread::spawn(|| {
                    LOG.lock().unwrap().push(Arc::new(TURN.fetch_add(1, Ordering::SeqCst)));
                    SEEN.with(|seen| seen.set(1));
                });
                LOG.lock().unwrap().push(Arc::new(TURN.fetch_add(1, Ordering::SeqCst)));
                t.join().unwrap();
                assert_eq!((TURN.load(Ordering::SeqCst), LOG.lock().unwrap().len()), (2, 2));
                assert_eq!(SEEN.with(|seen| seen.get()), 0);
            });
            assert!(outcome.complete && outcome.findings.is_empty(), "{:?}", outcome.findings);
            assert!(outcome.executions() >= Some(4), "{:?}", outcome.executions());
        }
        // Outside a check it is an ordinary static.
        assert_eq!(TURN.fetch_add(1, Ordering::SeqCst), 0);
        assert_eq!(std::thread::spawn(|| TURN.load(Ordering::SeqCst)).join().unwrap(), 1);
    }

    struct Lock {
        flag: AtomicUsize,
        data: UnsafeCell<usize>,
    }
    // SAFETY: the check reports unordered accesses.
    unsafe impl Sync for Lock {}
    // SAFETY: as above.
    unsafe impl Send for Lock {}

    impl Lock {
        fn with(&self, acquire: Ordering, f: impl FnOnce(&mut usize)) {
            while self.flag.compare_exchange(0, 1, acquire, Ordering::Relaxed).is_err() {
                spin_loop_hint();
            }
            let data = self.data.get_mut();
            // SAFETY: the flag was taken.
            f(unsafe { data.deref() });
            fence(Ordering::Release);
            self.flag.store(0, Ordering::Relaxed);
        }
    }

    fn lock(acquire: Ordering) {
        let lock = Arc::new(Lock { flag: AtomicUsize::new(0), data: UnsafeCell::new(0) });
        let t = thread::spawn({
            let lock = lock.clone();
            move || lock.with(acquire, |data| *data += 1)
        });
        lock.with(acquire, |data| *data += 1);
        t.join().unwrap();
        lock.with(acquire, |data| assert_eq!(*data, 2));
    }

    #[test]
    fn a_hand_written_lock() {
        loom::model(|| lock(Ordering::Acquire));
        let text = fails(|| loom::model(|| lock(Ordering::Relaxed)));
        assert!(text.contains("data race on the cell made at"), "{text}");
    }

    #[test]
    fn all_settings_exist() {
        let mut builder = loom::model::Builder::new();
        builder.max_threads = 2;
        builder.max_branches = 1_000;
        builder.max_permutations = Some(1_000);
        builder.max_duration = Some(std::time::Duration::from_secs(600));
        builder.preemption_bound = Some(2);
        builder.expect_explicit_explore = true;
        builder.location = true;
        builder.log = false;
        builder.checkpoint_interval = 1;
        builder.check(|| {
            loom::stop_exploring();
            loom::skip_branch();
            lock(Ordering::Acquire);
            loom::explore();
        });
        let three = || {
            let handles = [(); 2].map(|()| thread::spawn(|| ()));
            handles.into_iter().for_each(|handle| handle.join().unwrap());
        };
        let text = fails(|| builder.check(three));
        assert!(text.contains("more than 2 threads") && text.contains("`max_threads`"), "{text}");
        builder.max_threads = loom::MAX_THREADS;
        builder.check(three);
        let text =
            fails(|| builder.check(|| while TURN.fetch_add(1, Ordering::SeqCst) < usize::MAX {}));
        assert!(text.contains("has not ended after 1000 steps"), "{text}");
        builder.checkpoint_file("checkpoint.json");
        let text = fails(|| builder.check(|| ()));
        assert!(
            text.contains("there are no checkpoints") && text.contains("PREEMPT_REPLAY"),
            "{text}"
        );
        assert!(
            fails(|| {
                let mut builder = loom::model::Builder::new();
                builder.max_permutations = Some(1);
                builder.check(|| lock(Ordering::Acquire));
            })
            .contains("INCOMPLETE")
        );
    }

    #[test]
    fn allocations_are_tracked() {
        use loom::alloc::{Layout, Track, alloc, dealloc};
        loom::model(|| {
            let layout = Layout::new::<u64>();
            // SAFETY: allocated with the same layout.
            unsafe { dealloc(alloc(layout), layout) };
            assert_eq!(*Track::new(1).get_ref(), 1);
        });
    }

    #[test]
    fn block_on_waits_for_a_future() {
        loom::model(|| assert_eq!(loom::future::block_on(async { 1 }), 1));
    }
}

mod from_shuttle {
    use preempt as shuttle;

    use super::fails;
    use shuttle::rand::{Rng, thread_rng};
    use shuttle::scheduler::{
        DfsScheduler, PctScheduler, RandomScheduler, ReplayScheduler, UrwRandomScheduler,
    };
    use shuttle::sync::{Arc, Mutex};
    use shuttle::{Config, FailurePersistence, MaxSteps, PortfolioRunner, Runner, thread};

    fn lost_update() {
        let n = Arc::new(Mutex::new(0));
        let add = |n: &Mutex<i32>| {
            let seen = *n.lock().unwrap();
            *n.lock().unwrap() = seen + 1;
        };
        let t = thread::spawn({
            let n = n.clone();
            move || add(&n)
        });
        add(&n);
        t.join().unwrap();
        assert_eq!(*n.lock().unwrap(), 2, "an update was lost");
    }

    fn nothing_lost() {
        let n = Arc::new(Mutex::new(0));
        let t = thread::spawn({
            let n = n.clone();
            move || *n.lock().unwrap() += 1
        });
        *n.lock().unwrap() += 1;
        t.join().unwrap();
        assert_eq!(*n.lock().unwrap(), 2);
    }

    #[test]
    fn every_scheduler_finds_the_lost_update() {
        assert_eq!(Runner::new(RandomScheduler::new(50), Config::new()).run(nothing_lost), 50);
        assert_eq!(
            Runner::new(DfsScheduler::new(None, false), Config::default()).run(nothing_lost),
            2
        );
        for text in [
            fails(|| {
                Runner::new(RandomScheduler::new_from_seed(1, 1000), Config::new()).run(lost_update)
            }),
            fails(|| Runner::new(PctScheduler::new(2, 1000), Config::new()).run(lost_update)),
            fails(|| Runner::new(UrwRandomScheduler::new(1000), Config::new()).run(lost_update)),
            fails(|| {
                Runner::new(DfsScheduler::new(Some(1000), false), Config::new()).run(lost_update)
            }),
        ] {
            assert!(text.contains("an update was lost"), "{text}");
        }
        let mut portfolio = PortfolioRunner::new(true, Config::new());
        portfolio.add(RandomScheduler::new(10));
        portfolio.add(DfsScheduler::new(None, false));
        assert!(fails(|| portfolio.run(lost_update)).contains("an update was lost"));
        let mut portfolio = PortfolioRunner::new(false, Config::new());
        portfolio.add(DfsScheduler::new(None, false));
        portfolio.add(RandomScheduler::new(10));
        assert!(fails(|| portfolio.run(lost_update)).contains("an update was lost"));
        shuttle::check_uncontrolled_nondeterminism(nothing_lost, 10);
    }

    #[test]
    fn a_schedule_is_saved_in_a_file() {
        let folder = std::env::temp_dir().join(format!("preempt-ports-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut config = Config::new();
        config.failure_persistence = FailurePersistence::File(Some(folder.clone()));
        let text =
            fails(|| Runner::new(DfsScheduler::new(None, false), config.clone()).run(lost_update));
        let file = folder.join("schedule000.txt");
        assert!(text.contains(&format!("kept in   {}", file.display())), "{text}");
        assert!(
            fails(|| shuttle::replay_from_file(lost_update, &file)).contains("an update was lost")
        );
        config.failure_persistence = FailurePersistence::None;
        let again =
            fails(|| Runner::new(ReplayScheduler::new_from_file(&file), config).run(lost_update));
        assert!(again.contains("an update was lost"), "{again}");
        std::fs::remove_dir_all(folder).unwrap();
        assert!(fails(|| shuttle::replay_from_file(lost_update, &file)).contains("cannot be read"));
    }

    #[test]
    fn long_executions_fail_or_are_skipped() {
        let long = || (0..100).for_each(|_| drop(Mutex::new(()).lock()));
        let mut config = Config::new();
        config.max_steps = MaxSteps::FailAfter(50);
        let text = fails(|| Runner::new(RandomScheduler::new(1), config.clone()).run(long));
        assert!(text.contains("has not ended after 50 steps"), "{text}");
        config.max_steps = MaxSteps::ContinueAfter(50);
        Runner::new(RandomScheduler::new(3), config.clone()).run(long);
        config.max_steps = MaxSteps::None;
        config.max_time = Some(std::time::Duration::from_secs(600));
        config.silence_warnings = true;
        assert_eq!(Runner::new(RandomScheduler::new(3), config).run(long), 3);
    }

    #[test]
    fn random_data_is_explored_or_fixed() {
        let text = fails(|| {
            shuttle::check_dfs(|| assert_ne!(thread_rng().gen_range(0..5), 3, "found"), None)
        });
        assert!(text.contains("found") && text.contains("choose(5) = 3"), "{text}");
        assert!(
            fails(|| shuttle::check_dfs(|| assert!(thread_rng().gen_bool(0.01), "found"), None))
                .contains("found")
        );
        shuttle::check_dfs(
            || {
                assert!((-3..=300).contains(&thread_rng().gen_range(-3..=300)));
                assert!((-2..=2).contains(&thread_rng().gen_range(-2i8..=2)));
                let words: [u64; 2] = [thread_rng().r#gen(), thread_rng().next_u64()];
                assert_ne!(words[0], words[1]);
            },
            None,
        );
        assert!(thread_rng().gen_range(0..100) < 100);
    }
}
