//! Random numbers. They are the same in every execution, so that a schedule determines it.
//!
//! Each thread has its own sequence. With one sequence for all threads, the numbers of a thread
//! would depend on the order of independent steps.

use core::ffi::{c_int, c_uint};

use crate::schedule::runtime;
use crate::threads::me;

/// The next number of the calling thread (splitmix64).
fn next() -> u64 {
    let me = me();
    let state = &mut runtime().threads[me].random;
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = *state ^ ((me as u64) << 32);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// Fills memory of the program with random bytes.
pub fn fill(bytes: *mut u8, len: usize) {
    for at in 0..len {
        // SAFETY: the program passes memory of this length.
        unsafe { *bytes.add(at) = next() as u8 };
    }
}

hook!(fn getrandom(bytes: *mut u8, len: usize, _flags: c_uint; pc) -> isize {
    fill(bytes, len);
    len as isize
});
hook!(fn getentropy(bytes: *mut u8, len: usize; pc) -> c_int {
    fill(bytes, len);
    0
});
hook!(fn arc4random(; pc) -> u32 { next() as u32 });
hook!(fn arc4random_buf(bytes: *mut u8, len: usize; pc) -> () { fill(bytes, len) });
hook!(fn arc4random_uniform(bound: u32; pc) -> u32 {
    if bound < 2 { 0 } else { (next() % u64::from(bound)) as u32 }
});
