//! Facts about the cells before a step, on one path through its code.

use super::super::code::Cell;
use super::super::layout::Field;

/// The possible bits of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Raws {
    /// One bit for each possible value, all of them below 64.
    Few(u64),
    /// All values between the lowest and the highest.
    Between(u64, u64),
}

impl Raws {
    fn all(field: &Field) -> Raws {
        match field.span {
            span @ 0..=63 => Raws::Few(u64::MAX >> (63 - span)),
            span => Raws::Between(0, span),
        }
    }

    /// The lowest value.
    pub(super) fn lowest(self) -> u64 {
        match self {
            Raws::Few(set) => set.trailing_zeros().into(),
            Raws::Between(low, _) => low,
        }
    }

    /// The highest value.
    pub(super) fn highest(self) -> u64 {
        match self {
            Raws::Few(set) => 63 - u64::from(set.leading_zeros()),
            Raws::Between(_, high) => high,
        }
    }

    /// Whether a value is possible.
    pub(super) fn contains(self, raw: u64) -> bool {
        match self {
            Raws::Few(set) => raw < 64 && set >> raw & 1 == 1,
            Raws::Between(low, high) => (low..=high).contains(&raw),
        }
    }

    /// The value, if there is only one.
    pub(super) fn only(self) -> Option<u64> {
        (self.lowest() == self.highest()).then(|| self.lowest())
    }
}

/// A test of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Question {
    /// Whether its bits are equal to these.
    Is(u64),
    /// Whether they are a number below this one.
    Below(u64),
}

impl Question {
    /// The values below 64 for which the answer is yes.
    pub(super) fn set(self) -> u64 {
        match self {
            Question::Is(raw @ 0..=63) => 1 << raw,
            Question::Is(_) => 0,
            Question::Below(limit @ 0..=63) => (1 << limit) - 1,
            Question::Below(_) => u64::MAX,
        }
    }
}

/// A test of a particular cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Condition {
    pub(super) cell: Cell,
    pub(super) question: Question,
}

/// The known facts.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    known: Vec<(Cell, Raws)>,
    /// Excluded values of cells with many values.
    denied: Vec<(Cell, u64)>,
}

impl Facts {
    /// The possible bits of a cell.
    pub(super) fn raws(&self, cell: Cell, fields: &[Field]) -> Raws {
        let known = self.known.iter().find(|&&(known, _)| known == cell);
        known.map_or_else(|| Raws::all(&fields[cell as usize]), |&(_, raws)| raws)
    }

    /// The answer, if it is known.
    pub(super) fn answer(&self, condition: Condition, fields: &[Field]) -> Option<bool> {
        match (self.raws(condition.cell, fields), condition.question) {
            (Raws::Few(set), question) => match set & question.set() {
                0 => Some(false),
                yes if yes == set => Some(true),
                _ => None,
            },
            (Raws::Between(low, high), Question::Is(raw)) => {
                if low == high {
                    return Some(raw == low);
                }
                let denied =
                    raw < low || raw > high || self.denied.contains(&(condition.cell, raw));
                denied.then_some(false)
            }
            (Raws::Between(_, high), Question::Below(limit)) if high < limit => Some(true),
            (Raws::Between(low, _), Question::Below(limit)) => (low >= limit).then_some(false),
        }
    }

    /// Assumes an answer that was not known.
    pub(super) fn assume(&mut self, condition: Condition, answer: bool, fields: &[Field]) {
        let Condition { cell, question } = condition;
        let raws = match (self.raws(cell, fields), question) {
            (Raws::Few(set), question) if answer => Raws::Few(set & question.set()),
            (Raws::Few(set), question) => Raws::Few(set & !question.set()),
            (Raws::Between(..), Question::Is(raw)) if answer => Raws::Between(raw, raw),
            (raws @ Raws::Between(..), Question::Is(raw)) => {
                self.denied.push((cell, raw));
                raws
            }
            (Raws::Between(low, high), Question::Below(limit)) if answer => {
                Raws::Between(low, high.min(limit - 1))
            }
            (Raws::Between(low, high), Question::Below(limit)) => {
                Raws::Between(low.max(limit), high)
            }
        };
        match self.known.iter_mut().find(|(known, _)| *known == cell) {
            Some((_, known)) => *known = raws,
            None => self.known.push((cell, raws)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(span: u64) -> Field {
        Field { span, mask: u64::MAX >> span.leading_zeros(), ..Field::default() }
    }

    /// Whatever is assumed in whatever order, answers are those of every value that is still
    /// possible.
    #[test]
    fn answers_are_those_of_the_values_that_are_left() {
        for span in [1, 2, 5, 63, 64, 100] {
            let fields = [field(span)];
            let ask = |question| Condition { cell: 0, question };
            let holds = |question: Question, raw: u64| match question {
                Question::Is(other) => raw == other,
                Question::Below(limit) => raw < limit,
            };
            let middle = span / 2;
            let questions = [
                Question::Is(0),
                Question::Is(middle),
                Question::Is(span),
                Question::Below(middle + 1),
                Question::Below(span),
            ];
            for truth in 0..1u64 << questions.len() {
                let (mut facts, mut left): (_, Vec<u64>) = (Facts::default(), (0..=span).collect());
                for (at, &question) in questions.iter().enumerate() {
                    let yes = left.iter().filter(|&&raw| holds(question, raw)).count();
                    let answer = facts.answer(ask(question), &fields);
                    match answer {
                        Some(true) => assert_eq!(yes, left.len()),
                        Some(false) => assert_eq!(yes, 0),
                        None => {
                            let answer = truth >> at & 1 == 1;
                            facts.assume(ask(question), answer, &fields);
                            assert_eq!(
                                facts.answer(ask(question), &fields),
                                Some(answer),
                                "{question:?} {facts:?}"
                            );
                            left.retain(|&raw| holds(question, raw) == answer);
                        }
                    }
                    let raws = facts.raws(0, &fields);
                    assert!(
                        left.iter().all(|&raw| (raws.lowest()..=raws.highest()).contains(&raw))
                    );
                    if left.is_empty() {
                        break;
                    }
                }
            }
        }
    }
}
