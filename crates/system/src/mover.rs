//! Left and right movers: how the actions of a thread commute with those of other threads.
//!
//! After Lipton, as the paper cpc uses it (section 3, the four conditions on RM and LM). Let `t`
//! and `u` be different threads, and let the effect of a step be its new state and its reply:
//!
//! - An action of `t` is a **right mover** if, whenever any action of `u` can directly follow it,
//!   the two are also possible in the other order, with the same state and the same replies.
//! - An action of `t` is a **left mover** if, whenever it can directly follow any action of `u`,
//!   the two can be swapped in the same way, and no action of `u` can disable it (the fourth
//!   condition).
//!
//! The paper's discipline has a third rule: an access to a variable that is always protected by the
//! same mutex is a both-mover. That is a fact about a program, not about an object, and an analysis
//! of the program supplies it. Here, an access to an unprotected location is a non-mover.
//!
//! # Caveats
//!
//! A mover is defined by what *other* threads may do to the same object. Classes belong to actions,
//! not to steps in states, and they hold only for objects that are used with discipline. `lock` is
//! a right mover because a thread that finds the mutex locked cannot continue; but a `try_lock`
//! can. Therefore, if any thread may ever perform an action on an object that
//! [disturbs](crate::object::Kind::disturbs) it, every action on that object counts as
//! [`Mover::None`].
//!
//! Both definitions quantify over actions that *can* follow each other. Two actions for which no
//! state allows one directly after the other commute vacuously, for example two locks of a mutex by
//! different threads. That a thread's finish never directly follows its start is assumed, not
//! enforced: its begin is between them.
//!
//! Movers preserve failing steps. They do not by themselves preserve deadlocks: a thread that
//! blocks in the middle of its transaction does not complete it.

/// The directions in which an action commutes with the actions of other threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mover {
    /// It commutes to the left of every action of another thread that can come before it: a
    /// release.
    Left,
    /// It commutes to the right of every action of another thread that can come after it: an
    /// acquisition.
    Right,
    /// It commutes both ways: it touches only what no other thread can touch meanwhile.
    Both,
    /// It commutes neither way. In a transaction it is the committing action.
    None,
}

impl Mover {
    /// The class of an action that commutes in these directions.
    pub const fn of(directions: Directions) -> Mover {
        match (directions.left, directions.right) {
            (true, true) => Mover::Both,
            (true, false) => Mover::Left,
            (false, true) => Mover::Right,
            (false, false) => Mover::None,
        }
    }

    /// Whether the action is a left mover.
    #[inline]
    pub const fn is_left(self) -> bool {
        matches!(self, Mover::Left | Mover::Both)
    }

    /// Whether the action is a right mover.
    #[inline]
    pub const fn is_right(self) -> bool {
        matches!(self, Mover::Right | Mover::Both)
    }

    /// The class of one indivisible step that performs an action of each class. The step moves in a
    /// direction if both parts do: the part ahead in that direction moves first. [`Mover::Both`] is
    /// neutral.
    ///
    /// A right mover followed by a left mover is *not* a mover as one step. What follows the step
    /// observes the release, and what precedes it may have enabled the acquisition.
    #[inline]
    pub const fn and(self, other: Mover) -> Mover {
        Mover::of(Directions {
            left: self.is_left() && other.is_left(),
            right: self.is_right() && other.is_right(),
        })
    }
}

/// The directions in which an action commutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directions {
    /// To the left, past the actions before it.
    pub left: bool,
    /// To the right, past the actions after it.
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
