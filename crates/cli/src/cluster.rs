//! `--processes`, `--cluster` and `preempt worker`: searches in several processes.
//!
//! Process 0 is the command that the user sees: it reads the model, reports, and prints. The others
//! receive the model and the options from it. With `--processes`, process 0 starts the others
//! itself; they end when it ends, however it ends, because their standard input is a pipe from it.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, Parser as _};
use preempt_cluster::{Cluster, Hosts, Identity, Joining, Key, Unjoined, join};
use preempt_explore::{Limits, Outcome, Plan, Refusal, Search, StoreKind, described};
use preempt_machine::Machine;
use preempt_system::Model as _;
use serde_json::{Value, json};

use crate::args::{Check, Cli, Command as Subcommand};
use crate::cluster_checkpoint::ClusterCheckpoints;
use crate::cluster_environment::{Position, position};
use crate::progress::{Watcher, Wish};
use crate::search::Pick;
use crate::values::{seconds, whole};
use crate::{Exit, Refused, input, output, screen};

/// The longest time without a message from another process, without `--cluster-timeout`.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// Search in N processes on this machine; needs --order bfs
    #[arg(long, value_name = "N", value_parser = whole::<usize>, conflicts_with = "cluster")]
    #[arg(help_heading = "Cluster")]
    pub processes: Option<usize>,
    /// Search in the processes of this file, which has a line host:port for each; auto finds them
    /// in the environment of Slurm or Kubernetes
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub cluster: Option<PathBuf>,
    /// The number of this process in --cluster, from 0. Process 0 reports
    #[arg(long, value_name = "I", value_parser = whole::<usize>, requires = "cluster")]
    #[arg(help_heading = "Cluster")]
    pub process: Option<usize>,
    /// Start the other processes of --cluster by ssh, or by another command
    #[arg(long, value_name = "COMMAND", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "ssh", requires = "cluster", conflicts_with = "process")]
    #[arg(help_heading = "Cluster")]
    pub ssh: Option<String>,
    #[command(flatten)]
    pub trust: TrustArgs,
}

#[derive(Debug, Args)]
pub struct TrustArgs {
    /// File with a secret that all processes of the cluster have; needed between machines
    #[arg(long, value_name = "FILE", help_heading = "Cluster")]
    pub cluster_key: Option<PathBuf>,
    /// Give up when another process has not answered for this long [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Cluster")]
    pub cluster_timeout: Option<Duration>,
}

#[derive(Debug, Args)]
pub struct WorkerArgs {
    /// Address on which to wait for process 0, such as 0.0.0.0:4000; auto finds the port in the
    /// environment
    #[arg(long, value_name = "HOST:PORT")]
    pub listen: String,
    #[command(flatten)]
    pub trust: TrustArgs,
    /// Reads the key from the standard input, ends with it, and prints the address
    #[arg(long, hide = true)]
    pub started: bool,
}

impl ClusterArgs {
    /// Whether the search is to run in several processes.
    pub fn are_used(&self) -> bool {
        self.processes.is_some() || self.cluster.is_some()
    }

    /// Refuses options that cannot be distributed.
    pub fn check(&self, args: &Check, search: &Search) -> Result<(), Refused> {
        let option = if self.processes.is_some() { "--processes" } else { "--cluster" };
        if self.processes == Some(0) {
            return Err(Refused::because("--processes must be at least 1"));
        }
        self.position()?;
        if args.search.order == Pick::Auto {
            return Err(Refused::because(format!("{option} needs --order bfs")));
        }
        search.distributes().map_err(|refusal| Refused::by_engine(&refusal))?;
        let is_sorted = search.plan().store == StoreKind::Sorted;
        if args.spill.is_some() && !is_sorted {
            return Err(Refused::because(format!("--spill with {option} needs --store sorted")));
        }
        if is_sorted && args.checkpoints.are_used() {
            let why = format!("{option} has no checkpoints with --store sorted");
            return Err(Refused::because(why));
        }
        Ok(())
    }

    /// The processes of `--cluster`, and the number of this one.
    pub fn position(&self) -> Result<Option<Position>, Refused> {
        let Some(path) = &self.cluster else { return Ok(None) };
        if path.as_os_str() == AUTO {
            return match (self.process, &self.ssh) {
                (None, None) => environment().map(Some),
                _ => Err(Refused::because("--cluster auto needs neither --process nor --ssh")),
            };
        }
        let hosts = read_hosts(path)?;
        let process = match (self.process, &self.ssh) {
            (Some(process), _) => process,
            (None, Some(_)) => 0,
            (None, None) => return Err(Refused::because("--cluster needs --process or --ssh")),
        };
        match process < hosts.len() {
            true => Ok(Some(Position { process, hosts })),
            false => Err(Refused::because(format!(
                "--process {process}: the cluster has {} processes, numbered from 0",
                hosts.len()
            ))),
        }
    }

    /// The plan of one process: processes of one machine share its memory.
    pub fn shared(&self, plan: Plan, args: &Check) -> Plan {
        let Some(processes) = self.processes.filter(|_| args.search.memory_limit().is_none())
        else {
            return plan;
        };
        let share = |limit: Option<usize>| limit.map(|limit| limit / processes.max(1));
        let Limits { memory, resident, .. } = plan.limits;
        let limits = Limits { memory: share(memory), resident: share(resident), ..plan.limits };
        Plan { limits, ..plan }
    }
}

impl TrustArgs {
    fn identity(&self, key: Option<Key>) -> Result<Identity, Refused> {
        let given = self.cluster_key.as_deref().map(read_key).transpose()?;
        let key = given.or(key).unwrap_or_else(|| Key::new([]));
        let timeout =
            self.cluster_timeout.unwrap_or(DEFAULT_TIMEOUT).max(Duration::from_millis(100));
        Ok(Identity { key, version: env!("CARGO_PKG_VERSION").into(), timeout })
    }

    /// Refuses an address of another machine without a key.
    fn check(&self, host: &str) -> Result<(), Refused> {
        if self.cluster_key.is_some() || join::is_local(host).map_err(refused)? {
            return Ok(());
        }
        let why = format!(
            "{host} is not a loopback address, so others can connect to it: give all processes a \
             secret with --cluster-key FILE"
        );
        Err(Refused::because(why))
    }
}

/// The value of `--cluster` and `--listen` for which the environment is used.
const AUTO: &str = "auto";

fn environment() -> Result<Position, Refused> {
    position(|name| std::env::var(name).ok()).map_err(Refused::because)
}

/// The address on which a process waits whose own address is `host`: on all interfaces, since a
/// name that others use may not be known here yet.
fn everywhere(host: &str) -> String {
    format!("0.0.0.0:{}", host.rsplit_once(':').map_or("0", |(_, port)| port))
}

fn refused(join::Refused(why): join::Refused) -> Refused {
    Refused::because(why)
}

fn read_key(path: &Path) -> Result<Key, Refused> {
    let text = input::read(path)?;
    let key = text.trim();
    if key.len() < 16 {
        let why = format!("the key in {} must have at least 16 characters", path.display());
        return Err(Refused::because(why));
    }
    Ok(Key::new(key))
}

/// The addresses in a file.
fn read_hosts(path: &Path) -> Result<Hosts, Refused> {
    let text = input::read(path)?;
    let hosts: Hosts = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    if hosts.is_empty() {
        return Err(Refused::because(format!(
            "{} lists no process: write one line host:port for each",
            path.display()
        )));
    }
    Ok(hosts)
}

/// Why a search in several processes did not start.
pub enum Unstarted {
    /// Bad input, or a process that refuses.
    Refused(Refused),
    /// A process was lost before the search began. A sentence without a full stop.
    Lost(String),
}

impl From<Refused> for Unstarted {
    fn from(refused: Refused) -> Unstarted {
        Unstarted::Refused(refused)
    }
}

impl From<Unjoined> for Unstarted {
    fn from(unjoined: Unjoined) -> Unstarted {
        match unjoined {
            Unjoined::Refused(why) => Unstarted::Refused(refused(why)),
            Unjoined::Lost(why) => Unstarted::Lost(why),
        }
    }
}

impl Unstarted {
    /// Reports a lost process: the search is incomplete.
    pub fn end(self) -> Result<Exit, Refused> {
        match self {
            Unstarted::Refused(refused) => Err(refused),
            Unstarted::Lost(why) => {
                screen::complain(&format!("error: {why}\n"));
                Ok(Exit::Incomplete)
            }
        }
    }
}

/// The processes of this command.
pub struct Session {
    cluster: Cluster,
    checkpoints: Option<ClusterCheckpoints>,
    /// Those that this process has started.
    _started: Started,
}

impl Session {
    /// Process 0: connects to the others, or starts them.
    pub fn lead(args: &Check, search: &Search) -> Result<Session, Unstarted> {
        let of = &args.cluster;
        let text = input::read(&args.model.file)?;
        let searched = (input::model_hash(&text, &args.model.settings), search);
        let checkpoints = ClusterCheckpoints::open(&args.checkpoints, searched, 0)?;
        let random_key = || {
            Key::random().map_err(|error| {
                Refused::because(format!("cannot get random numbers from the system: {error}"))
            })
        };
        let (hosts, mut started, key) = match (of.position()?, &of.ssh) {
            (Some(Position { hosts, .. }), Some(ssh)) => {
                let key = random_key()?;
                let started = Started::by_ssh(ssh, &hosts, &key, &of.trust)?;
                (hosts, started, Some(key))
            }
            (Some(Position { hosts, .. }), None) => {
                hosts.iter().try_for_each(|host| of.trust.check(host))?;
                (hosts, Started::default(), None)
            }
            (None, _) => {
                let key = random_key()?;
                let (hosts, started) = Started::start(of.processes.unwrap_or(1), &key, &of.trust)?;
                (hosts, started, Some(key))
            }
        };
        let identity = of.trust.identity(key)?;
        let timeout = identity.timeout;
        let job = job(args, &text, search);
        let joined =
            join::lead(hosts, &identity, job, timeout).map_err(|unjoined| match unjoined {
                Unjoined::Refused(join::Refused(why)) if started.has_lost_one() => {
                    Unstarted::Lost(why)
                }
                other => other.into(),
            })?;
        Ok(Session { cluster: start(joined)?, checkpoints, _started: started })
    }

    /// Searches.
    pub fn run(
        &mut self,
        search: &Search,
        machine: Machine,
        watcher: &Watcher,
    ) -> Result<(Outcome, Machine), Refused> {
        let ran = explore(search, machine, watcher, (&self.cluster, &mut self.checkpoints));
        ran.map_err(|refusal| {
            // All processes refuse together. Each waits until the others know.
            self.cluster.finish();
            Refused::by_engine(&refusal)
        })
    }

    /// Ends the exchange with the others, and reports what went wrong and how to resume.
    pub fn finish(self, outcome: &Outcome) {
        let Session { cluster, checkpoints, _started } = self;
        let fault = cluster.fault().map(str::to_owned);
        cluster.finish();
        if let Some(fault) = fault {
            screen::complain(&format!("error: {fault}\n"));
        }
        if let Some(checkpoints) = checkpoints {
            checkpoints.finish(outcome);
        }
    }
}

/// Searches with checkpoints, if they are asked for.
fn explore(
    search: &Search,
    machine: Machine,
    watcher: &Watcher,
    (cluster, checkpoints): (&Cluster, &mut Option<ClusterCheckpoints>),
) -> Result<(Outcome, Machine), Refusal> {
    match checkpoints {
        Some(checkpoints) => checkpoints.run(search, machine, watcher, cluster),
        None => Ok(search.run_distributed(machine, watcher, cluster)),
    }
}

/// Starts the exchange.
fn start(joined: Joining) -> Result<Cluster, Refused> {
    Cluster::start(joined).map_err(|why| Refused::because(format!("cannot exchange states: {why}")))
}

/// What the other processes get from process 0.
fn job(args: &Check, text: &str, search: &Search) -> Vec<u8> {
    let arguments: Vec<String> = std::env::args().collect();
    let job = json!({
        "arguments": arguments,
        "text": text,
        "program": input::model_hash(text, &args.model.settings).to_string(),
        "plan": described(search.plan()),
        "memory": search.plan().limits.memory.filter(|_| args.cluster.processes.is_some()),
    });
    job.to_string().into_bytes()
}

/// The search of a job.
struct Accepted {
    search: Search,
    machine: Machine,
    checkpoints: Option<ClusterCheckpoints>,
}

/// Reads a job.
fn accepted(job: &[u8], process: usize) -> Result<Accepted, String> {
    let invalid = || "it received a job that it cannot read".to_owned();
    let job: Value = serde_json::from_slice(job).map_err(|_| invalid())?;
    let arguments = job["arguments"].as_array().ok_or_else(invalid)?;
    let arguments: Vec<&str> = arguments.iter().filter_map(Value::as_str).collect();
    let parsed = Cli::try_parse_from(arguments).map_err(|_| invalid())?;
    let Subcommand::Check(args) = parsed.command else { return Err(invalid()) };
    let text = job["text"].as_str().ok_or_else(invalid)?;
    let plain = |Refused(text)| anstream::adapter::strip_str(&text).to_string();
    let machine =
        input::load_text(&args.model.file, text.to_owned(), &args.model.settings).map_err(plain)?;
    let mut plan = args.plan(machine.memory_model(), None).map_err(plain)?;
    if let Some(memory) = job["memory"].as_u64() {
        let memory = Some(memory as usize);
        plan.limits = Limits { memory, resident: memory, ..plan.limits };
    }
    agrees(&job, text, &args, &plan)?;
    let mut search = plan.build().map_err(|refusal| refusal.to_string())?;
    if let Some(directory) = &args.spill {
        output::writable_directory(directory, "--spill").map_err(plain)?;
        search = search.spill_to(directory.clone());
    }
    search.distributes().map_err(|refusal| refusal.to_string())?;
    search.suits(&machine).map_err(|refusal| refusal.to_string())?;
    let searched = (input::model_hash(text, &args.model.settings), &search);
    let checkpoints =
        ClusterCheckpoints::open(&args.checkpoints, searched, process).map_err(plain)?;
    Ok(Accepted { search, machine, checkpoints })
}

/// Whether this process searches `text` by `plan` as the job says, or what differs.
fn agrees(job: &Value, text: &str, args: &Check, plan: &Plan) -> Result<(), String> {
    if job["program"].as_str() != Some(&input::model_hash(text, &args.model.settings).to_string()) {
        return Err("its model differs, or its constants (--set)".into());
    }
    let ours = json!(described(plan));
    let (theirs, ours) = (job["plan"].as_array(), ours.as_array());
    let pairs = theirs.into_iter().flatten().zip(ours.into_iter().flatten());
    let differs = |(theirs, ours): &(&Value, &Value)| theirs != ours;
    match pairs.into_iter().find(differs) {
        None if theirs.map(Vec::len) == ours.map(Vec::len) => Ok(()),
        None => Err("its options differ".into()),
        Some((theirs, ours)) => {
            let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
            Err(format!(
                "{} is {} there and {} in process 0",
                text(&ours[0]),
                text(&ours[1]),
                text(&theirs[1])
            ))
        }
    }
}

/// A process of `--cluster` that is not the first: it takes part if its own model and options are
/// those of process 0.
pub fn take_part(args: &Check, plan: &Plan, position: &Position) -> Result<Exit, Refused> {
    let (of, Position { process: number, hosts }) = (&args.cluster, position);
    let (number, is_auto) = (*number, of.process.is_none());
    let host = if is_auto { everywhere(&hosts[number]) } else { hosts[number].clone() };
    of.trust.check(&host)?;
    let identity = of.trust.identity(None)?;
    let text = input::read(&args.model.file)?;
    let listener = listen(&host)?;
    serve(&listener, &identity, Some(identity.timeout), |job, process, theirs| {
        if (process, theirs) != (number, &hosts[..]) {
            return Err("its list of processes or its number differs".into());
        }
        let job: Value = serde_json::from_slice(job).unwrap_or_default();
        agrees(&job, &text, args, plan)
    })
}

/// `preempt worker`.
pub fn work(args: &WorkerArgs) -> Result<Exit, Refused> {
    let key = args.started.then(given_key).transpose()?;
    let host = match args.listen == AUTO {
        true => {
            let Position { process, hosts } = environment()?;
            everywhere(&hosts[process])
        }
        false => args.listen.clone(),
    };
    if key.is_none() {
        args.trust.check(&host)?;
    }
    let identity = args.trust.identity(key)?;
    let listener = listen(&host)?;
    let address = listener.local_addr().map_err(|error| cannot_listen(&host, &error))?;
    let timeout = if args.started {
        println_address(&address.to_string())?;
        Some(identity.timeout)
    } else {
        screen::complain(&format!("waiting for a search on {address}\n"));
        None
    };
    serve(&listener, &identity, timeout, |_, _, _| Ok(()))
}

fn println_address(address: &str) -> Result<(), Refused> {
    let mut stdout = io::stdout();
    let written = writeln!(stdout, "{address}").and_then(|()| stdout.flush());
    written.map_err(|error| Refused::because(format!("cannot print the address: {error}")))
}

/// The key that process 0 has written. From now on this process ends when process 0 does.
fn given_key() -> Result<Key, Refused> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    let key = read.ok().and_then(|_| Key::from_hex(line.trim()));
    thread::spawn(|| {
        // Process 0 writes nothing more; the read returns when the pipe is closed.
        let _ = io::stdin().lock().read_to_end(&mut Vec::new());
        std::process::exit(Exit::Incomplete as i32);
    });
    key.ok_or_else(|| Refused::because("--started is reserved for processes that preempt starts"))
}

fn cannot_listen(host: &str, error: &io::Error) -> Refused {
    Refused::because(format!("cannot listen on {host}: {error}"))
}

fn listen(host: &str) -> Result<TcpListener, Refused> {
    TcpListener::bind(host).map_err(|error| cannot_listen(host, &error))
}

/// Takes part in one search.
fn serve(
    listener: &TcpListener,
    identity: &Identity,
    timeout: Option<Duration>,
    check: impl FnOnce(&[u8], usize, &[String]) -> Result<(), String>,
) -> Result<Exit, Refused> {
    let accept = |job: &[u8], process: usize, hosts: &[String]| {
        check(job, process, hosts)?;
        accepted(job, process)
    };
    let (joined, accepted) = match join::serve(listener, identity, timeout, accept) {
        Ok(joined) => joined,
        Err(unjoined) => return Unstarted::from(unjoined).end(),
    };
    let cluster = start(joined)?;
    let watcher = Watcher::new(Wish::Quiet);
    let Accepted { search, machine, mut checkpoints } = accepted;
    let ran = explore(&search, machine, &watcher, (&cluster, &mut checkpoints));
    let fault = cluster.fault().map(str::to_owned);
    cluster.finish();
    let (outcome, _) = ran.map_err(|refusal| Refused::by_engine(&refusal))?;
    if let Some(fault) = fault {
        screen::complain(&format!("error: {fault}\n"));
        return Ok(Exit::Incomplete);
    }
    Ok(Exit::of(outcome.verdict))
}

/// Processes that this one has started. They end with it.
#[derive(Default)]
struct Started(Vec<Child>);

impl Started {
    /// Starts all processes but this one. Returns their addresses.
    fn start(
        processes: usize,
        key: &Key,
        trust: &TrustArgs,
    ) -> Result<(Hosts, Started), Unstarted> {
        let program = std::env::current_exe().map_err(|error| cannot_start(&error))?;
        let commands = (1..processes).map(|_| {
            let mut command = Command::new(&program);
            command.args(worker_arguments("127.0.0.1:0", trust)).stderr(Stdio::null());
            command
        });
        let (started, addresses) = Started::run(commands.collect(), key, trust)?;
        let hosts = ["this process".to_owned()].into_iter().chain(addresses);
        Ok((hosts.collect(), started))
    }

    /// Starts a process on each host but the first, by a command like ssh: its arguments are the
    /// host and a command for the shell there. The key travels through its standard input.
    fn by_ssh(
        ssh: &str,
        hosts: &[String],
        key: &Key,
        trust: &TrustArgs,
    ) -> Result<Started, Unstarted> {
        let mut words = ssh.split_whitespace();
        let program = words.next().ok_or_else(|| Refused::because("--ssh names no command"))?;
        let mut commands = Vec::new();
        for host in &hosts[1..] {
            let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
            if port.parse::<u16>().is_err() || name.starts_with('-') || name.is_empty() {
                return Err(Refused::because(format!("{host} is not host:port")).into());
            }
            let worker = worker_arguments(&format!("0.0.0.0:{port}"), trust).join(" ");
            let mut command = Command::new(program);
            command.args(words.clone()).arg(name).arg(format!("preempt {worker}"));
            commands.push(command);
        }
        Started::run(commands, key, trust).map(|(started, _)| started)
    }

    /// Runs commands that start a worker each. Returns the addresses that the workers print.
    fn run(
        commands: Vec<Command>,
        key: &Key,
        trust: &TrustArgs,
    ) -> Result<(Started, Hosts), Unstarted> {
        let (mut started, mut addresses) =
            (Started::default(), vec![String::new(); commands.len()]);
        let (tell, told) = channel();
        for (number, mut command) in commands.into_iter().enumerate() {
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().map_err(|error| cannot_start(&error))?;
            let stdin = child.stdin.as_mut().expect("the child has a pipe");
            let written = writeln!(stdin, "{}", key.to_hex()).and_then(|()| stdin.flush());
            let stdout = child.stdout.take().expect("the child has a pipe");
            started.0.push(child);
            let lost = "a process that preempt started has ended or does not answer";
            written.map_err(|_| Unstarted::Lost(lost.to_owned()))?;
            let tell = tell.clone();
            thread::spawn(move || {
                let mut line = String::new();
                let _ = BufReader::new(stdout).read_line(&mut line);
                let _ = tell.send((number, line.trim().to_owned()));
            });
        }
        let deadline = Instant::now() + trust.cluster_timeout.unwrap_or(DEFAULT_TIMEOUT);
        for _ in 0..addresses.len() {
            let left = deadline.saturating_duration_since(Instant::now());
            match told.recv_timeout(left) {
                Ok((number, address)) if !address.is_empty() => addresses[number] = address,
                _ => {
                    let why = "a process that preempt started has ended or does not answer";
                    return Err(Unstarted::Lost(format!("{why}; --cluster-timeout can be raised")));
                }
            }
        }
        Ok((started, addresses))
    }

    /// Whether one of the processes has ended already.
    fn has_lost_one(&mut self) -> bool {
        self.0.iter_mut().any(|child| matches!(child.try_wait(), Ok(Some(_))))
    }
}

fn cannot_start(error: &io::Error) -> Refused {
    Refused::because(format!("cannot start a process: {error}"))
}

/// The arguments of a worker that this process starts.
fn worker_arguments(listen: &str, trust: &TrustArgs) -> Vec<String> {
    let mut words = ["worker", "--started", "--listen", listen].map(str::to_owned).to_vec();
    if let Some(timeout) = trust.cluster_timeout {
        words.extend(["--cluster-timeout".to_owned(), timeout.as_secs_f64().to_string()]);
    }
    words
}

/// How long processes that were started have to end by themselves.
const END: Duration = Duration::from_secs(2);

impl Drop for Started {
    fn drop(&mut self) {
        let deadline = Instant::now() + END;
        for child in &mut self.0 {
            while matches!(child.try_wait(), Ok(None)) && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(5));
            }
            // The process has ended, is stopped, or hangs.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
