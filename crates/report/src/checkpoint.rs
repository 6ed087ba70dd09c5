//! Checkpoints as files.
//!
//! A checkpoint is written to a temporary file beside its target, synchronised to disk, and then
//! renamed. So the target is complete whenever the process is killed. If a checkpoint cannot be
//! written, the search continues and the previous checkpoint remains.
//!
//! Writing takes at most a tenth of the time: the pause between two checkpoints is at least nine
//! times as long as writing the last one took.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use preempt_explore::{Keeper, Refusal, Saved};

/// The default time between two checkpoints.
pub const INTERVAL: Duration = Duration::from_secs(5);

/// The minimal pause between two checkpoints, as a multiple of the time that the last one took.
const SHARE: u32 = 9;

/// A file of checkpoints, each of which replaces the one before.
#[derive(Debug)]
pub struct CheckpointFile {
    path: PathBuf,
    interval: Duration,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The time of the last attempt to write one.
    last: Instant,
    took: Duration,
    written: u64,
    /// Why the last one could not be written.
    error: Option<io::Error>,
}

impl CheckpointFile {
    /// Writes checkpoints to `path`, one after each `interval`.
    pub fn new(path: PathBuf, interval: Duration) -> CheckpointFile {
        let state = State { last: Instant::now(), took: Duration::ZERO, written: 0, error: None };
        CheckpointFile { path, interval, state: Mutex::new(state) }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number of checkpoints written.
    pub fn written(&self) -> u64 {
        self.state().written
    }

    /// Why the last checkpoint could not be written, if it could not.
    pub fn error(&self) -> Option<String> {
        self.state().error.as_ref().map(io::Error::to_string)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("mutex poisoned")
    }

    /// Replaces the file by a checkpoint that took from `began` on. Returns whether it could.
    pub(crate) fn keep_since(
        &self,
        began: Instant,
        write: &dyn Fn(&mut dyn Write) -> io::Result<()>,
    ) -> bool {
        self.record(began, self.replace(write))
    }

    /// Records the result of an attempt to write a checkpoint.
    pub(crate) fn record(&self, began: Instant, written: io::Result<()>) -> bool {
        let is_written = written.is_ok();
        let mut state = self.state();
        state.written += u64::from(is_written);
        state.error = written.err();
        (state.last, state.took) = (Instant::now(), began.elapsed());
        is_written
    }

    fn replace(&self, write: &dyn Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        replace(&self.path, write)
    }
}

/// A path whose last part ends with `ending` in addition.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(ending);
    path.with_file_name(name)
}

/// Replaces a file at once: it is complete whenever the process is killed.
pub(crate) fn replace(
    path: &Path,
    write: &dyn Fn(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let draft = beside(path, ".new");
    let mut file = File::create(&draft)?;
    let written =
        write(&mut file).and_then(|()| file.sync_all()).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        // A partial file is useless, and may be the reason why the disk is full.
        let _ = fs::remove_file(&draft);
    }
    written?;
    sync_folder(path);
    Ok(())
}

/// Synchronises the rename to disk, where directories can be opened. If that fails, a loss of power
/// leaves the previous checkpoint, which is complete too.
fn sync_folder(path: &Path) {
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

impl Keeper for CheckpointFile {
    fn is_due(&self) -> bool {
        // If another worker holds the lock, it is already checking.
        let Ok(state) = self.state.try_lock() else { return false };
        state.last.elapsed() >= self.interval.max(state.took * SHARE)
    }

    fn keep(&self, write: &dyn Fn(&mut dyn Write) -> io::Result<()>) {
        self.keep_since(Instant::now(), write);
    }
}

/// Opens the checkpoint in a file.
pub fn open(path: &Path) -> Result<Saved, Unopened> {
    File::open(path)
        .map_err(Unopened::File)
        .and_then(|file| Saved::open(file).map_err(Unopened::Content))
}

/// Why a checkpoint was not opened.
#[derive(Debug)]
pub enum Unopened {
    /// The file cannot be read.
    File(io::Error),
    /// It is not a checkpoint of this version, or is damaged.
    Content(Refusal),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("preempt-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).expect("there is a folder for temporary files");
        folder
    }

    #[test]
    fn a_checkpoint_replaces_the_one_before_or_leaves_it() {
        let folder = folder("replace");
        let file = CheckpointFile::new(folder.join("c"), Duration::from_secs(3600));
        assert!(!file.is_due(), "an hour has not gone by");
        file.keep(&|to| to.write_all(b"first"));
        file.keep(&|to| to.write_all(b"second"));
        let read = || fs::read(file.path()).expect("the checkpoint was written");
        assert_eq!((read(), file.written(), file.error()), (b"second".to_vec(), 2, None));
        file.keep(&|to| to.write_all(b"thi").and(Err(io::Error::other("no room"))));
        assert_eq!(
            (read(), file.written(), file.error().as_deref()),
            (b"second".to_vec(), 2, Some("no room"))
        );
        assert_eq!(
            fs::read_dir(&folder).expect("a folder").count(),
            1,
            "nothing is left beside it"
        );
        fs::remove_dir_all(folder).expect("the folder belongs to this test");
    }

    #[test]
    fn writing_takes_a_tenth_of_the_time_at_most() {
        let file = CheckpointFile::new(PathBuf::from("nowhere/at/all"), Duration::ZERO);
        assert!(file.is_due());
        file.state().took = Duration::from_secs(3600);
        assert!(!file.is_due());
        file.keep(&|_| Ok(()));
        assert!(file.error().is_some() && file.written() == 0);
    }
}
