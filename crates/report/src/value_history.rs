//! The values of all variables after each step of an execution.
//!
//! The history contains what each step changed, so its size depends on the changes, not on the
//! number of variables.

use std::collections::HashMap;

use preempt_system::{ThreadId, VariableValue};

/// A variable or an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Variable {
    /// The thread whose local variable it is; `None` if it is shared.
    pub owner: Option<ThreadId>,
    /// The name.
    pub name: String,
    /// Distinguishes variables with the same owner and name, from 0: blocks of one function may
    /// declare the same name.
    pub nth: usize,
}

/// A variable, by its index in [`ValueHistory::variables`], and its new value; `None` if it ceases
/// to exist.
pub type Change = (usize, Option<String>);

/// The values along an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueHistory {
    /// All variables that ever have a value, in the order in which they first have one.
    pub variables: Vec<Variable>,
    /// The values before the first step, then the changes by each step.
    pub changes: Vec<Vec<Change>>,
}

/// Records the values of one state after the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    history: ValueHistory,
    numbers: HashMap<Variable, usize>,
    now: Vec<Option<String>>,
}

impl Recorder {
    /// Records all values of the next state. The first is the state before the first step.
    pub(crate) fn note(&mut self, values: &[VariableValue]) {
        let mut next = vec![None; self.now.len()];
        let mut seen: HashMap<(Option<ThreadId>, &str), usize> = HashMap::new();
        for VariableValue { owner, name, value } in values {
            let count = seen.entry((*owner, name)).or_default();
            let variable = Variable { owner: *owner, name: name.clone(), nth: *count };
            *count += 1;
            let number = *self.numbers.entry(variable).or_insert_with_key(|variable| {
                self.history.variables.push(variable.clone());
                next.push(None);
                self.history.variables.len() - 1
            });
            next[number] = Some(value.clone());
        }
        self.now.resize(next.len(), None);
        let changed = self.now.iter().zip(&next).enumerate().filter(|(_, (old, new))| old != new);
        let changes = changed.map(|(number, (_, new))| (number, new.clone())).collect();
        self.history.changes.push(changes);
        self.now = next;
    }

    pub(crate) fn finish(self) -> ValueHistory {
        self.history
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_change_and_go() {
        let value = |owner: Option<usize>, name: &str, value: i32| VariableValue {
            owner: owner.map(ThreadId::new),
            name: name.to_owned(),
            value: value.to_string(),
        };
        let mut recorder = Recorder::default();
        recorder.note(&[value(None, "x", 0)]);
        recorder.note(&[value(None, "x", 0), value(Some(1), "x", 5), value(Some(1), "x", 6)]);
        recorder.note(&[value(None, "x", 1), value(Some(1), "x", 5)]);
        recorder.note(&[value(None, "x", 1), value(Some(1), "x", 5), value(Some(1), "x", 6)]);
        let ValueHistory { variables, changes } = recorder.finish();
        let some = |number, value: &str| (number, Some(value.to_owned()));
        let expected = [
            vec![some(0, "0")],
            vec![some(1, "5"), some(2, "6")],
            vec![some(0, "1"), (2, None)],
            vec![some(2, "6")],
        ];
        assert_eq!(changes, expected);
        let named: Vec<_> =
            variables.iter().map(|v| (v.owner.is_some(), v.name.as_str(), v.nth)).collect();
        assert_eq!(named, [(false, "x", 0), (true, "x", 0), (true, "x", 1)]);
    }
}
