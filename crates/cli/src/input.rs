//! Reading what the user gave: files that are there, are text, and say what they should.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use preempt_lang::diagnostic::{self, Style};
use preempt_lang::machine::Machine;
use preempt_lang::source::Source;

use crate::args::ModelArgs;

/// The most bytes of a file that are read: places in it are 32-bit numbers, and a model is a page.
const MOST_BYTES: u64 = 64 << 20;

/// Loads the model, or says why not, in full sentences and ready to print.
pub fn load(args: &ModelArgs, style: Style) -> Result<Machine, String> {
    let text = read(&args.file)?;
    let source = Source::new(args.file.display().to_string(), text);
    preempt_lang::load(&source, &args.settings).map_err(|diagnostics| diagnostic::render(&source, &diagnostics, style))
}

/// The text of a file.
pub fn read(path: &Path) -> Result<String, String> {
    let name = path.display();
    let wrong = |why: String| format!("error: cannot read {name}: {why}\n");
    let about = fs::metadata(path).map_err(|error| {
        wrong(match error.kind() {
            ErrorKind::NotFound => "there is no such file".into(),
            _ => error.to_string(),
        })
    })?;
    if about.is_dir() {
        return Err(wrong("it is a directory; name the model in it".into()));
    }
    if about.len() > MOST_BYTES {
        return Err(wrong(format!("it has {} bytes; no model is that long", about.len())));
    }
    let bytes = fs::read(path).map_err(|error| wrong(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| {
        wrong(format!("it is not text in UTF-8 (byte {})", error.utf8_error().valid_up_to() + 1))
    })
}
