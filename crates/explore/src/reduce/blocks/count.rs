//! The numbers of orders, combinations and PO graphs, computed without constructing them.
//!
//! A PO graph is a trace of the blocks, and a search with sleep sets completes exactly one sequence
//! of each trace. In straight-line threads what such a search does at a place depends only on the
//! *cut*, how far each thread has come, and on which threads sleep there. So it is enough to count
//! the paths to each pair of these, level by level: at most 2ⁿ times the product of (kᵢ + 1) pairs
//! for n threads of kᵢ blocks, polynomial for a fixed number of threads, where the number of graphs
//! is not.

use std::collections::HashMap;

use preempt_system::{Access, Footprint, ThreadId, ThreadSet};

use super::block::Blocks;

/// The most pairs of cut and sleeping threads that are visited.
const MOST_PLACES: usize = 1 << 18;

/// Counts of a program. `None` where a number has more than 128 bits, or counting would take too
/// long.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Interleavings of steps (Lemma 1).
    pub interleavings: Option<u128>,
    /// For each shared variable, the orders of the blocks that access it.
    pub orders: Vec<Option<u128>>,
    /// The combinations of these, including contradictory ones.
    pub product: Option<u128>,
    /// PO graphs: the combinations without a contradiction.
    pub graphs: Option<u128>,
    /// Formula (12) of the paper, which Theorem 1 calls an upper bound of `graphs`.
    pub claimed: f64,
}

impl Figures {
    /// Counts.
    pub fn of(blocks: &Blocks) -> Figures {
        let orders: Vec<Option<u128>> =
            blocks.variables.iter().map(|variable| orders(&variable.accesses)).collect();
        Figures {
            interleavings: multinomial(&blocks.steps),
            product: orders.iter().try_fold(1u128, |product, &orders| product.checked_mul(orders?)),
            orders,
            graphs: graphs(blocks),
            claimed: claimed(blocks),
        }
    }
}

/// The PO graphs of a program.
pub fn graphs(blocks: &Blocks) -> Option<u128> {
    let lines: Vec<Vec<&Footprint>> = blocks
        .threads
        .iter()
        .map(|of| blocks.all[of.clone()].iter().map(|block| &block.shared).collect())
        .collect();
    traces(&lines, |a, b| a.depends(b))
}

/// The orders of the accesses to one variable.
fn orders(accesses: &[Vec<(usize, Access)>]) -> Option<u128> {
    let lines: Vec<Vec<Access>> =
        accesses.iter().map(|list| list.iter().map(|&(_, access)| access).collect()).collect();
    traces(&lines, |a, b| a.conflicts(*b))
}

/// (Σ kᵢ)! / Π kᵢ!
pub fn multinomial(parts: &[usize]) -> Option<u128> {
    let (mut all, mut number) = (0u128, 1u128);
    for &part in parts {
        // C(all + part, part): all intermediate values are whole numbers.
        let binomial = (1..=part as u128)
            .try_fold(1u128, |chosen, i| Some(chosen.checked_mul(all + i)? / i))?;
        all += part as u128;
        number = number.checked_mul(binomial)?;
    }
    Some(number)
}

/// (b/r)^(2r) (1 - 1/n)^r for n threads, r variables and b accesses to them.
fn claimed(blocks: &Blocks) -> f64 {
    let accesses: usize =
        blocks.variables.iter().flat_map(|variable| &variable.accesses).map(Vec::len).sum();
    let (b, r, n) = (accesses as f64, blocks.variables.len() as f64, blocks.threads.len() as f64);
    if r == 0.0 { 1.0 } else { (b / r).powf(2.0 * r) * (1.0 - 1.0 / n).powf(r) }
}

/// The number of traces of straight-line threads with these steps and this dependence relation.
fn traces<T>(lines: &[Vec<T>], depends: impl Fn(&T, &T) -> bool) -> Option<u128> {
    let length: usize = lines.iter().map(Vec::len).sum();
    let threads = || (0..lines.len()).map(ThreadId::new);
    let mut places = HashMap::from([((vec![0u32; lines.len()], ThreadSet::EMPTY), 1u128)]);
    let mut seen = 1;
    for _ in 0..length {
        let mut next: HashMap<(Vec<u32>, ThreadSet), u128> = HashMap::new();
        for ((cut, sleep), count) in places {
            let pending =
                |thread: ThreadId| lines[thread.index()].get(cut[thread.index()] as usize);
            let mut asleep = sleep;
            for thread in threads().filter(|&thread| !sleep.contains(thread)) {
                let Some(taken) = pending(thread) else { continue };
                let independent =
                    |&other: &ThreadId| pending(other).is_some_and(|step| !depends(step, taken));
                let still: ThreadSet = asleep.iter().filter(independent).collect();
                let mut further = cut.clone();
                further[thread.index()] += 1;
                let all = next.entry((further, still)).or_insert(0);
                *all = all.checked_add(count)?;
                asleep.insert(thread);
            }
            if seen + next.len() > MOST_PLACES {
                return None;
            }
        }
        seen += next.len();
        places = next;
    }
    places.values().try_fold(0u128, |sum, &count| sum.checked_add(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multinomials_are_exact_or_say_so() {
        assert_eq!(multinomial(&[2, 2]), Some(6));
        assert_eq!(multinomial(&[1, 1, 2]), Some(12));
        assert_eq!(multinomial(&[20, 20, 20]), Some(577_831_214_478_475_823_831_865_900));
        assert_eq!(multinomial(&[]), Some(1));
        assert_eq!(multinomial(&[100, 100]), None);
    }

    #[test]
    fn threads_on_one_variable_have_as_many_traces_as_interleavings() {
        for parts in [vec![3, 3], vec![2, 2, 2], vec![1, 1, 1, 1], vec![4, 0, 3], vec![20, 20, 20]]
        {
            let lines: Vec<Vec<()>> = parts.iter().map(|&part| vec![(); part]).collect();
            assert_eq!(traces(&lines, |(), ()| true), multinomial(&parts), "{parts:?}");
            assert_eq!(traces(&lines, |(), ()| false), Some(1), "{parts:?}");
        }
    }
}
