//! Invariants.

use preempt_system::{Failure, FailureKind};

use super::record::Recorder;
use super::run::{Halt, Stepper};

impl Stepper<'_> {
    /// Evaluates all invariants.
    pub(super) fn invariants<R: Recorder>(
        &mut self,
        state: &[u64],
        recorder: &mut R,
    ) -> Result<(), Box<Failure>> {
        if self.machine.code.invariants.is_empty() {
            return Ok(());
        }
        // Evaluation changes nothing; the interpreter just has no read-only mode.
        let mut copy = std::mem::take(&mut self.before);
        copy.clear();
        copy.extend_from_slice(state);
        let starts = &self.machine.code.invariants;
        let checked = starts.iter().try_for_each(|&start| {
            match self.interpret(&mut copy, None, start, recorder) {
                Ok(()) => Ok(()),
                // `init` has failed: there is no first state that could violate an invariant.
                Err(Halt::Failed(_))
                    if self
                        .machine
                        .slots
                        .iter()
                        .all(|slot| slot.counter.get(state) == slot.wrong) =>
                {
                    Ok(())
                }
                Err(Halt::Failed(mut failure)) => {
                    if failure.kind == FailureKind::Assertion {
                        failure.kind = FailureKind::Invariant;
                        failure.message =
                            failure.message.replacen("assertion failed", "invariant violated", 1);
                    }
                    Err(failure)
                }
                Err(Halt::Blocked { .. } | Halt::Full(_)) => {
                    unreachable!("invariants neither wait nor store")
                }
            }
        });
        self.before = copy;
        checked
    }
}
