//! Methods that only [`AtomicPtr`] has: arithmetic of addresses, and names for pointers in reports.

use std::panic::Location as Site;

use preempt_replay::OpKind;

use super::{AtomicPtr, Ordering};
use crate::runtime::with;

/// A pointer as a value of the memory. Exposes its provenance, since another thread may read it.
#[inline]
pub(super) fn bits<T>(pointer: *mut T) -> u64 {
    pointer.expose_provenance() as u64
}

/// The pointer that was written as these bits.
#[inline]
pub(super) fn of_bits<T>(bits: u64) -> *mut T {
    std::ptr::with_exposed_provenance_mut(bits as usize)
}

/// A pointer in a report. Addresses differ between processes, so pointers are numbered in the order
/// in which the report mentions them.
pub(super) fn shown<T>(pointer: *mut T) -> String {
    if pointer.is_null() {
        return "null".to_owned();
    }
    let number = with(|runtime| {
        let pointers = &mut runtime.notes.pointers;
        let known = pointers.iter().position(|&address| address == pointer.addr());
        known.unwrap_or_else(|| {
            pointers.push(pointer.addr());
            pointers.len() - 1
        })
    });
    format!("ptr{}", number + 1)
}

impl<T> Default for AtomicPtr<T> {
    #[track_caller]
    fn default() -> Self {
        Self::new(std::ptr::null_mut())
    }
}

macro_rules! arithmetic {
    ($($(#[$doc:meta])* $method:ident($old:ident, $operand:ident) => $new:expr;)*) => {
        impl<T> AtomicPtr<T> {
            $(
                $(#[$doc])*
                #[track_caller]
                #[inline]
                pub fn $method(&self, $operand: usize, order: Ordering) -> *mut T {
                    if !self.identity.inside() {
                        return self.inner.$method($operand, order);
                    }
                    let verb = stringify!($method);
                    let words = |old, _| format!("{verb}({:#x}) = {}", $operand, shown(old));
                    let kind = OpKind::Update(order);
                    let (Ok(old) | Err(old)) = self.access(verb, kind, Site::caller(), |$old| Some($new), words);
                    old
                }
            )*
        }
    };
}

arithmetic! {
    /// Adds `operand` elements; returns the old pointer.
    fetch_ptr_add(old, operand) => old.wrapping_add(operand);
    /// Subtracts `operand` elements; returns the old pointer.
    fetch_ptr_sub(old, operand) => old.wrapping_sub(operand);
    /// Adds `operand` bytes; returns the old pointer.
    fetch_byte_add(old, operand) => old.wrapping_byte_add(operand);
    /// Subtracts `operand` bytes; returns the old pointer.
    fetch_byte_sub(old, operand) => old.wrapping_byte_sub(operand);
    /// Bitwise and of the address; returns the old pointer.
    fetch_and(old, operand) => old.map_addr(|address| address & operand);
    /// Bitwise or of the address; returns the old pointer.
    fetch_or(old, operand) => old.map_addr(|address| address | operand);
    /// Bitwise exclusive or of the address; returns the old pointer.
    fetch_xor(old, operand) => old.map_addr(|address| address ^ operand);
}
