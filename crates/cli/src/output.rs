//! Writing files that the user asked for.

use std::fs;
use std::path::Path;

use crate::Refused;

/// Refuses a file that cannot be written, before a long search has gone by. `what` is to be written.
pub fn writable(what: &str, path: &Path) -> Result<(), Refused> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let refused = |why: String| Err(Refused::because(format!("cannot save {what} as {}: {why}", path.display())));
    if path.is_dir() {
        return refused("it is a directory".into());
    }
    if !folder.is_dir() {
        return refused(format!("there is no directory {}", folder.display()));
    }
    Ok(())
}

/// Writes it.
pub fn write(what: &str, path: &Path, text: &str) -> Result<(), Refused> {
    fs::write(path, text)
        .map_err(|error| Refused::because(format!("cannot save {what} as {}: {error}", path.display())))
}
