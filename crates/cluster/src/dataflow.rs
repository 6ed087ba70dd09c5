//! The dataflow: one operator per process, whose output is its own input, exchanged between the
//! processes.
//!
//! **Time.** A message has the time (level, round) of its sender. The operator holds a capability
//! for its current time, and advances it when the search ends a round or a level. Timely's
//! progress tracking then gives every process the times that are over everywhere: the *frontier*.
//! Apart from the exchange of messages, nothing else of timely is used. The frontier replaces
//! barriers and termination detection:
//!
//! - Round r may begin when the frontier has reached round r - [`WINDOW`]: at most that many
//!   rounds of any process are in flight, which bounds the memory of parcels.
//! - A level is over when the frontier has reached the next one.
//!
//! The operator puts a message into the [mailbox](Mailbox) before the frontier passes its time. So
//! a search that finds the mailbox empty, and reads the frontier under the same lock, has received
//! all messages of earlier times.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, Thread};
use std::time::Duration;

use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::communication::{Hooks, Push, WorkerGuards};
use timely::container::ContainerBuilder;
use timely::dataflow::channels::pact::DistributorPact;
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::dataflow::channels::{ContainerBytes, Message};
use timely::dataflow::operators::core::{ConnectLoop as _, Feedback as _};
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::worker::Worker;
use timely::{Accountable, WorkerConfig};

use crate::faults::Faults;
use crate::link::Link;

/// The number of rounds of a process that may be in flight.
const WINDOW: u64 = 2;

/// The number of bits of a time that contain the round.
const ROUND_BITS: u32 = 24;

/// The time of a round.
pub(crate) fn time(level: u64, round: u64) -> u64 {
    assert!(round < 1 << ROUND_BITS, "a level has fewer rounds");
    level << ROUND_BITS | round
}

/// The time that must be over before this round begins.
pub(crate) fn before(level: u64, round: u64) -> u64 {
    time(level, round.saturating_sub(WINDOW))
}

/// The kind of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// States.
    #[default]
    Parcel,
    /// A request to end the level.
    Stop,
    /// Data for all processes.
    Report,
    /// Bytes that are not a valid packet.
    Unknown,
}

/// A message from one process to another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Packet {
    pub(crate) to: u32,
    pub(crate) from: u32,
    pub(crate) kind: Kind,
    /// The number of reports that the sender had sent before.
    pub(crate) reports: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The number of bytes of a packet before its contents.
const HEAD: usize = 32;

impl ContainerBytes for Packet {
    fn from_bytes(bytes: timely::bytes::arc::Bytes) -> Packet {
        decode(&bytes)
    }

    fn length_in_bytes(&self) -> usize {
        // Timely requires whole words.
        HEAD + self.bytes.len().next_multiple_of(8)
    }

    fn into_bytes<W: io::Write>(&self, writer: &mut W) {
        let kind = self.kind as u32;
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&self.to.to_le_bytes());
        head[4..8].copy_from_slice(&self.from.to_le_bytes());
        head[8..12].copy_from_slice(&kind.to_le_bytes());
        head[16..24].copy_from_slice(&self.reports.to_le_bytes());
        head[24..32].copy_from_slice(&(self.bytes.len() as u64).to_le_bytes());
        let padding = self.bytes.len().next_multiple_of(8) - self.bytes.len();
        let written = writer
            .write_all(&head)
            .and_then(|()| writer.write_all(&self.bytes))
            .and_then(|()| writer.write_all(&[0; 8][..padding]));
        written.expect("timely provides the space that it asked for");
    }
}

/// Decodes a packet. Bytes that are not one become a packet of unknown kind.
fn decode(bytes: &[u8]) -> Packet {
    let read = || {
        let (head, bytes) = bytes.split_first_chunk::<HEAD>()?;
        let half =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let word = |at: usize| u64::from(half(at)) | u64::from(half(at + 4)) << 32;
        let kind = match half(8) {
            0 => Kind::Parcel,
            1 => Kind::Stop,
            2 => Kind::Report,
            _ => return None,
        };
        let length = usize::try_from(word(24)).ok()?;
        let bytes = bytes.get(..length)?.to_vec();
        Some(Packet { to: half(0), from: half(4), kind, reports: word(16), bytes })
    };
    read().unwrap_or(Packet { kind: Kind::Unknown, ..Packet::default() })
}

impl Accountable for Packet {
    fn record_count(&self) -> i64 {
        1
    }
}

/// A container builder that passes packets on unchanged.
#[derive(Default)]
struct Whole;

impl ContainerBuilder for Whole {
    type Container = Packet;

    fn extract(&mut self) -> Option<&mut Packet> {
        None
    }

    fn finish(&mut self) -> Option<&mut Packet> {
        None
    }
}

/// Sends a packet to the process that it names.
struct ByRecipient;

impl Distributor<Packet> for ByRecipient {
    fn partition<T: Clone, P: Push<Message<T, Packet>>>(
        &mut self,
        packet: &mut Packet,
        time: &T,
        pushers: &mut [P],
    ) {
        let to = packet.to as usize;
        Message::push_at(packet, time.clone(), &mut pushers[to]);
    }

    fn flush<T: Clone, P: Push<Message<T, Packet>>>(&mut self, _: &T, _: &mut [P]) {}
}

/// A command of the search to the operator.
pub(crate) enum Command {
    Send(Packet),
    /// Downgrades the capability to this time.
    Advance(u64),
    End,
}

/// The packets that arrived, and the frontier.
#[derive(Default)]
pub(crate) struct Mailbox {
    pub(crate) packets: VecDeque<Packet>,
    /// All times before this one are over.
    pub(crate) frontier: u64,
}

/// The state that the search and the operator share.
#[derive(Default)]
pub(crate) struct Shared {
    commands: Mutex<VecDeque<Command>>,
    /// The thread of the operator.
    thread: Mutex<Option<Thread>>,
    pub(crate) mailbox: Mutex<Mailbox>,
    pub(crate) arrived: Condvar,
}

impl Shared {
    /// Passes a command to the operator.
    pub(crate) fn command(&self, command: Command) {
        self.commands.lock().expect("mutex poisoned").push_back(command);
        if let Some(thread) = &*self.thread.lock().expect("mutex poisoned") {
            thread.unpark();
        }
    }

    fn has_commands(&self) -> bool {
        !self.commands.lock().expect("mutex poisoned").is_empty()
    }
}

/// The longest sleep of the operator's thread.
const MAX_SLEEP: Duration = Duration::from_millis(100);

/// Starts the dataflow of this process.
pub(crate) fn start(
    process: usize,
    links: Vec<Option<Link>>,
    shared: Arc<Shared>,
    faults: Faults,
) -> Result<WorkerGuards<()>, String> {
    let hooks = Hooks::default();
    let inner = ProcessBuilder::new_typed_vector(1, hooks.refill.clone(), hooks.spill.clone());
    let (builders, guard) = initialize_networking_from_sockets(inner, links, process, 1, hooks)
        .map_err(|error| error.to_string())?;
    let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
    let work = move |worker: &mut Worker| run(worker, &shared, &faults);
    timely::execute::execute_from(builders, Box::new(guard), WorkerConfig::default(), work)
}

/// Records a fault if the thread of the operator panics: the search must not wait for it.
struct Watched<'f>(&'f Faults);

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.record("the thread that exchanges states has failed".into());
        }
    }
}

fn run(worker: &mut Worker, shared: &Arc<Shared>, faults: &Faults) {
    let _watched = Watched(faults);
    *shared.thread.lock().expect("mutex poisoned") = Some(thread::current());
    let activator = build(worker, shared.clone());
    while worker.has_dataflows() {
        if faults.first().is_some() {
            // The threads of the connections wait for the end of the process, and so does this one:
            // timely would wait for them, too.
            loop {
                thread::park();
            }
        }
        if shared.has_commands() {
            activator.activate();
        }
        worker.step_or_park(Some(MAX_SLEEP));
    }
}

/// Builds the operator. Returns the activator that makes it read its commands.
fn build(worker: &mut Worker, shared: Arc<Shared>) -> timely::scheduling::Activator {
    worker.dataflow::<u64, _, _>(move |scope| {
        let (again, packets) = scope.feedback::<Packet>(1);
        let mut builder = OperatorBuilder::new("search".into(), scope);
        let activator = scope.activator_for(builder.operator_info().address);
        let mut input = builder.new_input(packets, DistributorPact(|_| ByRecipient));
        let (output, stream) = builder.new_output::<Packet>();
        let mut output = OutputBuilder::<_, Whole>::from(output);
        builder.build_reschedule(move |mut capabilities| {
            let mut capability = capabilities.pop();
            move |frontiers| {
                let mut arrived = VecDeque::new();
                input.for_each(|_, packet| arrived.push_back(std::mem::take(packet)));
                let commands =
                    std::mem::take(&mut *shared.commands.lock().expect("mutex poisoned"));
                if !commands.is_empty() {
                    let mut output = output.activate();
                    for command in commands {
                        match (command, &mut capability) {
                            (Command::Send(mut packet), Some(capability)) => {
                                output
                                    .session_with_builder(&*capability)
                                    .give_container(&mut packet);
                            }
                            (Command::Advance(time), Some(capability)) => {
                                capability.downgrade(&time)
                            }
                            (Command::End, _) => capability = None,
                            (_, None) => unreachable!("the search sends no command after the last"),
                        }
                    }
                }
                let frontier = frontiers[0].frontier().first().copied().unwrap_or(u64::MAX);
                let mut mailbox = shared.mailbox.lock().expect("mutex poisoned");
                if !arrived.is_empty() || frontier != mailbox.frontier {
                    mailbox.packets.append(&mut arrived);
                    mailbox.frontier = frontier;
                    shared.arrived.notify_all();
                }
                false
            }
        });
        stream.connect_loop(again);
        activator
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_round_trip_and_any_bytes_decode() {
        for (length, kind) in [(0, Kind::Parcel), (5, Kind::Stop), (64, Kind::Report)] {
            let bytes: Vec<u8> = (0..length).collect();
            let packet = Packet { to: 3, from: 1, kind, reports: 1 << 40, bytes };
            let mut written = Vec::new();
            packet.into_bytes(&mut written);
            assert_eq!(written.len(), packet.length_in_bytes());
            let read = decode(&written);
            assert_eq!((read.to, read.from, read.kind, read.reports), (3, 1, kind, 1 << 40));
            assert_eq!(read.bytes, packet.bytes);
            for cut in 0..HEAD + usize::from(length) {
                assert_eq!(decode(&written[..cut]).kind, Kind::Unknown);
            }
        }
        let mut random = 5u64;
        for round in 0..20_000 {
            let mut byte = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 56) as u8
            };
            let mut bytes: Vec<u8> = (0..round % 100).map(|_| byte()).collect();
            if bytes.len() >= HEAD {
                bytes[9..12].fill(0);
                bytes[8] &= 3;
                bytes[25..32].fill(0);
            }
            let packet = decode(&bytes);
            assert!(packet.bytes.len() <= bytes.len());
        }
    }
}
