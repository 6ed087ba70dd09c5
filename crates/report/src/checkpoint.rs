//! Checkpoints as files.
//!
//! A checkpoint is written to a file beside the one that it is to replace, brought to the disk, and
//! then renamed: whenever the process is killed, the file that has the name is a whole one. If it
//! cannot be written the search goes on, and the last one stays.
//!
//! Not more than a tenth of the time goes into writing: the pause between two is at least nine
//! times as long as the last one took.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use preempt_explore::{Keeper, Refusal, Saved};

/// The time between two checkpoints where nobody has said one.
pub const INTERVAL: Duration = Duration::from_secs(5);

/// The pause between two checkpoints is so many times as long as the writing of the last one, at
/// least.
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
    /// When the last one was written, or tried to be.
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

    /// Where they are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many were written.
    pub fn written(&self) -> u64 {
        self.state().written
    }

    /// Why the last one could not be written, if that is so.
    pub fn error(&self) -> Option<String> {
        self.state().error.as_ref().map(io::Error::to_string)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics while it writes a checkpoint")
    }

    /// The file beside it in which a checkpoint is written.
    fn draft(&self) -> PathBuf {
        let mut name = self.path.file_name().map_or_else(OsString::new, OsString::from);
        name.push(".new");
        self.path.with_file_name(name)
    }

    fn replace(&self, write: &dyn Fn(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let draft = self.draft();
        let mut file = File::create(&draft)?;
        let written = write(&mut file)
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&draft, &self.path));
        if written.is_err() {
            // What is left of it helps nobody, and may be what filled the disk.
            let _ = fs::remove_file(&draft);
        }
        written?;
        sync_folder(&self.path);
        Ok(())
    }
}

/// Brings the new name to the disk, where folders can be opened. If that fails, the old name is
/// there after a loss of power: also a whole checkpoint.
fn sync_folder(path: &Path) {
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

impl Keeper for CheckpointFile {
    fn is_due(&self) -> bool {
        // Whoever finds another worker asking need not ask.
        let Ok(state) = self.state.try_lock() else { return false };
        state.last.elapsed() >= self.interval.max(state.took * SHARE)
    }

    fn keep(&self, write: &dyn Fn(&mut dyn Write) -> io::Result<()>) {
        let began = Instant::now();
        let written = self.replace(write);
        let mut state = self.state();
        state.written += u64::from(written.is_ok());
        state.error = written.err();
        (state.last, state.took) = (Instant::now(), began.elapsed());
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
    /// It is not what it should be.
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
        let read = || fs::read(file.path()).expect("it was written");
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
        fs::remove_dir_all(folder).expect("it is ours");
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
