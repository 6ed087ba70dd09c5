//! Regenerates what Preempt claims. Run with `--help` for the list.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use preempt_bench::{agree, corpus, measure, papers, peers};

#[derive(Parser)]
#[command(name = "preempt-bench", about = "Regenerates the tables of the papers and the comparisons with peers")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The tables of a paper beside ours.
    Papers {
        /// Which paper.
        #[arg(value_parser = ["cartesian", "cb-por", "icb"])]
        paper: String,
        /// Leave out what takes more than a few seconds.
        #[arg(long)]
        quick: bool,
    },
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
    One { model: std::path::PathBuf, settings: Vec<String> },
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
        Command::Papers { paper, quick } => match paper.as_str() {
            "cartesian" => papers::cartesian::table_1(quick)?,
            "cb-por" => papers::cb_por::table_1(quick)?,
            "icb" => papers::icb::figures_1_and_2(quick)?,
            other => unreachable!("the parser knows no paper {other}"),
        },
        Command::Corpus => corpus::run_big()?,
        Command::Random { what, programs, from } => agree::many(what, from, programs)?,
        Command::One { model, settings } => measure::one(&model, &settings).map(|()| true)?,
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
