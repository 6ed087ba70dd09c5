//! Classes of properties, and what a strategy says about each.

use std::fmt;

/// A class of properties. Strategies keep or lose whole classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Property {
    /// Assertions and runtime errors: a step that fails.
    Step,
    /// Invariants: a state in which a condition does not hold.
    Invariant,
    /// A state in which no thread can step, and not all of them have ended or may rest there.
    Deadlock,
    /// Two conflicting accesses that are not ordered by happens-before.
    Race,
}

impl Property {
    /// All classes, in the order of tables.
    pub const ALL: [Property; 4] =
        [Property::Step, Property::Invariant, Property::Deadlock, Property::Race];
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Property::Step => "assertions, runtime errors",
            Property::Invariant => "invariants",
            Property::Deadlock => "deadlocks",
            Property::Race => "data races",
        })
    }
}

/// Whether a completed search reports an error of a class if the program has one, within the bound
/// and the limits of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Soundness {
    /// A completed search reports the error.
    Sound,
    /// It draws executions at random, and a sample proves nothing.
    Sampled,
    /// A completed search may miss an error.
    Unsound(&'static Loss),
    /// It is not known whether it does; the claim that is not proved.
    Unproved(&'static str),
    /// The class has no meaning for the strategy; the reason.
    NotApplicable(&'static str),
}

/// The loss of an unsound combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The mechanism by which errors are missed.
    pub why: &'static str,
    /// A small program on which an error is missed: a file of the corpus, or its text.
    pub witness: &'static str,
}

/// A strategy's soundness for every class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Properties {
    /// For [`Property::Step`].
    pub step: Soundness,
    /// For [`Property::Invariant`].
    pub invariant: Soundness,
    /// For [`Property::Deadlock`].
    pub deadlock: Soundness,
    /// For [`Property::Race`], which is looked for with [`Points::Sync`](super::Points::Sync).
    pub race: Soundness,
}

impl Properties {
    /// The soundness for one class.
    pub fn of(&self, property: Property) -> Soundness {
        match property {
            Property::Step => self.step,
            Property::Invariant => self.invariant,
            Property::Deadlock => self.deadlock,
            Property::Race => self.race,
        }
    }
}
