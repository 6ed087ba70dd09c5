//! Preempt's outcomes as text, JSON, HTML pages and schedules. This crate defines all formats and
//! prints none of them.
//!
//! ```text
//!                              ┌─▶ text_report, trace_text   for people
//! Schedule ─▶ recorder ─▶ Trace ─▶ json_report               for programs
//!             (one pass)       └─▶ html                      a page to step through
//!
//! Schedule ◀─▶ schedule, token    as a readable file, as one word
//! Search   ◀─▶ checkpoint, shards as a file, or as files of several processes, to resume from
//! Growth ─▶ curves ─▶ plot        coverage over time, as a table and as SVG
//! Graph ─▶ dot                    the states of a small model, for graphviz
//! ```
//!
//! Curves, plots and graphs need the feature `charts`: a Rust test is built without them.
//!
//! The crate knows no front end. A front end implements [`Narrate`](preempt_system::Narrate) for
//! its executions; [`recorder::record`] moves such an execution along a schedule, once, and records
//! everything that any format shows.
#![forbid(unsafe_code)]

mod bounds;
pub mod check_report;
pub mod checkpoint;
mod columns;
#[cfg(feature = "charts")]
pub mod curves;
#[cfg(feature = "charts")]
pub mod dot;
pub mod fold;
pub mod html;
pub mod json;
pub mod json_report;
pub mod number;
pub mod origin;
#[cfg(feature = "charts")]
pub mod plot;
pub mod progress;
pub mod recorder;
pub mod schedule;
pub mod shards;
mod statements;
pub mod style;
pub mod text_report;
pub mod token;
pub mod trace;
mod trace_text;
pub mod value_history;
pub mod words;
mod wrap;

pub use check_report::{CheckReport, ReplayCommand, Unreached, UnreachedPlace, traces};
pub use origin::Origin;
pub use schedule::{Ending, ScheduleFile};
pub use style::{FileNames, Folding, Headline, Layout, Style};
pub use trace::{NarratedStep, ThreadPosition, Trace};
pub use wrap::wrap;
