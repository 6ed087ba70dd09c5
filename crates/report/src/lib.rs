//! Preempt's outcomes as text, JSON, pages and schedules: this crate owns all formats, and prints
//! none of them.
//!
//! ```text
//!               ┌─▶ text    for people, with the annotated trace of each finding
//! Outcome ─▶ Checked
//!               └─▶ record  the same as one JSON object
//!
//! Replay ─▶ Story ─▶ trace  an execution, told step by step
//!      Timeline ─▶ html     the same as a page to step through, with the values after each step
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
pub mod checked;
pub mod checkpoint;
mod columns;
#[cfg(feature = "charts")]
pub mod curves;
#[cfg(feature = "charts")]
pub mod dot;
pub mod fold;
pub mod html;
pub mod json;
pub mod number;
pub mod origin;
#[cfg(feature = "charts")]
pub mod plot;
pub mod progress;
pub mod record;
pub mod schedule;
pub mod story;
pub mod style;
pub mod text;
pub mod timeline;
pub mod token;
pub mod trace;
pub mod words;
mod wrap;

pub use checked::{Checked, Unreached, UnreachedPlace, stories};
pub use origin::Origin;
pub use schedule::{Ending, Recorded};
pub use story::Story;
pub use style::{Headline, Layout, Style};
pub use timeline::Timeline;
