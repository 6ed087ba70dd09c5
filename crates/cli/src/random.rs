//! Random numbers that are the same on every machine for the same seed: PCG-XSH-RR with 64 bits of state (O'Neill 2014).

/// A generator.
#[derive(Clone, Debug)]
pub struct Pcg {
    state: u64,
}

const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
/// Any odd number: it selects one of the generator's streams.
const INCREMENT: u64 = 1_442_695_040_888_963_407;

impl Pcg {
    /// The generator for a seed.
    pub fn new(seed: u64) -> Pcg {
        let mut pcg = Pcg { state: seed.wrapping_add(INCREMENT) };
        pcg.next();
        pcg
    }

    fn next(&mut self) -> u32 {
        let old = self.state;
        self.state = old.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT);
        ((((old >> 18) ^ old) >> 27) as u32).rotate_right((old >> 59) as u32)
    }

    /// A number below `end`, all equally likely.
    pub fn below(&mut self, end: usize) -> usize {
        let end = u32::try_from(end).expect("no state has 2^32 choices");
        // The smallest numbers are drawn again where 2^32 is no multiple of `end`.
        let least = end.wrapping_neg() % end;
        loop {
            let drawn = self.next();
            if drawn >= least {
                return (drawn % end) as usize;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_below_the_end_are_drawn_about_equally() {
        let mut pcg = Pcg::new(1);
        let mut drawn = [0; 7];
        for _ in 0..70_000 {
            drawn[pcg.below(7)] += 1;
        }
        assert!(drawn.iter().all(|n| (9_500..10_500).contains(n)), "{drawn:?}");
    }

    #[test]
    fn the_seed_decides() {
        let draw = |seed| {
            let mut pcg = Pcg::new(seed);
            (0..20).map(|_| pcg.below(100)).collect::<Vec<_>>()
        };
        assert_eq!(draw(5), draw(5));
        assert_ne!(draw(5), draw(6));
    }
}
