//! The objects of a program, in every execution of it.

use preempt_system::Kind;

/// The kinds of all objects and where their fields are. An object is identified by its location,
/// which is the same in every execution, so this table only grows.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    kinds: Vec<Option<(Kind, u32)>>,
    /// The initial fields of all objects.
    pub(crate) initial: Vec<u64>,
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
