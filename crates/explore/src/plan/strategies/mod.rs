//! The strategies: the type of a row, and the rows by their names and values. `table` has the rows.
//!
//! [`STRATEGIES`] is the only list of strategies. The command line takes its values and its help
//! from it, the library its words for `PREEMPT_ORDER` and `PREEMPT_REDUCE`, reports their names,
//! and [`Plan::build`](super::Plan::build) its refusals. `docs/design/soundness.md` and the README
//! have tables of it, which tests compare.
//!
//! A new strategy is a file in `order` or `reduce`, a variant of [`Order`] or [`Reduction`] and of
//! [`Strategy`] with a row in `table`, and an arm of the dispatch in `driver/executions.rs` or
//! `driver/states.rs`. The compiler names the other matches that a new variant needs.

mod table;

use preempt_system::memory::MemoryModel;

use super::property::Properties;
use super::strategy::Strategy;
use super::terms::{Setting, Term};
use super::{Cache, Order, Plan, Reduction, Subject};

pub(super) use table::JOBS_AND_ROUND_ROBIN;
pub use table::STRATEGIES;

/// A strategy.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in every front end and report.
    pub name: &'static str,
    /// The value of a plan that selects it, with the usual parameters.
    pub value: Value,
    /// The parameter that may follow its name after a colon.
    pub parameter: ParameterKind,
    /// The users to whom it is useful.
    pub audience: Audience,
    /// A summary of what it explores, in a few words.
    pub summary: &'static str,
    /// A description of its function, guarantees and costs, in a few sentences.
    pub description: &'static str,
    /// The guarantee of a completed search, in a few words.
    pub guarantee: &'static str,
    /// The class of searches that it belongs to.
    pub class: Class,
    /// If it searches within a bound on preemptions only: the strategy to use without a bound.
    pub needs_bound: Option<&'static str>,
    /// The orders that a reduction can be combined with; the first is the usual one.
    pub orders: &'static [Order],
    /// The settings that it cannot be combined with.
    pub conflicts: &'static [&'static Conflict],
    /// Why it cannot search real code (closures, executables), whose states can neither be copied
    /// nor compared.
    pub not_for_programs: Option<&'static str>,
    /// The memory models under which it is sound.
    pub memory_models: &'static [MemoryModel],
    /// Why it is not sound under the others; `None` if there are none.
    pub other_memory: Option<OtherMemory>,
    /// Its soundness for each class of properties.
    pub properties: Properties,
    /// Makes the strategy of a plan; `None` if it needs a bound and there is none.
    pub construct: fn(&Plan) -> Option<Strategy>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.name == other.name
    }
}

impl Eq for Entry {}

impl Entry {
    /// Whether it is for users who check programs.
    pub fn is_general(&self) -> bool {
        self.audience == Audience::General
    }

    /// Whether it can be combined with a bound on preemptions.
    pub fn takes_bound(&self) -> bool {
        !self.conflicts.iter().any(|conflict| conflict.with == [Setting::Bound])
    }

    /// Whether it can search this kind of subject.
    pub fn searches(&self, subject: Subject) -> bool {
        match subject {
            Subject::Model => self.memory_models.contains(&MemoryModel::Sc),
            Subject::WeakModel => self.memory_models.contains(&MemoryModel::Weak),
            Subject::Program => self.not_for_programs.is_none(),
        }
    }

    /// How a plan for `subject` asks for it without a parameter. A search with a cache avoids
    /// repeated states in a model, and repeated happens-before graphs in a program and under weak
    /// memory, whose states cannot be compared.
    pub fn value_for(&self, subject: Subject) -> Value {
        match (self.value, subject) {
            (Value::Order(order), Subject::Program | Subject::WeakModel) => {
                Value::Order(order.with_cache(Cache::Hb))
            }
            (value, _) => value,
        }
    }

    /// Its spelling: the name, followed by `:n` or the like if it has a parameter.
    pub fn written(&self) -> String {
        let parameter = match self.parameter {
            ParameterKind::None | ParameterKind::Cache => "",
            ParameterKind::Steps | ParameterKind::Increment | ParameterKind::ErrorDepth => ":n",
        };
        format!("{}{parameter}", self.name)
    }

    /// The option that asks for it.
    pub fn setting(&self) -> Setting {
        match self.value {
            Value::Order(_) => Setting::Order,
            Value::Reduction(_) => Setting::Reduction,
        }
    }
}

/// The value of a plan that selects a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// An order.
    Order(Order),
    /// A reduction.
    Reduction(Reduction),
}

/// The kinds of parameters of strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// No parameter.
    None,
    /// A cache: `icb:hb`.
    Cache,
    /// A number of steps, which is necessary: `depth:20`.
    Steps,
    /// A number of steps, 1 if it is left out: `idfs:5`.
    Increment,
    /// The depth of errors, 3 if it is left out: `pct:2`.
    ErrorDepth,
}

/// A strategy as its users write it: `executions`, `icb:hb`, `depth:20`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its row.
    pub entry: &'static Entry,
    /// The order or reduction, with the parameter or the usual one.
    pub value: Value,
    /// Whether a parameter was given.
    pub has_parameter: bool,
}

impl Written {
    /// The order or reduction, for a plan that searches `subject`.
    pub fn value_for(&self, subject: Subject) -> Value {
        if self.has_parameter { self.value } else { self.entry.value_for(subject) }
    }
}

/// Why a text is not a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAStrategy {
    /// No strategy has this name.
    Unknown,
    /// The strategy has no parameter.
    NoParameter(&'static Entry),
    /// The strategy has another kind of parameter, or needs one.
    Parameter(&'static Entry),
}

/// Reads `name` or `name:parameter`.
pub fn parse(text: &str) -> Result<Written, NotAStrategy> {
    let (name, parameter) =
        text.split_once(':').map_or((text, None), |(name, parameter)| (name, Some(parameter)));
    let entry = named(name).ok_or(NotAStrategy::Unknown)?;
    let wrong = || NotAStrategy::Parameter(entry);
    let number = || match parameter.map(str::parse) {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(_)) => Err(wrong()),
    };
    let value = match (entry.parameter, parameter) {
        (ParameterKind::None, Some(_)) => return Err(NotAStrategy::NoParameter(entry)),
        (ParameterKind::None, None) | (ParameterKind::Cache, None) => entry.value,
        (ParameterKind::Cache, Some(name)) => {
            let caches = [Cache::None, Cache::State, Cache::Hb];
            let cache = caches.into_iter().find(|cache| cache.name() == name).ok_or_else(wrong)?;
            match entry.value {
                Value::Order(order) => Value::Order(order.with_cache(cache)),
                Value::Reduction(_) => return Err(wrong()),
            }
        }
        (ParameterKind::Steps, _) => {
            Value::Order(Order::Depth { steps: number()?.ok_or_else(wrong)? })
        }
        (ParameterKind::Increment, _) => {
            number()?.map_or(entry.value, |by| Value::Order(Order::IterativeDepth { by }))
        }
        (ParameterKind::ErrorDepth, _) => {
            number()?.map_or(entry.value, |depth| Value::Order(Order::Pct { depth }))
        }
    };
    Ok(Written { entry, value, has_parameter: parameter.is_some() })
}

/// The users to whom a strategy is useful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Users who check programs.
    General,
    /// Users who compare algorithms: a published variant that another strategy supersedes.
    Research,
}

/// The classes of searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The graph of states.
    States,
    /// The tree of executions.
    Executions,
    /// A random sample of the executions.
    Sample,
}

/// Settings that a strategy cannot be combined with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Refused if all of these are set.
    pub with: &'static [Setting],
    /// Refused with these caches only; with any if there are none.
    pub caches: &'static [Cache],
    /// The reason.
    pub why: &'static str,
    /// If errors would be missed: a small program that shows it.
    pub witness: Option<&'static str>,
    /// The alternative to use with these settings.
    pub instead: &'static [Term],
}

/// Why a strategy cannot be combined with a memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtherMemory {
    /// The reason.
    pub why: &'static str,
    /// The alternatives.
    pub instead: &'static [Term],
}

/// The row of an order.
pub fn of_order(order: Order) -> &'static Entry {
    let same = |value| match value {
        Value::Order(other) => std::mem::discriminant(&other) == std::mem::discriminant(&order),
        Value::Reduction(_) => false,
    };
    STRATEGIES.iter().find(|entry| same(entry.value)).expect("every order has a row")
}

/// The row of a reduction; `None` for [`Reduction::None`], whose strategy is its order.
pub fn of_reduction(reduction: Reduction) -> Option<&'static Entry> {
    let row = STRATEGIES.iter().find(|entry| entry.value == Value::Reduction(reduction));
    assert!(row.is_some() || reduction == Reduction::None, "every reduction has a row");
    row
}

/// The row of this name.
pub fn named(name: &str) -> Option<&'static Entry> {
    STRATEGIES.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_terms_exist() {
        let names: BTreeSet<&str> = STRATEGIES.iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), STRATEGIES.len());
        for entry in &STRATEGIES {
            let instead = entry.conflicts.iter().flat_map(|conflict| conflict.instead);
            for term in instead {
                assert!(
                    !matches!(term, Term::Strategy(name) if named(name).is_none()),
                    "{}: {term:?}",
                    entry.name
                );
            }
            assert!(entry.needs_bound.is_none_or(|name| named(name).is_some()), "{}", entry.name);
            assert!(!entry.memory_models.is_empty(), "{}", entry.name);
            let all = entry.memory_models.len() == MemoryModel::ALL.len();
            assert_eq!(entry.other_memory.is_none(), all, "{}", entry.name);
        }
    }

    #[test]
    fn strategies_are_read_with_their_parameters() {
        let value = |text| parse(text).map(|written| written.value).ok();
        assert_eq!(value("executions"), Some(Value::Order(Order::Executions)));
        assert_eq!(value("icb:hb"), Some(Value::Order(Order::Icb { cache: Cache::Hb })));
        assert_eq!(value("delay"), Some(Value::Order(Order::Delay { cache: Cache::State })));
        assert_eq!(value("delay:none"), Some(Value::Order(Order::Delay { cache: Cache::None })));
        assert_eq!(value("depth:20"), Some(Value::Order(Order::Depth { steps: 20 })));
        assert_eq!(value("idfs"), Some(Value::Order(Order::IterativeDepth { by: 1 })));
        assert_eq!(value("pct:4"), Some(Value::Order(Order::Pct { depth: 4 })));
        assert_eq!(value("dpor"), Some(Value::Reduction(Reduction::Source)));
        for text in
            ["", "best", "depth", "depth:x", "icb:x", "delay:2", "pct:many", "dfs:3", "dpor:1"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_row_is_found_by_its_value() {
        for entry in &STRATEGIES {
            let found = match entry.value {
                Value::Order(order) => of_order(order),
                Value::Reduction(reduction) => of_reduction(reduction).expect("a reduction"),
            };
            assert_eq!(found.name, entry.name);
            assert_eq!(matches!(entry.value, Value::Reduction(_)), !entry.orders.is_empty());
        }
        assert_eq!(of_order(Order::Pct { depth: 17 }).name, "pct");
        assert!(of_reduction(Reduction::None).is_none());
    }
}
