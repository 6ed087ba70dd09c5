//! The interface of modelling languages: a [`Reader`].
//!
//! A reader turns a text into a [`Program`]; everything after that is the same for all languages.

use crate::diagnostic::Diagnostic;
use crate::program::Program;
use crate::source::Source;

/// Values for constants of a model, from outside: the name, and the value as it would be written in
/// the model (`3`, `-1`, `true`, a variant).
pub type Settings = [(String, String)];

/// Reads the models of one language.
pub trait Reader: Sync {
    /// The extensions of its files, without the dot; the usual one first.
    fn extensions(&self) -> &'static [&'static str];

    /// Parses a text, once for all uses. Never fails: [`Parsed::program`] reports the errors.
    fn parse(&self, source: &Source) -> Box<dyn Parsed>;
}

/// A parsed text.
pub trait Parsed {
    /// The names of the constants that [`Settings`] can set, in the order of the text.
    fn constants(&self) -> Vec<&str>;

    /// Checks the text and translates it. Reports all errors at once; if there are syntax errors,
    /// only these.
    fn program(&self, settings: &Settings) -> Result<Program, Vec<Diagnostic>>;
}
