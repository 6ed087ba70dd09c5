//! Preempt's modelling language: reads the text of a model into a checked program, which a
//! [`Machine`] executes step by step.
//!
//! The pipeline is [`source`] → [`syntax`] (tokens, syntax tree) → [`mod@check`] → [`Program`].
//! Errors in a text are a list of [`diagnostic`]s; errors of the program that it describes are
//! found by exploring the machine.
//!
//! ```
//! use preempt_lang::source::Source;
//!
//! let source = Source::new("model.pre", "var x = 0; thread t { x = y; }");
//! let errors = preempt_lang::load(&source, &[]).expect_err("there is no `y`");
//! assert_eq!(errors[0].message, "unknown name `y`");
//! ```

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod check;
pub mod syntax;

use preempt_machine::program::Program;
use preempt_machine::{Machine, Parsed, Reader, Settings};
pub use preempt_machine::{diagnostic, source};

use self::diagnostic::Diagnostic;
use self::source::{Source, Span};
use self::syntax::ast::{Expr, ExprKind, File, ItemKind};

/// The reader of `.pre` files.
#[derive(Clone, Copy, Debug)]
pub struct Pre;

impl Reader for Pre {
    fn extensions(&self) -> &'static [&'static str] {
        &["pre"]
    }

    fn parse(&self, source: &Source) -> Box<dyn Parsed> {
        Box::new(Model::new(source))
    }
}

/// Parses and checks a model.
pub fn check(source: &Source, settings: &Settings) -> Result<Program, Vec<Diagnostic>> {
    Model::new(source).program(settings)
}

/// Reads a model and makes it ready to be explored.
pub fn load(source: &Source, settings: &Settings) -> Result<Machine, Vec<Diagnostic>> {
    Machine::new(check(source, settings)?).map_err(|diagnostic| vec![diagnostic])
}

/// The syntax tree of a model, and its syntax errors.
struct Model {
    source: Source,
    file: File,
    diagnostics: Vec<Diagnostic>,
}

impl Model {
    fn new(source: &Source) -> Model {
        let (file, diagnostics) = syntax::parse(source);
        Model { source: source.clone(), file, diagnostics }
    }
}

impl Parsed for Model {
    fn constants(&self) -> Vec<&str> {
        let constants = self.file.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Const { name, .. } => Some(name.text.as_str()),
            _ => None,
        });
        constants.collect()
    }

    fn program(&self, settings: &Settings) -> Result<Program, Vec<Diagnostic>> {
        if !self.diagnostics.is_empty() {
            return Err(self.diagnostics.clone());
        }
        // The tree of a large model is large, and most models are checked without settings.
        if settings.is_empty() {
            return check::check(&self.file, &self.source);
        }
        let mut file = self.file.clone();
        set(&mut file, settings)?;
        check::check(&file, &self.source)
    }
}

/// Replaces the values of constants.
fn set(file: &mut File, settings: &Settings) -> Result<(), Vec<Diagnostic>> {
    let mut unknown = Vec::new();
    for (wanted, new) in settings {
        let constant = file.items.iter_mut().find_map(|item| match &mut item.kind {
            ItemKind::Const { name, value, .. } if name.text == *wanted => Some(value),
            _ => None,
        });
        match constant {
            Some(value) => {
                let kind = match (new.as_str(), new.parse()) {
                    (_, Ok(number)) => ExprKind::Int(number),
                    ("true" | "false", _) => ExprKind::Bool(new == "true"),
                    _ => ExprKind::Name(new.clone()),
                };
                *value = Expr { kind, span: value.span };
            }
            None => unknown.push(
                Diagnostic::new(Span::default(), format!("no constant `{wanted}` in this model"))
                    .label("to be set from outside")
                    .hint("only names declared with `const` can be given another value"),
            ),
        }
    }
    if unknown.is_empty() { Ok(()) } else { Err(unknown) }
}
