//! Writing the files that the user asked for.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

use crate::{Exit, Refused, screen};

/// Refuses a file that cannot be written, before a long search starts. `what` is its content.
///
/// A file that exists is opened and not changed. Otherwise a file of another name is created beside
/// it and removed, so that a search that is interrupted leaves no empty file behind.
pub fn writable(path: &Path, what: &str) -> Result<(), Refused> {
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() {
        return Err(Refused::because(format!(
            "cannot save {what} as {}: it is a directory",
            path.display()
        )));
    }
    if !folder.is_dir() {
        let (path, folder) = (path.display(), folder.display());
        return Err(Refused::because(format!(
            "cannot save {what} as {path}: there is no directory {folder}"
        )));
    }
    let tried = match fs::metadata(path) {
        Ok(found) if found.is_file() => OpenOptions::new().append(true).open(path).map(drop),
        // Opening a pipe would wait for its reader.
        Ok(_) => Ok(()),
        Err(_) => create_probe(folder),
    };
    tried.map_err(|error| {
        Refused::because(format!("cannot save {what} as {}: {error}", path.display()))
    })
}

/// Creates a file in a directory and removes it.
fn create_probe(directory: &Path) -> io::Result<()> {
    let probe = directory.join(format!("preempt-{}.probe", std::process::id()));
    fs::write(&probe, b"")?;
    fs::remove_file(&probe)
}

/// Refuses a directory in which no file can be created. `option` names it.
pub fn writable_directory(path: &Path, option: &str) -> Result<(), Refused> {
    create_probe(path).map_err(|error| {
        let path = path.display();
        Refused::because(format!("{option}: no file can be created in {path}: {error}"))
    })
}

/// Writes a file.
pub fn save(path: &Path, what: &str, text: &str) -> Result<(), Refused> {
    fs::write(path, text).map_err(|error| {
        Refused::because(format!("cannot save {what} as {}: {error}", path.display()))
    })
}

/// The exit code of a command that has ended with `exit` and then written its files. Those that
/// could not be written are reported. A finding counts more than a file.
pub fn exit(exit: Exit, files: impl IntoIterator<Item = Result<(), Refused>>) -> Exit {
    let failed: Vec<Refused> = files.into_iter().filter_map(Result::err).collect();
    failed.iter().for_each(|Refused(why)| screen::complain(why));
    if failed.is_empty() || exit == Exit::Finding { exit } else { Exit::Refused }
}
