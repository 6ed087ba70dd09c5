//! Tests of scenarios, histories and the search for witnesses.

mod counts;
mod oracle;
mod tables;
