//! What is said about a plan that cannot be searched.

use std::fmt;

/// A configuration that makes no sense or would be unsound, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

impl Refusal {
    /// The refusal of something for this reason, which says what to do.
    pub fn because(message: &str) -> Refusal {
        Refusal(message.to_owned())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}
