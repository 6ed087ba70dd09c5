//! What to do about a function that the runtime cannot control.
//!
//! The runtime ends the execution with the name of the function in backquotes, or with a
//! description of the operation. The advice belongs to the controller, which has room for text.

/// The refusal of a program that uses `what`.
pub(crate) fn refusal(what: &str) -> String {
    let advice = advice(what).unwrap_or("docs/guide/executables.md lists what is supported");
    format!("the program uses {what}, which is not supported: {advice}")
}

/// How a test can do without `what`. `None` for operations that are named by their description.
fn advice(what: &str) -> Option<&'static str> {
    let name = what.strip_prefix('`')?.split('`').next()?;
    Some(match name {
        "fork" | "_Fork" | "vfork" | "system" | "popen" | "posix_spawn" | "posix_spawnp" => {
            "the threads of one process are explored; test the code that uses threads without \
             starting another process, or replace the process by a stub"
        }
        _ if name.starts_with("exec") || name.starts_with("fexec") => {
            "the new program would replace the one under test; give the new one to `preempt run`"
        }
        "pthread_cancel" => {
            "end the thread by a variable that it reads; where a thread can be cancelled is not \
             modelled"
        }
        "pthread_tryjoin_np" | "pthread_timedjoin_np" | "pthread_clockjoin_np" => {
            "use `pthread_join`, or a condition variable that the thread signals before it ends"
        }
        "alarm" | "setitimer" | "timer_create" | "timer_settime" | "timerfd_create" => {
            "a timer expires at no step of the program; use `pthread_cond_timedwait` or a \
             sleeping thread, whose time is explored"
        }
        "pthread_kill" | "signalfd" | "pause" | "sigwait" | "sigwaitinfo" | "sigtimedwait"
        | "sigsuspend" => {
            "signals are not explored; wake the thread by a condition variable, a semaphore or a \
             pipe"
        }
        "sem_open" | "mq_open" | "msgget" | "semget" => {
            "only the threads of one process are explored; use `sem_init`, or a mutex and a \
             condition variable"
        }
        "pthread_mutex_consistent" | "pthread_mutexattr_setrobust" => {
            "the death of a thread that holds a mutex is not modelled; use an ordinary mutex"
        }
        "PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP" => {
            "such a lock stops readers while a writer waits, which is not modelled; initialise the \
             lock with the default kind, or use a mutex and a condition variable"
        }
        "inotify_init" | "inotify_init1" | "fanotify_init" => {
            "events of the file system come from outside of the program; replace them by a pipe \
             that a thread of the test writes to"
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The functions that the runtime replaces only to refuse them.
    fn refused_functions() -> Vec<String> {
        let source = include_str!("../runtime/src/hooks/unsupported.rs");
        let lists = source.split("\nunsupported").skip(1);
        let lists = lists.filter_map(|list| list.split_once("! {")?.1.split_once('}'));
        lists.flat_map(|(names, _)| names.split_whitespace().map(str::to_owned)).collect()
    }

    #[test]
    fn every_refused_function_comes_with_advice() {
        let functions = refused_functions();
        assert!(functions.len() > 30, "{functions:?}");
        for name in functions {
            assert!(advice(&format!("`{name}`")).is_some(), "{name} has no advice");
        }
        assert_eq!(advice("a futex call with a bit mask"), None);
        assert!(
            refusal("a robust mutex")
                .ends_with("docs/guide/executables.md lists what is supported")
        );
    }
}
