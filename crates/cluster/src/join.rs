//! Connects every two processes of a list of addresses.
//!
//! Process 0 connects to each of the others, which listen, and sends it the *job*: the number of
//! the process, all addresses, and the bytes of the search. The other process accepts the job or
//! gives its reason to refuse. When all have accepted, process 0 tells them to continue, and each
//! connects to the processes between 0 and itself.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs as _};
use std::thread;
use std::time::{Duration, Instant};

use preempt_explore::exchange::{Form, Place};

use crate::faults::Faults;
use crate::handshake::{Failed, Identity, Role, shake_hands};
use crate::key;
use crate::link::{Broken, Link};

/// The maximum size of a job (a model and its options), in bytes.
const MOST_JOB: usize = 80 << 20;

/// The maximum size of any other message, in bytes.
const MOST_MESSAGE: usize = 1 << 16;

/// The maximum number of processes.
pub const MOST_PROCESSES: usize = 1 << 12;

/// Why a process refuses to join, as a sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

/// Why the processes could not join.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unjoined {
    /// A process refuses, or cannot be reached.
    Refused(Refused),
    /// A process ended, or stopped answering, while they joined. A sentence without a full stop.
    Lost(String),
}

impl From<Refused> for Unjoined {
    fn from(refused: Refused) -> Unjoined {
        Unjoined::Refused(refused)
    }
}

impl Unjoined {
    fn of(link: &Link, broken: &Broken) -> Unjoined {
        let why = link.explain(broken);
        match broken {
            Broken::Stream(_) => Unjoined::Lost(why),
            Broken::Frame => Unjoined::Refused(Refused(why)),
        }
    }
}

/// The search in which all processes take part, encoded by the caller.
pub type Job = Vec<u8>;

/// The addresses of all processes, in their order, as `host:port`. That of process 0 is not used:
/// it connects to the others.
pub type Hosts = Vec<String>;

/// Processes that are connected and have accepted the same job.
pub struct Joining {
    /// The position of this process.
    pub place: Place,
    /// The connections, without one to itself.
    pub(crate) links: Vec<Option<Link>>,
    pub(crate) faults: Faults,
}

/// A message as a list of parts, each preceded by its length.
fn message(parts: &[&[u8]]) -> Vec<u8> {
    let mut message = Vec::new();
    for part in parts {
        message.extend((part.len() as u64).to_le_bytes());
        message.extend(*part);
    }
    message
}

/// The parts of a message. `None` if it is not one.
fn parts(mut message: &[u8]) -> Option<Vec<&[u8]>> {
    let mut parts = Vec::new();
    while !message.is_empty() {
        let (length, rest) = message.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (part, rest) = rest.split_at_checked(length)?;
        parts.push(part);
        message = rest;
    }
    Some(parts)
}

fn number(part: &[u8]) -> Option<usize> {
    Some(u32::from_le_bytes(part.try_into().ok()?) as usize)
}

/// The first message of process 0 to another process.
#[derive(Debug, PartialEq, Eq)]
struct Welcome {
    run: Vec<u8>,
    process: usize,
    form: Form,
    hosts: Hosts,
    job: Job,
}

impl Welcome {
    fn write(&self) -> Vec<u8> {
        let form = [u8::from(self.form == Form::Sorted)];
        let process = (self.process as u32).to_le_bytes();
        let mut all: Vec<&[u8]> = vec![&self.run, &process, &form, &self.job];
        all.extend(self.hosts.iter().map(String::as_bytes));
        message(&all)
    }

    fn read(bytes: &[u8]) -> Option<Welcome> {
        let parts = parts(bytes)?;
        let [run, process, form, job, hosts @ ..] = &parts[..] else { return None };
        let form = match form {
            [0] => Form::Raw,
            [1] => Form::Sorted,
            _ => return None,
        };
        let process = number(process)?;
        let is_one = (1..hosts.len()).contains(&process) && hosts.len() <= MOST_PROCESSES;
        let hosts = hosts.iter().map(|host| String::from_utf8(host.to_vec()).ok());
        let hosts = hosts.collect::<Option<Hosts>>()?;
        is_one.then(|| Welcome { run: run.to_vec(), process, form, hosts, job: job.to_vec() })
    }
}

/// The answer to a message.
fn answer(result: Result<(), &str>) -> Vec<u8> {
    match result {
        Ok(()) => message(&[b"yes"]),
        Err(why) => message(&[b"no", why.as_bytes()]),
    }
}

fn read_answer(bytes: &[u8]) -> Option<Result<(), String>> {
    match &parts(bytes)?[..] {
        [b"yes"] => Some(Ok(())),
        [b"no", why] => {
            let why = String::from_utf8_lossy(why);
            Some(Err(why.chars().filter(|c| !c.is_control() || *c == '\n').take(2_000).collect()))
        }
        _ => None,
    }
}

/// The name of a process in messages.
fn name(process: usize, hosts: &[String]) -> String {
    format!("process {process} ({})", hosts[process])
}

fn addresses(host: &str) -> Result<Vec<SocketAddr>, Refused> {
    let found = host.to_socket_addrs().map_err(|error| Refused(format!("{host}: {error}")))?;
    Ok(found.collect())
}

/// Whether all addresses of `host` are loopback addresses.
pub fn is_local(host: &str) -> Result<bool, Refused> {
    Ok(addresses(host)?.iter().map(SocketAddr::ip).all(|ip: IpAddr| ip.is_loopback()))
}

/// Connects to `host`, which may not listen yet.
fn connect(host: &str, deadline: Instant) -> Result<TcpStream, String> {
    loop {
        let mut last = "it has no address".to_owned();
        // The name of a machine that is just starting may not be known yet.
        let found = addresses(host).unwrap_or_else(|Refused(why)| {
            last = why;
            Vec::new()
        });
        for address in &found {
            match TcpStream::connect_timeout(address, Duration::from_secs(5)) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = error.to_string(),
            }
        }
        if Instant::now() >= deadline {
            return Err(last);
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn call(
    process: usize,
    hosts: &[String],
    identity: &Identity,
    deadline: Instant,
    faults: &Faults,
) -> Result<Link, Refused> {
    let name = name(process, hosts);
    let refused = |why: String| Refused(format!("{name} {why}"));
    let socket = connect(&hosts[process], deadline)
        .map_err(|why| refused(format!("cannot be reached: {why}")))?;
    shake_hands(socket, Role::Caller, identity, name.clone(), faults)
        .map_err(|failed: Failed| refused(failed.explain(&identity.version)))
}

/// Receives a message and reads it.
fn receive<T>(
    link: &Link,
    most: usize,
    read: impl FnOnce(&[u8]) -> Option<T>,
) -> Result<T, Unjoined> {
    let received = link.receive_message(most);
    let value = received.and_then(|bytes| read(&bytes).ok_or(Broken::Frame));
    value.map_err(|broken| Unjoined::of(link, &broken))
}

fn send(link: &Link, message: &[u8]) -> Result<(), Unjoined> {
    let sent = link.send_message(message);
    sent.map_err(|error| Unjoined::of(link, &Broken::Stream(error)))
}

/// Process 0: connects to all others and gives them the job.
pub fn lead(
    hosts: Hosts,
    identity: &Identity,
    job: Job,
    timeout: Duration,
) -> Result<Joining, Unjoined> {
    let processes = hosts.len();
    if processes > MOST_PROCESSES {
        return Err(Refused(format!("there can be at most {MOST_PROCESSES} processes")).into());
    }
    let deadline = Instant::now() + timeout;
    let faults = Faults::default();
    let run = key::random().map_err(|error| Refused(format!("no random numbers: {error}")))?;
    let mut is_all_local = true;
    let mut links = vec![None];
    for process in 1..processes {
        links.push(Some(call(process, &hosts, identity, deadline, &faults)?));
        is_all_local &= is_local(&hosts[process])?;
    }
    let form = if is_all_local { Form::Raw } else { Form::Sorted };
    let mut welcome = Welcome { run: run.to_vec(), process: 0, form, hosts, job };
    for (process, link) in links.iter().enumerate() {
        let Some(link) = link else { continue };
        welcome.process = process;
        send(link, &welcome.write())?;
    }
    for link in links.iter().flatten() {
        if let Err(why) = receive(link, MOST_MESSAGE, read_answer)? {
            return Err(Refused(format!("{}: {why}", link.peer())).into());
        }
    }
    for link in links.iter().flatten() {
        send(link, &answer(Ok(())))?;
    }
    Ok(Joining { place: Place { process: 0, processes, form }, links, faults })
}

/// Another process: waits until process 0 has connected to `listener`, and for the processes after
/// this one. `accept` gets the job, the number of this process and the addresses, and may refuse.
pub fn serve<T>(
    listener: &TcpListener,
    identity: &Identity,
    timeout: Option<Duration>,
    accept: impl FnOnce(&[u8], usize, &[String]) -> Result<T, String>,
) -> Result<(Joining, T), Unjoined> {
    let deadline = timeout.map(|timeout| Instant::now() + timeout);
    let faults = Faults::default();
    let (leader, welcome) = loop {
        let socket = next_connection(listener, deadline)
            .map_err(|error| Refused(format!("process 0 did not connect: {error}")))?;
        let from = socket.peer_addr().map_or_else(|_| "?".into(), |address| address.to_string());
        let leader = format!("process 0 ({from})");
        // Connections of other programs are ignored.
        let Ok(link) = shake_hands(socket, Role::Callee, identity, leader, &faults) else {
            continue;
        };
        if let Ok(welcome) = receive(&link, MOST_JOB, Welcome::read) {
            break (link, welcome);
        }
    };
    let Welcome { run, process, form, hosts, job } = welcome;
    let accepted = accept(&job, process, &hosts);
    send(&leader, &answer(accepted.as_ref().map(drop).map_err(String::as_str)))?;
    let accepted = accepted.map_err(Refused)?;
    if receive(&leader, MOST_MESSAGE, read_answer)?.is_err() {
        return Err(Refused(format!("{} ended the search", leader.peer())).into());
    }
    let processes = hosts.len();
    let mut links: Vec<Option<Link>> = vec![None; processes];
    links[0] = Some(leader);
    let deadline = Instant::now() + identity.timeout;
    for (other, place) in links.iter_mut().enumerate().take(process).skip(1) {
        let link = call(other, &hosts, identity, deadline, &faults)?;
        send(&link, &message(&[&run, &(process as u32).to_le_bytes()]))?;
        *place = Some(link);
    }
    while links[process + 1..].iter().any(Option::is_none) {
        let socket = next_connection(listener, Some(deadline)).map_err(|error| {
            let missing = (process + 1..processes).find(|&other| links[other].is_none());
            Refused(format!("{} did not connect: {error}", name(missing.unwrap_or(0), &hosts)))
        })?;
        let unknown = "a process".to_owned();
        let Ok(link) = shake_hands(socket, Role::Callee, identity, unknown, &faults) else {
            continue;
        };
        let introduction = receive(&link, MOST_MESSAGE, |bytes| match &parts(bytes)?[..] {
            [theirs, other] if *theirs == run => number(other),
            _ => None,
        });
        match introduction {
            Ok(other) if other > process && other < processes && links[other].is_none() => {
                links[other] = Some(link.renamed(name(other, &hosts)));
            }
            // A process of another search.
            _ => continue,
        }
    }
    Ok((Joining { place: Place { process, processes, form }, links, faults }, accepted))
}

/// The next connection to `listener`.
fn next_connection(listener: &TcpListener, deadline: Option<Instant>) -> io::Result<TcpStream> {
    let Some(deadline) = deadline else { return listener.accept().map(|(socket, _)| socket) };
    listener.set_nonblocking(true)?;
    loop {
        match listener.accept() {
            Ok((socket, _)) => {
                socket.set_nonblocking(false)?;
                return Ok(socket);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if Instant::now() >= deadline {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                thread::sleep(Duration::from_millis(10));
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn welcome() -> Welcome {
        let hosts = vec!["a:1".into(), "b:2".into(), "c:3".into()];
        let job = b"a model".to_vec();
        Welcome { run: vec![7; 32], process: 2, form: Form::Sorted, hosts, job }
    }

    #[test]
    fn a_welcome_round_trips_and_any_other_bytes_are_refused_or_read() {
        let bytes = welcome().write();
        assert_eq!(Welcome::read(&bytes), Some(welcome()));
        let mut random = 3u64;
        for round in 0..20_000 {
            let mut other = bytes.clone();
            for _ in 0..1 + round % 4 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let at = (random >> 33) as usize % other.len();
                other[at] = (random >> 56) as u8;
            }
            other.truncate(if round % 3 == 0 {
                (random >> 40) as usize % bytes.len()
            } else {
                usize::MAX
            });
            if let Some(read) = Welcome::read(&other) {
                assert!(read.process > 0 && read.process < read.hosts.len());
            }
            let _ = read_answer(&other);
        }
        assert_eq!(read_answer(&answer(Ok(()))), Some(Ok(())));
        assert_eq!(
            read_answer(&answer(Err("other\x1b[1m model"))),
            Some(Err("other[1m model".into()))
        );
    }

    #[test]
    fn loopback_addresses_are_local() {
        for (host, local) in [("127.0.0.1:1", true), ("[::1]:1", true), ("10.0.0.1:1", false)] {
            assert_eq!(is_local(host), Ok(local));
        }
        assert!(is_local("no port").is_err());
    }
}
