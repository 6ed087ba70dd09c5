//! From text to the syntax tree and back: [`lexer`], [`parser`], [`print`](mod@print).
//!
//! The parser never fails: for any text it gives the tree of what it understood and diagnostics for the rest. A tree
//! without diagnostics is complete; names and types are not looked at here.

#[expect(missing_docs, reason = "the fields of a variant are explained by the example in its doc")]
pub mod ast;
pub mod lexer;
pub mod operator;
pub mod parser;
pub mod print;
pub mod token;

pub use parser::parse;
pub use print::print;
