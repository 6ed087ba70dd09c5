//! Sockets between threads of the program: pairs, Unix sockets, and TCP and UDP on this machine.
//!
//! Connections lead to listeners of the same process. A connection to another machine ends the
//! execution. A connection to a port on which the program itself does not listen fails with
//! `ECONNREFUSED`, even if another program listens there, so that executions do not depend on other
//! programs.

use core::ffi::c_int;

use super::descriptor::{AGAIN, Use, announce_io, perform, perform_all, raw, wait_for};
use crate::block::{Call, NEVER};
use crate::descriptors::{READABLE, WRITABLE, Wait, is_nonblocking, without_waiting};
use crate::schedule::{full, runtime, unsupported};
use crate::sys::{self, result};

/// Families of addresses.
const INTERNET: u16 = 2;
const INTERNET6: u16 = 10;

/// `ECONNREFUSED` as the kernel returns it.
const REFUSED: isize = -111;

/// `MSG_DONTWAIT` and `MSG_WAITALL`.
const DO_NOT_WAIT: c_int = 0x40;
const WAIT_FOR_ALL: c_int = 0x100;

/// The destination of an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Destination {
    /// A port of this machine.
    Port(u16),
    /// Another machine.
    Outside,
    /// Another kind of address.
    Other,
}

/// The destination of an address of the program.
///
/// # Safety
///
/// The address is null or valid for reading `len` bytes.
unsafe fn destination(address: *const u8, len: usize) -> Destination {
    if address.is_null() || len < 2 {
        return Destination::Other;
    }
    // SAFETY: the caller guarantees the length.
    unsafe {
        let family = address.cast::<u16>().read_unaligned();
        let byte = |at: usize| *address.add(at);
        let port = || Destination::Port(u16::from_be_bytes([byte(2), byte(3)]));
        match family {
            // All of 127.0.0.0/8, and the unspecified address.
            INTERNET if len >= 8 && (byte(4) == 127 || (4..8).all(|at| byte(at) == 0)) => port(),
            // The unspecified and the loopback address.
            INTERNET6 if len >= 24 && (8..23).all(|at| byte(at) == 0) && byte(23) <= 1 => port(),
            INTERNET | INTERNET6 => Destination::Outside,
            _ => Destination::Other,
        }
    }
}

/// Ports on which the program listens.
pub struct Ports {
    ports: [u16; 64],
    count: usize,
}

impl Ports {
    pub const NONE: Ports = Ports { ports: [0; 64], count: 0 };

    fn add(&mut self, port: u16) {
        if self.count == self.ports.len() {
            full("the program listens on more than 64 ports");
        }
        self.ports[self.count] = port;
        self.count += 1;
    }

    fn contains(&self, port: u16) -> bool {
        self.ports[..self.count].contains(&port)
    }
}

const OUTSIDE: &str = "a connection to another machine";

hook!(fn socket(domain: usize, kind: usize, protocol: usize; pc) -> c_int {
    announce_io(Call::Create, -1, pc);
    result(raw(sys::SOCKET, [domain, kind, protocol])) as c_int
});
hook!(fn bind(fd: c_int, address: *const u8, len: usize; pc) -> c_int {
    announce_io(Call::Bind, fd, pc);
    // SAFETY: the program passes a valid address.
    if let Destination::Port(_) = unsafe { destination(address, len) } {
        // A connection of an earlier execution may still occupy the port.
        const SOCKET_LEVEL: usize = 1;
        const REUSE_ADDRESS: usize = 2;
        let yes = &raw const ONE as usize;
        raw(sys::SETSOCKOPT, [fd as usize, SOCKET_LEVEL, REUSE_ADDRESS, yes, 4]);
    }
    result(raw(sys::BIND, [fd as usize, address as usize, len])) as c_int
});

static ONE: c_int = 1;

hook!(fn listen(fd: c_int, backlog: c_int; pc) -> c_int {
    announce_io(Call::Listen, fd, pc);
    let done = raw(sys::LISTEN, [fd as usize, backlog as usize]);
    let (mut address, mut len) = ([0_u8; 128], 128_u32);
    let (to, room) = (address.as_mut_ptr() as usize, &raw mut len as usize);
    let named = raw(sys::GETSOCKNAME, [fd as usize, to, room]);
    let family = u16::from_ne_bytes([address[0], address[1]]);
    if done == 0 && named == 0 && matches!(family, INTERNET | INTERNET6) {
        runtime().ports.add(u16::from_be_bytes([address[2], address[3]]));
    }
    result(done) as c_int
});

fn accept_one(fd: c_int, address: usize, len: usize, flags: usize, pc: usize) -> c_int {
    let usage = Use { call: Call::Accept, fd, events: READABLE, at_once: false, pc };
    perform(usage, || raw(sys::ACCEPT4, [fd as usize, address, len, flags])) as c_int
}

hook!(fn accept(fd: c_int, address: usize, len: usize; pc) -> c_int {
    accept_one(fd, address, len, 0, pc)
});
hook!(fn accept4(fd: c_int, address: usize, len: usize, flags: usize; pc) -> c_int {
    accept_one(fd, address, len, flags, pc)
});

hook!(fn connect(fd: c_int, address: *const u8, len: usize; pc) -> c_int {
    // SAFETY: the program passes a valid address.
    let destination = unsafe { destination(address, len) };
    let connect = || raw(sys::CONNECT, [fd as usize, address as usize, len]);
    match destination {
        Destination::Outside => unsupported(OUTSIDE),
        Destination::Port(port) => {
            announce_io(Call::Connect, fd, pc);
            let refused = is_stream(fd) && !runtime().ports.contains(port);
            // The listener is in this process, so the kernel completes the connection at once.
            result(if refused { REFUSED } else { connect() }) as c_int
        }
        Destination::Other => {
            announce_io(Call::Connect, fd, pc);
            if is_nonblocking(fd) {
                return result(connect()) as c_int;
            }
            loop {
                let done = without_waiting(fd, connect);
                if done != AGAIN {
                    return result(done) as c_int;
                }
                // The backlog of the listener is full, and the kernel cannot be asked when it is
                // not.
                let since = runtime().descriptor_operations;
                wait_for(Call::Connect, fd, Wait::Change { since }, NEVER, pc);
            }
        }
    }
});

/// Whether a socket is a stream socket.
fn is_stream(fd: c_int) -> bool {
    const SOCKET_LEVEL: usize = 1;
    const TYPE: usize = 3;
    const STREAM: u32 = 1;
    let (mut kind, mut len) = (0_u32, 4_u32);
    let (to, room) = (&raw mut kind as usize, &raw mut len as usize);
    raw(sys::GETSOCKOPT, [fd as usize, SOCKET_LEVEL, TYPE, to, room]) == 0 && kind == STREAM
}

hook!(fn shutdown(fd: c_int, how: usize; pc) -> c_int {
    announce_io(Call::Shutdown, fd, pc);
    result(raw(sys::SHUTDOWN, [fd as usize, how])) as c_int
});

fn receive(
    fd: c_int,
    (to, len): (usize, usize),
    flags: c_int,
    (address, room): (usize, usize),
    pc: usize,
) -> isize {
    let at_once = flags & DO_NOT_WAIT != 0;
    let usage = Use { call: Call::Receive, fd, events: READABLE, at_once, pc };
    let call = |done: usize| {
        let flags = (flags & !WAIT_FOR_ALL) as usize;
        raw(sys::RECVFROM, [fd as usize, to + done, len - done, flags, address, room])
    };
    match flags & WAIT_FOR_ALL != 0 {
        true => perform_all(usage, len, call),
        false => perform(usage, || call(0)),
    }
}

fn send_all(
    fd: c_int,
    (from, len): (usize, usize),
    flags: c_int,
    (address, room): (*const u8, usize),
    pc: usize,
) -> isize {
    // SAFETY: the program passes a valid address, or none.
    if unsafe { destination(address, room) } == Destination::Outside {
        unsupported(OUTSIDE);
    }
    let at_once = flags & DO_NOT_WAIT != 0;
    let usage = Use { call: Call::Send, fd, events: WRITABLE, at_once, pc };
    perform_all(usage, len, |done| {
        let rest = [from + done, len - done];
        let to = [flags as usize, address as usize, room];
        raw(sys::SENDTO, [fd as usize, rest[0], rest[1], to[0], to[1], to[2]])
    })
}

hook!(fn recv(fd: c_int, to: usize, len: usize, flags: c_int; pc) -> isize {
    receive(fd, (to, len), flags, (0, 0), pc)
});
hook!(fn __recv_chk(fd: c_int, to: usize, len: usize, _room: usize, flags: c_int; pc) -> isize {
    receive(fd, (to, len), flags, (0, 0), pc)
});
hook!(fn send(fd: c_int, from: usize, len: usize, flags: c_int; pc) -> isize {
    send_all(fd, (from, len), flags, (core::ptr::null(), 0), pc)
});
hook6!(fn recvfrom(
    fd: c_int, to: usize, len: usize, flags: c_int, address: usize, room: usize; pc
) -> isize {
    receive(fd, (to, len), flags, (address, room), pc)
});
hook6!(fn sendto(
    fd: c_int, from: usize, len: usize, flags: c_int, address: *const u8, room: usize; pc
) -> isize {
    send_all(fd, (from, len), flags, (address, room), pc)
});
hook!(fn recvmsg(fd: c_int, message: usize, flags: c_int; pc) -> isize {
    if flags & WAIT_FOR_ALL != 0 {
        unsupported("`recvmsg` with MSG_WAITALL");
    }
    let at_once = flags & DO_NOT_WAIT != 0;
    let usage = Use { call: Call::Receive, fd, events: READABLE, at_once, pc };
    perform(usage, || raw(sys::RECVMSG, [fd as usize, message, flags as usize]))
});
hook!(fn sendmsg(fd: c_int, message: *const [usize; 2], flags: c_int; pc) -> isize {
    // SAFETY: the program passes a valid message, which begins with an address and its length.
    let [address, room] = unsafe { *message };
    // SAFETY: as above.
    if unsafe { destination(address as *const u8, room & 0xffff_ffff) } == Destination::Outside {
        unsupported(OUTSIDE);
    }
    let at_once = flags & DO_NOT_WAIT != 0;
    let usage = Use { call: Call::Send, fd, events: WRITABLE, at_once, pc };
    // A message that does not fit is sent partially, as POSIX permits; the program has to continue.
    perform(usage, || raw(sys::SENDMSG, [fd as usize, message as usize, flags as usize]))
});
