//! Local variables: their scopes and permitted uses.

use std::collections::HashMap;

use preempt_machine::program::{Local, LocalId, Type};
use preempt_machine::source::Span;

/// The kind of a local variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Declared with `var`, or a parameter of a function.
    Variable,
    /// A parameter of a thread.
    ThreadParam,
    /// The variable of a `for`.
    Loop,
    /// The variable of `all`, `any` or `count`.
    Quantified,
}

/// The context of an expression, which restricts its effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purity {
    /// Anything.
    Effects,
    /// No effects; what requires that, for the message: ``an `await` ``.
    Pure(&'static str),
    /// No variables either.
    Constant,
}

/// The result of a function or a thread.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// No value.
    Nothing,
    /// A value of this type, if it is known.
    Value(Option<Type>),
}

/// The variables of the function that is being translated, and the context of its statements.
pub(super) struct Frame<'a> {
    /// All variables so far, including those that are out of scope.
    variables: Vec<Variable>,
    /// The variables of each visible name, innermost last.
    visible: HashMap<&'a str, Vec<LocalId>>,
    /// The names of each open scope, innermost last.
    scopes: Vec<Vec<(&'a str, Span)>>,
    /// The result of `return`.
    pub(super) outcome: Outcome,
    /// The number of open loops.
    pub(super) loops: usize,
    /// The permitted effects of the current expression.
    pub(super) purity: Purity,
}

struct Variable {
    name: String,
    /// `None` if its declaration has an error.
    ty: Option<Type>,
    role: Role,
}

impl Default for Frame<'_> {
    fn default() -> Self {
        Frame {
            variables: Vec::new(),
            visible: HashMap::new(),
            scopes: vec![Vec::new()],
            outcome: Outcome::Nothing,
            loops: 0,
            purity: Purity::Effects,
        }
    }
}

impl<'a> Frame<'a> {
    /// Opens a scope.
    pub(super) fn open(&mut self) {
        self.scopes.push(Vec::new());
    }

    /// Closes the innermost scope.
    pub(super) fn close(&mut self) {
        let names = self.scopes.pop().expect("every close has its open");
        for (name, _) in names {
            self.visible
                .get_mut(name)
                .expect("a declared name is visible until its scope ends")
                .pop();
        }
    }

    /// Declares a variable in the innermost scope. If the name is already declared there, also
    /// returns the span of the first declaration; later uses refer to the new one.
    pub(super) fn declare(
        &mut self,
        name: &'a str,
        span: Span,
        ty: Option<Type>,
        role: Role,
    ) -> (LocalId, Option<Span>) {
        let local = self.variables.len();
        self.variables.push(Variable { name: name.to_owned(), ty, role });
        self.visible.entry(name).or_default().push(local);
        let scope = self.scopes.last_mut().expect("a frame has a scope");
        let first = scope.iter().find(|(other, _)| *other == name).map(|&(_, first)| first);
        scope.push((name, span));
        (local, first)
    }

    /// The variable that a name refers to here.
    pub(super) fn find(&self, name: &str) -> Option<LocalId> {
        self.visible.get(name)?.last().copied()
    }

    /// The type of a variable, if it is known.
    pub(super) fn ty(&self, local: LocalId) -> Option<Type> {
        self.variables[local].ty.clone()
    }

    /// The kind of a variable.
    pub(super) fn role(&self, local: LocalId) -> Role {
        self.variables[local].role
    }

    /// The name of a variable.
    pub(super) fn name(&self, local: LocalId) -> &str {
        &self.variables[local].name
    }

    /// The names that are visible here.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.visible.iter().filter(|(_, locals)| !locals.is_empty()).map(|(name, _)| *name)
    }

    /// All variables, in the order of their declaration; `None` if the type of one is not known.
    pub(super) fn finish(self) -> Option<Vec<Local>> {
        self.variables
            .into_iter()
            .map(|variable| Some(Local { name: variable.name, ty: variable.ty? }))
            .collect()
    }
}
