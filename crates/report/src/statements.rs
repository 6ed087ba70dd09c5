//! Folding of library code: what a thread does on behalf of one statement of the program is shown
//! as one line.
//!
//! A test of real code takes dozens of steps in libraries: a lock is a few atomic operations, a
//! spawned thread more of them. The reader knows the statement that causes them. Where a thread is
//! interrupted inside a library, the step before the interruption is shown too, because that is
//! the place that matters.

use preempt_system::{Narration, Nesting, Site};

use crate::trace::NarratedStep;

/// The steps as lines: each is the description of one or more steps, with the number of the first,
/// counted from 0.
pub(crate) fn by_statement(steps: &[NarratedStep]) -> Vec<(usize, NarratedStep)> {
    let mut lines = Vec::new();
    let mut from = 0;
    while from < steps.len() {
        let thread = steps[from].thread;
        let len = steps[from..].iter().take_while(|step| step.thread == thread).count();
        let next = steps.get(from + len);
        // A thread that had to wait, or has ended, was where its statement says.
        let is_cut = next.is_none_or(|next| next.preempts == Some(thread));
        context(&steps[from..from + len], from, is_cut, &mut lines);
        from += len;
    }
    lines
}

/// The steps of one statement within a context.
struct Unit<'a> {
    /// The first step, and the first after the last.
    from: usize,
    to: usize,
    statement: Option<(Option<&'a Site>, &'a str)>,
}

/// The statement of a step, if it belongs to one.
fn statement(step: &NarratedStep) -> Option<(Option<&Site>, &str)> {
    match &step.nesting {
        Nesting::Own => Some((step.narration.site.as_ref(), &step.narration.source)),
        Nesting::Called { site, source } => Some((Some(site), source)),
        Nesting::Apart => None,
    }
}

/// Adds the lines of one thread's consecutive steps, the first of which has the number `first`.
fn context(
    steps: &[NarratedStep],
    first: usize,
    is_cut: bool,
    lines: &mut Vec<(usize, NarratedStep)>,
) {
    let units = units(steps);
    for (nth, unit) in units.iter().enumerate() {
        let of_unit = &steps[unit.from..unit.to];
        let mut line = of_unit[0].clone();
        line.preempts = if nth == 0 { steps[0].preempts } else { None };
        let last = of_unit.iter().rev().find(|step| step.nesting != Nesting::Apart);
        let Some(((site, source), last)) = unit.statement.zip(last) else {
            // Nothing of the program: the last step says how far it has come.
            line.narration = of_unit[of_unit.len() - 1].narration.clone();
            line.narration.site = None;
            lines.push((first + unit.from, line));
            continue;
        };
        let own = of_unit.iter().filter(|step| step.nesting == Nesting::Own);
        let mut effects: Vec<String> =
            own.flat_map(|step| step.narration.effects.iter().cloned()).collect();
        effects.dedup();
        let is_deep = last.narration.site.as_ref() != site;
        let shows_place = is_cut && nth + 1 == units.len() && last.nesting != Nesting::Own;
        if shows_place && !is_deep {
            effects.extend(last.narration.effects.iter().cloned());
        }
        line.narration = Narration { site: site.cloned(), source: source.to_owned(), effects };
        lines.push((first + unit.from, line));
        if shows_place && is_deep {
            lines.push((first + unit.to - 1, NarratedStep { preempts: None, ..last.clone() }));
        }
    }
}

/// Divides the steps of a context. Steps that belong to no statement go with those before them.
fn units(steps: &[NarratedStep]) -> Vec<Unit<'_>> {
    let mut units: Vec<Unit<'_>> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let statement = statement(step);
        match units.last_mut() {
            Some(unit) if statement.is_none() || statement == unit.statement => unit.to = at + 1,
            // So do those at the beginning, if a statement follows.
            Some(unit) if unit.statement.is_none() => {
                unit.statement = statement;
                unit.to = at + 1;
            }
            _ => units.push(Unit { from: at, to: at + 1, statement }),
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use preempt_system::ThreadId;

    use super::*;

    /// `0 own:effect`, `1 called>place`, `0 -`: a step of thread 0 in its own code, of thread 1 in
    /// a library, of thread 0 outside all code of the program. `!` marks a preemption.
    fn steps(text: &str) -> Vec<NarratedStep> {
        let mut all: Vec<NarratedStep> = Vec::new();
        for word in text.split(", ") {
            let (thread, what) = word.split_once(' ').expect("thread and step");
            let (thread, preempts) = match thread.strip_prefix('!') {
                Some(thread) => (thread, all.last().map(|last| last.thread)),
                None => (thread, None),
            };
            let site = |file: &str| Site { file: Arc::from(file), line: 1, column: 1 };
            let (nesting, site, source, effects) = match what.split_once(['>', ':']) {
                _ if what == "-" => (Nesting::Apart, None, "ends", vec![]),
                Some((statement, place)) if what.contains('>') => {
                    let called =
                        Nesting::Called { site: site(statement), source: statement.to_owned() };
                    (called, Some(site(place)), place, vec!["inner"])
                }
                Some((source, effect)) => (Nesting::Own, Some(site(source)), source, vec![effect]),
                None => (Nesting::Own, Some(site(what)), what, vec![]),
            };
            let thread = ThreadId::new(thread.parse().expect("a number"));
            all.push(NarratedStep {
                thread,
                number: thread,
                alternative: None,
                narration: Narration {
                    site,
                    source: source.to_owned(),
                    effects: effects.into_iter().map(str::to_owned).collect(),
                },
                label: String::new(),
                nesting,
                preempts,
                stale: None,
            });
        }
        all
    }

    fn shown(text: &str) -> Vec<String> {
        let line = |(number, step): (usize, NarratedStep)| {
            let mark = if step.preempts.is_some() { "!" } else { "" };
            let Narration { source, effects, .. } = step.narration;
            format!("{number} {mark}{} {source} {}", step.thread.index(), effects.join(","))
        };
        by_statement(&steps(text)).into_iter().map(line).collect()
    }

    #[test]
    fn a_statement_is_one_line() {
        let text = "0 -, 0 a>x, 0 a>y, 0 b:e1, 0 b:e2, 0 -, 1 c, 0 -";
        assert_eq!(shown(text), ["0 0 a ", "3 0 b e1,e2", "6 1 c ", "7 0 ends "]);
    }

    #[test]
    fn the_place_of_an_interruption_in_a_library_is_shown() {
        let text = "0 a>x, 0 a>y, !1 b, 0 a>z, 0 c";
        assert_eq!(shown(text), ["0 0 a ", "1 0 y inner", "2 !1 b ", "3 0 a ", "4 0 c "]);
        // The statement itself is the place, if the library is one whose code is not shown.
        assert_eq!(shown("0 a>a, !1 b"), ["0 0 a inner", "1 !1 b "]);
        // A thread that waits is where its statement says.
        assert_eq!(shown("0 a>x, 1 b"), ["0 0 a ", "1 1 b "]);
        // So is the last step before the end of the execution.
        assert_eq!(shown("0 a>x"), ["0 0 a ", "0 0 x inner"]);
    }
}
