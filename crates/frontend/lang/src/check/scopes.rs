//! Local variables: which are visible, what may be done with them.

use std::collections::HashMap;

use preempt_machine::program::{Local, LocalId, Type};
use preempt_machine::source::Span;

/// What a local variable is.
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

/// Where an expression stands, and so what it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purity {
    /// Anything.
    Effects,
    /// No effects; what asks for that, for the message: ``an `await` ``.
    Pure(&'static str),
    /// No variables either.
    Constant,
}

/// What a function or a thread gives back.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// No value.
    Nothing,
    /// A value of this type, if that is known.
    Value(Option<Type>),
}

/// The variables of the function that is being translated, and what its statements need to know of
/// it.
pub(super) struct Frame<'a> {
    /// All variables so far, also those whose scope has ended.
    variables: Vec<Variable>,
    /// The variables of each visible name, innermost last.
    visible: HashMap<&'a str, Vec<LocalId>>,
    /// The names of each open scope, innermost last.
    scopes: Vec<Vec<(&'a str, Span)>>,
    /// What `return` gives.
    pub(super) outcome: Outcome,
    /// How many loops are open.
    pub(super) loops: usize,
    /// What the expression at hand may do.
    pub(super) purity: Purity,
}

struct Variable {
    name: String,
    /// `None` if its declaration has a mistake.
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

    /// Declares a variable in the innermost scope. Also where that already has the name: then the
    /// place of the first declaration is given too, and the new one is what later uses mean.
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

    /// The variable that a name means here.
    pub(super) fn find(&self, name: &str) -> Option<LocalId> {
        self.visible.get(name)?.last().copied()
    }

    /// The type of a variable, if it is known.
    pub(super) fn ty(&self, local: LocalId) -> Option<Type> {
        self.variables[local].ty.clone()
    }

    /// What a variable is.
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
