//! SPIN on Promela twins of our models: full searches on one core and on two, then both programs
//! with their reductions.
//!
//! Both programs run alone, one after the other. Times are CPU times of the processes, unless said
//! otherwise. SPIN counts the initial state as a transition, and prints eight digits of large
//! numbers. Counts that must agree are compared; a run in which some do not fails.

mod large;
mod pan;
mod twins;

use anyhow::Result;

use crate::measure::{Cap, Measured};

/// One comparison: a twin, our model, and its constants.
struct Case {
    /// The name of the Promela file.
    twin: &'static str,
    /// Our model, in the corpus.
    file: &'static str,
    set: &'static [(&'static str, u32)],
    /// SPIN's `-m` and `-w`: the longest path, and the size of its table as a power of two, chosen
    /// for the run.
    spin: [&'static str; 2],
    /// Settings of our model that the twin does not have.
    ours: &'static [&'static str],
    /// The number of states, with one transition each, that SPIN has before our initial state.
    before: u64,
}

impl Case {
    const fn new(twin: &'static str, file: &'static str, spin: [&'static str; 2]) -> Case {
        Case { twin, file, set: &[], spin, ours: &[], before: 0 }
    }

    const fn set(self, set: &'static [(&'static str, u32)]) -> Case {
        Case { set, ..self }
    }

    fn name(&self) -> String {
        let values: Vec<String> = self.set.iter().map(|(_, value)| value.to_string()).collect();
        if values.is_empty() {
            self.twin.to_owned()
        } else {
            format!("{} {}", self.twin, values.join("x"))
        }
    }

    fn settings(&self) -> Vec<String> {
        self.set.iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    /// Our search in a child.
    fn search(&self, search: crate::measure::Search, jobs: usize, cap: Cap) -> Result<Measured> {
        let mut settings = self.settings();
        settings.extend(self.ours.iter().map(|&setting| setting.to_owned()));
        crate::measure::in_child(
            search,
            jobs,
            &crate::corpus::root().join(self.file),
            &settings,
            cap,
        )
    }

    /// Whether full searches of both have the same counts. SPIN's first transition leads to the
    /// initial state.
    fn agree(&self, spin: Measured, ours: Measured) -> bool {
        spin.states == ours.states + self.before
            && pan::printed(spin.transitions, ours.transitions + 1 + self.before)
    }
}

/// Prints the comparisons; returns whether the counts agree.
pub fn compare(quick: bool) -> Result<bool> {
    pan::installed()?;
    let large = large::compare(quick)?;
    let twins = twins::compare(quick)?;
    Ok(large && twins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(states: u64, transitions: u64) -> Measured {
        Measured {
            states,
            transitions,
            seconds: 1.0,
            wall: 1.0,
            peak_bytes: 1,
            disk_bytes: 0,
            complete: true,
        }
    }

    #[test]
    fn one_state_or_transition_more_is_a_disagreement() {
        let case = Case::new("a", "a.pre", ["-m1", "-w1"]);
        let ours = counted(10, 20);
        assert!(
            case.agree(counted(10, 21), ours),
            "SPIN counts the transition to the initial state"
        );
        for (states, transitions) in [(10, 20), (10, 22), (9, 21), (11, 21)] {
            assert!(!case.agree(counted(states, transitions), ours), "{states} {transitions}");
        }
        let late = Case { before: 1, ..case };
        assert!(late.agree(counted(11, 22), ours) && !late.agree(counted(10, 21), ours));
    }
}
