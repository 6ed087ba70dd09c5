//! The encoding of bytes: whole numbers in as few bytes as they need, words of states in eight
//! bytes each, and a checksum at the end.

use std::fmt;
use std::io::{self, BufReader, Read, Write};

use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

use super::Save;

/// The bytes that are hashed together.
pub(crate) const BLOCK: usize = 1 << 16;

/// The length of the checksum at the end, in bytes.
pub(crate) const CHECKSUM: u64 = 8;

/// The checksum of a block and all blocks before it, whose checksum is `before`.
pub(crate) fn checksum(before: u64, block: &[u8]) -> u64 {
    rapidhash_v3_seeded(block, &RapidSecrets::seed(before))
}

/// The bytes are not what this version of the program writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

impl fmt::Display for Damaged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the checkpoint does not have the form that this version writes")
    }
}

impl std::error::Error for Damaged {}

/// Writes values. After an I/O error it writes nothing more; [`Writer::finish`] returns the error.
pub struct Writer<'w> {
    to: &'w mut dyn Write,
    block: Vec<u8>,
    checksum: u64,
    error: Option<io::Error>,
}

impl<'w> Writer<'w> {
    pub(crate) fn new(to: &'w mut dyn Write) -> Writer<'w> {
        Writer { to, block: Vec::with_capacity(BLOCK), checksum: 0, error: None }
    }

    /// Writes a value.
    pub fn put<T: Save>(&mut self, value: &T) {
        value.save(self);
    }

    /// Writes the number of words and all 64 bits of each.
    pub fn words(&mut self, words: &[u64]) {
        self.put(&words.len());
        words.iter().for_each(|&word| self.word(word));
    }

    /// Writes all 64 bits of a word.
    pub fn word(&mut self, word: u64) {
        self.bytes(&word.to_le_bytes());
    }

    /// Writes bytes without their number.
    pub(crate) fn bytes(&mut self, mut bytes: &[u8]) {
        while self.block.len() + bytes.len() >= BLOCK {
            let (now, later) = bytes.split_at(BLOCK - self.block.len());
            self.block.extend_from_slice(now);
            self.flush();
            bytes = later;
        }
        self.block.extend_from_slice(bytes);
    }

    /// A value cannot be written; [`Writer::finish`] returns this as an error.
    pub(crate) fn fail(&mut self, why: &str) {
        self.error.get_or_insert_with(|| io::Error::other(why));
    }

    #[cold]
    fn flush(&mut self) {
        self.checksum = checksum(self.checksum, &self.block);
        if self.error.is_none() {
            self.error = self.to.write_all(&self.block).err();
        }
        self.block.clear();
    }

    /// Writes the checksum, and returns it.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        if !self.block.is_empty() {
            self.flush();
        }
        match self.error {
            Some(error) => Err(error),
            None => self.to.write_all(&self.checksum.to_le_bytes()).map(|()| self.checksum),
        }
    }

    /// The bytes that `write` writes, without a checksum.
    pub(crate) fn collect(write: impl FnOnce(&mut Writer<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        write(&mut writer);
        writer.flush();
        bytes
    }
}

/// Reads values.
pub struct Reader {
    from: BufReader<Box<dyn Read + Send>>,
    /// The bytes that were not read yet.
    left: u64,
}

impl Reader {
    /// Reads the next `left` bytes of `from`.
    pub(crate) fn new(from: Box<dyn Read + Send>, left: u64) -> Reader {
        Reader { from: BufReader::with_capacity(BLOCK, from), left }
    }

    /// Reads all of `bytes`.
    pub(crate) fn of(bytes: Vec<u8>) -> Reader {
        let left = bytes.len() as u64;
        Reader::new(Box::new(io::Cursor::new(bytes)), left)
    }

    /// Reads a value.
    pub fn get<T: Save>(&mut self) -> Result<T, Damaged> {
        T::load(self)
    }

    /// Reads a number of elements, each of which has at least one byte.
    pub fn count(&mut self) -> Result<usize, Damaged> {
        let count: u64 = self.get()?;
        // A caller reserves memory for them: not more than the rest can contain.
        if count > self.left { Err(Damaged) } else { usize::try_from(count).map_err(|_| Damaged) }
    }

    /// Reads words.
    pub fn words(&mut self) -> Result<Vec<u64>, Damaged> {
        let count = self.count()?;
        if count as u64 > self.left / 8 {
            return Err(Damaged);
        }
        (0..count).map(|_| self.word()).collect()
    }

    /// Reads all 64 bits of a word.
    pub fn word(&mut self) -> Result<u64, Damaged> {
        let mut bytes = [0; 8];
        self.bytes(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Fills `bytes`.
    pub(crate) fn bytes(&mut self, bytes: &mut [u8]) -> Result<(), Damaged> {
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or(Damaged)?;
        self.from.read_exact(bytes).map_err(|_| Damaged)
    }

    /// The bytes that were not read yet.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Whether everything was read.
    pub(crate) fn is_at_its_end(&self) -> bool {
        self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_sizes_come_back() {
        let numbers: Vec<u64> =
            (0..64).flat_map(|bit| [1u64 << bit, (1 << bit) - 1, !(1 << bit)]).collect();
        let bytes = Writer::collect(|writer| {
            writer.put(&numbers);
            writer.words(&numbers);
        });
        let mut reader = Reader::new(Box::new(io::Cursor::new(bytes.clone())), bytes.len() as u64);
        assert_eq!((reader.get::<Vec<u64>>(), reader.words()), (Ok(numbers.clone()), Ok(numbers)));
        assert!(reader.is_at_its_end());
        assert_eq!(reader.get::<u64>(), Err(Damaged));
    }

    #[test]
    fn a_length_beyond_the_end_is_no_reason_to_reserve_memory() {
        let bytes = Writer::collect(|writer| writer.put(&(1u64 << 40)));
        let reader = || Reader::new(Box::new(io::Cursor::new(bytes.clone())), bytes.len() as u64);
        assert_eq!(reader().get::<Vec<u64>>(), Err(Damaged));
        assert_eq!(reader().words(), Err(Damaged));
        assert_eq!(reader().get::<String>(), Err(Damaged));
    }

    #[test]
    fn the_checksum_does_not_depend_on_how_the_bytes_came() {
        let bytes: Vec<u8> = (0..3 * BLOCK + 5).map(|i| ((i * i) >> 3) as u8).collect();
        let written = |pieces: usize| {
            let mut all = Vec::new();
            let mut writer = Writer::new(&mut all);
            bytes.chunks(pieces).for_each(|piece| writer.bytes(piece));
            writer.finish().expect("a vector takes all");
            all
        };
        let all = written(usize::MAX);
        assert_eq!(all.len(), bytes.len() + CHECKSUM as usize);
        for pieces in [1, 7, BLOCK - 1, BLOCK, BLOCK + 1] {
            assert!(written(pieces) == all, "{pieces}");
        }
    }
}
