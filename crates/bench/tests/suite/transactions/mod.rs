//! Reductions by transactions: the paper's figures, misreadings of it, random programs, and limits
//! and results of a search.

mod costs;
mod figures;
mod readings;
mod records;
mod search;
