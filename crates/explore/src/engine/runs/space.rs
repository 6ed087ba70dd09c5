//! Storage for the bytes of runs: in memory, or in files of a directory.
//!
//! Files have no name: they are removed from their directory as soon as they are open. So no file
//! remains however the process ends, and two searches can share a directory.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

use crate::plan::coverage::Limit;

/// Why runs cannot be written or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunError {
    /// A file cannot be written: the disk is full, or the directory cannot be used.
    Write,
    /// A file does not contain what was written, or cannot be read.
    Damaged,
}

impl From<RunError> for Limit {
    fn from(error: RunError) -> Limit {
        match error {
            RunError::Write => Limit::Disk,
            RunError::Damaged => Limit::Damage,
        }
    }
}

/// The bytes of the runs of a search.
#[derive(Debug, Default)]
pub(super) struct Usage {
    memory: AtomicUsize,
    disk: AtomicU64,
    most_disk: AtomicU64,
}

impl Usage {
    pub(super) fn add(&self, bytes: usize) {
        self.memory.fetch_add(bytes, Relaxed);
    }

    pub(super) fn remove(&self, bytes: usize) {
        self.memory.fetch_sub(bytes, Relaxed);
    }

    pub(super) fn add_file(&self, bytes: u64) {
        let disk = self.disk.fetch_add(bytes, Relaxed) + bytes;
        self.most_disk.fetch_max(disk, Relaxed);
    }

    pub(super) fn remove_file(&self, bytes: u64) {
        self.disk.fetch_sub(bytes, Relaxed);
    }
}

/// The room for the runs of a search, whose states have `words` words.
pub(crate) struct RunSpace<'a> {
    words: usize,
    /// The bytes of runs in memory above which runs are written to files.
    budget: usize,
    directory: Option<&'a Path>,
    files: AtomicU64,
    pub(super) usage: Arc<Usage>,
}

impl<'a> RunSpace<'a> {
    /// Runs beyond `budget` bytes go to files in `directory`, or stay in memory if there is none.
    pub(crate) fn new(words: usize, budget: usize, directory: Option<&'a Path>) -> RunSpace<'a> {
        RunSpace { words, budget, directory, files: AtomicU64::new(0), usage: Arc::default() }
    }

    pub(crate) fn words(&self) -> usize {
        self.words
    }

    /// The bytes of runs in memory.
    pub(crate) fn memory(&self) -> usize {
        self.usage.memory.load(Relaxed)
    }

    /// The bytes of runs in files.
    #[cfg(test)]
    pub(crate) fn disk(&self) -> u64 {
        self.usage.disk.load(Relaxed)
    }

    /// The most bytes that were in files at one time.
    pub(crate) fn most_disk(&self) -> u64 {
        self.usage.most_disk.load(Relaxed)
    }

    /// Whether runs need more memory than they may, and cannot go to files.
    pub(crate) fn has_no_room(&self) -> bool {
        self.memory() > self.budget && self.directory.is_none()
    }

    /// Whether the next bytes of a run belong in a file.
    pub(super) fn is_spilling(&self) -> bool {
        self.memory() > self.budget && self.directory.is_some()
    }

    /// A new file without a name.
    pub(super) fn create(&self) -> Result<SpillFile, RunError> {
        let directory = self.directory.expect("only a space with a directory has files");
        let number = self.files.fetch_add(1, Relaxed);
        // The address distinguishes the searches of one process.
        let name = format!("preempt-{}-{:p}-{number}.run", std::process::id(), self.usage);
        let path = directory.join(name);
        let open = || -> io::Result<File> {
            let file = File::options().read(true).write(true).create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            Ok(file)
        };
        Ok(SpillFile { file: open().map_err(|_| RunError::Write)?, length: 0 })
    }
}

/// A file that contains a run. It disappears when it is closed.
pub(super) struct SpillFile {
    file: File,
    pub(super) length: u64,
}

impl SpillFile {
    /// Appends bytes.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), RunError> {
        io::Write::write_all(&mut &self.file, bytes).map_err(|_| RunError::Write)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Fills `bytes` from position `at`. Several threads may read at the same time.
    #[cfg(unix)]
    pub(super) fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), RunError> {
        use std::os::unix::fs::FileExt as _;
        self.file.read_exact_at(bytes, at).map_err(|_| RunError::Damaged)
    }

    /// Fills `bytes` from position `at`. Several threads may read at the same time.
    #[cfg(windows)]
    pub(super) fn read(&self, mut at: u64, mut bytes: &mut [u8]) -> Result<(), RunError> {
        use std::os::windows::fs::FileExt as _;
        while !bytes.is_empty() {
            match self.file.seek_read(bytes, at) {
                Ok(read @ 1..) => (at, bytes) = (at + read as u64, &mut bytes[read..]),
                _ => return Err(RunError::Damaged),
            }
        }
        Ok(())
    }

    #[cfg(all(test, unix))]
    pub(super) fn overwrite(&self, at: u64, bytes: &[u8]) {
        use std::os::unix::fs::FileExt as _;
        self.file.write_all_at(bytes, at).expect("the file can be written");
    }
}

/// The bytes of a run.
pub(super) enum Data {
    Memory(Vec<u8>),
    File(SpillFile),
}
