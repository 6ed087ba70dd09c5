//! The origins of the values that a failing step read.
//!
//! A failed assertion says which values it read. The reader asks why it read them; the answer is
//! the last step that wrote each of them. If the failing step reads nothing shared, its values are
//! older: then the last step of its thread that read something counts.

/// A value and its origin. Steps are counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The name of the variable or object.
    pub variable: String,
    /// The value that was read, if it is known.
    pub value: Option<String>,
    /// The step that read it; `None` if it was read after the last step, as invariants do.
    pub read: Option<usize>,
    /// The last step before that which wrote it; `None` if it still had its initial value.
    pub written: Option<usize>,
}
