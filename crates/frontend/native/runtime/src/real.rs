//! The functions that this library replaces, for calls before the program begins and for the few
//! effects that only the C library can have.

use core::ffi::{c_char, c_int, c_void};

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `RTLD_NEXT`: the next library after this one.
const NEXT: *mut c_void = -1_isize as *mut c_void;

/// The address of the replaced function `name`, which ends with a zero byte. Ends the process if
/// the C library does not have it.
#[cold]
pub fn find(name: &'static str) -> usize {
    // SAFETY: the name ends with a zero byte, as the macro guarantees.
    let found = unsafe { dlsym(NEXT, name.as_ptr().cast()) };
    if found.is_null() {
        crate::sys::exit_group(127 as c_int);
    }
    found as usize
}

/// The replaced function of this name, as a function of this type.
macro_rules! real {
    ($name:ident: $type:ty) => {{
        use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
        static FOUND: AtomicUsize = AtomicUsize::new(0);
        let mut address = FOUND.load(Relaxed);
        if address == 0 {
            address = $crate::real::find(concat!(stringify!($name), "\0"));
            FOUND.store(address, Relaxed);
        }
        // SAFETY: the type is the one that the C library documents for this function.
        unsafe { core::mem::transmute::<usize, $type>(address) }
    }};
}
pub(crate) use real;
