//! The graph of a model's states in the language of graphviz.
//!
//! A node shows the values that differ from the state from which it was first reached. An edge
//! shows the thread and the text of its step. The initial state has a double border, final states
//! are boxes, failures are red. If the graph shows a search, the parts that it did not explore are
//! pale.

use std::fmt::Write as _;

use preempt_explore::graph::{Edge, Graph, Node};
use preempt_system::{Describe, FailureKind, Narration};

use crate::wrap::clean;

/// Colours: lines and letters of what was explored, of what was not, and of failures; the ground of
/// failures.
const INK: &str = "#1f2933";
const PALE: &str = "#b9c1ca";
const BAD: &str = "#b3261e";
const BAD_GROUND: &str = "#fdecea";
/// The most characters of a label; longer texts are truncated.
const LONGEST: usize = 60;
/// The most values that the initial state shows.
const MOST_VALUES: usize = 12;

/// Whether the graph was followed by a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Highlight {
    /// No: all parts look the same.
    None,
    /// Yes: the rest is pale.
    Explored,
}

/// The graph with `title` above it.
pub fn dot(
    graph: &Graph,
    narrator: &mut impl Describe,
    title: &str,
    highlight: Highlight,
) -> String {
    let mut text = String::from("digraph states {\n");
    let _ = writeln!(
        text,
        "  label={}; labelloc=t; fontname=\"sans-serif\"; rankdir=TB;",
        quoted(title)
    );
    text += "  node [shape=ellipse, style=filled, fillcolor=white, fontname=\"sans-serif\", \
             fontsize=11];\n";
    text += "  edge [fontname=\"sans-serif\", fontsize=10];\n";
    for (number, node) in graph.nodes.iter().enumerate() {
        let seen = highlight == Highlight::None || node.explored;
        let label = state(graph, node, narrator);
        let _ = writeln!(
            text,
            "  s{number} [label={}{}];",
            quoted(&label),
            node_style(number, node, graph, seen)
        );
    }
    for edge in &graph.edges {
        let seen = highlight == Highlight::None || edge.explored;
        let narration = narrator.describe_step(&graph.nodes[edge.from].state, edge.choice);
        let label = step(edge, &narrator.thread_name(edge.choice.thread), &narration);
        let colour = if !seen {
            PALE
        } else if edge.failure.is_some() {
            BAD
        } else {
            INK
        };
        let width = if highlight == Highlight::Explored && seen { ", penwidth=1.8" } else { "" };
        let _ = writeln!(
            text,
            "  s{} -> s{} [label={}, color=\"{colour}\", fontcolor=\"{colour}\"{width}];",
            edge.from,
            edge.to,
            quoted(&label)
        );
    }
    text + "}\n"
}

fn node_style(number: usize, node: &Node, graph: &Graph, seen: bool) -> String {
    let failed = node.failure.is_some() || failed_into(graph, node);
    let colour = match (seen, failed) {
        (false, _) => PALE,
        (true, true) => BAD,
        (true, false) => INK,
    };
    let mut style = format!(", color=\"{colour}\", fontcolor=\"{colour}\"");
    if number == 0 {
        style += ", peripheries=2";
    }
    if node.terminal {
        style += ", shape=box";
    }
    if failed && seen {
        style += &format!(", fillcolor=\"{BAD_GROUND}\"");
    }
    style
}

/// Whether the step by which a state was found failed.
fn failed_into(graph: &Graph, node: &Node) -> bool {
    node.found_by.is_some_and(|edge| graph.edges[edge].failure.is_some())
}

/// The label of a state.
fn state(graph: &Graph, node: &Node, narrator: &mut impl Describe) -> String {
    let now = narrator.variables(&node.state);
    let before = match node.found_by {
        None => Vec::new(),
        Some(edge) => narrator.variables(&graph.nodes[graph.edges[edge].from].state),
    };
    let changed = now.iter().enumerate().filter(|&(at, value)| before.get(at) != Some(value));
    let mut lines: Vec<String> =
        changed.map(|(_, (name, value))| short(&format!("{name} = {value}"))).collect();
    if lines.len() > MOST_VALUES {
        let more = lines.len() - MOST_VALUES;
        lines.truncate(MOST_VALUES);
        lines.push(format!("and {more} more"));
    }
    let wrong = node.found_by.and_then(|edge| graph.edges[edge].failure.as_ref());
    lines.extend(node.failure.as_ref().or(wrong).map(|failure| match failure.kind {
        // The message of a deadlock adds nothing.
        FailureKind::Deadlock => failure.kind.word().to_owned(),
        _ => short(&failure.message),
    }));
    lines.join("\n")
}

/// The label of a step.
fn step(edge: &Edge, thread: &str, narration: &Narration) -> String {
    let way = if edge.choice.alternative > 0 {
        format!(" #{}", edge.choice.alternative)
    } else {
        String::new()
    };
    short(&format!("{thread}{way}: {}", narration.source))
}

/// A text on one line, truncated if it is long.
fn short(text: &str) -> String {
    let text = clean(text);
    if text.chars().count() <= LONGEST {
        return text;
    }
    text.chars().take(LONGEST - 1).chain(['…']).collect()
}

/// A text as graphviz reads it: in quotes, with line breaks.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted += "\\\"",
            '\\' => quoted += "\\\\",
            '\n' => quoted += "\\n",
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted() {
        assert_eq!(quoted("a \"b\" \\n\nc"), r#""a \"b\" \\n\nc""#);
        assert_eq!(short(&"x".repeat(200)).chars().count(), LONGEST);
        assert_eq!(short("a\tb\u{1b}[31m").matches(['\t', '\u{1b}']).count(), 0);
    }
}
