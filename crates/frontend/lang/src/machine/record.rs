//! Footprints: what a step touches, noted while it runs, or not noted at no cost.

use preempt_system::{Access, Footprint, Location};

use super::code::Cell;

/// Takes note of accesses to shared state.
pub(super) trait Recorder {
    /// An access to a cell; cells that are not shared do not count.
    fn cell(&mut self, cell: Cell, access: Access);
    /// An access to something that always counts.
    fn location(&mut self, cell: Cell, access: Access);
}

/// Takes no notes.
pub(super) struct Off;

impl Recorder for Off {
    #[inline(always)]
    fn cell(&mut self, _: Cell, _: Access) {}
    #[inline(always)]
    fn location(&mut self, _: Cell, _: Access) {}
}

/// Writes accesses into a footprint.
pub(super) struct On<'f> {
    /// Where they go.
    pub(super) footprint: &'f mut Footprint,
    /// The cells before this one are shared.
    pub(super) shared: Cell,
}

impl Recorder for On<'_> {
    fn cell(&mut self, cell: Cell, access: Access) {
        if cell < self.shared {
            self.location(cell, access);
        }
    }
    fn location(&mut self, cell: Cell, access: Access) {
        self.footprint.add(Location(cell), access);
    }
}
