//! From text to the syntax tree and back: [`lexer`], [`parser`], [`print`](mod@print).
//!
//! The parser never fails: for any text it returns a tree of the parts that it understood, and
//! diagnostics for the rest. A tree without diagnostics is complete; names and types are not
//! checked here.

#[expect(missing_docs, reason = "fields are explained by their names or by the example in the doc")]
pub mod ast;
mod lexer;
mod operator;
mod parser;
mod print;
mod token;

pub use lexer::lex;
pub use parser::{MAX_NESTING, MAX_OPERATORS, parse};
pub use print::print;
pub use token::{PUNCTS, RESERVED};
