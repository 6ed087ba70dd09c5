//! The tables of the papers, regenerated and printed beside the published figures.

pub mod blocks;
pub mod cartesian;
pub mod cb_por;
pub mod cpc;
pub mod figures;
pub mod growth;
pub mod icb;
pub(crate) mod queue;
