//! The [`Exchange`] of a cluster: the other processes as the search uses them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use preempt_explore::exchange::{Exchange, Inbox, Lost, Place, Round};
use timely::communication::WorkerGuards;

use crate::dataflow::{self, Command, Kind, Mailbox, Packet, Shared};
use crate::faults::Faults;
use crate::join::Joining;
use crate::link::Link;

/// The longest wait before a search polls its limits.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How long a finished search waits until the others have closed their connections.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The processes of a search, connected.
pub struct Cluster {
    place: Place,
    shared: Arc<Shared>,
    faults: Faults,
    links: Vec<Link>,
    /// In a mutex because it cannot be shared.
    guards: Mutex<Option<WorkerGuards<()>>>,
    progress: Mutex<Progress>,
}

/// The progress of this process.
#[derive(Default)]
struct Progress {
    level: u64,
    round: u64,
    /// The number of reports of this process.
    reports: u64,
    /// Reports of processes that are one report ahead of this one, by report number and sender.
    early: BTreeMap<(u64, u32), Vec<u8>>,
    /// Parcels of the level after the next report.
    early_parcels: Vec<Vec<u8>>,
    /// The report before which a process wants to stop.
    stop: Option<u64>,
}

impl Cluster {
    /// Starts the exchange between processes that have joined.
    pub fn start(joining: Joining) -> Result<Cluster, String> {
        let Joining { place, links, faults } = joining;
        let shared = Arc::<Shared>::default();
        let others: Vec<Link> = links.iter().flatten().cloned().collect();
        for link in &others {
            link.heartbeat().map_err(|error| error.to_string())?;
        }
        let guards = match place.processes {
            1 => None,
            _ => Some(dataflow::start(place.process, links, shared.clone(), faults.clone())?),
        };
        let progress = Mutex::default();
        let guards = Mutex::new(guards);
        Ok(Cluster { place, shared, faults, links: others, guards, progress })
    }

    /// The first fault, as a sentence without a full stop.
    pub fn fault(&self) -> Option<&str> {
        self.faults.first()
    }

    /// Ends the exchange. The search is over: all processes have the same result, or a fault.
    pub fn finish(&self) {
        let guards = self.guards.lock().expect("mutex poisoned").take();
        let Some(guards) = guards else { return };
        if let Some(fault) = self.faults.first() {
            self.links.iter().for_each(|link| link.abandon(fault));
            // The threads of the connections wait forever.
            std::mem::forget(guards);
            return;
        }
        self.shared.command(Command::End);
        let (done, ended) = channel();
        let wait = move || {
            drop(guards.join());
            let _ = done.send(());
        };
        // Losing a process now does not change the result.
        if thread::Builder::new().spawn(wait).is_ok() {
            let mut left = CLOSE_TIMEOUT;
            while ended.recv_timeout(POLL_INTERVAL).is_err() && self.faults.first().is_none() {
                match left.checked_sub(POLL_INTERVAL) {
                    Some(less) => left = less,
                    None => return,
                }
            }
        }
    }

    fn fail(&self, why: impl Into<String>) -> Lost {
        self.faults.record(why.into());
        Lost
    }

    /// Waits until a packet has arrived or `is_done` holds, but at most [`POLL_INTERVAL`]. Returns
    /// the packets, and whether `is_done` holds.
    fn wait(&self, is_done: impl Fn(&Mailbox) -> bool) -> Result<(VecDeque<Packet>, bool), Lost> {
        let mut mailbox = self.shared.mailbox.lock().expect("mutex poisoned");
        if mailbox.packets.is_empty() && !is_done(&mailbox) {
            if self.faults.first().is_some() {
                return Err(Lost);
            }
            let waited = self.shared.arrived.wait_timeout(mailbox, POLL_INTERVAL);
            mailbox = waited.expect("mutex poisoned").0;
        }
        if self.faults.first().is_some() {
            return Err(Lost);
        }
        let packets = std::mem::take(&mut mailbox.packets);
        Ok((packets, is_done(&mailbox)))
    }

    /// Sorts packets: the parcels of this level into `parcels`, the rest into `progress`.
    ///
    /// A process sends a report after its parcels of a level have arrived everywhere, and continues
    /// when it has the reports of all. So another process is at most one report ahead.
    fn sort(
        &self,
        packets: VecDeque<Packet>,
        progress: &mut Progress,
        parcels: &mut Vec<Vec<u8>>,
    ) -> Result<(), Lost> {
        for Packet { from, kind, reports, bytes, .. } in packets {
            let is_known = (from as usize) < self.place.processes;
            let ahead = reports.checked_sub(progress.reports).filter(|_| is_known);
            match (kind, ahead) {
                (Kind::Parcel, Some(0)) => parcels.push(bytes),
                (Kind::Parcel, Some(1)) => progress.early_parcels.push(bytes),
                (Kind::Report, Some(0 | 1)) => {
                    progress.early.insert((reports, from), bytes);
                }
                // It may be late: its reason was in a report.
                (Kind::Stop, _) if is_known => progress.stop = progress.stop.max(Some(reports)),
                _ => {
                    return Err(self.fail("another process sent an invalid message"));
                }
            }
        }
        Ok(())
    }

    fn packet(&self, to: usize, kind: Kind, reports: u64, bytes: Vec<u8>) -> Command {
        let from = self.place.process as u32;
        Command::Send(Packet { to: to as u32, from, kind, reports, bytes })
    }

    fn others(&self) -> impl Iterator<Item = usize> + use<> {
        let own = self.place.process;
        (0..self.place.processes).filter(move |&other| other != own)
    }
}

/// A search that ends in another way, with a refusal or a panic: the threads of timely would wait
/// for processes that do not come, so they are left to the end of this process.
impl Drop for Cluster {
    fn drop(&mut self) {
        let guards = self.guards.lock().map(|mut guards| guards.take());
        if let Ok(Some(guards)) = guards {
            self.links.iter().for_each(|link| link.abandon("another process ended the search"));
            std::mem::forget(guards);
        }
    }
}

impl Exchange for Cluster {
    fn place(&self) -> Place {
        self.place
    }

    fn send(&self, to: usize, parcel: Vec<u8>) {
        let reports = self.progress.lock().expect("mutex poisoned").reports;
        self.shared.command(self.packet(to, Kind::Parcel, reports, parcel));
    }

    fn stop(&self) {
        let reports = self.progress.lock().expect("mutex poisoned").reports;
        for other in self.others() {
            self.shared.command(self.packet(other, Kind::Stop, reports, Vec::new()));
        }
    }

    fn end_round(&self, round: Round, inbox: &mut dyn Inbox) -> Result<(), Lost> {
        let over = {
            let mut progress = self.progress.lock().expect("mutex poisoned");
            match round {
                Round::More => progress.round += 1,
                Round::Last => (progress.level, progress.round) = (progress.level + 1, 0),
            }
            let Progress { level, round: number, .. } = *progress;
            self.shared.command(Command::Advance(dataflow::time(level, number)));
            match round {
                Round::More => dataflow::before(level, number),
                Round::Last => dataflow::time(level, 0),
            }
        };
        loop {
            let (packets, is_over) = self.wait(|mailbox| mailbox.frontier >= over)?;
            let is_idle = packets.is_empty();
            let (parcels, is_stopping) = {
                let mut progress = self.progress.lock().expect("mutex poisoned");
                let mut parcels = std::mem::take(&mut progress.early_parcels);
                self.sort(packets, &mut progress, &mut parcels)?;
                (parcels, progress.stop == Some(progress.reports))
            };
            parcels.iter().for_each(|parcel| inbox.receive(parcel));
            if is_stopping {
                inbox.stop();
            }
            if is_over {
                return Ok(());
            }
            if is_idle {
                inbox.idle();
            }
        }
    }

    fn gather(&self, data: Vec<u8>) -> Result<Vec<Vec<u8>>, Lost> {
        if self.faults.first().is_some() {
            return Err(Lost);
        }
        let Place { process, processes, .. } = self.place;
        if processes == 1 {
            return Ok(vec![data]);
        }
        let mut progress = self.progress.lock().expect("mutex poisoned");
        let number = progress.reports;
        for other in self.others() {
            self.shared.command(self.packet(other, Kind::Report, number, data.clone()));
        }
        progress.early.insert((number, process as u32), data);
        loop {
            if progress.early.range((number, 0)..(number + 1, 0)).count() == processes {
                let later = progress.early.split_off(&(number + 1, 0));
                let reports = std::mem::replace(&mut progress.early, later);
                progress.reports += 1;
                return Ok(reports.into_values().collect());
            }
            let (packets, _) = self.wait(|_| false)?;
            let mut parcels = Vec::new();
            self.sort(packets, &mut progress, &mut parcels)?;
            if !parcels.is_empty() {
                return Err(self.fail("another process has sent states after the end of a level"));
            }
        }
    }
}
