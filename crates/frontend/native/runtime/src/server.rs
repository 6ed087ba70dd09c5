//! The start of the process and the fork server.
//!
//! The process is started once. Before `main` it becomes a server: for every request it forks a
//! child, which runs the program as one execution, and reports how the child ended. Loading,
//! relocations and constructors happen only once, and all executions begin with the same memory at
//! the same addresses.

use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use crate::block::{Block, ExecutionEnd, FD_VARIABLE, LIBRARY_FD, PADDING_VARIABLE, VERSION};
use crate::hooks;
use crate::real::real;
use crate::schedule::{block, runtime};
use crate::sys::{self, P};
use crate::threads::{begin_main, prepare, prepare_main};

type Main = extern "C-unwind" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

static mut MAIN: Option<Main> = None;

unsafe extern "C" {
    pub fn dl_iterate_phdr(
        each: extern "C" fn(*mut Loaded, usize, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn atexit(handler: extern "C" fn()) -> c_int;
}

/// `struct sigaction` of glibc.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Action {
    handler: usize,
    pub mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

/// Reads the number of the block's file descriptor from the environment. Removes the variables that
/// the controller added, so that the program does not see or inherit them.
///
/// # Safety
///
/// `environment` is the environment of the process, which has only this thread.
unsafe fn take_variables(mut environment: *mut *mut c_char) -> Option<usize> {
    let mut found = None;
    // SAFETY: the list ends with a null pointer, and its entries are strings.
    unsafe {
        while !(*environment).is_null() {
            let entry = core::ffi::CStr::from_ptr(*environment).to_bytes();
            let value = |name: &str| {
                entry.strip_prefix(name.as_bytes()).and_then(|rest| rest.strip_prefix(b"="))
            };
            let ours = value(FD_VARIABLE);
            if let Some(digits) = ours {
                let digit = |number, &digit: &u8| number * 10 + usize::from(digit - b'0');
                found = Some(digits.iter().fold(0, digit));
            }
            let others = ["LD_PRELOAD", PADDING_VARIABLE];
            if ours.is_some() || others.iter().any(|name| value(name).is_some()) {
                let mut rest = environment;
                while !(*rest).is_null() {
                    *rest = *rest.add(1);
                    rest = rest.add(1);
                }
            } else {
                environment = environment.add(1);
            }
        }
    }
    found
}

/// Runs when the library is loaded. Without a controller the library does nothing.
unsafe extern "C" fn load(_: c_int, _: *mut *mut c_char, environment: *mut *mut c_char) {
    // SAFETY: the dynamic linker passes the environment.
    let Some(fd) = (unsafe { take_variables(environment) }) else { return };
    const READ_WRITE: usize = 3;
    const SHARED: usize = 1;
    // SAFETY: a new mapping of the file that the controller passed.
    let mapped =
        unsafe { sys::call(sys::MMAP, [0, size_of::<Block>(), READ_WRITE, SHARED, fd, 0]) };
    if (-4095..0).contains(&mapped) {
        sys::exit_group(126);
    }
    for fd in [fd, LIBRARY_FD as usize] {
        // SAFETY: the controller opened both for this library, which is loaded now.
        unsafe { sys::call(sys::CLOSE, [fd, 0, 0, 0, 0, 0]) };
    }
    runtime().block = mapped as *mut Block;
    prepare();
    // SAFETY: the function only reads what it gets.
    unsafe { dl_iterate_phdr(note_unwinder, core::ptr::null_mut()) };
    // Registered before all handlers of the program, so it runs after them.
    // SAFETY: the handler is valid until the end.
    unsafe { atexit(hooks::process::at_exit) };
}

/// The address range of the unwinder (libgcc_s): its first address, and the first one after it.
static UNWINDER: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

/// Whether an address belongs to the unwinder.
pub fn is_unwinder(pc: usize) -> bool {
    (UNWINDER[0].load(Relaxed)..UNWINDER[1].load(Relaxed)).contains(&pc)
}

/// The beginning of `struct dl_phdr_info`.
#[repr(C)]
pub struct Loaded {
    pub base: usize,
    name: *const c_char,
    pub headers: *const Header,
    pub count: u16,
}

/// `Elf64_Phdr`.
#[repr(C)]
pub struct Header {
    pub kind: u32,
    pub flags: u32,
    offset: u64,
    pub address: u64,
    physical: u64,
    file_size: u64,
    pub memory_size: u64,
    alignment: u64,
}

extern "C" fn note_unwinder(loaded: *mut Loaded, _: usize, _: *mut c_void) -> c_int {
    const CODE_OR_DATA: u32 = 1;
    // SAFETY: the dynamic linker passes valid descriptions.
    unsafe {
        let loaded = &*loaded;
        let name = core::ffi::CStr::from_ptr(loaded.name).to_bytes();
        if name.windows(8).any(|part| part == b"libgcc_s") {
            let headers = core::slice::from_raw_parts(loaded.headers, loaded.count.into());
            let parts = headers.iter().filter(|header| header.kind == CODE_OR_DATA);
            let ends = parts.map(|part| loaded.base + (part.address + part.memory_size) as usize);
            UNWINDER[0].store(loaded.base, Relaxed);
            UNWINDER[1].store(ends.max().unwrap_or(loaded.base), Relaxed);
        }
    }
    0
}

/// Lets children inherit the page tables of the code. `fork` copies the page tables of a mapping
/// only if one of its pages was written; otherwise every child takes page faults for the code that
/// it executes. So this writes one byte of each code segment, without changing it.
extern "C" fn share_code(loaded: *mut Loaded, _: usize, _: *mut c_void) -> c_int {
    const PAGE: usize = 4096;
    const LOADED: u32 = 1;
    const EXECUTABLE: u32 = 1;
    const WRITABLE: u32 = 2;
    const READ_EXECUTE: usize = 5;
    const READ_WRITE_EXECUTE: usize = 7;
    // SAFETY: the dynamic linker passes valid descriptions. No other thread runs, the segments are
    // mapped, and the byte that is written is the one that was read.
    unsafe {
        let loaded = &*loaded;
        let headers = core::slice::from_raw_parts(loaded.headers, loaded.count.into());
        for code in headers.iter().filter(|h| h.kind == LOADED && h.flags & EXECUTABLE != 0) {
            let first = (loaded.base + code.address as usize) & !(PAGE - 1);
            let end = loaded.base + (code.address + code.memory_size) as usize;
            let len = end.next_multiple_of(PAGE) - first;
            let protect = |how| sys::call(sys::MPROTECT, [first, len, how, 0, 0, 0]);
            if code.flags & WRITABLE == 0 && protect(READ_WRITE_EXECUTE) == 0 {
                let byte = first as *mut u8;
                byte.write_volatile(byte.read_volatile());
                protect(READ_EXECUTE);
            }
        }
    }
    0
}

/// Patches the code of the executable, which is the first in the list of loaded objects.
extern "C" fn patch(executable: *mut Loaded, _: usize, _: *mut c_void) -> c_int {
    // SAFETY: the dynamic linker passes valid descriptions.
    let base = unsafe { (*executable).base };
    // SAFETY: the controller has read the addresses in the executable; this is the only thread.
    unsafe {
        crate::entries::patch(base);
        crate::locked::patch(base);
    }
    1
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: unsafe extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) = load;

extern "C-unwind" fn main(count: c_int, args: *mut *mut c_char, env: *mut *mut c_char) -> c_int {
    if !runtime().block.is_null() {
        serve();
        begin_main();
    }
    // SAFETY: set before, and only there.
    let main = unsafe { MAIN };
    main.map_or(127, |main| main(count, args, env))
}

/// Replaces the function of libc that calls `main`.
///
/// # Safety
///
/// As for that function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __libc_start_main(
    program: Main,
    count: c_int,
    args: *mut *mut c_char,
    init: P,
    fini: P,
    loader_fini: P,
    stack_end: P,
) -> c_int {
    // SAFETY: there is only one thread.
    unsafe { MAIN = Some(program) };
    type Real = extern "C-unwind" fn(Main, c_int, *mut *mut c_char, P, P, P, P) -> c_int;
    real!(__libc_start_main: Real)(main, count, args, init, fini, loader_fini, stack_end)
}

/// Does everything that can be done once instead of in every child.
fn prepare_children() {
    crate::descriptors::note_inherited();
    // SAFETY: the function only reads what it gets.
    unsafe { dl_iterate_phdr(patch, core::ptr::null_mut()) };
    crate::race::prepare();
    crate::real::prepare();
    catch_signals();
    prepare_main();
    // SAFETY: the function only reads what it gets.
    unsafe { dl_iterate_phdr(share_code, core::ptr::null_mut()) };
    // Last, because from here on system calls without libc are taken to be the program's.
    block().traps.store(u32::from(crate::trap::install()), Relaxed);
}

/// Serves requests: forks a child for each, and returns only in the child.
fn serve() {
    let block = block();
    let controller = parent();
    // If the process does not fork, its parent is a debugger.
    die_with_parent();
    let server = process();
    let fork = fork_function();
    prepare_children();
    if block.no_fork.load(Relaxed) != 0 {
        return;
    }
    block.ready.store(VERSION, Release);
    sys::wake_shared(&block.ready);
    // The controller numbers requests from 1.
    let mut served = 0;
    loop {
        while block.request.load(Acquire) == served {
            sys::wait_shared(&block.request, served);
            if parent() != controller {
                sys::exit_group(0);
            }
        }
        served = block.request.load(Acquire);
        let status = match fork() {
            0 => {
                begin_child(server);
                return;
            }
            child if child > 0 => await_child(child),
            _ => {
                crate::schedule::write_text(&[b"the fork server could not start a process"]);
                block.outcome.store(ExecutionEnd::Full as u32, SeqCst);
                0
            }
        };
        block.status.store(status as u32, Relaxed);
        block.done.store(served, Release);
        sys::wake_shared(&block.done);
    }
}

/// Sets up a child of the process `server`.
fn begin_child(server: isize) {
    die_with_parent();
    // The server may have died before the kernel was asked to kill this process with it.
    if parent() != server {
        sys::exit_group(0);
    }
    // Rewinds the standard input: if it is a file, all children share its position.
    // SAFETY: no memory is involved.
    unsafe { sys::call(sys::LSEEK, [0; 6]) };
}

/// Waits for the end of a child. Returns its status.
fn await_child(child: c_int) -> c_int {
    let mut status: c_int = 0;
    block().child.store(child, SeqCst);
    let pointer = &raw mut status as usize;
    // SAFETY: the child is ours, and the status is valid for writes.
    while unsafe { sys::call(sys::WAIT4, [child as usize, pointer, 0, 0, 0, 0]) } == EINTR {}
    block().child.store(0, SeqCst);
    status
}

/// The function that forks. `_Fork` of glibc 2.34 and later only forks. `fork` also calls the
/// handlers that the program has registered with `pthread_atfork`, which are not meant for this
/// process, and resets locks, which no thread can hold here.
fn fork_function() -> extern "C-unwind" fn() -> c_int {
    type Fork = extern "C-unwind" fn() -> c_int;
    match crate::real::lookup("_Fork\0") {
        // SAFETY: the type is the one that the C library documents for this function.
        Some(address) => unsafe { core::mem::transmute::<usize, Fork>(address) },
        None => real!(fork: Fork),
    }
}

const EINTR: isize = -4;

fn parent() -> isize {
    // SAFETY: no arguments.
    unsafe { sys::call(sys::GETPPID, [0; 6]) }
}

fn process() -> isize {
    // SAFETY: no arguments.
    unsafe { sys::call(sys::GETPID, [0; 6]) }
}

/// Asks the kernel to kill this process when its parent ends, however that happens.
fn die_with_parent() {
    const SET_DEATH_SIGNAL: usize = 1;
    const KILL: usize = 9;
    // SAFETY: no memory is involved.
    unsafe { sys::call(sys::PRCTL, [SET_DEATH_SIGNAL, KILL, 0, 0, 0, 0]) };
}

/// Sets handlers that record where a fatal signal was raised. If the program sets its own handlers,
/// they replace these.
fn catch_signals() {
    const WITH_INFO: c_int = 4;
    const ON_OTHER_STACK: c_int = 0x0800_0000;
    const ONCE: c_int = 0x8000_0000_u32 as c_int;
    for signal in [4, 7, 8, 11] {
        set_handler(signal, fatal as *const () as usize, WITH_INFO | ON_OTHER_STACK | ONCE);
    }
}

/// Sets the handler of a signal. `handler` is the address of a function whose signature fits
/// `flags`, or 0 for the default action.
pub fn set_handler(signal: c_int, handler: usize, flags: c_int) {
    let action = Action { handler, mask: [0; 16], flags, restorer: 0 };
    let real = real!(sigaction: unsafe extern "C" fn(c_int, *const Action, *mut Action) -> c_int);
    // SAFETY: the action is valid.
    unsafe { real(signal, &action, core::ptr::null_mut()) };
}

/// The handler of fatal signals. The kernel removes it before the call (`SA_RESETHAND`) and
/// executes the instruction again afterwards, so the process dies as it would without the handler.
extern "C" fn fatal(_: c_int, _: *mut c_void, context: *mut c_void) {
    /// The offset of the instruction pointer in `ucontext_t`.
    const RIP: usize = 168;
    // SAFETY: the kernel passes a valid context.
    let pc = unsafe { *context.cast::<u8>().add(RIP).cast::<u64>() };
    block().fault.store(crate::locked::fault_place(pc), SeqCst);
}
