//! What may wait, choose or be more than one step inside of `atomic` and `init`.
//!
//! An `atomic` block may wait only as its first action, and contains nothing that is more than one step; `init` neither waits
//! nor chooses. Calls do what the function does, so every function gets a summary: the least fixpoint over the call graph,
//! found with a worklist. It grows along each call at most once for each of its four parts.

use std::collections::HashSet;

use super::Checker;
use super::actions::{Action, ActionKind, actions, atomics};
use crate::diagnostic::Diagnostic;
use crate::program::{ExprKind, Function, FunctionId, Program};
use crate::source::Span;
use crate::walk;

/// An action somewhere in a function or in what it calls: what and where.
type Witness = (&'static str, Span);

/// What a call of a function may do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Summary {
    waits_first: Option<Witness>,
    waits_later: Option<Witness>,
    suspends: Option<Witness>,
    chooses: Option<Witness>,
}

impl Summary {
    fn add(&mut self, action: &Action, summaries: &[Summary]) {
        let (waits, other) = if action.first {
            (&mut self.waits_first, &mut self.waits_later)
        } else {
            (&mut self.waits_later, &mut self.waits_first)
        };
        match action.kind {
            ActionKind::Wait(what) => _ = waits.get_or_insert((what, action.span)),
            ActionKind::Suspend(what) => _ = self.suspends.get_or_insert((what, action.span)),
            ActionKind::Choose => _ = self.chooses.get_or_insert(("`choose`", action.span)),
            ActionKind::Call(callee) => {
                let callee = summaries[callee];
                *waits = waits.or(callee.waits_first);
                let later = if action.first { other } else { waits };
                *later = later.or(callee.waits_later);
                self.suspends = self.suspends.or(callee.suspends);
                self.chooses = self.chooses.or(callee.chooses);
            }
        }
    }
}

/// The summaries of all functions.
fn summarise(all: &[Vec<Action>]) -> Vec<Summary> {
    let mut callers: Vec<Vec<FunctionId>> = vec![Vec::new(); all.len()];
    for (caller, actions) in all.iter().enumerate() {
        for action in actions {
            if let ActionKind::Call(callee) = action.kind {
                callers[callee].push(caller);
            }
        }
    }
    let mut summaries = vec![Summary::default(); all.len()];
    let mut work: Vec<FunctionId> = (0..all.len()).collect();
    while let Some(function) = work.pop() {
        let mut summary = summaries[function];
        all[function].iter().for_each(|action| summary.add(action, &summaries));
        if summary != summaries[function] {
            summaries[function] = summary;
            work.extend(&callers[function]);
        }
    }
    summaries
}

/// Whether `init` starts a thread, itself or in what it calls.
pub(super) fn init_spawns(program: &Program) -> bool {
    let mut work: Vec<FunctionId> = program.init.into_iter().collect();
    let mut seen: HashSet<FunctionId> = work.iter().copied().collect();
    let mut spawns = false;
    while let Some(function) = work.pop() {
        walk::exprs(&program.functions[function].body, &mut |expr| match expr.kind {
            ExprKind::Spawn(..) => spawns = true,
            ExprKind::Call(callee, _) if seen.insert(callee) => work.push(callee),
            _ => {}
        });
    }
    spawns
}

impl Checker<'_> {
    /// Checks all `atomic` blocks and `init`. Functions with mistakes in their signatures are missing.
    pub(super) fn check_waits(&mut self, functions: &[Option<Function>], init: Option<FunctionId>) {
        let body = |function: &Option<Function>| function.as_ref().map_or_else(Vec::new, |f| actions(&f.body));
        let all: Vec<Vec<Action>> = functions.iter().map(body).collect();
        let summaries = summarise(&all);
        for (id, function) in functions.iter().enumerate() {
            let Some(function) = function else { continue };
            if init == Some(id) {
                for action in &all[id] {
                    self.check_init(action, &summaries);
                }
                continue;
            }
            let mut blocks = Vec::new();
            atomics(&function.body, &mut blocks);
            for (block, head) in blocks {
                for action in actions(block) {
                    self.check_atomic(&action, head, &summaries);
                }
            }
        }
    }

    fn check_atomic(&mut self, action: &Action, head: Span, summaries: &[Summary]) {
        let later = "an `atomic` block may wait only as its first action: begin the block with it, or move it out";
        let (message, label, witness, hint) = match action.kind {
            ActionKind::Wait(what) if !action.first => {
                (format!("{what} in the middle of an `atomic` block"), "may have to wait", None, later)
            }
            ActionKind::Suspend("`atomic`") => {
                let hint = "a block inside is part of the one step anyway: remove the inner `atomic`";
                ("`atomic` inside of `atomic`".to_owned(), "one step inside of one step", None, hint)
            }
            ActionKind::Suspend(what) => {
                let hint = "move it out of the block";
                (format!("{what} inside of `atomic`"), "takes two steps: begin to wait, and be let go", None, hint)
            }
            ActionKind::Call(callee) => {
                let Summary { waits_first, waits_later, suspends, .. } = summaries[callee];
                let waits = if action.first { waits_later } else { waits_later.or(waits_first) };
                match (suspends, waits) {
                    (Some(witness), _) => {
                        let message = "this call takes more than one step inside of `atomic`".to_owned();
                        (message, "not one step", Some(witness), "call it outside of the block")
                    }
                    (None, Some(witness)) => {
                        let message = "this call may wait in the middle of an `atomic` block".to_owned();
                        (message, "may have to wait", Some(witness), later)
                    }
                    (None, None) => return,
                }
            }
            ActionKind::Wait(_) | ActionKind::Choose => return,
        };
        let mut diagnostic = Diagnostic::new(action.span, message).label(label).hint(hint);
        diagnostic = diagnostic.related(head, "this block is one step");
        if let Some((what, place)) = witness {
            diagnostic = diagnostic.related(place, format!("{what} is here"));
        }
        self.report(diagnostic);
    }

    fn check_init(&mut self, action: &Action, summaries: &[Summary]) {
        let (what, place) = match action.kind {
            ActionKind::Wait(what) | ActionKind::Suspend(what) => (what, action.span),
            ActionKind::Choose => ("`choose`", action.span),
            ActionKind::Call(callee) => {
                let Summary { waits_first, waits_later, suspends, chooses } = summaries[callee];
                match suspends.or(waits_first).or(waits_later).or(chooses) {
                    Some(witness) => witness,
                    None => return,
                }
            }
        };
        let hint = match what {
            "`atomic`" => "`init` is one step already: leave `atomic` out",
            "`choose`" => "`init` has one outcome: choose in a thread",
            _ => "no other thread runs yet, so nobody could end the wait: do it in a thread",
        };
        let mut diagnostic = Diagnostic::new(action.span, format!("{what} in `init`")).hint(hint);
        diagnostic = match action.kind {
            ActionKind::Call(_) => diagnostic.label("reached through this call").related(place, "here"),
            _ => diagnostic.label("not possible here"),
        };
        self.report(diagnostic);
    }
}
