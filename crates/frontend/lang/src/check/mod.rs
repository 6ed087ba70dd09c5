//! Names and types: from the syntax tree to the checked program.
//!
//! The order of the phases follows the dependencies, so declarations may come in any order:
//!
//! 1. `names`: every item gets an id, every name a symbol;
//! 2. `constants`: constants in the order of their dependencies;
//! 3. `records`, `globals`, `functions`: the types of fields, shared variables and signatures,
//!    which need constants;
//! 4. the bodies of functions and the invariants, which need all of these;
//! 5. `waits`: what may block inside `atomic` and `init`, which needs the bodies of all functions.
//!
//! **No cascades.** A construct with an error has no type: every translation returns an [`Option`],
//! and `None` means that an error in it was reported. A declaration with an error still declares
//! its name, with an unknown type, and uses of that name are `None` without another report. So
//! every diagnostic is about an error that the user made, and one run finds them all.

mod actions;
mod calls;
mod constants;
mod expected;
mod exprs;
mod flow;
mod fold;
mod functions;
mod globals;
mod initial;
mod matches;
mod methods;
mod names;
mod operators;
mod orderings;
mod places;
mod records;
mod scopes;
mod stmts;
mod types;
mod waits;
mod weak_memory;

use std::collections::HashSet;

use preempt_machine::diagnostic::{Diagnostic, Diagnostics};
use preempt_machine::program::{Enum, Function, Granularity, Program};
use preempt_machine::source::{Source, Span};
use preempt_system::MemoryModel;

use crate::syntax::ast;

use constants::Constant;
use functions::Signature;
use globals::Shared;
use names::Items;
use records::RecordType;
use scopes::Frame;

/// Checks a file and translates it. Reports all errors of the file at once, in the order of the
/// text; the list is empty if the only errors are those that the parser reported and replaced by
/// [`ast::ExprKind::Error`].
pub fn check(file: &ast::File, source: &Source) -> Result<Program, Vec<Diagnostic>> {
    let mut checker = Checker::new(source);
    let items = checker.declare(file);
    let program = checker.program(&items);
    program
        .filter(|_| checker.diagnostics.is_empty())
        .ok_or_else(|| checker.diagnostics.into_sorted())
}

/// The checker's state.
struct Checker<'a> {
    source: &'a Source,
    diagnostics: Diagnostics,
    /// The unknown names that were reported: each missing declaration is reported once.
    unknown: HashSet<&'a str>,
    symbols: names::Symbols<'a>,
    enums: Vec<Enum>,
    /// By the index of [`names::Symbol::Const`]; `None` if it has no value.
    constants: Vec<Option<Constant>>,
    records: Vec<RecordType>,
    shared: Vec<Shared>,
    signatures: Vec<Signature>,
    /// The function, invariant or constant that is being translated.
    frame: Frame<'a>,
}

impl<'a> Checker<'a> {
    fn new(source: &'a Source) -> Checker<'a> {
        Checker {
            source,
            diagnostics: Diagnostics::default(),
            unknown: HashSet::new(),
            symbols: names::Symbols::default(),
            enums: Vec::new(),
            constants: Vec::new(),
            records: Vec::new(),
            shared: Vec::new(),
            signatures: Vec::new(),
            frame: Frame::default(),
        }
    }

    /// All phases after the declaration of the names. `None` if there is any error.
    fn program(&mut self, items: &Items<'a>) -> Option<Program> {
        self.evaluate_constants(&items.constants);
        self.resolve_records(&items.records);
        self.resolve_globals(&items.globals);
        self.resolve_signatures(&items.functions);
        let threads = self.threads(&items.functions);
        let granularity = self.granularity(&items.steps);
        let memory = self.memory_model(items);
        let functions: Vec<Option<Function>> =
            items.functions.iter().enumerate().map(|(id, item)| self.function(item, id)).collect();
        self.invariant_names(&items.invariants);
        let invariants: Vec<_> = items.invariants.iter().map(|item| self.invariant(item)).collect();
        let init = items.functions.iter().position(|item| item.is_init());
        self.check_waits(&functions, init);
        if memory == MemoryModel::Weak {
            self.check_weak_memory(items, &functions);
        }

        let program = Program {
            source: self.source.clone(),
            granularity,
            memory,
            enums: std::mem::take(&mut self.enums),
            records: self.records.drain(..).map(RecordType::finish).collect::<Option<_>>()?,
            globals: self.shared.drain(..).map(Shared::finish).collect::<Option<_>>()?,
            functions: functions.into_iter().collect::<Option<_>>()?,
            threads: threads.into_iter().collect::<Option<_>>()?,
            init,
            invariants: invariants.into_iter().collect::<Option<_>>()?,
        };
        if self.diagnostics.is_empty()
            && program.threads.is_empty()
            && !waits::init_spawns(&program)
        {
            self.nothing_runs();
        }
        Some(program)
    }

    /// The granularity that `steps …;` declares.
    fn granularity(&mut self, steps: &[&'a ast::Name]) -> Granularity {
        if let [first, rest @ ..] = steps {
            for second in rest {
                self.report(
                    Diagnostic::new(second.span, "`steps` occurs twice")
                        .label("a second time")
                        .related(first.span, "first here")
                        .hint("a model has one granularity: remove one of the two"),
                );
            }
            if first.text == "statement" {
                return Granularity::Statement;
            }
        }
        // The parser knows both words, and reports any other.
        Granularity::Access
    }

    fn nothing_runs(&mut self) {
        let end = self.source.text.trim_end().len();
        self.report(
            Diagnostic::new(Span::new(end.saturating_sub(1), end), "the model has no threads")
                .label("the model ends here without a thread")
                .hint("write `thread main { … }`, or start one with `spawn` in `init`"),
        );
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Reports an error; there is no result.
    fn refuse<T>(&mut self, diagnostic: Diagnostic) -> Option<T> {
        self.report(diagnostic);
        None
    }
}
