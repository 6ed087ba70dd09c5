//! Reads models and other files that the user names.

use std::cell::Cell;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use preempt_explore::program_hash;
use preempt_lang::Pre;
use preempt_machine::diagnostic::{self, Diagnostic};
use preempt_machine::program::Program;
use preempt_machine::source::Source;
use preempt_machine::{Machine, Parsed, Reader, Settings};
use preempt_system::text::nearest;

use crate::args::ModelArgs;
use crate::{Refused, screen};

/// The largest file that is read, in bytes: positions in it are 32-bit numbers.
const MOST_BYTES: u64 = 64 << 20;

/// The most bytes that the syntax trees of a model need per token. Blocks in blocks need the most.
const BYTES_PER_LEXEME: usize = 400;

/// The copies of a model's code that are in memory at once: while a search takes a larger layout of
/// states, it has the machines before and after, and the search for simple errors has its own.
const COPIES_OF_CODE: usize = 3;

/// The most bytes that the decision diagrams of a machine need, while they are built.
const DIAGRAMS: usize = 6 << 20;

/// Loads the model of a file, with constants set from outside.
pub fn load(path: &Path, settings: &Settings) -> Result<Machine, Refused> {
    load_within(path, settings, None)
}

/// The same; refuses a model that would need more than `memory` bytes.
pub fn load_within(
    path: &Path,
    settings: &Settings,
    memory: Option<usize>,
) -> Result<Machine, Refused> {
    let text = read(path)?;
    let needed = lexemes(&text) * BYTES_PER_LEXEME;
    if let Some(memory) = memory.filter(|&memory| needed > memory) {
        let needed = preempt_report::number::bytes(needed as u64);
        return Err(too_large(path, &format!("reading it takes up to {needed}"), memory));
    }
    let Some(memory) = memory else { return load_text(path, text, settings) };
    let resident = || preempt_explore::memory::resident().unwrap_or(0);
    let before = resident() + needed;
    let most = before + memory.saturating_sub(before + DIAGRAMS) / COPIES_OF_CODE;
    let exhausted = Cell::new(false);
    let has_memory = || {
        exhausted.set(resident() > most);
        !exhausted.get()
    };
    let loaded = load_with(path, text, settings, &has_memory);
    if exhausted.get() {
        Err(too_large(path, "compiling it takes too much memory", memory))
    } else {
        loaded
    }
}

/// The refusal of a model that does not fit into memory.
fn too_large(path: &Path, why: &str, memory: usize) -> Refused {
    Refused::because(format!(
        "{} is too large: {why}, and the search may use {}; give it more with --memory, or write a \
         smaller model, with loops, arrays and functions in place of repeated statements, or with \
         fewer threads",
        path.display(),
        preempt_report::number::bytes(memory as u64)
    ))
}

/// Loads the model of a text, which is that of the file `path`.
pub fn load_text(path: &Path, text: String, settings: &Settings) -> Result<Machine, Refused> {
    load_with(path, text, settings, &|| true)
}

/// The same, as long as `has_memory` returns true.
fn load_with(
    path: &Path,
    text: String,
    settings: &Settings,
    has_memory: &dyn Fn() -> bool,
) -> Result<Machine, Refused> {
    let source = Source::new(path.display().to_string(), text);
    let parsed = reader(path)?.parse(&source);
    constants_exist(&source, &*parsed, settings)?;
    let program = parsed.program(settings);
    // The syntax tree of a large model is large; it is needed further only to find a setting to
    // blame.
    let parsed = Some(parsed).filter(|_| !settings.is_empty());
    let machine = program.and_then(|program| machine(program, has_memory));
    machine.map_err(|diagnostics| {
        let rendered = || {
            Refused::rendered(diagnostic::render(&source, &diagnostics, screen::diagnostic_style()))
        };
        parsed.and_then(|parsed| blamed(&source, &*parsed, settings)).unwrap_or_else(rendered)
    })
}

/// The languages in which models can be written.
const READERS: &[&dyn Reader] = &[&Pre];

/// The reader for a file, by its extension. A file without one, such as a pipe, is read in the
/// first language.
fn reader(path: &Path) -> Result<&'static dyn Reader, Refused> {
    let Some(extension) = path.extension() else { return Ok(READERS[0]) };
    let reads = |reader: &&&dyn Reader| reader.extensions().iter().any(|known| extension == *known);
    READERS.iter().find(reads).copied().ok_or_else(|| {
        let known: Vec<String> = READERS
            .iter()
            .flat_map(|reader| reader.extensions())
            .map(|known| format!(".{known}"))
            .collect();
        Refused::because(format!(
            "{} is not a model: its extension is .{}, and Preempt reads {}",
            path.display(),
            extension.display(),
            known.join(", ")
        ))
    })
}

fn machine(program: Program, has_memory: &dyn Fn() -> bool) -> Result<Machine, Vec<Diagnostic>> {
    Machine::within(program, has_memory).map_err(|diagnostic| vec![diagnostic])
}

/// The refusal of a `--set` without which the model is correct: the mistake is on the command line,
/// not in the file.
fn blamed(source: &Source, parsed: &dyn Parsed, settings: &Settings) -> Option<Refused> {
    let load = |settings: &Settings| {
        parsed.program(settings).and_then(|program| machine(program, &|| true))
    };
    if load(&[]).is_err() {
        return None;
    }
    settings.iter().find_map(|setting| {
        let wrong = load(std::slice::from_ref(setting)).err()?;
        let (name, value) = setting;
        let (file, what) = (&source.name, wrong.first()?);
        let hint = what.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        let why = format!("--set {name}={value} does not suit {file}: {}{hint}", what.message);
        Some(Refused::because(why))
    })
}

/// Refuses settings of constants that a model does not have. They are a mistake on the command
/// line, not in the model.
fn constants_exist(
    source: &Source,
    parsed: &dyn Parsed,
    settings: &Settings,
) -> Result<(), Refused> {
    let constants = parsed.constants();
    let Some((name, value)) = settings.iter().find(|(name, _)| !constants.contains(&name.as_str()))
    else {
        return Ok(());
    };
    let hint = match (nearest(name, constants.iter().copied()), constants.as_slice()) {
        (Some(near), _) => format!("did you mean `{near}`?"),
        (None, []) => "it has no constants".to_owned(),
        (None, all) => format!("its constants are {}", all.join(", ")),
    };
    Err(Refused::because(format!(
        "--set {name}={value}: no constant `{name}` in {}; {hint}",
        source.name
    )))
}

/// The number of tokens of a text, without comments.
fn lexemes(text: &str) -> usize {
    let (mut count, mut in_word, mut rest) = (0, false, text.as_bytes());
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'/', [b'/', ..]) => {
                rest = after
                    .iter()
                    .position(|&byte| byte == b'\n')
                    .map_or(&[][..], |end| &after[end..])
            }
            (b'/', [b'*', ..]) => {
                rest = after
                    .windows(2)
                    .skip(1)
                    .position(|end| end == b"*/")
                    .map_or(&[][..], |end| &after[end + 3..]);
            }
            _ => {
                let is_word = first.is_ascii_alphanumeric() || *first == b'_';
                let goes_on = first.is_ascii_whitespace() || (is_word && in_word);
                count += usize::from(!goes_on);
                in_word = is_word;
                continue;
            }
        }
        in_word = false;
    }
    count
}

/// The text of a file.
pub fn read(path: &Path) -> Result<String, Refused> {
    let refused = |why: String| Refused::because(format!("cannot read {}: {why}", path.display()));
    let about = fs::metadata(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => refused("there is no such file".into()),
        _ => refused(error.to_string()),
    })?;
    if about.is_dir() {
        return Err(refused("it is a directory; name a file in it".into()));
    }
    if about.len() > MOST_BYTES {
        return Err(refused(format!(
            "it has {} bytes, and the maximum is {MOST_BYTES}",
            about.len()
        )));
    }
    let bytes = fs::read(path).map_err(|error| refused(error.to_string()))?;
    String::from_utf8(bytes).map_err(|error| {
        refused(format!("byte {} is not UTF-8 text", error.utf8_error().valid_up_to() + 1))
    })
}

/// The command that replays a schedule of this model, without the schedule.
pub fn replay_command(model: &ModelArgs) -> String {
    let mut command = format!("preempt replay {}", quoted(&model.file.display().to_string()));
    for (name, value) in &model.settings {
        command += &format!(" --set {name}={value}");
    }
    command
}

/// The text quoted for a shell.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./=:,+@%-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// The hash of a model and its settings, by which a checkpoint or a process of a cluster recognises
/// the model.
pub fn model_hash(text: &str, settings: &[(String, String)]) -> u64 {
    // The order of `--set` options does not matter.
    let mut settings: Vec<String> =
        settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    settings.sort();
    program_hash([text.to_owned()].into_iter().chain(settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_signs_are_counted_without_comments() {
        let texts = [
            "",
            "x = 1;",
            "a_1+2",
            "// a b\nx",
            "/* a */ x",
            "a/* */b",
            "/* open",
            "/",
            "a/b",
            "/*/ a */ b",
        ];
        assert_eq!(texts.map(lexemes), [0, 4, 3, 1, 1, 2, 0, 1, 3, 1]);
    }

    #[test]
    fn a_model_that_does_not_fit_is_refused_before_it_is_compiled() {
        let file = std::env::temp_dir().join(format!("preempt-large-{}.pre", std::process::id()));
        fs::write(&file, format!("var x = 0; thread t {{ {} }}", "x = 1; ".repeat(100)))
            .expect("the file is writable");
        // 9 words and signs around 100 statements of 4.
        let needed = 409 * BYTES_PER_LEXEME;
        let refusal = |memory| load_within(&file, &[], memory).err().map(|refused| refused.0);
        let refused = refusal(Some(needed - 1)).expect("the model is too large");
        assert!(refused.contains("is too large: reading it takes up to "), "{refused}");
        assert_eq!([Some(needed), None].map(refusal), [None, None]);
        fs::remove_file(&file).expect("the file exists");
    }

    #[test]
    fn the_extension_chooses_the_reader() {
        let refusal = |path: &str| reader(Path::new(path)).err().map(|refused| refused.0);
        assert_eq!(["a/model.pre", "/dev/stdin", "b.c/model"].map(refusal), [None, None, None]);
        assert_eq!(
            refusal("a/model.rs").as_deref(),
            Some(
                "error: a/model.rs is not a model: its extension is .rs, and Preempt reads .pre\n"
            )
        );
    }

    #[test]
    fn names_of_files_can_be_pasted() {
        assert_eq!(quoted("a/b-1.pre"), "a/b-1.pre");
        assert_eq!(quoted("it's a.pre"), r"'it'\''s a.pre'");
        assert_eq!(quoted(""), "''");
    }
}
