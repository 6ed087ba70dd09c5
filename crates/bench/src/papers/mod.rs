//! The tables of the papers, regenerated and printed next to the published figures.
//!
//! Published figures are data: one file per table, read when it is printed. Every cell is marked
//! *equal*, *explained* (the explanation is below the table) or *DIFFERENT*; a row whose program
//! was never published says so, and names our most similar subject.

pub mod blocks;
pub mod cartesian;
pub mod cb_por;
pub mod cpc;
pub mod figures;
pub mod growth;
pub mod icb;
pub(crate) mod queue;
pub mod sheet;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::de::DeserializeOwned;

use self::sheet::Marks;
use crate::table::Table;

/// The papers, by their short names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Paper {
    /// Static partial-order reduction.
    Blocks,
    /// Cartesian partial-order reduction.
    Cartesian,
    /// Partial-order reduction within a bound.
    CbPor,
    /// Transactions with commit point completion.
    Cpc,
    /// Iterative context bounding.
    Icb,
}

/// All papers, in the order of the output.
pub const PAPERS: [Paper; 5] =
    [Paper::Icb, Paper::CbPor, Paper::Cpc, Paper::Cartesian, Paper::Blocks];

impl Paper {
    /// Its short name.
    pub fn name(self) -> &'static str {
        match self {
            Paper::Blocks => "blocks",
            Paper::Cartesian => "cartesian",
            Paper::CbPor => "cb-por",
            Paper::Cpc => "cpc",
            Paper::Icb => "icb",
        }
    }

    /// Its numbered tables.
    fn tables(self) -> u32 {
        match self {
            Paper::Blocks | Paper::Icb => 2,
            Paper::Cartesian | Paper::CbPor | Paper::Cpc => 1,
        }
    }

    /// Its figures with countable content.
    fn figures(self) -> &'static [u32] {
        match self {
            Paper::Blocks => &[1, 2, 3, 4, 5],
            Paper::Cartesian | Paper::CbPor => &[],
            Paper::Cpc => &[1, 2, 3, 8],
            Paper::Icb => &[1, 2],
        }
    }

    fn print(self, ask: &Ask) -> Result<Marks> {
        match ask.part {
            Part::Table(number) if !(1..=self.tables()).contains(&number) => {
                bail!("{} has no table {number}", self.name())
            }
            Part::Figure(number) if !self.figures().contains(&number) => {
                bail!(
                    "there is nothing to count in figure {number} of {}, or it has none",
                    self.name()
                )
            }
            _ => {}
        }
        match self {
            Paper::Blocks => blocks::print(ask),
            Paper::Cartesian => cartesian::print(ask),
            Paper::CbPor => cb_por::print(ask),
            Paper::Cpc => cpc::print(ask),
            Paper::Icb => icb::print(ask),
        }
    }
}

/// The part of the papers to print, and how much to run.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// The folder with the published figures.
    pub data: Data,
    /// The extent of the runs.
    pub extent: Extent,
    /// The part of a paper.
    pub part: Part,
}

/// The extent of the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extent {
    /// Skips what takes more than a few seconds.
    Quick,
    /// Runs everything.
    #[default]
    Whole,
}

/// A part of a paper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// Everything that we have of it.
    #[default]
    All,
    /// One of its tables.
    Table(u32),
    /// One of its figures.
    Figure(u32),
}

impl Ask {
    /// Whether long runs are skipped.
    pub fn is_quick(&self) -> bool {
        self.extent == Extent::Quick
    }

    /// Whether the table of this number is selected.
    pub fn wants_table(&self, number: u32) -> bool {
        self.part == Part::All || self.part == Part::Table(number)
    }

    /// Whether one of the figures of these numbers is selected.
    pub fn wants_figure(&self, numbers: &[u32]) -> bool {
        match self.part {
            Part::All => true,
            Part::Figure(number) => numbers.contains(&number),
            Part::Table(_) => false,
        }
    }
}

/// The folder with the published figures.
#[derive(Clone, Debug)]
pub struct Data(PathBuf);

impl Default for Data {
    fn default() -> Data {
        Data(Path::new(env!("CARGO_MANIFEST_DIR")).join("data"))
    }
}

impl Data {
    /// Another folder, with the same files.
    pub fn at(folder: PathBuf) -> Data {
        Data(folder)
    }

    /// Reads a file.
    pub fn read<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        let path = self.0.join(name);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("reading {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("in {}", path.display()))
    }
}

/// Prints the selected parts of these papers, and the number of cells with each mark.
pub fn print(papers: &[Paper], ask: &Ask) -> Result<Marks> {
    let mut summary =
        Table::new(["", "equal", "explained", "different", "left out", "not to be had", "seconds"]);
    let mut all = Marks::default();
    for paper in papers {
        let started = Instant::now();
        let marks = paper.print(ask)?;
        let Marks { equal, explained, different, left_out, not_to_be_had } = marks;
        let mut cells = vec![paper.name().to_owned()];
        cells.extend(
            [equal, explained, different, left_out, not_to_be_had].map(|count| count.to_string()),
        );
        cells.push(format!("{:.0}", started.elapsed().as_secs_f64()));
        summary.row(cells);
        all = all + marks;
    }
    println!("cells by their marks\n{}", summary.to_text().trim_end());
    Ok(all)
}
