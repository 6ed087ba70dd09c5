//! The tests of `corpus/litmus` with their expected numbers.

use toml::Value;

use crate::program::Program;

/// An outcome of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Registers and final values.
    pub text: String,
    /// The number of graphs that have it.
    pub graphs: usize,
    /// The preemptions and stale steps of its cheapest execution.
    pub cost: (u32, u32),
    /// The number of these graphs that have a data race.
    pub racy: usize,
}

/// A test.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The name of the test.
    pub name: String,
    /// The program of the test.
    pub program: Program,
    /// The number of complete consistent graphs.
    pub graphs: usize,
    /// Their number if all orderings are sequentially consistent.
    pub graphs_all_sc: usize,
    /// The number of graphs with a data race.
    pub racy: usize,
    /// The number of graphs in which a thread waits forever.
    pub stuck: usize,
    /// All outcomes, by their texts.
    pub outcomes: Vec<Outcome>,
}

/// All tests of the corpus.
pub fn all() -> Vec<Expected> {
    let text = include_str!("../../../corpus/litmus/litmus.toml");
    let table: toml::Table = text.parse().expect("the corpus is valid TOML");
    let tests = table["test"].as_array().expect("tests are a list");
    tests.iter().map(test).collect()
}

fn test(test: &Value) -> Expected {
    let text = |key: &str| test[key].as_str().expect("a string").to_owned();
    let count = |key: &str| number(&test[key]);
    let outcomes = test["outcome"].as_array().expect("outcomes are a list").iter().map(|outcome| {
        let number = |at: usize| number(&outcome[at]);
        Outcome {
            text: outcome[0].as_str().expect("the text of an outcome").to_owned(),
            graphs: number(1),
            cost: (number(2) as u32, number(3) as u32),
            racy: number(4),
        }
    });
    Expected {
        name: text("name"),
        program: Program::parse(&text("program")),
        graphs: count("graphs"),
        graphs_all_sc: count("graphs_all_sc"),
        racy: count("racy"),
        stuck: count("stuck"),
        outcomes: outcomes.collect(),
    }
}

fn number(value: &Value) -> usize {
    let number = value.as_integer().expect("a number");
    usize::try_from(number).expect("a count is not negative")
}
