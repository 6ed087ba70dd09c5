//! Preempt's outcomes as text, JSON, pages and schedules: this crate owns all formats, and prints
//! none of them.
//!
//! ```text
//!               ┌─▶ text    for people, with the annotated trace of each finding
//! Outcome ─▶ CheckReport
//!               └─▶ record  the same as one JSON object
//!
//! Replay ─▶ Trace ─▶ trace  an execution, told step by step
//!      ValueHistory ─▶ html     the same as a page to step through, with the values after each step
//! Schedule ◀─▶ schedule     as a readable file
//! Schedule ◀─▶ token        as one word
//! Search   ◀─▶ checkpoint   as a file from which it goes on
//! Growth ─▶ curves ─▶ plot   how coverage grows, as a table and as SVG
//! Graph ─▶ dot              the states of a small model, for graphviz
//! ```
//!
//! Curves, plots and graphs need the feature `charts`: a Rust test is built without them.
//!
//! It knows no front end: what a step means to a person comes from
//! [`Narrate`](preempt_system::Narrate).
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
pub mod schedule;
pub mod style;
pub mod text_report;
pub mod token;
pub mod trace;
mod trace_text;
pub mod value_history;
pub mod words;
mod wrap;

pub use check_report::{CheckReport, Unreached, UnreachedPlace, traces};
pub use origin::Origin;
pub use schedule::{Ending, ScheduleFile};
pub use style::{Headline, Layout, Style};
pub use trace::Trace;
pub use value_history::ValueHistory;
