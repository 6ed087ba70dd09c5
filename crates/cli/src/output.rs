//! Writing the files that the user asked for.

use std::fs;
use std::path::Path;

use crate::{Exit, Refused, screen};

/// Refuses a file that cannot be written, before a long search starts. `what` is its content.
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
    Ok(())
}

/// Refuses a directory in which no file can be created. `option` names it.
pub fn writable_directory(path: &Path, option: &str) -> Result<(), Refused> {
    let probe = path.join(format!("preempt-{}.probe", std::process::id()));
    let tried = fs::write(&probe, b"").and_then(|()| fs::remove_file(&probe));
    tried.map_err(|error| {
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
