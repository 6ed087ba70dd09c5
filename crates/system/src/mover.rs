//! How the actions of a thread move past those of other threads.
//!
//! After Lipton, as the paper cpc uses it (section 3, the four conditions on RM and LM). Let `t` and `u` be different
//! threads and let a state and a reply say all that can be told of a step:
//!
//! - An action of `t` is a **right mover** if, whenever any action of `u` can follow it directly, the two give the same
//!   state and the same replies the other way round, and are possible that way round.
//! - An action of `t` is a **left mover** if, whenever it can directly follow any action of `u`, the two can be swapped
//!   in the same way; and no action of `u` takes from it the possibility to happen (the fourth condition).
//!
//! The third rule of the paper's discipline, that an access to a variable which is always protected by the same mutex
//! moves both ways, is a fact about a program, not about an object. An analysis of the program supplies it; here, an
//! access to an unprotected location moves nowhere.
//!
//! # Caveats
//!
//! A mover is defined by what *other* threads may do to the same object. Classes are given for actions, not for
//! steps in states, and they hold only on objects used with discipline: `lock` is a right mover because nobody who finds
//! the mutex taken can go on, and a `try_lock` does. Hence [`Kind::disturbs`](crate::object::Kind::disturbs): on
//! an object on which any thread may ever perform a disturbing action, every action has to be taken as [`Mover::None`].
//!
//! Both definitions speak of actions that *can* follow each other. Two that never can, since no state lets one come
//! directly after the other, move past each other for want of a counterexample: a mutex's lock past another thread's
//! lock. And that a thread's finish never comes directly after its start is assumed, not enforced: its begin is between.
//!
//! Movers preserve what a search for failing steps asks for. They do not by themselves preserve deadlocks: a thread that
//! waits in the middle of its transaction does not complete it.

/// Which way an action commutes with the actions of other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mover {
    /// It commutes to the left of every action of another thread that can come before it: a release.
    Left,
    /// It commutes to the right of every action of another thread that can come after it: an acquisition.
    Right,
    /// It commutes both ways: it touches only what no other thread can touch meanwhile.
    Both,
    /// It commutes neither way. In a transaction it is the committing action.
    None,
}

impl Mover {
    /// The class that the two truths about an action make.
    pub const fn of(directions: Directions) -> Mover {
        match (directions.left, directions.right) {
            (true, true) => Mover::Both,
            (true, false) => Mover::Left,
            (false, true) => Mover::Right,
            (false, false) => Mover::None,
        }
    }

    /// Whether it is a left mover.
    #[inline]
    pub const fn is_left(self) -> bool {
        matches!(self, Mover::Left | Mover::Both)
    }

    /// Whether it is a right mover.
    #[inline]
    pub const fn is_right(self) -> bool {
        matches!(self, Mover::Right | Mover::Both)
    }

    /// The class of a step that performs an action of each class, indivisibly: it moves in a direction if both of its
    /// parts do, the one ahead in that direction first. [`Mover::Both`] is neutral.
    ///
    /// A right mover followed by a left mover is *not* a mover as one step: what follows it sees the release, what
    /// precedes it may be what made the acquisition possible.
    #[inline]
    pub const fn and(self, other: Mover) -> Mover {
        Mover::of(Directions { left: self.is_left() && other.is_left(), right: self.is_right() && other.is_right() })
    }
}

/// The directions in which an action commutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directions {
    /// To the left of what comes before it.
    pub left: bool,
    /// To the right of what comes after it.
    pub right: bool,
}

#[cfg(test)]
mod tests {
    use super::Mover::*;

    #[test]
    fn an_indivisible_step_moves_only_as_all_its_parts_do() {
        for class in [Left, Right, Both, None] {
            assert_eq!(class.and(class), class);
            assert_eq!(class.and(Both), class);
            assert_eq!(None.and(class), None);
        }
        assert_eq!(Right.and(Left), None);
    }
}
