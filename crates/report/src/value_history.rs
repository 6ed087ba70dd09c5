//! An execution as something to move along: what happens before what, and the values of all
//! variables after each step.
//!
//! A [`Trace`](crate::Trace) tells the steps; this is what a picture needs besides. Values are kept
//! as what each step changed, so that thousands of steps are no more than what they did.

use std::collections::HashMap;

use preempt_explore::Replay;
use preempt_explore::cursor::Cursor;
use preempt_system::{HbGraph, Model, Narrate, Schedule, ThreadId};

/// Something that has a value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variable {
    /// Whose it is; `None` if it is shared.
    pub owner: Option<ThreadId>,
    /// What it is called.
    pub name: String,
    /// Which of those that are called so, from 0: blocks of one function may declare the same name.
    pub nth: usize,
}

/// A variable, by its number in [`ValueHistory::variables`], and the value that it has from then on;
/// `None` if it is gone.
pub type Change = (usize, Option<String>);

/// What is to be seen along an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueHistory {
    /// For each step the steps that happen immediately before it.
    pub arrows: Vec<Vec<usize>>,
    /// All variables that ever have a value, in the order in which they first have one.
    pub variables: Vec<Variable>,
    /// What has a value before the first step, and then what each step changed.
    pub changes: Vec<Vec<Change>>,
}

impl ValueHistory {
    /// What is to be seen along the execution of `schedule`, which `replay` has made on `model`.
    pub fn of<'m, M>(model: &'m M, schedule: &Schedule, replay: &Replay) -> ValueHistory
    where
        M: Model<Stepper<'m>: Narrate>,
    {
        let mut stepper = model.stepper();
        let threads = model.shape().threads;
        let mut values = Values::default();
        for steps in 0..=replay.steps() {
            let state = replay.state(steps);
            let shared =
                stepper.variables(state).into_iter().map(|(name, value)| (None, name, value));
            let mut all: Vec<_> = shared.collect();
            for thread in (0..threads).map(ThreadId::new) {
                let own = stepper.locals(state, thread).into_iter();
                all.extend(own.map(|(name, value)| (Some(thread), name, value)));
            }
            values.note(all);
        }
        let fits = "a schedule that was replayed fits the states";
        let mut cursor = Cursor::new(model).expect(fits).recording();
        for &choice in schedule.steps() {
            cursor.step(choice).expect(fits);
        }
        values.history(cursor.graph().expect("the cursor is recording"))
    }
}

/// The values along an execution, noted state by state.
#[derive(Clone, Debug, Default)]
pub struct Values {
    variables: Vec<Variable>,
    numbers: HashMap<Variable, usize>,
    now: Vec<Option<String>>,
    changes: Vec<Vec<Change>>,
}

impl Values {
    /// Notes all values of the next state: owner, name, value. The first is the state before the
    /// first step.
    pub fn note(&mut self, values: Vec<(Option<ThreadId>, String, String)>) {
        let mut next = vec![None; self.now.len()];
        let mut seen: HashMap<(Option<ThreadId>, String), usize> = HashMap::new();
        for (owner, name, value) in values {
            let count = seen.entry((owner, name.clone())).or_default();
            let variable = Variable { owner, name, nth: *count };
            *count += 1;
            let number = *self.numbers.entry(variable).or_insert_with_key(|variable| {
                self.variables.push(variable.clone());
                next.push(None);
                self.variables.len() - 1
            });
            next[number] = Some(value);
        }
        self.now.resize(next.len(), None);
        let changed = self.now.iter().zip(&next).enumerate().filter(|(_, (old, new))| old != new);
        self.changes.push(changed.map(|(number, (_, new))| (number, new.clone())).collect());
        self.now = next;
    }

    /// The history of the execution with this happens-before graph.
    pub fn history(self, graph: &HbGraph) -> ValueHistory {
        debug_assert_eq!(
            self.changes.len(),
            graph.len() + 1,
            "every state of the execution was noted"
        );
        ValueHistory { arrows: graph.arrows(), variables: self.variables, changes: self.changes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_change_and_go() {
        let value = |owner: Option<usize>, name: &str, value: i32| {
            (owner.map(ThreadId::new), name.to_owned(), value.to_string())
        };
        let mut values = Values::default();
        values.note(vec![value(None, "x", 0)]);
        values.note(vec![value(None, "x", 0), value(Some(1), "x", 5), value(Some(1), "x", 6)]);
        values.note(vec![value(None, "x", 1), value(Some(1), "x", 5)]);
        values.note(vec![value(None, "x", 1), value(Some(1), "x", 5), value(Some(1), "x", 6)]);
        let some = |number, value: &str| (number, Some(value.to_owned()));
        let expected = [
            vec![some(0, "0")],
            vec![some(1, "5"), some(2, "6")],
            vec![some(0, "1"), (2, None)],
            vec![some(2, "6")],
        ];
        assert_eq!(values.changes, expected);
        let named: Vec<_> =
            values.variables.iter().map(|v| (v.owner.is_some(), v.name.as_str(), v.nth)).collect();
        assert_eq!(named, [(false, "x", 0), (true, "x", 0), (true, "x", 1)]);
    }
}
