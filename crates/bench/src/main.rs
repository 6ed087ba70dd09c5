//! Regenerates the figures that Preempt claims. Run with `--help` for the list.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand};
use preempt_bench::papers::{Ask, Data, Extent, Paper, Part};
use preempt_bench::{
    agree, closures, cluster, corpus, crates, instructions, kills, measure, native_speed, papers,
    peers, real, record, robust, scale, spill, structures, suites, workers,
};

#[derive(Parser)]
#[command(
    name = "preempt-bench",
    about = "Regenerates the tables of the papers and the comparisons with peers"
)]
struct Arguments {
    /// Save the output under bench/runs, with the commit, the command and the hardware
    #[arg(long, global = true)]
    record: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The tables of the papers next to ours: `papers`, `papers cartesian`, `papers icb table 2`
    Papers {
        /// Which paper [default: all]
        paper: Option<Paper>,
        /// Only a table or a figure, whose number follows
        #[arg(requires = "paper")]
        part: Option<PartKind>,
        /// The number of the table or figure [default: all]
        #[arg(requires = "part")]
        number: Option<u32>,
        /// Draw figures into this folder
        #[arg(long, value_name = "DIR", requires = "part")]
        svg: Option<PathBuf>,
        /// Skip what takes more than a few seconds
        #[arg(long)]
        quick: bool,
        /// Fail if a figure that must be equal is not
        #[arg(long)]
        check: bool,
        /// Read the published figures from this folder
        #[arg(long, hide = true)]
        data: Option<PathBuf>,
        /// Time the searches instead, as ratios within this run; only for cartesian
        #[arg(long, conflicts_with_all = ["quick", "check", "data", "part"])]
        time: bool,
    },
    /// Cost of the searches within a bound on the work-stealing queue, next to that of a prototype
    Growth {
        /// Skip what takes more than a few seconds
        #[arg(long)]
        quick: bool,
    },
    /// One row of it, in a process of its own
    #[command(hide = true)]
    GrowthOne { search: String, size: u32, lock: String, dependence: String, bound: u32 },
    /// Runs of the corpus that are too large for the tests
    Corpus,
    /// Known bugs in unmodified crates: found in the affected versions, not in the fixed ones;
    /// downloads the crates
    Real {
        /// Cases of corpus/real [default: all]
        cases: Vec<String>,
        /// Time limit of one search in seconds
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// False alarms on the ordinary tests of popular crates that use threads; downloads the crates
    Crates {
        /// Crates of data/crates.toml [default: all]
        crates: Vec<String>,
        /// Most preemptions
        #[arg(long, default_value_t = 1)]
        bound: u32,
        /// Time limit of each test in seconds
        #[arg(long, default_value_t = 5)]
        seconds: u32,
    },
    /// Kill controllers and children of `preempt run` at random moments: no process remains, and a
    /// resumed search has the same numbers
    Robust {
        /// The binary `preempt` [default: the one beside this program]
        #[arg(long)]
        preempt: Option<PathBuf>,
        /// Controllers that are killed
        #[arg(long, default_value_t = 100)]
        controllers: u32,
        /// Children that are killed
        #[arg(long, default_value_t = 10_000)]
        children: u32,
        /// Seed of the moments
        #[arg(long, default_value_t = 0)]
        seed: u64,
    },
    /// Cost of exploring executables: processes per happens-before graph over corpus/native, and
    /// CPU time of executions, scheduling points and switches
    NativeSpeed {
        /// Most preemptions of the searches whose processes are counted
        #[arg(long, default_value_t = 2)]
        bound: u32,
        /// Time limit of each of these searches in seconds
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// Compare searches with the oracle on random programs
    Random {
        /// Which searches
        #[arg(long, value_enum, default_value_t = agree::What::Full)]
        what: agree::What,
        /// Number of programs
        #[arg(long, default_value_t = 100_000)]
        programs: u64,
        /// Seed of the first program
        #[arg(long, default_value_t = 0)]
        from: u64,
    },
    /// Compare every strategy of the library with brute force on random closure programs
    Closures {
        /// Number of programs
        #[arg(long, default_value_t = 100_000)]
        programs: u64,
        /// Seed of the first program
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Compare the search over execution graphs with all executions under weak memory instead
        #[arg(long)]
        weak: bool,
    },
    /// Some of them, in a process of its own
    #[command(hide = true)]
    ClosuresBatch { from: u64, to: u64 },
    /// One search in a process of its own, for measurements
    #[command(hide = true)]
    One {
        search: measure::Search,
        jobs: usize,
        megabytes: usize,
        minutes: u64,
        model: PathBuf,
        settings: Vec<String>,
    },
    /// Compare sorted runs, in memory and in files, with the table of visited states
    Spill {
        /// Small sizes only
        #[arg(long)]
        quick: bool,
        /// Instead, search a program with a billion states in a gigabyte of memory
        #[arg(long, conflicts_with = "quick")]
        billion: bool,
    },
    /// Compare searches in several processes with one process
    Cluster {
        /// The binary `preempt`, built with the feature `cluster`
        #[arg(long, value_name = "FILE")]
        preempt: PathBuf,
        /// Small sizes only
        #[arg(long)]
        quick: bool,
    },
    /// Kill random processes of searches in several processes, and resume the searches
    Kills {
        /// The binary `preempt`, built with the feature `cluster`
        #[arg(long, value_name = "FILE")]
        preempt: PathBuf,
        /// The number of searches
        #[arg(long, default_value_t = 100)]
        count: u32,
        /// Chooses searches, processes and moments
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Compare several workers with one, on the work-stealing queue
    Workers {
        /// The most workers
        #[arg(long, default_value_t = 2)]
        most: usize,
        /// The size of the queue's driver
        #[arg(long, default_value_t = 3)]
        size: u32,
        /// Repetitions of each search
        #[arg(long, default_value_t = 3)]
        repetitions: u32,
    },
    /// One exploration of a Rust test in a process of its own, for measurements
    #[command(hide = true)]
    RustOne { tool: peers::rust::Tool, mode: String, test: String, repeat: f64, cap: f64 },
    /// One structure that a tool checks for linearizability, in a process of its own
    #[command(hide = true)]
    LinearizeOne { tool: peers::rust::Tool, structure: String, cap: f64 },
    /// Instructions of the hot paths, counted by valgrind, and the change since the last record
    Instructions,
    /// One of them, in a process of its own
    #[command(hide = true)]
    InstructionsOne { path: instructions::HotPath, size: u32 },
    /// How cost grows with threads, steps, bound, states and cores
    Scale {
        /// Smaller sizes
        #[arg(long)]
        quick: bool,
        /// Draw the curves into this folder
        #[arg(long, value_name = "DIR")]
        svg: Option<PathBuf>,
    },
    /// Regenerate the tables of docs/performance.md from the records of runs
    Performance,
    /// Run loom suites of published crates, downloaded on demand, with loom and with Preempt in its
    /// place
    Suites {
        /// The crates [default: all of data/suites.toml]
        crates: Vec<String>,
        /// Only tests whose names contain this
        #[arg(long)]
        test: Option<String>,
        /// LOOM_MAX_PREEMPTIONS for both tools
        #[arg(long, default_value_t = 2)]
        bound: u32,
        /// CPU-seconds per test
        #[arg(long, default_value_t = 60)]
        time: u64,
    },
    /// Check the linearizability of published data structures; downloads the crates
    Structures {
        /// Crates of data/structures.toml [default: all]
        crates: Vec<String>,
        /// Scenarios of at most 3 calls
        #[arg(long)]
        quick: bool,
        /// Most preemptions
        #[arg(long, default_value_t = 2)]
        bound: u32,
        /// CPU-seconds per structure
        #[arg(long, default_value_t = 120)]
        time: u64,
    },
    /// One search of stateright in a process of its own
    #[command(hide = true)]
    StaterightOne { subject: peers::stateright::Subject, size: u32, jobs: usize },
    /// Compare with peers on the same models or tests, in one run
    Peers {
        /// Which peer; `pct`, `litmus` and `lincheck` are the parts of `rust` about random
        /// priorities, weak memory and linearizability
        #[arg(value_parser = [
            "genmc", "rust", "pct", "litmus", "lincheck", "spin", "stateright",
        ])]
        peer: String,
        /// Smaller sizes
        #[arg(long)]
        quick: bool,
    },
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum PartKind {
    Table,
    Figure,
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let good = match arguments.command {
        _ if arguments.record => {
            let all: Vec<String> =
                std::env::args().skip(1).filter(|word| word != "--record").collect();
            record::run(&all)?
        }
        Command::Papers { paper, time: true, .. } => match paper {
            Some(Paper::Cartesian) => papers::cartesian::times()?,
            _ => anyhow::bail!(
                "only the searches of cartesian are timed against each other: papers cartesian \
                 --time"
            ),
        },
        Command::Papers {
            paper: Some(paper @ (Paper::Icb | Paper::Blocks)),
            part: Some(PartKind::Figure),
            number,
            quick,
            svg,
            ..
        } => papers::figures::print(paper.name(), number, quick, svg.as_deref())?,
        Command::Papers { paper, part, number, quick, check, data, .. } => {
            let part = match (part, number) {
                (Some(PartKind::Table), Some(number)) => Part::Table(number),
                (Some(PartKind::Figure), Some(number)) => Part::Figure(number),
                (Some(_), None) => anyhow::bail!("its number is missing: papers icb table 2"),
                (None, _) => Part::All,
            };
            let extent = if quick { Extent::Quick } else { Extent::Whole };
            let ask = Ask { data: data.map(Data::at).unwrap_or_default(), extent, part };
            let marks = match paper {
                Some(paper) => papers::print(&[paper], &ask)?,
                None => papers::print(&papers::PAPERS, &ask)?,
            };
            marks.good() || !check
        }
        Command::Growth { quick } => papers::growth::table(quick)?,
        Command::GrowthOne { search, size, lock, dependence, bound } => {
            papers::growth::one(&search, size, &lock, &dependence, bound).map(|()| true)?
        }
        Command::Corpus => corpus::run_big()?,
        Command::Robust { preempt, controllers, children, seed } => {
            robust::run(&robust::Ask { preempt, controllers, children, seed })?
        }
        Command::Real { cases, seconds } => real::run(&real::Ask { only: cases, seconds })?,
        Command::NativeSpeed { bound, seconds } => {
            native_speed::run(&native_speed::Ask { bound, seconds })?
        }
        Command::Crates { crates: only, bound, seconds } => {
            crates::run(&crates::Ask { only, bound, seconds })?
        }
        Command::Random { what, programs, from } => agree::many(what, from, programs)?,
        Command::Closures { programs, seed, weak: true } => closures::weak(programs, seed),
        Command::Closures { programs, seed, weak: false } => closures::many(programs, seed)?,
        Command::ClosuresBatch { from, to } => {
            closures::batch(from, to);
            true
        }
        Command::One { search, jobs, megabytes, minutes, model, settings } => {
            measure::one(search, jobs, &model, &settings, measure::Cap { megabytes, minutes })
                .map(|()| true)?
        }
        Command::Spill { billion: true, .. } => spill::billion()?,
        Command::Spill { quick, billion: false } => {
            spill::compare(if quick { Extent::Quick } else { Extent::Whole })?
        }
        Command::Cluster { preempt, quick } => {
            cluster::compare(&preempt, if quick { Extent::Quick } else { Extent::Whole })?
        }
        Command::Kills { preempt, count, seed } => kills::rounds(&preempt, count, seed)?,
        Command::Workers { most, size, repetitions } => workers::compare(most, size, repetitions)?,
        Command::RustOne { tool, mode, test, repeat, cap } => {
            let mode = peers::rust::Mode::parse(&mode)?;
            peers::rust::Request { tool, mode, test: &test, repeat, cap }.here().map(|()| true)?
        }
        Command::LinearizeOne { tool, structure, cap } => {
            peers::rust::linearize::here(tool, &structure, cap).map(|()| true)?
        }
        Command::Instructions => instructions::print().map(|()| true)?,
        Command::InstructionsOne { path, size } => {
            println!("{}", path.run(size)?);
            true
        }
        Command::Scale { quick, svg } => {
            scale::print(if quick { Extent::Quick } else { Extent::Whole }, svg.as_deref())?
        }
        Command::Performance => record::performance::update()?,
        Command::Suites { crates, test, bound, time } => {
            let limits = suites::run::Limits { bound, time: Duration::from_secs(time) };
            suites::print(&suites::Ask { crates, test, limits })?
        }
        Command::Structures { crates, quick, bound, time } => {
            let calls = quick.then_some(3);
            let limits = structures::Limits { calls, bound, time: Duration::from_secs(time) };
            structures::print(&structures::Ask { crates, limits })?
        }
        Command::StaterightOne { subject, size, jobs } => {
            peers::stateright::one(subject, size, jobs).map(|()| true)?
        }
        Command::Peers { peer, quick } => match peer.as_str() {
            "genmc" => peers::genmc::compare(quick)?,
            "rust" => peers::rust::compare(quick)?,
            "pct" => peers::rust::compare_priorities(quick)?,
            "lincheck" => peers::rust::compare_linearizability(quick)?,
            "litmus" => peers::rust::compare_litmus(quick)?,
            "spin" => peers::spin::compare(quick)?,
            "stateright" => peers::stateright::compare(quick)?,
            other => unreachable!("the parser knows no peer {other}"),
        },
    };
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
