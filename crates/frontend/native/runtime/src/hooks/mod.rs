//! The functions that the program calls instead of those of the C library.
//!
//! A hook is two functions. The exported one copies its return address, which is in the program,
//! into the last register for arguments and jumps to the other one, which has the body. The jump
//! leaves no frame, so threads unwind through hooks as through any function.
//!
//! Outside of an execution, that is before `main` and in the fork server, hooks call the replaced
//! function. They also do so for calls from the unwinder: its locks and one-time initialisations
//! are not the program's, and no other thread runs while it holds them.

/// Defines a hook with up to five arguments. `$pc` is the name for the return address.
macro_rules! hook {
    (fn $name:ident($($arg:ident: $type:ty),*; $pc:ident) -> $result:ty $body:block) => {
        #[allow(non_snake_case, reason = "the C library chooses the names")]
        mod $name {
            #[allow(unused_imports, reason = "most bodies use most of these")]
            use super::*;

            hook!(
                @body [$name] [$($arg: $type),*]
                [_a: usize, _b: usize, _c: usize, _d: usize, _e: usize] []
                $pc, $result, $body
            );

            /// The exported function: see the module documentation.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C-unwind" fn $name() {
                core::arch::naked_asm!("mov r9, [rsp]", "jmp {body}", body = sym body)
            }
        }
    };
    // Each argument replaces one of five unused arguments, so that `$pc` is always the sixth.
    (@body [$name:ident] [] [$($pad:tt)*] [$($all:tt)*] $pc:ident, $result:ty, $body:block) => {
        hook!(@emit [$name] [$($all)*] [$($pad)*] $pc, $result, $body);
    };
    (
        @body [$name:ident] [$arg:ident: $type:ty $(, $($rest:tt)*)?]
        [$_p:ident: usize $(, $($pads:tt)*)?] [$($all:tt)*]
        $pc:ident, $result:ty, $body:block
    ) => {
        hook!(
            @body [$name] [$($($rest)*)?]
            [$($($pads)*)?] [$($all)* $arg: $type,]
            $pc, $result, $body
        );
    };
    (
        @emit [$name:ident] [$($arg:ident: $type:ty,)*] [$($pad:ident: usize),*]
        $pc:ident, $result:ty, $body:block
    ) => {
        unsafe extern "C-unwind" fn body($($arg: $type,)* $($pad: usize,)* $pc: usize) -> $result {
            if !$crate::schedule::active() || $crate::server::is_unwinder($pc) {
                $(let _ = $pad;)*
                let _ = $pc;
                type Real = extern "C-unwind" fn($($type),*) -> $result;
                return $crate::real::real!($name: Real)($($arg),*);
            }
            let _ = $pc;
            $body
        }
    };
}

/// Defines a hook with six arguments, which leave no register for the return address. It is passed
/// in a variable instead; only the thread with the baton is between the two functions.
macro_rules! hook6 {
    (fn $name:ident($($arg:ident: $type:ty),*; $pc:ident) -> $result:ty $body:block) => {
        mod $name {
            use super::*;

            static mut CALLER: usize = 0;

            unsafe extern "C-unwind" fn body($($arg: $type),*) -> $result {
                if !$crate::schedule::active() {
                    type Real = extern "C-unwind" fn($($type),*) -> $result;
                    return $crate::real::real!($name: Real)($($arg),*);
                }
                // SAFETY: see the documentation of the macro.
                let $pc = unsafe { CALLER };
                $(let _ = $arg;)*
                $body
            }

            /// The exported function: see the module documentation.
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C-unwind" fn $name() {
                core::arch::naked_asm!(
                    "mov rax, [rsp]",
                    "mov [rip + {caller}], rax",
                    "jmp {body}",
                    caller = sym CALLER,
                    body = sym body,
                )
            }
        }
    };
}

mod atomic;
mod barrier;
mod cond;
mod descriptor;
pub mod futex;
mod heap;
mod memory;
mod mutex;
mod once;
mod outside;
mod poll;
pub mod process;
mod random;
mod rwlock;
mod semaphore;
mod signal;
pub mod socket;
pub mod stack;
mod thread;
pub mod time;
mod unsupported;
