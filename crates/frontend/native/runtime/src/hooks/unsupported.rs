//! Functions that this library cannot control. A program that calls one of them is refused, by the
//! name of the function: to continue would silently give wrong results.

use crate::schedule::unsupported;

macro_rules! unsupported {
    ($($name:ident)+) => {
        $(hook!(fn $name(a: usize, b: usize, c: usize, d: usize, e: usize; pc) -> usize {
            let _ = (a, b, c, d, e);
            unsupported(concat!("`", stringify!($name), "`"))
        });)+
    };
}

// Threads that end in other ways than by returning.
unsupported! { pthread_cancel pthread_tryjoin_np pthread_timedjoin_np pthread_clockjoin_np }

// Other processes.
unsupported! { fork vfork posix_spawn posix_spawnp execve execv execvp system popen }

// Signals that arrive at any time.
unsupported! { pthread_kill alarm setitimer timer_create timer_settime }

// Synchronisation with other processes, and in ways that have no model yet.
unsupported! {
    sem_open pthread_mutex_consistent pthread_mutexattr_setrobust
}

// Descriptors that become ready by something other than this program's threads.
unsupported! { timerfd_create signalfd inotify_init inotify_init1 fanotify_init }

// Waiting for signals.
unsupported! { pause sigwait sigwaitinfo sigtimedwait sigsuspend }

// Queues that other processes can use.
unsupported! { mq_open msgget semget }
