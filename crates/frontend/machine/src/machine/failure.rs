//! Failures of a step: errors of the program under test, and values that do not fit the packed
//! state.

use preempt_system::{Capacity, Failure, FailureKind, MAX_THREADS};

use super::code::{Address, Cell};
use super::run::{Halt, Stepper};
use super::{MAX_DEPTH, MAX_RECORDS, Part};

impl Stepper<'_> {
    #[cold]
    pub(super) fn fails(&self, at: usize, kind: FailureKind, message: String) -> Halt {
        let program = self.machine.program();
        self.machine.reach_until(at as Address);
        let span = self.machine.code.spans[at];
        let message = match (kind, message.is_empty()) {
            (FailureKind::Assertion, true) => {
                let text = program.source.slice(span).trim().trim_end_matches(';');
                format!("assertion failed: {}", text.strip_prefix("assert").unwrap_or(text).trim())
            }
            (FailureKind::Assertion, false) => format!("assertion failed: {message}"),
            _ => message,
        };
        Halt::Failed(Box::new(Failure { kind, message, site: Some(program.source.site(span)) }))
    }

    #[cold]
    pub(super) fn endless(&self, at: usize) -> Halt {
        self.fails(
            at,
            FailureKind::Runtime,
            "this step never ends: a loop without access to shared state".into(),
        )
    }

    /// A value that its cell cannot hold: because of its type, or only because of the current
    /// packing.
    #[cold]
    pub(super) fn misfit(&self, cell: Cell, value: i64, at: usize) -> Halt {
        let class = self.machine.cells.cells[cell as usize];
        let (lo, hi) = self.machine.cells.classes[class as usize].bounds;
        if (lo..=hi).contains(&value) {
            return Halt::Full(Capacity { part: Part::Class(class).encode(), value });
        }
        let name = self.machine.cell_name(cell);
        let message = format!("{value} is outside the range of `{name}`: {lo} to {hi}");
        self.fails(at, FailureKind::Runtime, message)
    }

    #[cold]
    pub(super) fn full(&self, part: Part, at: usize) -> Halt {
        let machine = self.machine;
        // Records with stable names are never freed, so too many of them are not an error of the
        // program.
        if machine.can_grow(part) || (machine.stable && !machine.heap.is_empty()) {
            let held = match part {
                Part::Records(record) => machine.capacities.heap[record],
                Part::Threads => machine.capacities.spare,
                Part::Depth | Part::Class(_) => machine.capacities.depth,
            };
            return Halt::Full(Capacity { part: part.encode(), value: held as i64 });
        }
        let message = match part {
            Part::Threads if self.machine.slots.len() == MAX_THREADS => {
                format!("more than {MAX_THREADS} threads: a thread that has ended keeps its place")
            }
            Part::Records(_) if self.machine.capacities.heap.contains(&MAX_RECORDS) => {
                format!("more than {MAX_RECORDS} live records: `new` seems to be called forever")
            }
            Part::Depth if self.machine.capacities.depth == MAX_DEPTH => {
                format!("more than {MAX_DEPTH} nested calls: the recursion seems to be endless")
            }
            _ => "the state grows beyond 8 KiB: recursion, `spawn` or `new` seem to be endless"
                .into(),
        };
        self.fails(at, FailureKind::Runtime, message)
    }
}
