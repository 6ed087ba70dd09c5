//! Checks what may block, choose or take more than one step inside `atomic` and `init`.
//!
//! An `atomic` block may block only in its first action, and contains nothing that takes more than
//! one step. `init` neither blocks nor chooses, and acquires no lock, since it is not a thread that
//! could release it. A call does what the function does, so every function gets a summary: the
//! least fixpoint over the call graph, computed with a worklist. The summary grows along each call
//! at most once for each of its five parts.

use std::collections::HashSet;

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{ExprKind, Function, FunctionId, Program};
use preempt_machine::source::Span;
use preempt_machine::walk;

use super::Checker;
use super::actions::{Action, ActionKind, Effect, actions, atomics};

/// An operation that a function, or one that it calls, performs somewhere.
type Witness = (Effect, Span);

/// The summary of a function: the effects of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Summary {
    waits_first: Option<Witness>,
    waits_later: Option<Witness>,
    /// It takes more than one step, or is a step of its own.
    steps: Option<Witness>,
    chooses: Option<Witness>,
    holds: Option<Witness>,
}

impl Summary {
    /// Adds an action of the function.
    fn add(&mut self, action: &Action, summaries: &[Summary]) {
        let done = match action.kind {
            ActionKind::Does(effect) => Summary::of(effect, action.span),
            ActionKind::Call(callee) => summaries[callee],
        };
        // What a later action does first, the function does later.
        let (first, later) = if action.first {
            (done.waits_first, done.waits_later)
        } else {
            (None, done.waits_first.or(done.waits_later))
        };
        self.waits_first = self.waits_first.or(first);
        self.waits_later = self.waits_later.or(later);
        self.steps = self.steps.or(done.steps);
        self.chooses = self.chooses.or(done.chooses);
        self.holds = self.holds.or(done.holds);
    }

    /// The summary of a function that does nothing else.
    fn of(effect: Effect, span: Span) -> Summary {
        let witness = Some((effect, span));
        match effect {
            Effect::Wait(_) => Summary { waits_first: witness, ..Summary::default() },
            Effect::TwoSteps(_) | Effect::Atomic => {
                Summary { steps: witness, ..Summary::default() }
            }
            Effect::Choose => Summary { chooses: witness, ..Summary::default() },
            Effect::Hold(_) => Summary { holds: witness, ..Summary::default() },
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

/// Whether `init` starts a thread, directly or in a call.
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
    /// Checks all `atomic` blocks and `init`. Functions with errors in their signatures are
    /// missing.
    pub(super) fn check_waits(&mut self, functions: &[Option<Function>], init: Option<FunctionId>) {
        let body = |function: &Option<Function>| {
            function.as_ref().map_or_else(Vec::new, |f| actions(&f.body))
        };
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

    /// Checks one action of an `atomic` block whose head is at `head`.
    fn check_atomic(&mut self, action: &Action, head: Span, summaries: &[Summary]) {
        let mut block = Summary::default();
        block.add(action, summaries);
        let Some((effect, place)) = block.steps.or(block.waits_later) else { return };
        let name = effect.name();
        let (message, label, hint) = match effect {
            Effect::Wait(_) => (
                format!("{name} in the middle of an `atomic` block"),
                "may have to wait",
                "an `atomic` block may wait only as its first action: begin the block with it, or \
                 move it out",
            ),
            Effect::Atomic => (
                "`atomic` inside `atomic`".to_owned(),
                "a step inside a step",
                "the inner block is part of the same step anyway: remove the inner `atomic`",
            ),
            Effect::TwoSteps(_) | Effect::Choose | Effect::Hold(_) => (
                format!("{name} inside `atomic`"),
                "takes two steps: one to start waiting and one to continue",
                "move it out of the block",
            ),
        };
        let diagnostic = Diagnostic::new(action.span, message)
            .hint(hint)
            .related(head, "this block is one step");
        self.report(match action.kind {
            ActionKind::Does(_) => diagnostic.label(label),
            ActionKind::Call(_) => {
                diagnostic.label("reached through this call").related(place, label)
            }
        });
    }

    /// Checks one action of `init`.
    fn check_init(&mut self, action: &Action, summaries: &[Summary]) {
        let mut init = Summary::default();
        init.add(action, summaries);
        let not_possible =
            [init.steps, init.waits_first, init.waits_later, init.chooses, init.holds];
        let Some((effect, place)) = not_possible.into_iter().flatten().next() else { return };
        let hint = match effect {
            Effect::Atomic => "`init` is one step already: leave `atomic` out",
            Effect::Choose => "`init` has one outcome: choose in a thread",
            Effect::Hold(_) => {
                "`init` is not a thread, so no thread could release the lock: take it in a thread"
            }
            _ => "no other thread runs yet, so the wait could never end: do it in a thread",
        };
        let diagnostic =
            Diagnostic::new(action.span, format!("{} in `init`", effect.name())).hint(hint);
        self.report(match action.kind {
            ActionKind::Does(_) => diagnostic.label("not possible here"),
            ActionKind::Call(_) => {
                diagnostic.label("reached through this call").related(place, "here")
            }
        });
    }
}
