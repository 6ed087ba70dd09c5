//! CPU time and peak memory of a search, measured in a process of its own.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow, ensure};
use preempt_explore::{Plan, Silent};

/// What one run did and took.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// Distinct states.
    pub states: u64,
    /// Transitions.
    pub transitions: u64,
    /// CPU time of the process.
    pub seconds: f64,
    /// The most memory that the process had.
    pub peak_bytes: u64,
}

impl Measured {
    /// Million transitions per CPU-second.
    pub fn rate(&self) -> f64 {
        self.transitions as f64 / self.seconds.max(0.01) / 1e6
    }

    /// Peak memory per state.
    pub fn bytes_per_state(&self) -> f64 {
        self.peak_bytes as f64 / self.states as f64
    }
}

/// Searches a model in a child process (this program, command `one`).
pub fn in_child(model: &Path, settings: &[String]) -> Result<Measured> {
    let me = std::env::current_exe()?;
    let output = Command::new(me).arg("one").arg(model).args(settings).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout)?;
    let mut words = text.split_whitespace();
    let mut next = || words.next().ok_or_else(|| anyhow!("four figures expected, not {text:?}"));
    Ok(Measured {
        states: next()?.parse()?,
        transitions: next()?.parse()?,
        seconds: next()?.parse()?,
        peak_bytes: next()?.parse()?,
    })
}

/// Searches a model in this process, once, and prints what [`in_child`] reads.
pub fn one(model: &Path, settings: &[String]) -> Result<()> {
    let settings: Vec<(String, String)> = settings
        .iter()
        .map(|s| s.split_once('=').map(|(n, v)| (n.to_owned(), v.to_owned())).context("settings are NAME=VALUE"))
        .collect::<Result<_>>()?;
    let machine = crate::corpus::machine(model, &settings)?;
    let search = Plan::new().keep_going().build().map_err(|refusal| anyhow!("{refusal}"))?;
    let (outcome, _) = search.run(machine, &Silent);
    println!("{} {} {} {}", outcome.coverage.states, outcome.coverage.transitions, own_seconds()?, own_peak()?);
    Ok(())
}

/// The most memory that this process had, in bytes.
pub fn own_peak() -> Result<u64> {
    let kilobytes = std::fs::read_to_string("/proc/self/status")?
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok())
        .context("the kernel tells the peak memory")?;
    Ok(kilobytes * 1024)
}

/// CPU seconds of this thread, to the nanosecond.
pub fn thread_seconds() -> Result<f64> {
    let text =
        std::fs::read_to_string("/proc/thread-self/schedstat").context("the kernel tells the time of threads")?;
    let nanoseconds: f64 = text.split(' ').next().context("the time stands first")?.parse()?;
    Ok(nanoseconds / 1e9)
}

/// CPU seconds of this process.
pub fn own_seconds() -> Result<f64> {
    Ok(ticks(13)? + ticks(14)?)
}

/// CPU seconds of all child processes that have ended.
pub fn children_seconds() -> Result<f64> {
    Ok(ticks(15)? + ticks(16)?)
}

/// A field of /proc/self/stat, counted from 0, which is in hundredths of a second.
fn ticks(field: usize) -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    // The second field is the name in parentheses, which may contain spaces.
    let rest = stat.rsplit_once(')').context("the name is in parentheses")?.1;
    let ticks: f64 = rest.split_whitespace().nth(field - 2).context("the kernel gives all fields")?.parse()?;
    Ok(ticks / 100.0)
}
