//! Reductions by transactions: the paper's figures, its wrong readings, random programs, and what a search must keep to.

mod figures;
mod readings;
mod search;
