//! Regenerates what Preempt claims. Run with `--help` for the list.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};
use preempt_bench::{agree, corpus, measure, papers, peers, workers};

#[derive(Parser)]
#[command(name = "preempt-bench", about = "Regenerates the tables of the papers and the comparisons with peers")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// What papers consist of.
#[derive(Clone, Copy, ValueEnum)]
enum Part {
    /// Curves.
    Figure,
}

#[derive(Subcommand)]
enum Command {
    /// The tables of a paper beside ours.
    Papers {
        /// Which paper.
        #[arg(value_parser = ["blocks", "cartesian", "cb-por", "cpc", "icb"])]
        paper: String,
        /// Only this part of it, drawn as it is in the paper.
        part: Option<Part>,
        /// Which one of these parts; all of them unless given.
        #[arg(requires = "part")]
        number: Option<u32>,
        /// Draw figures into this folder.
        #[arg(long, value_name = "DIR", requires = "part")]
        svg: Option<PathBuf>,
        /// Leave out what takes more than a few seconds.
        #[arg(long)]
        quick: bool,
        /// Time the searches instead, as ratios within this run; only of cartesian.
        #[arg(long, conflicts_with_all = ["quick", "part"])]
        time: bool,
    },
    /// What the searches within a bound cost on the work-stealing queue, beside what a prototype needed.
    Growth {
        /// Leave out what takes more than a few seconds.
        #[arg(long)]
        quick: bool,
    },
    /// One row of it in a process of its own.
    #[command(hide = true)]
    GrowthOne { search: String, size: u32, lock: String, dependence: String, bound: u32 },
    /// Runs of the corpus that are too large for the tests.
    Corpus,
    /// Random programs against the oracle.
    Random {
        /// Which searches.
        #[arg(long, value_enum, default_value_t = agree::What::Full)]
        what: agree::What,
        /// How many programs.
        #[arg(long, default_value_t = 100_000)]
        programs: u64,
        /// The seed of the first.
        #[arg(long, default_value_t = 0)]
        from: u64,
    },
    /// One search in a process of its own, for measurements.
    #[command(hide = true)]
    One { search: measure::Search, megabytes: usize, minutes: u64, model: PathBuf, settings: Vec<String> },
    /// Several workers against one, on the work-stealing queue.
    Workers {
        /// The most workers.
        #[arg(long, default_value_t = 2)]
        most: usize,
        /// The size of the queue's driver.
        #[arg(long, default_value_t = 3)]
        size: u32,
        /// How often each search is done.
        #[arg(long, default_value_t = 3)]
        repetitions: u32,
    },
    /// One exploration of a Rust test in a process of its own, for measurements.
    #[command(hide = true)]
    RustOne { tool: peers::rust::Tool, way: String, test: String, repeat: f64, cap: f64 },
    /// The same models or tests with peers, in one run.
    Peers {
        /// Which peer.
        #[arg(value_parser = ["rust", "spin"])]
        peer: String,
        /// Smaller sizes.
        #[arg(long)]
        quick: bool,
    },
}

fn main() -> Result<ExitCode> {
    let good = match Arguments::parse().command {
        Command::Papers { paper, part: Some(Part::Figure), number, svg, quick, time: false } => {
            papers::figures::print(&paper, number, quick, svg.as_deref())?
        }
        Command::Papers { paper, quick, time, .. } => match paper.as_str() {
            "cartesian" if time => papers::cartesian::times()?,
            _ if time => anyhow::bail!("only the searches of cartesian are timed against each other: drop --time"),
            "blocks" => papers::blocks::tables(quick)?,
            "cartesian" => papers::cartesian::table_1(quick)?,
            "cb-por" => papers::cb_por::table_1(quick)?,
            "cpc" => papers::cpc::print(quick)?,
            "icb" => papers::icb::figures_1_and_2(quick)?,
            other => unreachable!("the parser knows no paper {other}"),
        },
        Command::Growth { quick } => papers::growth::table(quick)?,
        Command::GrowthOne { search, size, lock, dependence, bound } => {
            papers::growth::one(&search, size, &lock, &dependence, bound).map(|()| true)?
        }
        Command::Corpus => corpus::run_big()?,
        Command::Random { what, programs, from } => agree::many(what, from, programs)?,
        Command::One { search, megabytes, minutes, model, settings } => {
            measure::one(search, &model, &settings, measure::Cap { megabytes, minutes }).map(|()| true)?
        }
        Command::Workers { most, size, repetitions } => workers::compare(most, size, repetitions)?,
        Command::RustOne { tool, way, test, repeat, cap } => {
            let way = peers::rust::Way::parse(&way)?;
            peers::rust::Ask { tool, way, test: &test, repeat, cap }.here().map(|()| true)?
        }
        Command::Peers { peer, quick } => match peer.as_str() {
            "rust" => peers::rust::compare(quick)?,
            "spin" => peers::spin::compare(quick)?,
            other => unreachable!("the parser knows no peer {other}"),
        },
    };
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
