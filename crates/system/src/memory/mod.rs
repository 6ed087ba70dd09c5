//! Memory models: which stores a load of an atomic may read.

use std::fmt;

/// A memory model, by name. A strategy declares the models under which it is sound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum MemoryModel {
    /// Sequential consistency: all accesses have one total order, and a load reads the last store
    /// before it, whatever the memory orderings in the program say.
    #[default]
    Sc,
}

impl MemoryModel {
    /// Every model, weakest last.
    pub const ALL: [MemoryModel; 1] = [MemoryModel::Sc];

    /// The name in options and reports.
    pub fn name(self) -> &'static str {
        match self {
            MemoryModel::Sc => "sc",
        }
    }
}

impl fmt::Display for MemoryModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
