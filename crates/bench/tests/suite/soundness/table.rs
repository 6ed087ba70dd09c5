//! The engine's table of strategies: every cell of strategy × property is tried, and the tables of
//! the documentation are compared with it.

use preempt_explore::plan::property::{Property, Soundness};
use preempt_explore::plan::strategies::{self, Class, Entry, STRATEGIES, Value};
use preempt_explore::{Cache, Plan, Points, Reduction, Refusal, Subject, oracle};
use preempt_machine::Machine;
use preempt_system::FailureKind;

use super::{BROKEN_ON_THE_WAY, file, kinds, model, run};

/// A plan that uses the strategy, with a bound if it needs one, and without deadlocks if it misses
/// them.
fn plan(entry: &Entry) -> Plan {
    let mut plan = match entry.value {
        Value::Order(order) => Plan::new().order(order).runs(50),
        Value::Reduction(reduction) => Plan::new().order(entry.orders[0]).reduction(reduction),
    };
    if entry.needs_bound.is_some() {
        plan = plan.bound(2);
    }
    plan.deadlock = !matches!(entry.properties.deadlock, Soundness::Unsound(_));
    plan
}

/// Programs with exactly one error of a class, which needs at most two preemptions.
fn programs(property: Property) -> Vec<(Machine, FailureKind)> {
    let assertion = "atomic var x = 0; thread t { x = 1; x = 2; } thread u { assert x != 1; }";
    let error = "atomic var x = 1; thread t { x = 0; x = 1; } thread u { var r = x; r = 1 / r; }";
    match property {
        Property::Step => {
            vec![(model(assertion), FailureKind::Assertion), (model(error), FailureKind::Runtime)]
        }
        Property::Invariant => vec![(model(BROKEN_ON_THE_WAY), FailureKind::Invariant)],
        Property::Deadlock => vec![(file("zoo/l.pre"), FailureKind::Deadlock)],
        Property::Race => vec![(file("races/r3.pre"), FailureKind::Race)],
        other => panic!("no program has an error of {other:?}"),
    }
}

fn with_points(entry: &Entry, property: Property) -> Plan {
    match (property, plan(entry)) {
        // The cache of states cannot be combined with these points.
        (Property::Race, plan) if plan.order.cache().is_some() => {
            plan.order(plan.order.with_cache(Cache::Hb)).points(Points::Sync)
        }
        (Property::Race, plan) => plan.points(Points::Sync),
        (_, plan) => plan,
    }
}

#[test]
fn every_cell_of_the_table_is_true() {
    // Models are sequentially consistent. The others are compared with brute force over closures.
    for entry in STRATEGIES.iter().filter(|entry| entry.searches(Subject::Model)) {
        for property in Property::ALL {
            let (name, plan) = (entry.name, with_points(entry, property));
            match entry.properties.of(property) {
                Soundness::Sound => {
                    for (machine, kind) in programs(property) {
                        assert_eq!(kinds(&run(plan, machine)), [kind], "{name}, {property}");
                    }
                }
                Soundness::Sampled => {
                    assert_eq!(entry.class, Class::Sample);
                    assert!(!run(plan, file("zoo/x.pre")).complete, "{name}: a sample");
                }
                Soundness::Unsound(_) => show_loss(entry, property),
                Soundness::Unproved(_) => show_refusal(entry, property),
                Soundness::NotApplicable(_) => show_refusal(entry, property),
            }
        }
    }
}

/// The search refuses to look for errors of the class, and would miss that of the witness.
fn show_loss(entry: &Entry, property: Property) {
    let (name, plan) = (entry.name, plan(entry));
    let refused = |refusal: Option<Refusal>| {
        let expected = entry.properties.of(property);
        let Some(Refusal::Property { strategy, property: class, soundness }) = refusal else {
            panic!("{name} looks for {property}: {refusal:?}");
        };
        assert_eq!((strategy, class, soundness), (name, property, expected));
    };
    match property {
        Property::Deadlock => {
            refused(Plan { deadlock: true, ..plan }.build().err());
            assert_eq!(kinds(&run(Plan::new(), file("abba/model.pre"))), [FailureKind::Deadlock]);
            assert_eq!(kinds(&run(plan, file("abba/model.pre"))), [], "{name}");
        }
        Property::Invariant => {
            // All states of the witness are within the bound, if there is one.
            let invariant = model(
                "atomic var x = 0; atomic var y = 0; invariant x + y < 2; \
                 thread t { x = 1; x = 0; } thread u { y = 1; y = 0; }",
            );
            let search = plan.build().expect("the plan is allowed");
            refused(search.suits(&invariant).err());
            assert_eq!(kinds(&run(Plan::new(), invariant)), [FailureKind::Invariant]);
            let silent = "atomic var x = 0; atomic var y = 0; \
                          thread t { x = 1; x = 0; } thread u { y = 1; y = 0; }";
            let all = oracle::reachable(&model(silent)).states.len() as u64;
            let seen = run(plan, model(silent));
            let states = seen.tally.and_then(|tally| tally.states).unwrap_or(seen.coverage.states);
            assert!(states < all, "{name} visits {states} of {all} states");
        }
        Property::Step => {
            // Offered for comparison, and never complete.
            let missed = run(plan, file("cpc/fig1.pre"));
            assert!(missed.findings.is_empty() && !missed.complete, "{name}");
            let sound = plan.reduction(Reduction::Transactions);
            assert_eq!(run(sound, file("cpc/fig1.pre")).findings.len(), 1);
        }
        other => panic!("{name}: no witness for {other:?}"),
    }
}

/// The class does not apply, or is not known to be preserved: the plan or the program is refused.
fn show_refusal(entry: &Entry, property: Property) {
    let (name, plan) = (entry.name, plan(entry));
    match property {
        Property::Race => {
            let refusal = plan.points(Points::Sync).build().err();
            assert!(matches!(refusal, Some(Refusal::Property { .. })), "{name}: {refusal:?}");
        }
        Property::Deadlock => {
            let search = plan.build().expect("the plan is allowed");
            let refusal = search.suits(&file("zoo/l.pre")).err();
            assert!(matches!(refusal, Some(Refusal::NotStraight { .. })), "{name}: {refusal:?}");
        }
        Property::Invariant => {
            let search = plan.build().expect("the plan is allowed");
            let refusal = search.suits(&model(BROKEN_ON_THE_WAY)).err();
            assert!(matches!(refusal, Some(Refusal::Property { .. })), "{name}: {refusal:?}");
        }
        other => panic!("{name}: {other:?} has a meaning for every strategy"),
    }
}

/// The table of `docs/design/soundness.md`.
fn table() -> String {
    let classes: Vec<String> = Property::ALL.iter().map(Property::to_string).collect();
    let mut text = format!("| strategy | {} | memory models |\n", classes.join(" | "));
    text += &format!("| --- |{}\n", " --- |".repeat(classes.len() + 1));
    for entry in &STRATEGIES {
        let cells = Property::ALL.map(|property| match entry.properties.of(property) {
            Soundness::Sound => "sound".to_owned(),
            Soundness::Sampled => "a sample".to_owned(),
            Soundness::Unsound(loss) => {
                format!("**unsound**: {} (witness: {})", loss.why, loss.witness)
            }
            Soundness::Unproved(why) => format!("not proved: {why}"),
            Soundness::NotApplicable(why) => format!("not applicable: {why}"),
        });
        let models: Vec<&str> = entry.memory_models.iter().map(|model| model.name()).collect();
        text += &format!("| {} | {} | {} |\n", entry.name, cells.join(" | "), models.join(", "));
    }
    text
}

#[test]
fn the_page_has_the_table_of_the_engine() {
    let page = include_str!("../../../../../docs/design/soundness.md");
    assert!(page.contains(&table()), "docs/design/soundness.md must contain\n\n{}", table());
}

#[test]
fn the_readme_names_every_strategy_and_no_other() {
    let readme = include_str!("../../../../../README.md");
    let section = readme.split("\n## ").find(|section| section.starts_with("Strategies\n"));
    let section = section.expect("the README has a section about strategies");
    let rows: Vec<&str> = section.lines().filter(|line| line.starts_with('|')).collect();
    let written: Vec<&str> =
        rows.iter().flat_map(|row| row.split('`').skip(1).step_by(2)).collect();
    for entry in STRATEGIES.iter().filter(|entry| entry.is_general()) {
        let mut words = written.iter().flat_map(|text| text.split(' '));
        assert!(words.any(|word| word == entry.name), "the README does not name {}", entry.name);
    }
    for text in written {
        let value = text.strip_prefix("--order ").or(text.strip_prefix("--reduce "));
        let name = value.and_then(|value| value.split(' ').next());
        let known = |name: &str| name == "auto" || strategies::named(name).is_some();
        assert!(name.is_none_or(known), "the README names {text}");
    }
}
