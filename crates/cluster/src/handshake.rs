//! The first bytes of a connection: two processes prove to each other that they know the key.
//!
//! Both send a greeting: magic bytes, the version of the protocol, the version of Preempt, and a
//! nonce. Then both send a signature of their role and of both greetings. The nonces make every
//! signature different, so it cannot be replayed; the roles differ, so it cannot be reflected. The
//! keys of the [frames](crate::link) are derived from the greetings, too.
//!
//! Every message here has a size limit and a time limit, because any program may connect.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use crate::faults::Faults;
use crate::key::{self, BYTES, Key};
use crate::link::{Link, Seal};

const MAGIC: &[u8; 16] = b"preempt cluster\n";

/// The version of the protocol.
const FORMAT: u32 = 1;

/// The maximum length of a version name, in bytes.
const NAME: usize = 64;

/// The time for the first bytes of a connection.
const TIME: Duration = Duration::from_secs(5);

/// The side of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that connected.
    Caller,
    /// The side that accepted the connection.
    Callee,
}

impl Role {
    fn name(self) -> &'static [u8] {
        match self {
            Role::Caller => b"caller",
            Role::Callee => b"callee",
        }
    }

    fn other(self) -> Role {
        match self {
            Role::Caller => Role::Callee,
            Role::Callee => Role::Caller,
        }
    }
}

/// The key, the version and the timeout of a process.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The shared key. Empty if there is none.
    pub key: Key,
    /// The version of Preempt.
    pub version: String,
    /// The longest time without a message from another process.
    pub timeout: Duration,
}

/// Why a handshake failed.
#[derive(Debug)]
pub enum Failed {
    /// The connection broke, or took too long.
    Io(io::Error),
    /// The other side is not a process of Preempt.
    NotPreempt,
    /// The other side has this other version.
    Version(String),
    /// The other side does not know the key.
    Key,
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Io(error)
    }
}

impl Failed {
    /// The reason, as the end of a sentence about the other side.
    pub fn explain(&self, ours: &str) -> String {
        match self {
            Failed::Io(error) => format!("cannot be reached: {error}"),
            Failed::NotPreempt => "is not a process of preempt".into(),
            Failed::Version(theirs) => {
                format!("runs preempt {theirs}, and this process preempt {ours}; use one version")
            }
            Failed::Key => "has another key; give all processes the same --cluster-key".into(),
        }
    }
}

/// The greeting of a process.
fn greeting(version: &str, nonce: [u8; BYTES]) -> Vec<u8> {
    let mut greeting = MAGIC.to_vec();
    greeting.extend(FORMAT.to_le_bytes());
    greeting.extend(nonce);
    let name = &version.as_bytes()[..version.len().min(NAME)];
    greeting.push(name.len() as u8);
    greeting.extend(name);
    greeting
}

/// Reads a greeting. Returns its bytes, and the version and the format in it.
fn read_greeting(from: &mut impl io::Read) -> Result<(Vec<u8>, String, u32), Failed> {
    let mut greeting = vec![0; MAGIC.len() + 4 + BYTES + 1];
    from.read_exact(&mut greeting[..MAGIC.len()])?;
    if greeting[..MAGIC.len()] != *MAGIC {
        return Err(Failed::NotPreempt);
    }
    from.read_exact(&mut greeting[MAGIC.len()..])?;
    let (_, rest) = greeting.split_at(MAGIC.len());
    let format = u32::from_le_bytes([rest[0], rest[1], rest[2], rest[3]]);
    let length = usize::from(greeting[greeting.len() - 1]);
    if length > NAME {
        return Err(Failed::NotPreempt);
    }
    let mut name = vec![0; length];
    from.read_exact(&mut name)?;
    greeting.extend(&name);
    let version = String::from_utf8(name).map_err(|_| Failed::NotPreempt)?;
    Ok((greeting, version.chars().filter(|c| !c.is_control()).collect(), format))
}

/// Greets the other side of `socket`, which is called `peer` in messages.
pub fn shake_hands(
    mut socket: TcpStream,
    role: Role,
    identity: &Identity,
    peer: String,
    faults: &Faults,
) -> Result<Link, Failed> {
    socket.set_read_timeout(Some(TIME))?;
    socket.set_write_timeout(Some(TIME))?;
    socket.set_nodelay(true)?;
    let ours = greeting(&identity.version, key::random()?);
    socket.write_all(&ours)?;
    let (theirs, version, format) = read_greeting(&mut socket)?;
    if version != identity.version || format != FORMAT {
        return Err(Failed::Version(version));
    }
    let (caller, callee) = match role {
        Role::Caller => (&ours, &theirs),
        Role::Callee => (&theirs, &ours),
    };
    let key = &identity.key;
    socket.write_all(&key.sign(&[b"proof", role.name(), caller, callee]))?;
    let mut proof = [0; 32];
    socket.read_exact(&mut proof)?;
    if !key.verifies(&[b"proof", role.other().name(), caller, callee], &proof) {
        return Err(Failed::Key);
    }
    // Between machines, others could write to the connection.
    let is_local = socket.peer_addr()?.ip().is_loopback();
    let seal = |sender: Role| match is_local {
        true => Seal::Checksum,
        false => Seal::Signature(Key::new(key.sign(&[b"frames", sender.name(), caller, callee]))),
    };
    let seals = (seal(role), seal(role.other()));
    Ok(Link::new(socket, seals, peer, identity.timeout, faults.clone())?)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn identity(key: &str, version: &str) -> Identity {
        let timeout = Duration::from_secs(5);
        Identity { key: Key::new(key), version: version.into(), timeout }
    }

    /// What both sides of a connection conclude.
    fn both(caller: Identity, callee: Identity) -> [Result<Link, Failed>; 2] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let socket =
            TcpStream::connect(listener.local_addr().unwrap()).expect("the listener is bound");
        let accepted = listener.accept().expect("a connection is pending").0;
        let shake = |socket, role, identity: Identity| {
            shake_hands(socket, role, &identity, "the other".into(), &Faults::default())
        };
        thread::scope(|scope| {
            let callee = scope.spawn(|| shake(accepted, Role::Callee, callee));
            [shake(socket, Role::Caller, caller), callee.join().unwrap()]
        })
    }

    #[test]
    fn two_processes_with_one_key_can_talk() {
        let [caller, callee] = both(identity("k", "1"), identity("k", "1"));
        let (caller, callee) = (
            caller.unwrap_or_else(|e| panic!("{e:?}")),
            callee.unwrap_or_else(|e| panic!("{e:?}")),
        );
        let long: Vec<u8> = (0..3 * crate::link::MOST + 5).map(|i| i as u8).collect();
        let sender = thread::spawn({
            let (caller, long) = (caller.clone(), long.clone());
            move || caller.send_message(&long).unwrap()
        });
        assert!(matches!(callee.receive_message(long.len()), Ok(message) if message == long));
        sender.join().unwrap();
        callee.send_message(b"too long").unwrap();
        assert!(caller.receive_message(7).is_err());
    }

    #[test]
    fn another_key_and_another_version_are_refused_by_both_sides() {
        for side in both(identity("k", "1"), identity("l", "1")) {
            assert!(matches!(side, Err(Failed::Key)));
        }
        let [caller, callee] = both(identity("k", "1"), identity("k", "2"));
        assert!(matches!(caller, Err(Failed::Version(version)) if version == "2"));
        assert!(matches!(callee, Err(Failed::Version(version)) if version == "1"));
    }

    #[test]
    fn a_reflected_proof_is_refused() {
        // Who does not know the key sends back what it receives.
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let socket =
            TcpStream::connect(listener.local_addr().unwrap()).expect("the listener is bound");
        let mirror = thread::spawn(move || {
            let mut socket = listener.accept().expect("a connection is pending").0;
            let mut copy = socket.try_clone().unwrap();
            let _ = io::copy(&mut socket, &mut copy);
        });
        let shaken = shake_hands(
            socket,
            Role::Caller,
            &identity("k", "1"),
            "a mirror".into(),
            &Faults::default(),
        );
        assert!(matches!(shaken, Err(Failed::Key)));
        mirror.join().unwrap();
    }

    #[test]
    fn any_greeting_is_read_or_refused() {
        let whole = greeting("0.1.0", [9; BYTES]);
        assert!(read_greeting(&mut &whole[..]).is_ok());
        for length in 0..whole.len() {
            assert!(read_greeting(&mut &whole[..length]).is_err());
        }
        let mut random = 1u64;
        for round in 0..20_000 {
            let mut bytes = whole.clone();
            for byte in &mut bytes[if round % 2 == 0 { 0 } else { MAGIC.len() }..] {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *byte = (random >> 56) as u8;
            }
            if let Ok((read, version, _)) = read_greeting(&mut &bytes[..]) {
                assert!(read.len() <= whole.len() + NAME && version.len() <= 3 * NAME);
            }
        }
    }
}
