//! Why a plan cannot be searched, as data, and as a sentence in the [terms](Terms) of a front end.

use std::fmt;

use preempt_system::memory::MemoryModel;

use super::Points;
use super::property::{Loss, Property, Soundness};
use super::strategies::{Class, Conflict, Entry, OtherMemory, STRATEGIES, named};
use super::terms::{PlanTerms, Setting, Term, Terms};

/// The reason why a plan is refused: it is senseless, unsound, or unsuitable for the program.
///
/// `Display` uses the names of [`Plan`](super::Plan)'s methods; a front end uses
/// [`Refusal::in_terms_of`] with its own.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The value of a setting is too small.
    TooSmall {
        /// The setting.
        setting: Setting,
        /// The smallest value allowed.
        least: u64,
    },
    /// A setting that must be positive is zero.
    Zero(Setting),
    /// The value of a setting is too large.
    TooLarge {
        /// The setting.
        setting: Setting,
        /// The greatest value allowed.
        most: u64,
    },
    /// The bitstate array is not smaller than the limit of memory.
    BitstateExceedsMemory {
        /// The size of the array.
        bytes: usize,
    },
    /// A setting has a meaning only together with something that the plan lacks.
    Requires {
        /// The setting, or the choice of one of its values.
        term: Term,
        /// What the plan lacks.
        requirement: Requirement,
    },
    /// The strategy searches within a bound, and there is none.
    NeedsBound {
        /// The strategy.
        strategy: &'static str,
        /// The strategy to use without a bound.
        instead: &'static str,
    },
    /// The strategy cannot be combined with settings of the plan.
    Conflict {
        /// The strategy.
        strategy: &'static str,
        /// The settings, the reason and the alternatives.
        conflict: &'static Conflict,
    },
    /// The reduction cannot be combined with the order.
    Order {
        /// The reduction.
        strategy: &'static str,
        /// The orders that it can be combined with.
        orders: Vec<&'static str>,
    },
    /// The strategy is not sound for a class of properties that is looked for.
    Property {
        /// The strategy.
        strategy: &'static str,
        /// The class.
        property: Property,
        /// Why it is not sound.
        soundness: Soundness,
    },
    /// The strategy is not sound under the memory model.
    Memory {
        /// The strategy.
        strategy: &'static str,
        /// The memory model.
        memory: MemoryModel,
    },
    /// A cache of states under weak memory.
    CacheUnderWeakMemory,
    /// The model names another memory model than the search.
    OtherMemory {
        /// The memory model of the model.
        model: MemoryModel,
    },
    /// Switches at synchronisation only, under weak memory.
    PointsUnderWeakMemory,
    /// The model contains something that a search over execution graphs does not handle.
    NoGraphs {
        /// The obstacle and its place.
        obstacle: String,
    },
    /// The model has invariants, and states between synchronisation points are not visited.
    InvariantsBetweenPoints,
    /// The strategy cannot search real code: closures, executables.
    RealCode {
        /// The strategy.
        strategy: &'static str,
        /// The reason.
        why: &'static str,
    },
    /// A cache of states, of a program whose states cannot be compared.
    CacheOfRealCode,
    /// A thread of the program is not a straight line, for a strategy that needs this.
    NotStraight {
        /// The strategy.
        strategy: &'static str,
        /// The obstacle and its place.
        obstacle: String,
    },
    /// The program has too many traces for a strategy that counts them in advance.
    TooManyTraces {
        /// The strategy.
        strategy: &'static str,
        /// Their number, if it could be counted.
        traces: Option<u128>,
        /// The most that are allowed.
        most: u128,
    },
    /// A part of the plan that cannot be searched in several processes.
    NotDistributed(Term),
    /// A checkpoint cannot be resumed.
    Checkpoint(Unusable),
}

/// A requirement of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Requirement {
    /// One of these choices.
    OneOf(Vec<Term>),
    /// A search over executions.
    Executions,
    /// A bound.
    Bound,
    /// At least two workers.
    SeveralJobs,
    /// One worker.
    OneJob,
    /// That another setting is not used.
    Without(Setting),
    /// Another setting.
    With(Setting),
}

/// Why a checkpoint cannot be resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unusable {
    /// It cannot be read; the error of the operating system.
    Unreadable(String),
    /// It is not a checkpoint.
    Foreign,
    /// It is incomplete, or was changed.
    Damaged,
    /// Another version of Preempt wrote it.
    Version {
        /// The version and the format of the checkpoint.
        theirs: (String, u32),
        /// The version and the format of this program.
        ours: (String, u32),
    },
    /// It belongs to another program.
    OtherProgram,
    /// It belongs to another search.
    OtherPlan(Option<Difference>),
    /// There is too little memory for its contents, or another build wrote it.
    DoesNotFit,
    /// The part of a process cannot be used; why.
    Shard(String),
    /// The search did something after it was resumed that it never does by itself; what.
    Misleads(String),
}

/// The first setting in which the search of a checkpoint differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The setting.
    pub setting: String,
    /// Its value in the checkpoint.
    pub theirs: String,
    /// Its value now.
    pub ours: String,
}

impl From<Unusable> for Refusal {
    fn from(unusable: Unusable) -> Refusal {
        Refusal::Checkpoint(unusable)
    }
}

impl Refusal {
    /// The refusal as a sentence for the users of a front end.
    pub fn in_terms_of<'a>(&'a self, terms: &'a dyn Terms) -> InTerms<'a> {
        InTerms { refusal: self, terms }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.in_terms_of(&PlanTerms).fmt(f)
    }
}

impl std::error::Error for Refusal {}

/// A [`Refusal`] in the [`Terms`] of a front end.
#[derive(Clone, Copy)]
pub struct InTerms<'a> {
    refusal: &'a Refusal,
    terms: &'a dyn Terms,
}

/// A term that writes itself in the terms of a front end.
struct Written<'a>(Term, &'a dyn Terms);

impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.1.write(self.0, f)
    }
}

impl InTerms<'_> {
    fn term(&self, term: impl Into<Term>) -> Written<'_> {
        Written(term.into(), self.terms)
    }

    fn strategy(&self, name: &'static str) -> Written<'_> {
        self.term(Term::Strategy(name))
    }

    /// `a, b or c`, without the strategies that the front end does not have.
    fn any_of(&self, terms: impl IntoIterator<Item = Term>) -> String {
        let is_known = |term: &Term| !matches!(term, Term::Strategy(name) if !self.terms.has(name));
        let terms: Vec<String> =
            terms.into_iter().filter(is_known).map(|term| self.term(term).to_string()).collect();
        listed(&terms, "or")
    }

    fn conflict(
        &self,
        f: &mut fmt::Formatter<'_>,
        strategy: &'static str,
        conflict: &Conflict,
    ) -> fmt::Result {
        let settings: Vec<String> =
            conflict.with.iter().map(|&setting| self.term(setting).to_string()).collect();
        let (strategy, settings, why) =
            (self.strategy(strategy), listed(&settings, "and"), conflict.why);
        match conflict.witness {
            Some(witness) => {
                write!(f, "{strategy} with {settings} misses errors: {why} (witness: {witness}); ")?
            }
            None => write!(f, "{strategy} cannot be combined with {settings}: {why}; ")?,
        }
        if !conflict.instead.is_empty() {
            write!(f, "use {}, or ", self.any_of(conflict.instead.iter().copied()))?;
        }
        let last = *conflict.with.last().expect("a conflict is with a setting");
        write!(f, "remove {}", self.term(last))
    }

    fn property(
        &self,
        f: &mut fmt::Formatter<'_>,
        strategy: &'static str,
        property: Property,
        soundness: Soundness,
    ) -> fmt::Result {
        let (why, witness) = match soundness {
            Soundness::Unsound(&Loss { why, witness }) => (why.to_owned(), Some(witness)),
            Soundness::NotApplicable(why) => (why.to_owned(), None),
            Soundness::Unproved(claim) => (format!("it is not proved that {claim}"), None),
            Soundness::Sound | Soundness::Sampled => ("it is sound".to_owned(), None),
        };
        let witness = witness.map_or_else(String::new, |witness| format!(" (witness: {witness})"));
        let written = self.strategy(strategy);
        // Strategies of the same class first: they need the fewest other changes.
        let class = named(strategy).map(|entry| entry.class);
        let sound = STRATEGIES
            .iter()
            .filter(|entry| entry.properties.of(property) == Soundness::Sound)
            .filter(|entry| property != Property::Invariant || !entry.orders.is_empty());
        let (same, other): (Vec<&Entry>, Vec<&Entry>) =
            sound.partition(|entry| Some(entry.class) == class);
        let instead = same.into_iter().chain(other).filter(|entry| entry.is_general()).take(4);
        let instead = self.any_of(instead.map(|entry| Term::Strategy(entry.name)));
        match property {
            Property::Race => write!(
                f,
                "{written} cannot be combined with {}: {why}; use {instead}, or remove {}",
                self.term(Term::Points(Points::Sync)),
                self.term(Setting::Points)
            ),
            Property::Deadlock => write!(
                f,
                "{written} misses deadlocks: {why}{witness}; add {}, or use another strategy",
                self.term(Setting::IgnoreDeadlocks)
            ),
            Property::Invariant => write!(
                f,
                "the model has invariants, and {written} may miss violations: {why}{witness}; \
                 use {instead}, or no reduction, or write assertions"
            ),
            Property::Step => {
                write!(f, "{written} misses errors: {why}{witness}; use another strategy")
            }
        }
    }

    fn requires(
        &self,
        f: &mut fmt::Formatter<'_>,
        term: Term,
        requirement: &Requirement,
    ) -> fmt::Result {
        let setting = self.term(term);
        match requirement {
            Requirement::OneOf(terms) => {
                write!(f, "{setting} needs {}", self.any_of(terms.iter().copied()))
            }
            Requirement::Executions => write!(
                f,
                "{setting} needs a search over executions, such as {}",
                self.strategy("icb")
            ),
            Requirement::Bound => write!(
                f,
                "{setting} needs {} with {}",
                self.strategy("icb"),
                self.term(Setting::Bound)
            ),
            Requirement::SeveralJobs => {
                write!(f, "{setting} needs {} of at least 2", self.term(Setting::Jobs))
            }
            Requirement::OneJob => write!(f, "{setting} needs {} of 1", self.term(Setting::Jobs)),
            Requirement::Without(other) => {
                write!(f, "{setting} cannot be combined with {}", self.term(*other))
            }
            Requirement::With(other) => write!(f, "{setting} needs {}", self.term(*other)),
        }
    }

    /// A strategy that is not sound under this memory model.
    fn memory(
        &self,
        f: &mut fmt::Formatter<'_>,
        strategy: &'static str,
        memory: MemoryModel,
    ) -> fmt::Result {
        let memory = match memory {
            MemoryModel::Sc => "sequential consistency".to_owned(),
            memory => format!("{memory} memory"),
        };
        let written = self.strategy(strategy);
        write!(f, "{written} cannot be combined with {memory}")?;
        match named(strategy).and_then(|entry| entry.other_memory) {
            Some(OtherMemory { why, instead }) => {
                write!(f, ": {why}; use {}", self.any_of(instead.iter().copied()))
            }
            None => Ok(()),
        }
    }

    /// A strategy that cannot search closures and executables.
    fn real_code(
        &self,
        f: &mut fmt::Formatter<'_>,
        strategy: &'static str,
        why: &str,
    ) -> fmt::Result {
        let class = named(strategy).map_or(Class::States, |entry| entry.class);
        let instead = match class {
            Class::States => ["icb", "executions", "dpor-optimal"],
            Class::Executions | Class::Sample => ["dpor-optimal", "dpor", "sleep"],
        };
        write!(
            f,
            "{} cannot search real code: {why}; use {}",
            self.strategy(strategy),
            self.any_of(instead.map(Term::Strategy))
        )
    }

    /// A strategy that counts traces in advance, of a program with more than `most`.
    fn too_many_traces(
        &self,
        f: &mut fmt::Formatter<'_>,
        strategy: &'static str,
        traces: Option<u128>,
        most: u128,
    ) -> fmt::Result {
        match traces {
            Some(traces) => write!(
                f,
                "{} would run {traces} executions, and the most is {most}",
                self.strategy(strategy)
            )?,
            None => write!(
                f,
                "the threads are too many or too long for {}: their traces cannot be \
                 counted",
                self.strategy(strategy)
            )?,
        }
        write!(
            f,
            "; use {} or {} with {}, or {}",
            self.strategy("icb"),
            self.strategy("cb-por"),
            self.term(Setting::Bound),
            self.strategy("bfs")
        )
    }

    /// A checkpoint that cannot be resumed.
    fn unusable(&self, f: &mut fmt::Formatter<'_>, unusable: &Unusable) -> fmt::Result {
        match unusable {
            Unusable::Unreadable(error) => write!(f, "the checkpoint cannot be read: {error}"),
            Unusable::Foreign => {
                write!(f, "this is not a checkpoint: give a file that {} wrote", {
                    self.term(Setting::Checkpoint)
                })
            }
            Unusable::Damaged => f.write_str(
                "the checkpoint is damaged: it was cut off or changed after it was written; \
                 use another checkpoint, or start again",
            ),
            Unusable::Version { theirs, ours } => write!(
                f,
                "the checkpoint was written by preempt {} (format {}), and this is preempt {} \
                 (format {}): use that version, or start again",
                theirs.0, theirs.1, ours.0, ours.1
            ),
            Unusable::OtherProgram => f.write_str(
                "the checkpoint belongs to another program: its text or a constant has \
                 changed; use the program as it was, or start again",
            ),
            Unusable::OtherPlan(None) => {
                f.write_str("the checkpoint belongs to another search: start again")
            }
            Unusable::OtherPlan(Some(Difference { setting, theirs, ours })) => write!(
                f,
                "the checkpoint belongs to another search: there {setting} is {theirs}, here \
                 it is {ours}; use the same options (only the limits of time and memory may \
                 change), or start again"
            ),
            Unusable::DoesNotFit => f.write_str(
                "the checkpoint cannot be resumed: there is too little memory for its \
                 contents, or another build of this version wrote it; free memory, or start \
                 again",
            ),
            Unusable::Shard(why) => write!(
                f,
                "the checkpoint cannot be resumed: {why}; use another checkpoint, or start \
                 again"
            ),
            Unusable::Misleads(what) => write!(
                f,
                "the checkpoint cannot be resumed: its contents do not belong to this \
                 program, or it has changed since ({what}); start again"
            ),
        }
    }
}

impl fmt::Display for InTerms<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.refusal {
            Refusal::TooSmall { setting, least } => {
                write!(f, "{} must be at least {least}", self.term(*setting))
            }
            Refusal::Zero(setting) => write!(f, "{} must be greater than 0", self.term(*setting)),
            Refusal::TooLarge { setting, most } => {
                write!(f, "{} must be at most {most}", self.term(*setting))
            }
            Refusal::BitstateExceedsMemory { bytes } => write!(
                f,
                "the bitstate array of {bytes} bytes does not fit into {}: raise the limit, or \
                 reduce {}",
                self.term(Setting::Memory),
                self.term(Setting::BitstateSize)
            ),
            Refusal::Requires { term, requirement } => self.requires(f, *term, requirement),
            Refusal::NeedsBound { strategy, instead } => write!(
                f,
                "{} needs {}; without a bound use {}",
                self.strategy(strategy),
                self.term(Setting::Bound),
                self.strategy(instead)
            ),
            Refusal::Conflict { strategy, conflict } => self.conflict(f, strategy, conflict),
            Refusal::Order { strategy, orders } => write!(
                f,
                "{} needs {}, which is used if {} is left out",
                self.strategy(strategy),
                self.any_of(orders.iter().map(|order| Term::Strategy(order))),
                self.term(Setting::Order)
            ),
            Refusal::Property { strategy, property, soundness } => {
                self.property(f, strategy, *property, *soundness)
            }
            Refusal::Memory { strategy, memory } => self.memory(f, strategy, *memory),
            Refusal::CacheUnderWeakMemory => write!(
                f,
                "{} cannot be combined with weak memory: two threads may read different values of \
                 one variable in the same state; use {} or {}",
                self.term(Term::Cache(super::Cache::State)),
                self.term(Term::Cache(super::Cache::Hb)),
                self.term(Term::Cache(super::Cache::None))
            ),
            Refusal::OtherMemory { model } => write!(
                f,
                "the model has {model} memory, and this search explores another memory model"
            ),
            Refusal::PointsUnderWeakMemory => write!(
                f,
                "{} cannot be combined with weak memory, under which every data race is found \
                 anyway; use {}",
                self.term(Term::Points(Points::Sync)),
                self.term(Term::Points(Points::All))
            ),
            Refusal::NoGraphs { obstacle } => write!(
                f,
                "{} does not handle {obstacle}; use {}",
                self.strategy("graphs"),
                self.any_of(["icb", "executions"].map(Term::Strategy).into_iter())
            ),
            Refusal::InvariantsBetweenPoints => write!(
                f,
                "the model has invariants, and {} does not visit the states between two \
                 synchronisations: use {}, or write assertions",
                self.term(Term::Points(Points::Sync)),
                self.term(Term::Points(Points::All))
            ),
            Refusal::RealCode { strategy, why } => self.real_code(f, strategy, why),
            Refusal::CacheOfRealCode => write!(
                f,
                "{} cannot search real code, whose states cannot be compared; use {} or {}",
                self.term(Term::Cache(super::Cache::State)),
                self.term(Term::Cache(super::Cache::Hb)),
                self.term(Term::Cache(super::Cache::None))
            ),
            &Refusal::NotDistributed(term) => write!(
                f,
                "{} is not distributed over several processes; use {} without a reduction, with \
                 a store of whole states in memory or of fingerprints",
                self.term(term),
                self.strategy("bfs")
            ),
            Refusal::NotStraight { strategy, obstacle } => write!(
                f,
                "{} needs threads that take the same steps in every execution: {obstacle}; use \
                 {}, or {} with {}",
                self.strategy(strategy),
                self.strategy("dpor"),
                self.strategy("cb-por"),
                self.term(Setting::Bound)
            ),
            Refusal::TooManyTraces { strategy, traces, most } => {
                self.too_many_traces(f, strategy, *traces, *most)
            }
            Refusal::Checkpoint(unusable) => self.unusable(f, unusable),
        }
    }
}

/// `a, b or c`.
fn listed(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., end] => format!("{} {last} {end}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_name_what_to_change() {
        let runs = Refusal::TooSmall { setting: Setting::Runs, least: 1 };
        assert_eq!(runs.to_string(), "`runs` must be at least 1");
        let bfs = named("bfs").expect("a strategy");
        let conflict = Refusal::Conflict { strategy: "bfs", conflict: bfs.conflicts[0] };
        let text = conflict.to_string();
        assert!(text.starts_with("`Order::BreadthFirst` with `bound` misses errors: "), "{text}");
        assert!(text.contains("(witness: `y = 1; assert x != 1` in parallel with"), "{text}");
        assert!(text.ends_with("use `Order::Icb` or `Order::DfsHb`, or remove `bound`"), "{text}");
    }

    #[test]
    fn strategies_without_a_loss_are_recommended() {
        let dpor = named("dpor").expect("a strategy");
        let refusal = Refusal::Property {
            strategy: "dpor",
            property: Property::Invariant,
            soundness: dpor.properties.invariant,
        };
        let text = refusal.to_string();
        let instead = "use `Reduction::Sleep`, `Reduction::CbPorStates` or `Reduction::Cartesian`";
        assert!(text.contains(instead), "{text}");
    }
}
