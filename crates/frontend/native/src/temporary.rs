//! Directories for the temporary files of executions.
//!
//! A fork server has one directory, which is emptied before every execution. Its owner holds a lock
//! on it. A controller that is killed leaves its directories behind without locks, and the next
//! controller removes them.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The prefix of the names of all directories.
const PREFIX: &str = "preempt-run-";

/// An empty directory, which is removed with its contents when this is dropped.
#[derive(Debug)]
pub(crate) struct TemporaryDirectory {
    path: PathBuf,
    /// The open directory, which holds the lock.
    open: File,
}

impl TemporaryDirectory {
    /// Creates a directory that only this user can read.
    pub(crate) fn new() -> io::Result<TemporaryDirectory> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let folder = std::env::temp_dir();
        remove_abandoned(&folder);
        loop {
            let name = format!("{PREFIX}{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
            let path = folder.join(name);
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            // Before the directory is locked, another controller may consider it abandoned and
            // remove it.
            let Ok(open) = File::open(&path) else { continue };
            open.lock()?;
            if is_at(&open, &path) {
                return Ok(TemporaryDirectory { path, open });
            }
        }
    }

    /// The open directory.
    pub(crate) fn file(&self) -> &File {
        &self.open
    }

    /// Removes all contents.
    pub(crate) fn empty(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // On an error, the next controller removes the rest.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Whether `path` still names the open directory.
fn is_at(open: &File, path: &Path) -> bool {
    let (Ok(open), Ok(found)) = (open.metadata(), fs::metadata(path)) else { return false };
    (open.dev(), open.ino()) == (found.dev(), found.ino())
}

/// Removes the directories of this user that no controller has locked.
fn remove_abandoned(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        // Symbolic links are not followed: they may lead anywhere.
        if !ours || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let Ok(open) = File::open(&path) else { continue };
        match open.try_lock() {
            // An error is ignored: the directory may belong to another user.
            Ok(()) => drop(fs::remove_dir_all(&path)),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_directories_are_emptied_and_removed_and_abandoned_ones_are_removed() {
        let directory = TemporaryDirectory::new().expect("the temporary folder can be written");
        let path = directory.path.clone();
        fs::create_dir_all(path.join("a/b")).expect("the folder belongs to this test");
        fs::write(path.join("file"), "text").expect("the folder belongs to this test");
        directory.empty().expect("the folder belongs to this test");
        assert_eq!(fs::read_dir(&path).expect("the folder exists").count(), 0);
        let mode = fs::metadata(&path).expect("the folder exists").mode();
        assert_eq!(mode & 0o777, 0o700, "only the user can read it");
        let abandoned =
            std::env::temp_dir().join(format!("{PREFIX}abandoned-{}", std::process::id()));
        fs::create_dir(&abandoned).expect("the temporary folder can be written");
        let other = TemporaryDirectory::new().expect("the temporary folder can be written");
        assert!(!abandoned.exists(), "no process holds it");
        assert!(path.exists(), "this process holds it");
        drop((directory, other));
        assert!(!path.exists());
    }
}
