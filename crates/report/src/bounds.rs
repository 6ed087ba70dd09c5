//! The coverage of each bound as a table: executions, traces and states, in total and new, and the
//! steps that were omitted.

use preempt_explore::BoundCoverage;

use crate::number::grouped;

/// The table with its head, unless it is empty. Columns for quantities that were not counted are
/// omitted.
pub(crate) fn table(bounds: &[BoundCoverage]) -> Option<Vec<String>> {
    bounds.first()?;
    let number = |n: u64| grouped(n);
    let column =
        |head: &str, value: &dyn Fn(&BoundCoverage) -> Option<u64>| -> Option<Vec<String>> {
            let values: Option<Vec<String>> =
                bounds.iter().map(|bound| value(bound).map(number)).collect();
            Some([vec![head.to_owned()], values?].concat())
        };
    let columns: Vec<Vec<String>> = [
        column("bound", &|at| Some(at.bound.into())),
        column("executions", &|at| Some(at.all.executions)),
        column("new", &|at| Some(at.new.executions)),
        column("traces", &|at| at.all.traces),
        column("new", &|at| at.new.traces),
        column("states", &|at| at.all.states),
        column("new", &|at| at.new.states),
        column("left out", &|at| Some(at.new.pruned)),
    ]
    .into_iter()
    .flatten()
    .collect();
    Some(aligned(&columns))
}

/// The lines of right-aligned columns.
pub(crate) fn aligned(columns: &[Vec<String>]) -> Vec<String> {
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    let line = |row: usize| {
        let cells = columns.iter().map(|column| {
            let width = column.iter().map(|cell| cell.chars().count()).max().unwrap_or(0);
            format!("{:>width$}", column.get(row).map_or("", String::as_str))
        });
        cells.collect::<Vec<_>>().join("  ")
    };
    (0..rows).map(line).collect()
}

#[cfg(test)]
mod tests {
    use preempt_explore::Tally;

    use super::*;

    #[test]
    fn what_was_not_counted_has_no_column() {
        let tally =
            |executions, states| Tally { executions, states, pruned: 7, ..Tally::default() };
        let bound = |bound, all: (u64, u64), new: (u64, u64)| BoundCoverage {
            bound,
            all: tally(all.0, Some(all.1)),
            new: tally(new.0, Some(new.1)),
            cut: true,
        };
        let bounds = [bound(0, (2, 9), (2, 9)), bound(1, (1_202, 1_500), (1_200, 1_491))];
        assert_eq!(
            table(&bounds).expect("there are bounds"),
            [
                "bound  executions    new  states    new  left out",
                "    0           2      2       9      9         7",
                "    1       1,202  1,200   1,500  1,491         7",
            ]
        );
        assert_eq!(table(&[]), None);
    }
}
