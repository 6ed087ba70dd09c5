//! Uniform random walk: at every step each enabled thread is as likely as any other.
//!
//! **Paper.** icb, section 4: the search `random` of its Figures 2 to 4.
//!
//! **Guarantees.** None beyond the executions that were drawn. Executions in which threads
//! alternate often are likelier than others: one with k real choices among two threads has
//! probability 2⁻ᵏ.
//!
//! **Map.** Nothing to map. **Deviations.** None. **Cost.** Nothing is kept.

use preempt_system::{System, ThreadId};

use super::walk::Chooser;
use crate::codec::save_as;
use crate::engine::cursor::Cursor;
use crate::engine::pcg::Pcg;

/// Chooses evenly among the enabled threads.
pub(crate) struct Uniform;

// A byte, since the elements of a vector have at least one each.
save_as!(Uniform as u8, |_| 0, |_| Some(Uniform));

impl<S: System> Chooser<S> for Uniform {
    fn choose(&mut self, cursor: &Cursor<S>, random: &mut Pcg) -> ThreadId {
        let enabled = cursor.enabled();
        let drawn = random.below(enabled.len() as u32) as usize;
        enabled.iter().nth(drawn).expect("some thread is enabled")
    }
}
