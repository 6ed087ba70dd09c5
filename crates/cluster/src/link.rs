//! A connection between two processes.
//!
//! Bytes travel in frames: eight bytes with the length, the kind and zeros, then the payload, then
//! its seal. The seal depends on the number of the frame in its direction, so frames cannot be
//! dropped, repeated or exchanged:
//!
//! - Between processes of one machine it is a checksum, because no other program can write to an
//!   existing loopback connection, and the handshake has authenticated both ends.
//! - Between machines it is a signature with a key of this connection and direction.
//!
//! A frame with a wrong seal, an unknown kind or an excessive length is a fault. So is the end of
//! the stream without a close frame, and so is silence: processes send
//! [heartbeats](Link::heartbeat) when they have nothing else to send.
//!
//! **Faults.** [`Read`] and [`Write`] are called by threads of timely, which would panic if they
//! got an error. So after a fault these threads wait forever. The thread that waits for other
//! processes polls [`Faults`] and ends the process.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use rapidhash::v3::rapidhash_v3;
use timely::communication::allocator::zero_copy::stream::Stream;

use crate::faults::Faults;
use crate::key::Key;

/// The maximum number of bytes of a frame's payload.
pub const MOST: usize = 1 << 20;

const HEAD: usize = 8;
const DATA: u8 = 0;
const HEARTBEAT: u8 = 1;
const CLOSE: u8 = 2;
const FAULT: u8 = 3;

/// The seal of the frames of a connection.
#[derive(Clone, Debug)]
pub enum Seal {
    /// A checksum.
    Checksum,
    /// A signature with this key.
    Signature(Key),
}

impl Seal {
    fn bytes(&self) -> usize {
        match self {
            Seal::Checksum => 8,
            Seal::Signature(_) => 32,
        }
    }

    fn of(&self, number: u64, head: &[u8], payload: &[u8]) -> Vec<u8> {
        match self {
            Seal::Checksum => {
                let mut sum = [0; HEAD + 16];
                sum[..8].copy_from_slice(&number.to_le_bytes());
                sum[8..8 + HEAD].copy_from_slice(head);
                sum[8 + HEAD..].copy_from_slice(&rapidhash_v3(payload).to_le_bytes());
                rapidhash_v3(&sum).to_le_bytes().to_vec()
            }
            Seal::Signature(key) => key.sign(&[&number.to_le_bytes(), head, payload]).to_vec(),
        }
    }

    fn fits(&self, number: u64, head: &[u8], payload: &[u8], seal: &[u8]) -> bool {
        match self {
            Seal::Checksum => self.of(number, head, payload) == seal,
            Seal::Signature(key) => key.verifies(&[&number.to_le_bytes(), head, payload], seal),
        }
    }
}

/// Why a frame could not be read.
#[derive(Debug)]
pub enum Broken {
    /// The connection ended, or nothing arrived for too long.
    Stream(io::Error),
    /// The bytes are not a frame of this connection.
    Frame,
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Broken {
        Broken::Stream(error)
    }
}

/// Frames in one direction.
#[derive(Debug)]
pub struct Frames {
    seal: Seal,
    number: u64,
}

impl Frames {
    /// Frames with this kind of seal.
    pub fn new(seal: Seal) -> Frames {
        Frames { seal, number: 0 }
    }

    /// Appends the next frame to `bytes`.
    fn put(&mut self, kind: u8, payload: &[u8], bytes: &mut Vec<u8>) {
        let length = u32::try_from(payload.len()).expect("payloads are cut into frames");
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&length.to_le_bytes());
        head[4] = kind;
        bytes.extend(head);
        bytes.extend(payload);
        bytes.extend(self.seal.of(self.number, &head, payload));
        self.number += 1;
    }

    /// Reads the next frame into `payload`. Returns its kind.
    pub fn take(&mut self, from: &mut impl Read, payload: &mut Vec<u8>) -> Result<u8, Broken> {
        let mut head = [0; HEAD];
        from.read_exact(&mut head)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if length > MOST || head[4] > FAULT || head[5..] != [0; 3] {
            return Err(Broken::Frame);
        }
        payload.resize(length + self.seal.bytes(), 0);
        from.read_exact(payload)?;
        let (text, seal) = payload.split_at(length);
        if !self.seal.fits(self.number, &head, text, seal) {
            return Err(Broken::Frame);
        }
        payload.truncate(length);
        self.number += 1;
        Ok(head[4])
    }
}

struct Writing {
    socket: TcpStream,
    frames: Frames,
    bytes: Vec<u8>,
    closed: bool,
}

struct Reading {
    socket: TcpStream,
    frames: Frames,
    payload: Vec<u8>,
    /// The number of payload bytes that were passed on.
    taken: usize,
    closed: bool,
}

struct Connection {
    /// The other process, as messages name it.
    peer: String,
    /// The longest time without a frame.
    timeout: Duration,
    writing: Mutex<Writing>,
    reading: Mutex<Reading>,
    faults: Faults,
}

/// A connection to another process. Clones are the same connection.
#[derive(Clone)]
pub struct Link(Arc<Connection>);

impl Link {
    /// Takes over a connected socket after the handshake.
    pub fn new(
        socket: TcpStream,
        (sending, receiving): (Seal, Seal),
        peer: String,
        timeout: Duration,
        faults: Faults,
    ) -> io::Result<Link> {
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        let writing = Writing {
            socket: socket.try_clone()?,
            frames: Frames::new(sending),
            bytes: Vec::new(),
            closed: false,
        };
        let reading = Reading {
            socket,
            frames: Frames::new(receiving),
            payload: Vec::new(),
            taken: 0,
            closed: false,
        };
        let (writing, reading) = (Mutex::new(writing), Mutex::new(reading));
        Ok(Link(Arc::new(Connection { peer, timeout, writing, reading, faults })))
    }

    /// The same connection, with another name of the other process.
    pub(crate) fn renamed(mut self, peer: String) -> Link {
        Arc::get_mut(&mut self.0).expect("no thread has the connection yet").peer = peer;
        self
    }

    /// Sends heartbeats from now on, from a thread of its own: a connection that is blocked must
    /// not delay the heartbeats of others.
    pub fn heartbeat(&self) -> io::Result<()> {
        let link = self.clone();
        let beat = move || {
            loop {
                thread::sleep(link.0.timeout / 5);
                if link.0.faults.first().is_some() {
                    return;
                }
                // If it is locked, a frame is being sent, which serves as a heartbeat.
                if let Ok(mut writing) = link.0.writing.try_lock() {
                    if writing.closed {
                        return;
                    }
                    if let Err(error) = send(&mut writing, HEARTBEAT, &[]) {
                        return link.fail(&error);
                    }
                }
            }
        };
        thread::Builder::new().name("heartbeat".into()).spawn(beat).map(drop)
    }

    /// Sends the reason why this process ends, unless the connection is blocked.
    pub fn abandon(&self, why: &str) {
        if let Ok(mut writing) = self.0.writing.try_lock()
            && !writing.closed
        {
            writing.closed = true;
            // The other process may have ended, or may not be reading.
            let _ = writing.socket.set_write_timeout(Some(Duration::from_millis(200)));
            let _ = send(&mut writing, FAULT, &why.as_bytes()[..why.len().min(MOST)]);
            let _ = writing.socket.shutdown(Shutdown::Write);
        }
    }

    /// Sends a message and its length.
    pub fn send_message(&self, message: &[u8]) -> io::Result<()> {
        let mut writing = self.writing();
        let length = (message.len() as u64).to_le_bytes();
        send(&mut writing, DATA, &length)?;
        message.chunks(MOST).try_for_each(|part| send(&mut writing, DATA, part))
    }

    /// Receives a message of at most `most` bytes.
    pub fn receive_message(&self, most: usize) -> Result<Vec<u8>, Broken> {
        let mut reading = self.0.reading.lock().expect("mutex poisoned");
        let Reading { socket, frames, payload, .. } = &mut *reading;
        let mut next = |payload: &mut Vec<u8>| loop {
            match frames.take(socket, payload)? {
                HEARTBEAT => {}
                DATA => return Ok(()),
                _ => return Err(Broken::Frame),
            }
        };
        next(payload)?;
        let length: [u8; 8] = payload[..].try_into().map_err(|_| Broken::Frame)?;
        let length = u64::from_le_bytes(length);
        if length > most as u64 {
            return Err(Broken::Frame);
        }
        let mut message = Vec::new();
        while (message.len() as u64) < length {
            next(payload)?;
            if payload.is_empty() {
                return Err(Broken::Frame);
            }
            message.append(payload);
        }
        let whole = message.len() as u64 == length;
        payload.clear();
        if whole { Ok(message) } else { Err(Broken::Frame) }
    }

    /// The other process, as messages name it.
    pub fn peer(&self) -> &str {
        &self.0.peer
    }

    /// Explains a broken connection.
    pub fn explain(&self, broken: &Broken) -> String {
        let Connection { peer, timeout, .. } = &*self.0;
        match broken {
            Broken::Frame => format!("{peer} sent an invalid frame"),
            Broken::Stream(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    format!("{peer} has not answered for {} s", timeout.as_secs_f32())
                }
                ErrorKind::UnexpectedEof
                | ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe => format!("{peer} is gone"),
                _ => format!("the connection to {peer} is broken: {error}"),
            },
        }
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.0.writing.lock().expect("mutex poisoned")
    }

    fn fail(&self, error: &io::Error) {
        let error = Broken::Stream(io::Error::from(error.kind()));
        self.0.faults.record(self.explain(&error));
    }
}

/// Sends a frame.
fn send(writing: &mut Writing, kind: u8, payload: &[u8]) -> io::Result<()> {
    writing.bytes.clear();
    writing.frames.put(kind, payload, &mut writing.bytes);
    writing.socket.write_all(&writing.bytes)
}

/// A thread of timely waits for the end of the process.
fn wait_forever() -> ! {
    loop {
        thread::park();
    }
}

impl Read for Link {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut guard = self.0.reading.lock().expect("mutex poisoned");
        let reading = &mut *guard;
        while reading.taken == reading.payload.len() {
            if reading.closed {
                return Ok(0);
            }
            reading.taken = 0;
            reading.payload.clear();
            match reading.frames.take(&mut reading.socket, &mut reading.payload) {
                Ok(DATA) => {}
                Ok(HEARTBEAT) => reading.payload.clear(),
                Ok(CLOSE) => {
                    reading.payload.clear();
                    reading.closed = true;
                }
                Ok(_) => {
                    let why = String::from_utf8_lossy(&reading.payload);
                    // The text is printed on a terminal.
                    let plain = |c: &char| !c.is_control();
                    self.0.faults.record(why.chars().filter(plain).take(500).collect());
                    drop(guard);
                    wait_forever()
                }
                Err(broken) => {
                    self.0.faults.record(self.explain(&broken));
                    drop(guard);
                    wait_forever()
                }
            }
        }
        let left = &reading.payload[reading.taken..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        reading.taken += count;
        Ok(count)
    }
}

impl Write for Link {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = bytes.len().min(MOST);
        let mut writing = self.writing();
        if writing.closed {
            // This process is ending.
            drop(writing);
            wait_forever()
        }
        match send(&mut writing, DATA, &bytes[..count]) {
            Ok(()) => Ok(count),
            Err(error) => {
                drop(writing);
                self.fail(&error);
                wait_forever()
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Link {
    fn try_clone(&self) -> io::Result<Link> {
        Ok(self.clone())
    }

    fn set_nonblocking(&self, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn shutdown(&self, _: Shutdown) -> io::Result<()> {
        let mut writing = self.writing();
        if !writing.closed {
            writing.closed = true;
            // The search has its result; a process that has already ended does not change it.
            let _ = send(&mut writing, CLOSE, &[]);
            let _ = writing.socket.shutdown(Shutdown::Write);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(seal: &Seal) -> (Vec<u8>, Vec<usize>) {
        let (mut frames, mut bytes, mut ends) = (Frames::new(seal.clone()), Vec::new(), vec![0]);
        for (kind, payload) in [(DATA, &b"states"[..]), (HEARTBEAT, b""), (CLOSE, b"")] {
            frames.put(kind, payload, &mut bytes);
            ends.push(bytes.len());
        }
        (bytes, ends)
    }

    fn seals() -> [Seal; 2] {
        [Seal::Checksum, Seal::Signature(Key::new("secret"))]
    }

    #[test]
    fn frames_round_trip_and_damage_is_detected() {
        for seal in seals() {
            let (bytes, ends) = frames(&seal);
            let read = |bytes: &[u8]| {
                let (mut from, mut frames) = (bytes, Frames::new(seal.clone()));
                let mut payload = Vec::new();
                let kinds = (0..3).map(|_| frames.take(&mut from, &mut payload));
                kinds.collect::<Result<Vec<u8>, Broken>>()
            };
            assert!(matches!(read(&bytes), Ok(kinds) if kinds == [DATA, HEARTBEAT, CLOSE]));
            for length in 0..bytes.len() {
                assert!(read(&bytes[..length]).is_err(), "cut at {length}");
            }
            for bit in 0..8 * bytes.len() {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(read(&damaged).is_err(), "bit {bit}");
            }
            // Frames that are dropped, repeated or reordered.
            let frame = |number: usize| &bytes[ends[number]..ends[number + 1]];
            for order in [[1, 2, 2], [0, 0, 1], [0, 2, 1], [1, 0, 2]] {
                assert!(read(&order.map(frame).concat()).is_err(), "{order:?}");
            }
        }
    }

    #[test]
    fn random_bytes_are_refused_without_reserving_memory() {
        let mut random = 7u64;
        let mut byte = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 56) as u8
        };
        for seal in seals() {
            for _ in 0..5_000 {
                let mut bytes: Vec<u8> = (0..100).map(|_| byte()).collect();
                // Most lengths are too large otherwise.
                (bytes[1] & 1 == 0).then(|| bytes[1..8].fill(0));
                let mut payload = Vec::new();
                let frame = Frames::new(seal.clone()).take(&mut &bytes[..], &mut payload);
                assert!(frame.is_err());
                assert!(payload.capacity() <= 2 * MOST);
            }
        }
    }

    #[test]
    fn another_key_gives_another_seal() {
        let (bytes, _) = frames(&seals()[1]);
        let mut other = Frames::new(Seal::Signature(Key::new("guess")));
        assert!(matches!(other.take(&mut &bytes[..], &mut Vec::new()), Err(Broken::Frame)));
    }
}
