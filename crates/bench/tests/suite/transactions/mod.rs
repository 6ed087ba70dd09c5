//! Reductions by transactions: the paper's figures, its wrong readings, random programs, and what a
//! search must keep to.

mod costs;
mod figures;
mod readings;
mod records;
mod search;
