//! How cost grows with threads, steps, the bound, states and cores: time and memory per state, as
//! tables and curves.
//!
//! Searches run in child processes, one after the other. For one worker the time is CPU time, since
//! the machine may be busy; where workers are compared, elapsed time is shown too. A search that
//! needs more memory than is free is skipped, and the output says so.

pub mod curves;
pub mod growth;
pub mod show;

use std::path::Path;

use anyhow::{Context, Result, ensure};

use self::curves::{Curve, DIMENSIONS, Dimension, Point, curves};
use crate::corpus;
use crate::measure::{self, Cap, Measured};
use crate::papers::Extent;

/// A measured curve.
#[derive(Clone, Debug)]
pub struct Line {
    /// The common parameters of its searches.
    pub name: String,
    /// The complete searches, from small to large.
    pub points: Vec<(Point, Measured)>,
    /// Why others are missing.
    pub left_out: Vec<String>,
}

impl Line {
    /// Whether a search has found as many states as a formula says, and two workers as many as one.
    pub fn counts_right(&self, dimension: Dimension, point: &Point, run: &Measured) -> bool {
        let (_, alone) = self.points.first().expect("a line to which a search belongs has one");
        let same = (alone.states, alone.transitions) == (run.states, run.transitions);
        point.states().is_none_or(|states| states == run.states)
            && (dimension != Dimension::Cores || same)
    }

    /// Whether all of them have.
    pub fn is_right(&self, dimension: Dimension) -> bool {
        self.points.iter().all(|(point, run)| self.counts_right(dimension, point, run))
    }
}

/// Runs searches, within the free memory.
pub trait Scales {
    /// The counts and costs of a search.
    fn weigh(&self, point: &Point, cap: Cap) -> Result<Measured>;

    /// Free memory, in bytes.
    fn free(&self) -> Result<u64>;

    /// How many workers can run at once.
    fn cores(&self) -> usize;
}

/// The limit of elapsed time for one search.
const MINUTES: u64 = 20;

/// Measures a curve, as far as memory permits.
pub fn measure(curve: &Curve, scales: &impl Scales) -> Result<Line> {
    let mut line = Line { name: curve.name.clone(), points: Vec::new(), left_out: Vec::new() };
    for point in &curve.points {
        if point.jobs > scales.cores() {
            line.left_out.push(format!(
                "{point} on {} cores is left out: there are {}",
                point.jobs,
                scales.cores()
            ));
            continue;
        }
        let free = scales.free()?;
        let so_far: Vec<(u32, Measured)> =
            line.points.iter().map(|(point, run)| (point.x, *run)).collect();
        let needed = growth::forecast(&so_far, point.x).filter(|_| point.jobs == 1).unwrap_or(0.0);
        if needed > free as f64 {
            let gigabytes = |bytes: f64| bytes / f64::from(1 << 30);
            let (needed, free) = (gigabytes(needed), gigabytes(free as f64));
            line.left_out.push(format!(
                "{point} is left out: it may need {needed:.1} GB, {free:.1} GB are free"
            ));
            break;
        }
        // The search limits its own memory, so it stops before the machine runs out.
        let cap = Cap { megabytes: (free >> 20) as usize * 9 / 10, minutes: MINUTES };
        let run = scales.weigh(point, cap)?;
        if !run.complete {
            line.left_out.push(format!(
                "{point} gave up after {} states",
                crate::table::grouped(run.states)
            ));
            break;
        }
        line.points.push((*point, run));
    }
    Ok(line)
}

/// Prints all dimensions, and draws them into a folder if one is given. Returns whether all counts
/// are correct.
pub fn print(extent: Extent, folder: Option<&Path>) -> Result<bool> {
    let gigabytes = Children.free()? as f64 / f64::from(1 << 30);
    println!("how cost grows; {gigabytes:.1} GB of memory are free, {} cores\n", Children.cores());
    let mut good = true;
    for dimension in DIMENSIONS {
        let lines: Vec<Line> = curves(dimension, extent)
            .iter()
            .map(|curve| measure(curve, &Children))
            .collect::<Result<_>>()?;
        good &= lines.iter().all(|line| line.is_right(dimension));
        print!("{}", show::text(dimension, &lines));
        if let Some(folder) = folder {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("making {}", folder.display()))?;
            for (name, chart) in show::charts(dimension, &lines) {
                let file = folder.join(format!("{name}.svg"));
                std::fs::write(&file, chart.to_svg())
                    .with_context(|| format!("writing {}", file.display()))?;
                println!("drawn as {}", file.display());
            }
        }
        println!();
    }
    println!("{}", show::LEGEND);
    Ok(good)
}

/// Runs searches in child processes.
struct Children;

impl Scales for Children {
    fn weigh(&self, point: &Point, cap: Cap) -> Result<Measured> {
        let Point { subject, search, jobs, .. } = *point;
        let model = corpus::root().join(subject.file());
        let run = || measure::in_child(search, jobs, &model, &subject.settings(), cap);
        measure::repeated(AT_LEAST, run)
    }

    fn free(&self) -> Result<u64> {
        let text =
            std::fs::read_to_string("/proc/meminfo").context("the kernel reports the memory")?;
        let kilobytes = text
            .lines()
            .find_map(|line| line.strip_prefix("MemAvailable:")?.trim().strip_suffix(" kB"));
        Ok(kilobytes.context("the kernel reports the free memory in kB")?.trim().parse::<u64>()?
            * 1024)
    }

    fn cores(&self) -> usize {
        std::thread::available_parallelism().map_or(1, |cores| cores.get())
    }
}

/// Searches are repeated until they took this many CPU-seconds.
const AT_LEAST: f64 = 0.2;

/// Runs searches in this process, for programs so small that only their counts matter: their time
/// is that of the process since its start.
pub struct Here {
    /// The free memory to assume.
    pub free: u64,
    /// The number of cores to assume.
    pub cores: usize,
}

impl Scales for Here {
    fn weigh(&self, point: &Point, cap: Cap) -> Result<Measured> {
        ensure!(
            point.subject.states().is_none_or(|states| states < 100_000),
            "{point} is not small"
        );
        let model = corpus::root().join(point.subject.file());
        measure::here(point.search, point.jobs, &model, &point.subject.settings(), cap)
    }

    fn free(&self) -> Result<u64> {
        Ok(self.free)
    }

    fn cores(&self) -> usize {
        self.cores
    }
}
