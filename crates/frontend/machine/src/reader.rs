//! What a language has to offer so that its models can be checked: a [`Reader`].
//!
//! A reader turns a text into a [`Program`]; everything behind that is the same for all languages.

use crate::diagnostic::Diagnostic;
use crate::program::Program;
use crate::source::Source;

/// Constants of a model that get another value from outside: name, and value as it would be written
/// in the model (`3`, `-1`, `true`, a variant).
pub type Settings = [(String, String)];

/// Reads the models of one language.
pub trait Reader: Sync {
    /// The extensions of its files, without the dot; the usual one first.
    fn extensions(&self) -> &'static [&'static str];

    /// Parses a text, once for all questions about it. It never fails: [`Parsed::program`] reports
    /// the errors.
    fn parse(&self, source: &Source) -> Box<dyn Parsed>;
}

/// A text that was parsed.
pub trait Parsed {
    /// The names of the constants that [`Settings`] can change, in the order of the text.
    fn constants(&self) -> Vec<&str>;

    /// Checks the text and translates it. All errors are reported at once, those of the syntax
    /// alone if there are any.
    fn program(&self, settings: &Settings) -> Result<Program, Vec<Diagnostic>>;
}
