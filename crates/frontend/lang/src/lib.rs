//! Preempt's modelling language: from the text of a model to a machine that runs it step by step.
//!
//! The way of a model: [`source`] → [`syntax`] (tokens, syntax tree) → [`mod@check`] → [`program`] (checked) → [`machine`] (packed
//! states, steps). What is wrong with a text is a list of [`diagnostic`]s; what is wrong with the program that it describes is
//! found by exploring the machine.

#![forbid(unsafe_code)]

mod arith;
pub mod check;
pub mod diagnostic;
pub mod machine;
#[expect(missing_docs, reason = "the fields of a variant are explained by the example in its doc")]
pub mod program;
pub mod source;
pub mod syntax;
mod walk;

use self::diagnostic::Diagnostic;
use self::machine::Machine;
use self::program::Program;
use self::source::Source;
use self::syntax::ast::{Expr, ExprKind, File, ItemKind};

/// Constants of a model that are given another value from outside: name, and value as it would be written in the model
/// (`3`, `-1`, `true`, a variant).
pub type Settings = [(String, String)];

/// Parses and checks a model.
pub fn check(source: &Source, settings: &Settings) -> Result<Program, Vec<Diagnostic>> {
    let (mut file, diagnostics) = syntax::parser::parse(source);
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    set(&mut file, settings)?;
    check::check(&file, source)
}

/// Makes a model ready to be explored.
pub fn load(source: &Source, settings: &Settings) -> Result<Machine, Vec<Diagnostic>> {
    Machine::new(check(source, settings)?).map_err(|diagnostic| vec![diagnostic])
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
                Diagnostic::new(source::Span::default(), format!("no constant `{wanted}` in this model"))
                    .label("to be set from outside")
                    .hint("only names declared with `const` can be given another value"),
            ),
        }
    }
    if unknown.is_empty() { Ok(()) } else { Err(unknown) }
}
