//! The packing of cells into the words of a state.
//!
//! A cell holds one number. The cells of one variable (all elements of an array, a local of all
//! threads that run the same function) form a *class* and are packed alike. A class has the bounds
//! of its declared type, and a *range* for which it is packed. For small types they are equal. For
//! others (`int`, pointers) the range consists of the values seen so far: a legal value that does
//! not fit makes the step `Full`, and the search restarts with a wider range. So states are small
//! without declared sizes, and no value is ever truncated.

/// The number of a class.
pub(super) type ClassId = u32;

/// The largest state, in words: 16 KiB.
pub(super) const MAX_WORDS: usize = 2048;

/// Types with at most this many bits are packed as declared.
const DECLARED_BITS: u32 = 8;

/// The initial number of bits of a variable with a larger type.
const FIRST_BITS: u32 = 4;

/// Cells that are packed alike.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// Values outside these bounds are errors of the program under test.
    pub bounds: (i64, i64),
    /// Whether its cells hold pointers.
    pub pointer: bool,
    /// The values for which it is packed.
    pub range: (i64, i64),
}

impl Class {
    /// A class whose initial range contains `seen`, its initial values.
    pub(super) fn new(bounds: (i64, i64), seen: (i64, i64)) -> Class {
        let mut class = Class { bounds, pointer: false, range: bounds };
        if bits(bounds) > DECLARED_BITS {
            class.range = (seen.0, seen.0);
            class.widen(seen.1);
            class.widen(seen.0.saturating_add((1 << FIRST_BITS) - 1).min(bounds.1));
        }
        class
    }

    /// A class that is packed for exactly these values.
    pub(super) fn exact(lo: i64, hi: i64) -> Class {
        Class { bounds: (lo, hi), pointer: false, range: (lo, hi) }
    }

    /// A class of sets of threads.
    pub(super) fn thread_set(threads: usize) -> Class {
        let all = if threads >= 64 { -1 } else { (1 << threads) - 1 };
        Class::exact(0, all)
    }

    /// Widens the range until it contains `value`, which is within the bounds, and makes full use
    /// of the bits that it then needs.
    pub(super) fn widen(&mut self, value: i64) {
        let (lo, hi) = (self.range.0.min(value), self.range.1.max(value));
        if (lo, hi) == self.range {
            return;
        }
        let room = (1i64 << bits((lo, hi)).min(40)) - 1;
        self.range = if value < self.range.0 {
            ((hi - room).max(self.bounds.0), hi)
        } else {
            (lo, (lo + room).min(self.bounds.1))
        };
    }

    /// The value of a cell to which nothing was assigned.
    pub(super) fn zero(&self) -> i64 {
        let (lo, hi) = self.bounds;
        if (lo..=hi).contains(&0) || lo == 0 { 0 } else { lo }
    }

    /// The number of bits of each of its cells.
    pub(super) fn bits(&self) -> u32 {
        bits(self.range)
    }
}

/// The number of bits for the numbers from `lo` to `hi`; `hi` below `lo` means 64-bit patterns.
fn bits((lo, hi): (i64, i64)) -> u32 {
    64 - (hi.wrapping_sub(lo) as u64).leading_zeros()
}

/// The position of a cell in a packed state.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Field {
    /// The lowest value: the bits are the value minus this.
    pub lo: i64,
    /// The highest value minus the lowest.
    pub span: u64,
    /// A mask of the bits, shifted to the lowest position.
    pub mask: u64,
    /// The bits of an unassigned cell: those of 0, or of the lowest value if 0 is not a value.
    pub zero: u64,
    /// The index of the word.
    pub word: u32,
    /// The position of the lowest bit in the word.
    pub shift: u32,
}

impl Field {
    /// The value in `state`.
    #[inline(always)]
    pub(super) fn get(&self, state: &[u64]) -> i64 {
        ((state[self.word as usize] >> self.shift) & self.mask).wrapping_add(self.lo as u64) as i64
    }

    /// Writes `value` to `state`; `false` if it does not fit.
    #[inline(always)]
    pub(super) fn set(&self, state: &mut [u64], value: i64) -> bool {
        let raw = (value as u64).wrapping_sub(self.lo as u64);
        if raw > self.span {
            return false;
        }
        let word = &mut state[self.word as usize];
        *word = *word & !(self.mask << self.shift) | raw << self.shift;
        true
    }

    /// Resets the cell to the value of an unassigned one.
    #[inline(always)]
    pub(super) fn clear(&self, state: &mut [u64]) {
        let word = &mut state[self.word as usize];
        *word = *word & !(self.mask << self.shift) | self.zero << self.shift;
    }
}

/// The fields of all cells.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    /// The field of each cell.
    pub fields: Vec<Field>,
    /// The number of words of a state.
    pub words: usize,
    /// The number of words while the `init` block runs, whose locals follow the state.
    pub init_words: usize,
}

impl Layout {
    /// Packs cells of these classes, each for the values of its range; cells from `init_from` on
    /// are used by the `init` block only.
    pub(super) fn new(
        classes: &[Class],
        cells: &[ClassId],
        ranges: &[(i64, i64)],
        init_from: usize,
    ) -> Layout {
        let fields = cells.iter().zip(ranges).map(|(&class, &(lo, hi))| {
            let bits = bits((lo, hi));
            Field {
                lo,
                span: hi.wrapping_sub(lo) as u64,
                mask: if bits == 64 { u64::MAX } else { (1 << bits) - 1 },
                zero: classes[class as usize].zero().wrapping_sub(lo) as u64,
                word: 0,
                shift: 0,
            }
        });
        let mut fields: Vec<Field> = fields.collect();
        let (state, init) = fields.split_at_mut(init_from);
        // The lowest bit of every state is set: the stores use a zero word for "empty".
        let words = pack(state, 0, 1);
        let init_words = pack(init, words, 0);
        Layout { fields, words, init_words }
    }
}

/// Packs fields first-fit, widest first, into words from `first_word` on; `taken` bits of the first
/// are in use. Returns the number of words. No field straddles two words.
fn pack(fields: &mut [Field], first_word: usize, taken: u32) -> usize {
    let mut order: Vec<usize> = (0..fields.len()).collect();
    order.sort_by_key(|&cell| std::cmp::Reverse(fields[cell].mask));
    let mut used = vec![taken];
    // Wider fields come first, so a word that was too full for one of this width stays too full for
    // the next.
    let (mut width, mut start) = (u32::MAX, 0);
    for cell in order {
        let bits = fields[cell].mask.count_ones();
        // A cell without bits has no position; it always has its only value.
        if bits == 0 {
            continue;
        }
        if bits != width {
            (width, start) = (bits, 0);
        }
        while start < used.len() && used[start] + bits > 64 {
            start += 1;
        }
        if start == used.len() {
            used.push(0);
        }
        (fields[cell].word, fields[cell].shift) = ((first_word + start) as u32, used[start]);
        used[start] += bits;
    }
    if used == [0] { first_word } else { first_word + used.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_hold_all_values_and_do_not_overlap() {
        let classes = [
            Class::exact(0, 1),
            Class::exact(-3, 12),
            Class::thread_set(64),
            Class::exact(5, 5),
            Class::exact(0, 40),
        ];
        let cells: Vec<ClassId> = (0..60).map(|i| i % 5).collect();
        let ranges: Vec<(i64, i64)> =
            cells.iter().map(|&class| classes[class as usize].range).collect();
        let layout = Layout::new(&classes, &cells, &ranges, cells.len());
        let mut state = vec![0; layout.words];
        state[0] = 1;
        let value = |cell: usize, round: i64| {
            let (lo, hi) = classes[cells[cell] as usize].range;
            if hi < lo {
                (cell as i64 * 7 + round).wrapping_mul(0x9E37_79B9_7F4A_7C15u64 as i64)
            } else {
                lo + (cell as i64 * 7 + round) % (hi - lo + 1)
            }
        };
        for round in 0..50 {
            for cell in 0..cells.len() {
                assert!(layout.fields[cell].set(&mut state, value(cell, round)));
            }
            for cell in 0..cells.len() {
                assert_eq!(layout.fields[cell].get(&state), value(cell, round), "cell {cell}");
            }
            assert_eq!(state[0] & 1, 1, "the lowest bit belongs to no cell");
        }
        assert!(!layout.fields[1].set(&mut state, 13));
        assert!(!layout.fields[1].set(&mut state, -4));
    }

    #[test]
    fn a_class_widens_by_whole_bits_within_its_bounds() {
        let mut int = Class::new((i64::from(i32::MIN), i64::from(i32::MAX)), (0, 0));
        assert_eq!((int.range, int.bits()), ((0, 15), 4));
        int.widen(16);
        assert_eq!((int.range, int.bits()), ((0, 31), 5));
        int.widen(-1);
        assert_eq!((int.range, int.bits()), ((-32, 31), 6));
        int.widen(i64::from(i32::MAX));
        int.widen(i64::from(i32::MIN));
        assert_eq!(int.range, int.bounds);
        assert_eq!(Class::new((0, 9), (0, 0)).bits(), 4);
        assert_eq!(Class::thread_set(64).bits(), 64);
    }
}
