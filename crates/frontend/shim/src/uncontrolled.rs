//! Detects uncontrolled synchronisation in the source of a test.
//!
//! A check cannot observe communication through types of std, or of crates that are built on them:
//! such a test has one schedule and passes. A test with one schedule may also be right, because its
//! threads share nothing, so the number of schedules is not evidence enough. The source is: if the
//! body of the test, or the function that starts its threads, names such a type, the threads are
//! assumed to share it. A test whose threads also share controlled objects is not refused for such
//! a name, since it may only record what the threads did; its pass mentions the name. Only
//! unambiguous names count, not one that the same file also imports from elsewhere, under another
//! `cfg` or in another module. Without the source there is no evidence.

use std::collections::BTreeMap;
use std::panic::Location as Site;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::source;

/// A name in the source that refers to synchronisation which preempt does not control.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    /// The full path of the name: `std::sync::Mutex`.
    pub(crate) path: String,
    pub(crate) file: String,
    pub(crate) line: u32,
}

/// Crates with their own threads, locks or channels.
const FOREIGN: [&str; 9] = [
    "parking_lot",
    "crossbeam",
    "crossbeam_channel",
    "crossbeam_queue",
    "crossbeam_deque",
    "crossbeam_utils",
    "rayon",
    "tokio",
    "flume",
];

/// The names of std, apart from atomics.
const OF_STD: [&str; 10] = [
    "Mutex", "RwLock", "Condvar", "Barrier", "Once", "OnceLock", "LazyLock", "mpsc", "atomic",
    "thread",
];

/// The first mention in the text of the check at `check`, or else in the function or closure around
/// `spawned`, the place where a thread is started.
pub(crate) fn in_test(check: &Place, spawned: Option<&Place>) -> Option<Mention> {
    all_in_test(check, spawned).first().cloned()
}

/// The first mention, in the same texts, of a library that runs code on threads of its own pool,
/// which may exist before the check begins.
pub(crate) fn pool_in_test(check: &Place, spawned: Option<&Place>) -> Option<Mention> {
    let all = all_in_test(check, spawned);
    all.iter().find(|mention| mention.path.starts_with("rayon::")).cloned()
}

/// A source position, as the compiler reports it.
type Place = Site<'static>;

/// The mentions in the tests that have run, by the two places. A test may make thousands of checks,
/// and its source does not change meanwhile.
type Cache = BTreeMap<(Place, Option<Place>), Arc<[Mention]>>;
static CACHE: Mutex<Cache> = Mutex::new(BTreeMap::new());

fn all_in_test(check: &Place, spawned: Option<&Place>) -> Arc<[Mention]> {
    let key = (*check, spawned.copied());
    let lock = || CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = lock().get(&key) {
        return known.clone();
    }
    let found: Arc<[Mention]> = read_test(check, spawned).unwrap_or_default().into();
    lock().insert(key, found.clone());
    found
}

/// All mentions: those in the text of the check, and those around the place of the spawn.
fn read_test(check: &Place, spawned: Option<&Place>) -> Option<Vec<Mention>> {
    let code = blanked(&source::text(check.file())?);
    let (from, to) = call(&code, offset(&code, check)?)?;
    let mentioned = |code: &str, (from, to), file: &str| -> Vec<Mention> {
        let all = mentions(code, &imports(code), from, to).into_iter();
        let file = || file.to_owned();
        all.map(|(path, at)| Mention { path, file: file(), line: line_of(code, at) }).collect()
    };
    let mut all = mentioned(&code, (from, to), check.file());
    let elsewhere = spawned.filter(|spawned| {
        let within = |at| (from..to).contains(&at);
        spawned.file() != check.file() || !offset(&code, spawned).is_some_and(within)
    });
    all.extend(
        elsewhere
            .into_iter()
            .flat_map(|spawned| {
                let code = blanked(&source::text(spawned.file())?);
                let around = function(&code, offset(&code, spawned)?)?;
                Some(mentioned(&code, around, spawned.file()))
            })
            .flatten(),
    );
    Some(all)
}

/// The folder of the package under test, if cargo runs the test.
pub(crate) fn package() -> Option<PathBuf> {
    std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from)
}

/// The first import of such a name in the sources of the package in a folder.
pub(crate) fn in_package(package: &Path) -> Option<Mention> {
    let mut files = Vec::new();
    list(&package.join("src"), &mut files);
    files.sort();
    files.iter().find_map(|path| {
        let code = blanked(&std::fs::read_to_string(path).ok()?);
        let (_, path_of, at) = imports(&code).into_iter().next()?;
        let file = path.strip_prefix(package).unwrap_or(path).display().to_string();
        Some(Mention { path: path_of, file, line: line_of(&code, at) })
    })
}

/// The most files that are searched.
const FILES: usize = 1_000;

fn list(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        if path.is_dir() {
            list(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") && files.len() < FILES
        {
            files.push(path);
        }
    }
}

/// The source with comments, strings and characters replaced by blanks: the positions of all other
/// bytes stay the same.
fn blanked(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    let blank = |code: &mut Vec<u8>, from: usize, to: usize| {
        code[from..to].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    };
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = if rest.starts_with(b"//") {
            rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len())
        } else if rest.starts_with(b"/*") {
            block_comment(rest)
        } else if rest[0] == b'"' {
            string(rest)
        } else if rest[0] == b'r' && !before_is_name(bytes, at) {
            raw_string(rest).unwrap_or(0)
        } else if rest[0] == b'\'' {
            character(rest)
        } else {
            0
        };
        blank(&mut code, at, (at + length).min(bytes.len()));
        at += length.max(1);
    }
    // Only whole characters were replaced, by blanks.
    String::from_utf8(code).unwrap_or_default()
}

fn before_is_name(bytes: &[u8], at: usize) -> bool {
    at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_')
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut open) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            (open, at) = (open + 1, at + 2);
        } else if rest[at..].starts_with(b"*/") {
            (open, at) = (open - 1, at + 2);
            if open == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != b'"' {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// The length of a raw string `r#"…"#`, if there is one.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|&&byte| byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let end = [b"\"".to_vec(), vec![b'#'; hashes]].concat();
    let inner = &rest[2 + hashes..];
    let length = inner.windows(end.len()).position(|window| window == end).unwrap_or(inner.len());
    Some(2 + hashes + length + end.len())
}

/// The length of a character literal; 0 for a lifetime.
fn character(rest: &[u8]) -> usize {
    if rest.get(1) == Some(&b'\\') {
        let end = rest.iter().skip(3).position(|&byte| byte == b'\'');
        return end.map_or(0, |end| end + 4);
    }
    let end = rest.iter().take(6).skip(2).position(|&byte| byte == b'\'');
    match end {
        // One character may have several bytes; `'a, 'b` has a blank or a comma before the second
        // quote.
        Some(end)
            if std::str::from_utf8(&rest[1..end + 2])
                .is_ok_and(|inner| inner.chars().count() == 1) =>
        {
            end + 3
        }
        _ => 0,
    }
}

/// The byte offset of a source position.
fn offset(code: &str, site: &Site<'_>) -> Option<usize> {
    let lines =
        code.split_inclusive('\n').take(site.line() as usize - 1).map(str::len).sum::<usize>();
    let line = code.get(lines..)?.lines().next()?;
    let column =
        line.char_indices().nth(site.column() as usize - 1).map_or(line.len(), |(at, _)| at);
    Some(lines + column)
}

fn line_of(code: &str, at: usize) -> u32 {
    code[..at].matches('\n').count() as u32 + 1
}

/// The range from an expression to the end of its last call, which includes the arguments of the
/// check.
fn call(code: &str, from: usize) -> Option<(usize, usize)> {
    let (mut depth, mut end) = (0i32, None);
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'{' | b'[' => depth += 1,
            b')' | b'}' | b']' => {
                depth -= 1;
                if depth < 0 {
                    break;
                }
                end = Some(at);
            }
            b';' if depth == 0 => break,
            _ => {}
        }
    }
    Some((from, end?))
}

/// The body of the innermost function or closure with braces around a position.
fn function(code: &str, at: usize) -> Option<(usize, usize)> {
    let mut open = Vec::new();
    for (place, byte) in code.bytes().enumerate().take(at) {
        match byte {
            b'{' => open.push(place),
            b'}' => drop(open.pop()),
            _ => {}
        }
    }
    let is_body = |&&open: &&usize| {
        let begin = code[..open].rfind(['{', '}', ';']).map_or(0, |before| before + 1);
        code[..open].trim_end().ends_with('|')
            || words(code, begin, open).any(|(_, word)| word == "fn")
    };
    let &begin = open.iter().rev().find(is_body)?;
    Some((begin, block_end(code, begin)?))
}

fn block_end(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0i32;
    code.bytes().enumerate().skip(open).find_map(|(at, byte)| {
        depth += i32::from(byte == b'{') - i32::from(byte == b'}');
        (depth == 0).then_some(at)
    })
}

/// The words of a part of the text, with where they are.
fn words(code: &str, from: usize, to: usize) -> impl Iterator<Item = (usize, &str)> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut at = from;
    std::iter::from_fn(move || {
        let begin = at + code[at..to].find(is_name)?;
        let length = code[begin..to].find(|c| !is_name(c)).unwrap_or(to - begin);
        at = begin + length;
        Some((begin, &code[begin..at]))
    })
}

/// Whether a path refers to uncontrolled synchronisation.
fn is_foreign(path: &[&str]) -> bool {
    match path {
        ["std" | "core", "sync", "atomic", name, ..] => name.starts_with("Atomic"),
        ["std" | "core", "sync", name, ..] => OF_STD.contains(name),
        ["std", "thread"] => true,
        ["std", "thread", name, ..] => matches!(*name, "spawn" | "scope" | "Builder"),
        [first, _, ..] => FOREIGN.contains(first),
        _ => false,
    }
}

/// The imports of uncontrolled synchronisation: name, full path and position. Names that are also
/// imported from elsewhere are excluded.
fn imports(code: &str) -> Vec<(String, String, usize)> {
    let mut all = Vec::new();
    for (begin, _) in words(code, 0, code.len()).filter(|(_, word)| *word == "use") {
        let Some(end) = code[begin..].find(';') else { continue };
        leaves(&code[begin + 3..begin + end], &[], &mut |path, name| {
            all.push((
                name.to_owned(),
                path.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>(),
                begin,
            ));
        });
    }
    let foreign =
        |path: &[String]| is_foreign(&path.iter().map(String::as_str).collect::<Vec<_>>());
    let (mine, others): (Vec<_>, Vec<_>) = all.into_iter().partition(|(_, path, _)| foreign(path));
    mine.into_iter()
        .filter(|(name, ..)| others.iter().all(|(other, ..)| other != name))
        .map(|(name, path, at)| (name, path.join("::"), at))
        .collect()
}

/// Calls `found` for every name of a use tree, with its full path.
fn leaves<'t>(tree: &'t str, before: &[&'t str], found: &mut impl FnMut(&[&'t str], &'t str)) {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let mut path = before.to_vec();
        path.extend(tree[..open].split("::").map(str::trim).filter(|part| !part.is_empty()));
        let inner = tree[open + 1..].strip_suffix('}').unwrap_or(&tree[open + 1..]);
        let (mut depth, mut begin) = (0, 0);
        for (at, byte) in inner.bytes().enumerate() {
            match byte {
                b'{' => depth += 1,
                b'}' => depth -= 1,
                b',' if depth == 0 => {
                    leaves(&inner[begin..at], &path, found);
                    begin = at + 1;
                }
                _ => {}
            }
        }
        return leaves(&inner[begin..], &path, found);
    }
    let (whole, alias) =
        tree.split_once(" as ").map_or((tree, None), |(whole, alias)| (whole, Some(alias.trim())));
    let mut path = before.to_vec();
    path.extend(
        whole.split("::").map(str::trim).filter(|part| !part.is_empty() && *part != "self"),
    );
    let Some(&name) = path.last() else { return };
    found(&path, alias.unwrap_or(name));
}

/// Whether a method is one of rayon's parallel iterators.
fn is_parallel(method: &str) -> bool {
    method.starts_with("par_") || method.starts_with("into_par_iter")
}

/// The mentions in a part of the text, as paths or imported names, in their order.
fn mentions(
    code: &str,
    imports: &[(String, String, usize)],
    from: usize,
    to: usize,
) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut path: Vec<(usize, &str)> = Vec::new();
    let mut finish = |path: &mut Vec<(usize, &str)>| {
        let parts: Vec<&str> = path.iter().map(|(_, part)| *part).collect();
        if let Some(&(at, first)) = path.first() {
            if is_foreign(&parts) {
                // Cut off the function of a type.
                let is_type = |part: &&str| part.starts_with(|c: char| c.is_uppercase());
                let length = parts.iter().position(is_type).map_or(parts.len(), |at| at + 1);
                found.push((parts[..length].join("::"), at));
            } else if let Some((_, whole, _)) = imports.iter().find(|(name, ..)| name == first) {
                // Alone, `thread` may be any identifier.
                if parts.len() > 1 || !matches!(first, "thread" | "mpsc" | "atomic") {
                    found.push((whole.clone(), at));
                }
            } else if is_parallel(first) && code[..at].trim_end().ends_with('.') {
                // A method, which an import of rayon's traits provides.
                let traits = imports.iter().find(|(_, whole, _)| whole.starts_with("rayon::"));
                found.extend(traits.map(|(_, whole, _)| (whole.clone(), at)));
            }
        }
        path.clear();
    };
    for (at, word) in words(code, from, to) {
        let follows =
            path.last().is_some_and(|(begin, last)| code[begin + last.len()..at].trim() == "::");
        if !follows {
            finish(&mut path);
        }
        path.push((at, word));
    }
    finish(&mut path);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let code = blanked(text);
        let from = code.find("check(").expect("a check");
        let (from, to) = call(&code, from).expect("a call");
        mentions(&code, &imports(&code), from, to).into_iter().map(|(path, _)| path).collect()
    }

    #[test]
    fn names_of_std_in_the_body_are_found() {
        let uses =
            "use std::sync::{Arc, Mutex, atomic::{AtomicUsize, Ordering}};\nuse std::thread;\n";
        let body = |body: &str| {
            found(&format!("{uses}fn f() {{ check(|| {{ {body} }}); Mutex::new(0); }}"))
        };
        assert_eq!(body("let m = Arc::new(Mutex::new(0));"), ["std::sync::Mutex"]);
        assert_eq!(
            body("AtomicUsize::new(0).load(Ordering::SeqCst)"),
            ["std::sync::atomic::AtomicUsize"]
        );
        assert_eq!(body("thread::spawn(|| ()).join()"), ["std::thread"]);
        assert_eq!(body("parking_lot::Mutex::new(0); t.thread.id();"), ["parking_lot::Mutex"]);
        assert!(
            body("let s = \"Mutex\"; // Mutex\n let c = '\"'; /* Mutex */ Arc::new(x)").is_empty()
        );
        assert!(body("fn g<'a>(x: &'a str) {} let r = r#\"Mutex\"#;").is_empty());
    }

    #[test]
    fn names_of_other_crates_in_the_body_are_found() {
        let uses = "use crossbeam::channel::Sender;\nuse flume::*;\n";
        let body = |body: &str| found(&format!("{uses}fn f() {{ check(|| {{ {body} }}); }}"));
        assert_eq!(body("rayon::join(|| 1, || 2);"), ["rayon::join"]);
        assert_eq!(
            body("let (s, r) = crossbeam_channel::unbounded::<u32>();"),
            ["crossbeam_channel::unbounded"]
        );
        assert_eq!(body("tokio::spawn(async {});"), ["tokio::spawn"]);
        assert_eq!(body("let r = flume::bounded(1).1;"), ["flume::bounded"]);
        assert_eq!(body("let s: Sender<u32> = given();"), ["crossbeam::channel::Sender"]);
        assert!(body("my::rayon::join(|| 1, || 2); x.tokio.spawn();").is_empty());
        assert!(body("x.par_iter().sum()").is_empty());
    }

    #[test]
    fn the_methods_of_parallel_iterators_are_found() {
        let body = |body: &str| {
            found(&format!("use rayon::prelude::*;\nfn f() {{ check(|| {{ {body} }}); }}"))
        };
        assert_eq!(body("x.par_iter().sum()"), ["rayon::prelude::*"]);
        assert_eq!(body("(0..9)\n.into_par_iter().sum()"), ["rayon::prelude::*"]);
        assert!(body("par_iter(x); x.partial_cmp(y); let par_sum = 1;").is_empty());
    }

    #[test]
    fn the_package_under_test_is_read() {
        let package = std::env::temp_dir().join(format!("preempt-package-{}", std::process::id()));
        let folder = package.join("src/inner");
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        let mention = |text: &str| {
            std::fs::write(folder.join("lib.rs"), text).expect("the file can be written");
            in_package(&package)
        };
        let found = mention("//! use std::sync::Condvar;\n\nuse std::sync::{Arc, Mutex};\n")
            .expect("a mention");
        assert_eq!((found.path.as_str(), found.line), ("std::sync::Mutex", 3));
        assert_eq!(Path::new(&found.file), Path::new("src/inner/lib.rs"));
        assert_eq!(mention("use preempt::sync::Mutex;\nuse std::sync::Arc;\n"), None);
        std::fs::remove_dir_all(&package).expect("the text occurs");
        assert_eq!(in_package(&package), None);
    }

    #[test]
    fn what_is_also_imported_from_elsewhere_says_nothing() {
        let text = "#[cfg(not(loom))] use std::sync::Mutex;\n#[cfg(loom)] use \
                    loom::sync::Mutex;\nfn f() { check(|| Mutex::new(0)); }";
        assert!(found(text).is_empty());
        assert!(found("use preempt::sync::Mutex;\nfn f() { check(|| Mutex::new(0)); }").is_empty());
        assert!(
            found("use std::sync::Mutex as Outside;\nfn f() { check(|| Mutex::new(0)); }")
                .is_empty()
        );
        assert_eq!(
            found("use std::sync::Mutex as M;\nfn f() { check(|| M::new(0)); }"),
            ["std::sync::Mutex"]
        );
    }

    #[test]
    fn the_function_around_a_place_is_found() {
        let code = "fn a() { one(); }\nfn b() { if x { two(); } fn c() {} three(); d(move |x| { \
                    four({ five(); }); }); }";
        let text = |word: &str| {
            let (from, to) =
                function(code, code.find(word).expect("the text occurs")).expect("a function");
            &code[from..to]
        };
        assert_eq!(text("one"), "{ one(); ");
        assert!(text("two").starts_with("{ if x") && text("three").starts_with("{ if x"));
        assert_eq!(text("five"), "{ four({ five(); }); ");
    }
}
