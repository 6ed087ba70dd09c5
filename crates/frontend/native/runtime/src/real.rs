//! The functions of the C library that this library replaces. They are called before the program
//! begins, and for the few effects that only the C library can have.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `RTLD_NEXT`: the next library after this one.
const NEXT: *mut c_void = -1_isize as *mut c_void;

/// A use of a replaced function in this library.
pub struct Use {
    /// The name of the function, which ends with a zero byte.
    pub name: &'static str,
    /// The address of the function, or 0 until it is looked up.
    pub found: &'static AtomicUsize,
}

unsafe extern "C" {
    // The linker defines these symbols for the section `preempt_real`.
    #[link_name = "__start_preempt_real"]
    static FIRST: u8;
    #[link_name = "__stop_preempt_real"]
    static END: u8;
}

/// Looks up all replaced functions. The fork server does this once, because the first lookup of a
/// child would load a dozen pages of the dynamic linker. Functions that this libc does not have
/// keep the address 0.
pub fn prepare() {
    let (mut at, end) = ((&raw const FIRST).cast::<Use>(), (&raw const END).cast::<Use>());
    while at < end {
        // SAFETY: the linker has put all uses between these two addresses.
        let function = unsafe { &*at };
        function.found.store(lookup(function.name).unwrap_or(0), Relaxed);
        // SAFETY: not past the end.
        at = unsafe { at.add(1) };
    }
}

/// The address of a function in the libraries after this one. The name ends with a zero byte.
pub fn lookup(name: &'static str) -> Option<usize> {
    // SAFETY: the name ends with a zero byte.
    let found = unsafe { dlsym(NEXT, name.as_ptr().cast()) };
    (!found.is_null()).then_some(found as usize)
}

/// The address of a function in the libraries after this one, as [`lookup`]. Ends the process if
/// there is none.
#[cold]
pub fn find(name: &'static str) -> usize {
    lookup(name).unwrap_or_else(|| crate::sys::exit_group(127 as c_int))
}

/// The replaced function `$name`, with the type `$type`.
macro_rules! real {
    ($name:ident: $type:ty) => {{
        use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
        static FOUND: AtomicUsize = AtomicUsize::new(0);
        const NAME: &str = concat!(stringify!($name), "\0");
        #[used]
        #[unsafe(link_section = "preempt_real")]
        static USE: $crate::real::Use = $crate::real::Use { name: NAME, found: &FOUND };
        let mut address = FOUND.load(Relaxed);
        if address == 0 {
            address = $crate::real::find(NAME);
            FOUND.store(address, Relaxed);
        }
        // SAFETY: the type is the one that the C library documents for this function.
        unsafe { core::mem::transmute::<usize, $type>(address) }
    }};
}
pub(crate) use real;
