//! Atomic operations of code that was built with the instrumentation of ThreadSanitizer.
//!
//! A compiler that instruments for ThreadSanitizer replaces every atomic operation by a call such
//! as `__tsan_atomic32_fetch_add(address, operand, order)`. This file defines the called functions.
//! gcc, clang and rustc have flags to instrument without linking ThreadSanitizer itself.
//!
//! Every operation is a scheduling point with its address, size and memory orders, and logs the
//! values before and after it. The execution is sequentially consistent, whatever the memory
//! orders, because one thread runs at a time, unless the controller asks for *stale* accesses.
//!
//! # Stale accesses
//!
//! Under weak memory the controller decides which store an operation reads and where its own store
//! is in modification order; it has the memory machine, and the runtime has none. The memory of the
//! program always contains the last store in modification order. Alternative 0 of an operation
//! reads that store and becomes the last one, which is what the hardware does here. Any other
//! alternative is stale: the operation is computed from the value that the controller names, and
//! memory does not change, because the operation's own store, if it has one, is not the last.
//!
//! An operation that has changed a value is followed by a second scheduling point
//! ([`Op::AfterWrite`]). A thread that has just set a flag often continues with the data that the
//! flag protects, by plain accesses or by precompiled code that is not visible here. With points
//! only before operations, that code would always run in the same step as the write, and no other
//! thread could run in between.
//!
//! Before the program has created a thread there are no scheduling points, because there is nothing
//! to choose. Outside of an execution the functions only perform the operation.

use core::ffi::c_int;
use core::sync::atomic::Ordering::SeqCst;
use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use crate::block::{Op, digest, orders};
use crate::schedule::{
    Next, Values, active, fault, log_fence, log_stale, log_values, point, runtime, stale_value,
};

/// The values before and after an operation, and whether it has written.
struct Done<T> {
    found: T,
    left: T,
    wrote: bool,
}

impl<T: Copy + Into<u128>> Done<T> {
    fn values(&self) -> Values {
        Values { found: self.found.into(), left: self.left.into(), wrote: self.wrote }
    }
}

/// The description of an operation for the log.
struct Call {
    op: Op,
    address: usize,
    size: u8,
    orders: u32,
    operands: u64,
    /// The lower 64 bits of the value that a compare-and-exchange expects.
    expected: u64,
    pc: usize,
}

/// Performs an operation, as a step if the calling thread is in an execution with several threads.
/// `apply` performs it on the memory; `compute` returns the result of a stale access that reads the
/// given value, and the value in memory.
#[inline(always)]
fn operate<T: Copy + PartialEq + Into<u128>>(
    call: Call,
    apply: impl FnOnce() -> Done<T>,
    compute: impl FnOnce(u64) -> (Done<T>, u64),
) -> T {
    if !active() || !runtime().concurrent {
        return apply().found;
    }
    let Call { op, address, size, orders, operands, expected, pc } = call;
    let object = address as u64;
    let next = Next { size, value: orders, operands, ..Next::on_both(op, object, expected, pc) };
    let done = match point(next).alternative {
        0 => {
            let done = apply();
            log_values(size, done.values());
            done
        }
        _ => {
            let (done, memory) = compute(stale_value());
            log_stale(done.values(), memory);
            done
        }
    };
    let Done { found, left, .. } = done;
    if found != left {
        point(Next { size, ..Next::on(Op::AfterWrite, object, pc) });
    }
    found
}

/// Defines an exported function: a jump to its body with the return address as the sixth argument,
/// as in [`super`].
macro_rules! export {
    ($name:literal, $body:path) => {
        const _: () = {
            #[unsafe(export_name = $name)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn exported() {
        core::arch::naked_asm!("mov r9, [rsp]", "jmp {body}", body = sym $body)
            }
        };
    };
}

/// Defines a read-modify-write operation on atomics of up to 8 bytes.
macro_rules! update {
    ($type:ty, $atomic:ty, $name:literal, $op:ident, $method:ident, $new:expr) => {
        const _: () = {
            unsafe extern "C" fn body(
                p: *const $atomic,
                operand: $type,
                order: c_int,
                _: usize,
                _: usize,
                pc: usize,
            ) -> $type {
                let call = Call {
                    op: Op::$op,
                    address: p as usize,
                    size: size_of::<$type>() as u8,
                    orders: orders(order, order),
                    operands: digest(operand.into(), 0),
                    expected: 0,
                    pc,
                };
                let new: fn($type, $type) -> $type = $new;
                let done = |found| Done { found, left: new(found, operand), wrote: true };
                // SAFETY: the program passes a valid atomic.
                let atomic = unsafe { &*p };
                operate(
                    call,
                    || done(atomic.$method(operand, SeqCst)),
                    |value| (done(value as $type), atomic.load(SeqCst).into()),
                )
            }
            export!($name, body);
        };
    };
}

/// Defines all operations on atomics of one size up to 8 bytes.
macro_rules! atomics {
    ($type:ty, $atomic:ty, $load:literal, $store:literal, $exchange:literal, $add:literal,
     $sub:literal, $and:literal, $or:literal, $xor:literal, $nand:literal, $strong:literal,
     $weak:literal, $val:literal) => {
        const _: () = {
            const SIZE: u8 = size_of::<$type>() as u8;

            unsafe extern "C" fn load(
                p: *const $atomic,
                order: c_int,
                _: usize,
                _: usize,
                _: usize,
                pc: usize,
            ) -> $type {
                let (address, orders) = (p as usize, orders(order, order));
                let (operands, expected) = (0, 0);
                let op = Op::Load;
                let call = Call { op, address, size: SIZE, orders, operands, expected, pc };
                let done = |found| Done { found, left: found, wrote: false };
                // SAFETY: the program passes a valid atomic.
                let load = || unsafe { &*p }.load(SeqCst);
                operate(call, || done(load()), |value| (done(value as $type), load().into()))
            }
            export!($load, load);

            unsafe extern "C" fn store(
                p: *const $atomic,
                operand: $type,
                order: c_int,
                _: usize,
                _: usize,
                pc: usize,
            ) {
                let (address, orders) = (p as usize, orders(order, order));
                let (operands, expected) = (digest(operand.into(), 0), 0);
                let op = Op::Store;
                let call = Call { op, address, size: SIZE, orders, operands, expected, pc };
                let done = |found| Done { found, left: operand, wrote: true };
                // SAFETY: the program passes a valid atomic.
                let atomic = unsafe { &*p };
                operate(
                    call,
                    // An exchange, because the log contains the value before.
                    || done(atomic.swap(operand, SeqCst)),
                    |_| (done(atomic.load(SeqCst)), atomic.load(SeqCst).into()),
                );
            }
            export!($store, store);

            unsafe extern "C" fn compare_exchange(
                p: *const $atomic,
                expected: $type,
                operand: $type,
                order: c_int,
                failure: c_int,
                pc: usize,
            ) -> $type {
                let call = Call {
                    op: Op::CompareExchange,
                    address: p as usize,
                    size: SIZE,
                    orders: orders(order, failure),
                    operands: digest(expected.into(), operand.into()),
                    expected: expected.into(),
                    pc,
                };
                let done = |found| match found == expected {
                    true => Done { found, left: operand, wrote: true },
                    false => Done { found, left: found, wrote: false },
                };
                // SAFETY: the program passes a valid atomic.
                let atomic = unsafe { &*p };
                operate(
                    call,
                    || match atomic.compare_exchange(expected, operand, SeqCst, SeqCst) {
                        Ok(found) | Err(found) => done(found),
                    },
                    |value| (done(value as $type), atomic.load(SeqCst).into()),
                )
            }
            export!($val, compare_exchange);

            unsafe extern "C" fn compare_exchange_into(
                p: *const $atomic,
                expected: *mut $type,
                operand: $type,
                order: c_int,
                failure: c_int,
                pc: usize,
            ) -> c_int {
                // SAFETY: the program passes valid pointers.
                unsafe {
                    let wanted = *expected;
                    let found = compare_exchange(p, wanted, operand, order, failure, pc);
                    if found != wanted {
                        *expected = found;
                    }
                    c_int::from(found == wanted)
                }
            }
            export!($strong, compare_exchange_into);
            // Spurious failures of the weak form are not explored.
            export!($weak, compare_exchange_into);
        };
        update!($type, $atomic, $exchange, Exchange, swap, |_, new| new);
        update!($type, $atomic, $add, FetchAdd, fetch_add, |old, by| old.wrapping_add(by));
        update!($type, $atomic, $sub, FetchSub, fetch_sub, |old, by| old.wrapping_sub(by));
        update!($type, $atomic, $and, FetchAnd, fetch_and, |old, by| old & by);
        update!($type, $atomic, $or, FetchOr, fetch_or, |old, by| old | by);
        update!($type, $atomic, $xor, FetchXor, fetch_xor, |old, by| old ^ by);
        update!($type, $atomic, $nand, FetchNand, fetch_nand, |old, by| !(old & by));
    };
}

atomics!(
    u8,
    AtomicU8,
    "__tsan_atomic8_load",
    "__tsan_atomic8_store",
    "__tsan_atomic8_exchange",
    "__tsan_atomic8_fetch_add",
    "__tsan_atomic8_fetch_sub",
    "__tsan_atomic8_fetch_and",
    "__tsan_atomic8_fetch_or",
    "__tsan_atomic8_fetch_xor",
    "__tsan_atomic8_fetch_nand",
    "__tsan_atomic8_compare_exchange_strong",
    "__tsan_atomic8_compare_exchange_weak",
    "__tsan_atomic8_compare_exchange_val"
);
atomics!(
    u16,
    AtomicU16,
    "__tsan_atomic16_load",
    "__tsan_atomic16_store",
    "__tsan_atomic16_exchange",
    "__tsan_atomic16_fetch_add",
    "__tsan_atomic16_fetch_sub",
    "__tsan_atomic16_fetch_and",
    "__tsan_atomic16_fetch_or",
    "__tsan_atomic16_fetch_xor",
    "__tsan_atomic16_fetch_nand",
    "__tsan_atomic16_compare_exchange_strong",
    "__tsan_atomic16_compare_exchange_weak",
    "__tsan_atomic16_compare_exchange_val"
);
atomics!(
    u32,
    AtomicU32,
    "__tsan_atomic32_load",
    "__tsan_atomic32_store",
    "__tsan_atomic32_exchange",
    "__tsan_atomic32_fetch_add",
    "__tsan_atomic32_fetch_sub",
    "__tsan_atomic32_fetch_and",
    "__tsan_atomic32_fetch_or",
    "__tsan_atomic32_fetch_xor",
    "__tsan_atomic32_fetch_nand",
    "__tsan_atomic32_compare_exchange_strong",
    "__tsan_atomic32_compare_exchange_weak",
    "__tsan_atomic32_compare_exchange_val"
);
atomics!(
    u64,
    AtomicU64,
    "__tsan_atomic64_load",
    "__tsan_atomic64_store",
    "__tsan_atomic64_exchange",
    "__tsan_atomic64_fetch_add",
    "__tsan_atomic64_fetch_sub",
    "__tsan_atomic64_fetch_and",
    "__tsan_atomic64_fetch_or",
    "__tsan_atomic64_fetch_xor",
    "__tsan_atomic64_fetch_nand",
    "__tsan_atomic64_compare_exchange_strong",
    "__tsan_atomic64_compare_exchange_weak",
    "__tsan_atomic64_compare_exchange_val"
);

/// Atomics of 16 bytes. All operations use `cmpxchg16b`, which the processor has if the program was
/// built with such atomics.
mod wide {
    use super::*;

    /// Replaces the value if it is the expected one. Returns the value before.
    ///
    /// # Safety
    ///
    /// `p` is an atomic of 16 bytes, aligned to 16 bytes.
    unsafe fn replace_if(p: *mut u128, expected: u128, new: u128) -> u128 {
        let (low, high): (u64, u64);
        // SAFETY: as for this function. The compiler reserves rbx, so it is saved in another
        // register.
        unsafe {
            core::arch::asm!(
                "xchg rbx, rsi",
                "lock cmpxchg16b [rdi]",
                "mov rbx, rsi",
                in("rdi") p,
                inout("rsi") new as u64 => _,
                inout("rax") expected as u64 => low,
                inout("rdx") (expected >> 64) as u64 => high,
                in("rcx") (new >> 64) as u64,
                options(nostack),
            );
        }
        u128::from(high) << 64 | u128::from(low)
    }

    /// Replaces the value by a function of it. Returns the value before.
    ///
    /// # Safety
    ///
    /// As for [`replace_if`].
    unsafe fn replace(p: *mut u128, new: impl Fn(u128) -> u128) -> u128 {
        let mut guess = 0;
        loop {
            // SAFETY: as for this function.
            let found = unsafe { replace_if(p, guess, new(guess)) };
            if found == guess {
                return found;
            }
            guess = found;
        }
    }

    fn call(op: Op, p: *mut u128, order: c_int, operand: u128, pc: usize) -> Call {
        let (address, operands) = (p as usize, digest(operand, 0));
        let orders = orders(order, order);
        Call { op, address, size: 16, orders, operands, expected: 0, pc }
    }

    /// The controller asks for no stale access of 16 bytes: its memory machine has values of 8.
    fn never_stale(_: u64) -> (Done<u128>, u64) {
        fault("a stale access has at most 8 bytes")
    }

    /// # Safety
    ///
    /// As for [`replace`].
    unsafe fn update(call: Call, p: *mut u128, new: impl Fn(u128) -> u128) -> u128 {
        let wrote = call.op != Op::Load;
        let apply = || {
            // SAFETY: as for this function.
            let found = unsafe { replace(p, &new) };
            Done { found, left: new(found), wrote }
        };
        operate(call, apply, never_stale)
    }

    unsafe extern "C" fn load(
        p: *mut u128,
        order: c_int,
        _: usize,
        _: usize,
        _: usize,
        pc: usize,
    ) -> u128 {
        // SAFETY: the program passes a valid atomic.
        unsafe { update(call(Op::Load, p, order, 0, pc), p, |value| value) }
    }
    export!("__tsan_atomic128_load", load);

    macro_rules! updates {
        ($($name:literal $body:ident $op:ident $new:expr;)+) => {$(
            // The operand takes two registers, so the sixth register is the fifth argument.
            unsafe extern "C" fn $body(
                p: *mut u128,
                operand: u128,
                order: c_int,
                _: usize,
                pc: usize,
            ) -> u128 {
                let new: fn(u128, u128) -> u128 = $new;
                let call = call(Op::$op, p, order, operand, pc);
                // SAFETY: the program passes a valid atomic.
                unsafe { update(call, p, |value| new(value, operand)) }
            }
            export!($name, $body);
        )+};
    }

    updates! {
        "__tsan_atomic128_store" store Store |_, new| new;
        "__tsan_atomic128_exchange" exchange Exchange |_, new| new;
        "__tsan_atomic128_fetch_add" fetch_add FetchAdd |old, by| old.wrapping_add(by);
        "__tsan_atomic128_fetch_sub" fetch_sub FetchSub |old, by| old.wrapping_sub(by);
        "__tsan_atomic128_fetch_and" fetch_and FetchAnd |old, by| old & by;
        "__tsan_atomic128_fetch_or" fetch_or FetchOr |old, by| old | by;
        "__tsan_atomic128_fetch_xor" fetch_xor FetchXor |old, by| old ^ by;
        "__tsan_atomic128_fetch_nand" fetch_nand FetchNand |old, by| !(old & by);
    }

    /// `failure` and `pc` do not fit into registers and are on the stack.
    unsafe extern "C" fn compare_exchange(
        p: *mut u128,
        expected: u128,
        operand: u128,
        order: c_int,
        failure: c_int,
        pc: usize,
    ) -> u128 {
        let operands = digest(expected, operand);
        let orders = orders(order, failure);
        let call = Call { orders, operands, ..call(Op::CompareExchange, p, order, 0, pc) };
        let apply = || {
            // SAFETY: the program passes a valid atomic.
            let found = unsafe { replace_if(p, expected, operand) };
            let wrote = found == expected;
            Done { found, left: if wrote { operand } else { found }, wrote }
        };
        operate(call, apply, never_stale)
    }

    /// Passes both arguments on the stack: the order of a failure, and the return address.
    #[unsafe(export_name = "__tsan_atomic128_compare_exchange_val")]
    #[unsafe(naked)]
    pub unsafe extern "C" fn compare_exchange_val() {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "sub rsp, 8",
            ".cfi_adjust_cfa_offset 8",
            "push qword ptr [rsp + 8]",
            ".cfi_adjust_cfa_offset 8",
            "push qword ptr [rsp + 24]",
            ".cfi_adjust_cfa_offset 8",
            "call {body}",
            "add rsp, 24",
            ".cfi_adjust_cfa_offset -24",
            "ret",
            ".cfi_endproc",
            body = sym compare_exchange,
        )
    }

    unsafe extern "C" fn compare_exchange_into(
        p: *mut u128,
        expected: *mut u128,
        operand: u128,
        order: c_int,
        failure: c_int,
        pc: usize,
    ) -> c_int {
        // SAFETY: the program passes valid pointers.
        unsafe {
            let wanted = *expected;
            let found = compare_exchange(p, wanted, operand, order, failure, pc);
            if found != wanted {
                *expected = found;
            }
            c_int::from(found == wanted)
        }
    }

    /// Passes the return address on the stack.
    #[unsafe(export_name = "__tsan_atomic128_compare_exchange_strong")]
    #[unsafe(naked)]
    pub unsafe extern "C" fn compare_exchange_strong() {
        core::arch::naked_asm!(
            ".cfi_startproc",
            "push qword ptr [rsp]",
            ".cfi_adjust_cfa_offset 8",
            "call {body}",
            "add rsp, 8",
            ".cfi_adjust_cfa_offset -8",
            "ret",
            ".cfi_endproc",
            body = sym compare_exchange_into,
        )
    }

    /// The weak form is the strong one.
    #[unsafe(export_name = "__tsan_atomic128_compare_exchange_weak")]
    #[unsafe(naked)]
    pub unsafe extern "C" fn compare_exchange_weak() {
        core::arch::naked_asm!("jmp {strong}", strong = sym compare_exchange_strong)
    }
}

/// A fence orders accesses of its own thread. In a sequentially consistent execution it has no
/// effect, except on which accesses are data races. It is not a scheduling point under weak memory
/// either: an execution can be built in any order that extends program order and reads-from
/// (`preempt_system::memory::Weak`), so there is one in which it comes right after the operation
/// before it.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_atomic_thread_fence(order: c_int) {
    crate::race::fence(order as u32);
    log_fence(order as u32);
}

/// A fence for signal handlers of the same thread has no effect here.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_atomic_signal_fence(_order: c_int) {}
