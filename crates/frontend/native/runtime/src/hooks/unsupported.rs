//! Functions that this library cannot control. A program that calls one of them is refused, with
//! the name of the function, because continuing would silently give wrong results.

use crate::real::real;
use crate::schedule::{active, unsupported};

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

/// Defines hooks of functions with any number of arguments. Outside of an execution, all registers
/// and the stack reach the replaced function unchanged.
macro_rules! unsupported_with_any_arguments {
    ($($name:ident)+) => {
        $(mod $name {
            use super::*;

            /// The replaced function; does not return in an execution.
            extern "C" fn gate() -> unsafe extern "C" fn() {
                if active() {
                    unsupported(concat!("`", stringify!($name), "`"));
                }
                real!($name: unsafe extern "C" fn())
            }

            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C-unwind" fn $name() {
                core::arch::naked_asm!(
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    "push rcx",
                    "push r8",
                    "push r9",
                    "push rax",
                    "call {gate}",
                    "mov r11, rax",
                    "pop rax",
                    "pop r9",
                    "pop r8",
                    "pop rcx",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    "jmp r11",
                    gate = sym gate,
                )
            }
        })+
    };
}

// Other processes.
unsupported! { fork _Fork vfork execve execv execvp execvpe fexecve execveat system popen }
unsupported_with_any_arguments! { posix_spawn posix_spawnp execl execlp execle }

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
