//! The hardware of a run: what may explain a figure, and nothing that identifies its owner.

use std::fmt;

use anyhow::{Context, Result};
use serde::Deserialize;

/// The hardware of a run.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Cores that the run could use.
    pub cores: usize,
    /// Memory, in units of 2^30 bytes.
    pub memory_gb: u64,
    /// The model of the processor.
    pub cpu: String,
    /// The compiler.
    pub rustc: String,
    /// The load average at the start of the run.
    pub load: f64,
}

impl Machine {
    /// The hardware of this machine.
    pub fn here() -> Result<Machine> {
        let field = |file: &str, name: &str| -> Result<String> {
            let text = std::fs::read_to_string(file).with_context(|| format!("reading {file}"))?;
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            Ok(line
                .with_context(|| format!("{file} has no {name}"))?
                .trim_matches([' ', '\t', ':'])
                .to_owned())
        };
        let memory = field("/proc/meminfo", "MemTotal")?;
        let kilobytes: u64 = memory
            .trim_end_matches(" kB")
            .parse()
            .context("the kernel reports the memory in kB")?;
        let load = std::fs::read_to_string("/proc/loadavg")?;
        Ok(Machine {
            cores: std::thread::available_parallelism().map_or(1, |cores| cores.get()),
            memory_gb: kilobytes.div_ceil(1 << 20),
            cpu: field("/proc/cpuinfo", "model name").unwrap_or_else(|_| "unknown".to_owned()),
            rustc: super::asked("rustc", &["--version"])?,
            load: load.split(' ').next().context("the load stands first")?.parse()?,
        })
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { cores, memory_gb, cpu, load, .. } = self;
        write!(f, "{cores} cores of {cpu}, {memory_gb} GB, load {load}")
    }
}
