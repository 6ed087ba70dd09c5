//! Functions that this library cannot control. A program that calls one of them is refused, with
//! the name of the function, because continuing would silently give wrong results.

use crate::schedule::unsupported;

macro_rules! unsupported {
    ($($name:ident)+) => {
        $(hook!(fn $name(a: usize, b: usize, c: usize, d: usize, e: usize; pc) -> usize {
            let _ = (a, b, c, d, e);
            unsupported(concat!("`", stringify!($name), "`"))
        });)+
    };
}

// Cancellation, and joins that can fail because the thread has not ended.
unsupported! { pthread_cancel pthread_tryjoin_np pthread_timedjoin_np pthread_clockjoin_np }

// Other processes.
unsupported! { fork vfork posix_spawn posix_spawnp execve execv execvp system popen }

// Asynchronous signals.
unsupported! { pthread_kill alarm setitimer timer_create timer_settime }

// Synchronisation with other processes, and robust mutexes, which are not modelled.
unsupported! {
    sem_open pthread_mutex_consistent pthread_mutexattr_setrobust
}

// Descriptors that are not made ready by this program's threads.
unsupported! { timerfd_create signalfd inotify_init inotify_init1 fanotify_init }

// Waiting for signals.
unsupported! { pause sigwait sigwaitinfo sigtimedwait sigsuspend }

// Message queues and semaphores that are shared with other processes.
unsupported! { mq_open msgget semget }
