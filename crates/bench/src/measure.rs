//! CPU time and peak memory of a search, measured in a child process.

use std::fmt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use preempt_explore::{Cache, Limits, Order, Plan, Silent, StoreKind};

use crate::papers::cartesian::CARTESIAN;

/// A search of Preempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    /// Over states, breadth first, without reduction.
    Full,
    /// The same with sorted runs instead of a table, in files when memory runs out.
    Sorted,
    /// Over states, with cartesian reduction.
    Cartesian,
    /// Over executions within a bound on preemptions, with a table of happens-before graphs instead
    /// of states.
    Icb {
        /// The greatest number of preemptions.
        bound: u32,
    },
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Search::Full => f.write_str("full"),
            Search::Sorted => f.write_str("sorted"),
            Search::Cartesian => f.write_str("cartesian"),
            Search::Icb { bound } => write!(f, "icb:{bound}"),
        }
    }
}

impl FromStr for Search {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Search> {
        match (word, word.strip_prefix("icb:")) {
            ("full", _) => Ok(Search::Full),
            ("sorted", _) => Ok(Search::Sorted),
            ("cartesian", _) => Ok(Search::Cartesian),
            (_, Some(bound)) => {
                Ok(Search::Icb { bound: bound.parse().context("icb:BOUND has a number")? })
            }
            _ => Err(anyhow!("{word:?} is not a search: use full, sorted, cartesian or icb:BOUND")),
        }
    }
}

impl Search {
    fn plan(self) -> Plan {
        match self {
            Search::Full => Plan::new(),
            Search::Sorted => Plan::new().store(StoreKind::Sorted),
            Search::Cartesian => Plan::new().reduction(CARTESIAN),
            Search::Icb { bound } => {
                Plan::new().order(Order::Icb { cache: Cache::Hb }).bound(bound)
            }
        }
    }
}

/// The limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Cap {
    /// Memory, in units of 2^20 bytes.
    pub megabytes: usize,
    /// Elapsed time, in SPIN's unit.
    pub minutes: u64,
}

/// The counts and costs of one run.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Distinct states; for a search over executions, distinct happens-before graphs.
    pub states: u64,
    /// Transitions.
    pub transitions: u64,
    /// CPU time of the process with all its threads and children.
    pub seconds: f64,
    /// Elapsed time, which includes other work on the machine.
    pub wall: f64,
    /// Peak memory of the process.
    pub peak_bytes: u64,
    /// The most bytes in files.
    pub disk_bytes: u64,
    /// Whether the search was complete; otherwise the figures are those at the limit.
    pub complete: bool,
}

impl Measured {
    /// Million transitions per CPU-second.
    pub fn rate(&self) -> f64 {
        self.transitions as f64 / self.seconds.max(0.01) / 1e6
    }

    /// Million states per CPU-second.
    pub fn states_rate(&self) -> f64 {
        self.states as f64 / self.seconds.max(0.01) / 1e6
    }

    /// Peak memory per state.
    pub fn bytes_per_state(&self) -> f64 {
        self.peak_bytes as f64 / self.states as f64
    }
}

/// Searches a model in a child process (this program, command `one`) with several workers.
pub fn in_child(
    search: Search,
    jobs: usize,
    model: &Path,
    settings: &[String],
    cap: Cap,
) -> Result<Measured> {
    let numbers = [jobs.to_string(), cap.megabytes.to_string(), cap.minutes.to_string()];
    let me = std::env::current_exe()?;
    let output = Command::new(me)
        .args(["one", &search.to_string()])
        .args(numbers)
        .arg(model)
        .args(settings)
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Measured::parse(&String::from_utf8(output.stdout)?)
}

impl Measured {
    /// One line, for the parent process.
    pub fn line(&self) -> String {
        let Measured { states, transitions, seconds, wall, peak_bytes, disk_bytes, complete } =
            self;
        format!("{states} {transitions} {seconds} {wall} {peak_bytes} {disk_bytes} {complete}")
    }

    /// Parses the result of [`line`](Measured::line).
    pub fn parse(line: &str) -> Result<Measured> {
        let mut words = line.split_whitespace();
        let mut next =
            || words.next().ok_or_else(|| anyhow!("seven figures expected, not {line:?}"));
        Ok(Measured {
            states: next()?.parse()?,
            transitions: next()?.parse()?,
            seconds: next()?.parse()?,
            wall: next()?.parse()?,
            peak_bytes: next()?.parse()?,
            disk_bytes: next()?.parse()?,
            complete: next()?.parse()?,
        })
    }
}

/// Searches a model once in this process and prints the result for [`in_child`].
pub fn one(search: Search, jobs: usize, model: &Path, settings: &[String], cap: Cap) -> Result<()> {
    println!("{}", here(search, jobs, model, settings, cap)?.line());
    Ok(())
}

/// Searches a model in this process. Time and memory are those of the process since its start.
pub fn here(
    search: Search,
    jobs: usize,
    model: &Path,
    settings: &[String],
    cap: Cap,
) -> Result<Measured> {
    let settings: Vec<(String, String)> = settings
        .iter()
        .map(|s| {
            s.split_once('=')
                .map(|(n, v)| (n.to_owned(), v.to_owned()))
                .context("settings are NAME=VALUE")
        })
        .collect::<Result<_>>()?;
    let machine = crate::corpus::machine(model, &settings)?;
    let limits = Limits {
        memory: Some(cap.megabytes << 20),
        time: Some(Duration::from_secs(60 * cap.minutes)),
        ..Limits::default()
    };
    let plan = search.plan().limits(limits).jobs(jobs).keep_going();
    let mut full = plan.build().map_err(|refusal| anyhow!("{refusal}"))?;
    if search == Search::Sorted {
        full = full.spill_to(std::env::temp_dir());
    }
    let (outcome, _) = full.run(machine, &Silent);
    let seen = outcome.coverage;
    let (states, transitions) = match outcome.tally {
        Some(tally) => (tally.graphs.context("graphs are counted by default")?, tally.steps),
        None => (seen.states, seen.transitions),
    };
    Ok(Measured {
        states,
        transitions,
        seconds: own_seconds()?,
        wall: outcome.elapsed.as_secs_f64(),
        peak_bytes: own_peak()?,
        disk_bytes: outcome.spilled_bytes,
        complete: match search {
            // A bound that was explored counts as complete, although there are executions beyond
            // it.
            Search::Icb { .. } => outcome.stopped.is_none(),
            Search::Full | Search::Sorted | Search::Cartesian => outcome.complete,
        },
    })
}

/// Repeats a run of child processes, at most 50 times, until it took `at_least` CPU-seconds: the
/// kernel measures in hundredths. The time is the mean, including the start of the process.
pub fn repeated(at_least: f64, run: impl Fn() -> Result<Measured>) -> Result<Measured> {
    let before = children_seconds()?;
    let mut runs = 0;
    loop {
        let measured = run()?;
        let seconds = children_seconds()? - before;
        runs += 1;
        if seconds >= at_least || runs == 50 {
            return Ok(Measured { seconds: seconds / f64::from(runs), ..measured });
        }
    }
}

/// Peak memory of this process, in bytes.
pub fn own_peak() -> Result<u64> {
    let kilobytes = std::fs::read_to_string("/proc/self/status")?
        .lines()
        .find_map(|line| {
            line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        })
        .context("the kernel reports the peak memory")?;
    Ok(kilobytes * 1024)
}

/// CPU seconds of this thread, to the nanosecond.
pub fn thread_seconds() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")
        .context("the kernel reports the time of threads")?;
    let nanoseconds: f64 = text.split(' ').next().context("the time stands first")?.parse()?;
    Ok(nanoseconds / 1e9)
}

/// CPU seconds of this process.
pub fn own_seconds() -> Result<f64> {
    Ok(ticks("self", 13)? + ticks("self", 14)?)
}

/// CPU seconds of a running process.
pub fn seconds_of(process: u32) -> Result<f64> {
    let process = process.to_string();
    Ok(ticks(&process, 13)? + ticks(&process, 14)?)
}

/// CPU seconds of all child processes that have ended.
pub fn children_seconds() -> Result<f64> {
    Ok(ticks("self", 15)? + ticks("self", 16)?)
}

/// The ratio of elapsed time to CPU time that a child process may take: the machine may be busy,
/// and a process that hangs takes no CPU time.
const WALL_FACTOR: u32 = 8;

/// Waits for a child process that may take this much CPU time, and [`WALL_FACTOR`] times as much
/// elapsed time. A process that takes more is killed; then there is no status.
pub fn wait_within(child: &mut Child, time: Duration) -> Result<Option<ExitStatus>> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let used = seconds_of(child.id()).unwrap_or(0.0);
        if used > time.as_secs_f64() || begin.elapsed() > time * WALL_FACTOR {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A field of /proc/PROCESS/stat, counted from 0, which is in hundredths of a second.
fn ticks(process: &str, field: usize) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The second field is the name in parentheses, which may contain spaces.
    let rest = stat.rsplit_once(')').context("the name is in parentheses")?.1;
    let ticks: f64 =
        rest.split_whitespace().nth(field - 2).context("the kernel gives all fields")?.parse()?;
    Ok(ticks / 100.0)
}
