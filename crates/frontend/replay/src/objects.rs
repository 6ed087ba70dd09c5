//! The objects of a program, in every execution of it.

use preempt_system::Kind;

/// The kinds of all objects and where their fields are. An object is identified by its location,
/// which is the same in every execution, so this table only grows.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    kinds: Vec<Option<(Kind, u32)>>,
    /// The initial fields of all objects.
    pub(crate) initial: Vec<u64>,
    /// The values of atomics before the first step on them in the current execution, where known.
    values: Vec<Option<u64>>,
    /// Whether an attempt to lock counts as a write even where it fails.
    pub(crate) attempts_write: bool,
}

impl Objects {
    /// Adds an object and returns its location. Without a kind it has no fields: an atomic, whose
    /// values are in [memory](preempt_system::memory), or something that is only counted.
    pub fn add(&mut self, kind: Option<Kind>) -> u32 {
        let at = self.initial.len() as u32;
        if let Some(kind) = kind {
            self.initial.extend((0..kind.fields()).map(|field| kind.initial(field)));
        }
        self.kinds.push(kind.map(|kind| (kind, at)));
        self.kinds.len() as u32 - 1
    }

    /// The value of an atomic before the first step on it.
    #[inline]
    pub(crate) fn value(&self, object: u32) -> Option<u64> {
        self.values.get(object as usize).copied().flatten()
    }

    /// Sets the value of an atomic before the first step on it.
    pub(crate) fn set_value(&mut self, object: u32, value: u64) {
        let at = object as usize;
        if self.values.len() <= at {
            self.values.resize(at + 1, None);
        }
        self.values[at] = Some(value);
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The kind of an object, if it has fields.
    pub fn kind(&self, object: u32) -> Option<Kind> {
        Some(self.get(object)?.0)
    }

    /// The kind of an object and its first field, if it has fields.
    #[inline]
    pub(crate) fn get(&self, object: u32) -> Option<(Kind, usize)> {
        let (kind, at) = (*self.kinds.get(object as usize)?)?;
        Some((kind, at as usize))
    }

    #[inline]
    pub(crate) fn of(&self, object: u32) -> (Kind, usize) {
        let (kind, at) =
            self.kinds[object as usize].expect("only objects with a kind are acted on");
        (kind, at as usize)
    }
}
