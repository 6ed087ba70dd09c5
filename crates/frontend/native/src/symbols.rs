//! Maps addresses to source positions and to names of global variables.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use addr2line::Loader;
use object::{Object as _, ObjectSymbol as _, SymbolKind};
use preempt_system::Site;

/// A file mapped into the process.
struct Mapped {
    path: PathBuf,
    /// The address to which addresses in the file are relative: 0 for an executable that is not
    /// position-independent.
    base: u64,
    from: u64,
    to: u64,
}

/// A global variable of the executable.
struct Variable {
    from: u64,
    size: u64,
    name: String,
}

/// The mapped files and global variables of an executable.
pub(crate) struct Symbols {
    mapped: Vec<Mapped>,
    variables: Vec<Variable>,
    /// A cache of [`places`](Symbols::places): reading the line tables takes long.
    sites: Mutex<HashMap<u64, Vec<Site>>>,
}

thread_local! {
    /// The line tables that were read. A [`Loader`] cannot be shared between threads.
    static LOADERS: RefCell<HashMap<PathBuf, Option<Loader>>> = RefCell::default();
}

impl Symbols {
    /// Reads the mappings of a process and the symbols of its executable.
    pub(crate) fn of(process: u32, executable: &Path) -> Symbols {
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        let mut bases: HashMap<PathBuf, u64> = HashMap::new();
        let mut mapped = Vec::new();
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            let (Some(range), Some(offset), Some(path)) =
                (words.next(), words.nth(1), words.nth(2))
            else {
                continue;
            };
            let number = |text: &str| u64::from_str_radix(text, 16).ok();
            let bounds = range.split_once('-').and_then(|(a, b)| number(a).zip(number(b)));
            let (Some((from, to)), Some(offset)) = (bounds, number(offset)) else { continue };
            let path = PathBuf::from(path);
            let base = *bases.entry(path.clone()).or_insert_with(|| match is_fixed(&path) {
                true => 0,
                false => from.wrapping_sub(offset),
            });
            mapped.push(Mapped { path, base, from, to });
        }
        let base = mapped.iter().find(|file| file.path == executable).map_or(0, |file| file.base);
        Symbols { variables: variables(executable, base), mapped, sites: Mutex::default() }
    }

    /// The source position of the call that returns to `pc`.
    pub(crate) fn caller(&self, pc: u64) -> Option<Site> {
        self.site(pc.checked_sub(1)?)
    }

    /// Like [`caller`](Symbols::caller), but skips functions of Rust's standard library that were
    /// inlined there.
    pub(crate) fn own_caller(&self, pc: u64) -> Option<Site> {
        let places = self.places(pc.checked_sub(1)?);
        let own = places.iter().find(|site| !crate::source::is_std(site));
        own.or(places.first()).cloned()
    }

    /// The source position of the instruction at `pc`.
    pub(crate) fn site(&self, pc: u64) -> Option<Site> {
        self.places(pc).into_iter().next()
    }

    /// The source positions of the instruction at `pc`: in the innermost function that was inlined
    /// there, then in the functions into which it was inlined.
    pub(crate) fn places(&self, pc: u64) -> Vec<Site> {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        sites.entry(pc).or_insert_with(|| self.find(pc).unwrap_or_default()).clone()
    }

    fn find(&self, pc: u64) -> Option<Vec<Site>> {
        let file = self.mapped.iter().find(|file| (file.from..file.to).contains(&pc))?;
        LOADERS.with_borrow_mut(|loaders| {
            let loader = loaders
                .entry(file.path.clone())
                .or_insert_with(|| Loader::new(&file.path).ok())
                .as_ref()?;
            let mut frames = loader.find_frames(pc.wrapping_sub(file.base)).ok()?;
            let mut sites = Vec::new();
            while let Ok(Some(frame)) = frames.next() {
                sites.extend(frame.location.as_ref().and_then(site_of));
            }
            Some(sites)
        })
    }

    /// Whether an address belongs to the executable itself.
    pub(crate) fn is_own(&self, pc: u64, executable: &Path) -> bool {
        self.mapped.iter().any(|file| (file.from..file.to).contains(&pc) && file.path == executable)
    }

    /// The name of the global variable at an address: `m`, or `forks[2]` if it has elements of
    /// `size` bytes.
    pub(crate) fn variable(&self, address: u64, size: u64) -> Option<String> {
        let has = |v: &&Variable| (v.from..v.from + v.size.max(1)).contains(&address);
        let variable = self.variables.iter().find(has)?;
        let (name, offset) = (&variable.name, address - variable.from);
        Some(match offset {
            0 if variable.size <= size => name.clone(),
            _ if offset % size == 0 && variable.size % size == 0 => {
                format!("{name}[{}]", offset / size)
            }
            0 => name.clone(),
            _ => format!("{name}+{offset}"),
        })
    }
}

fn site_of(location: &addr2line::Location<'_>) -> Option<Site> {
    Some(Site {
        file: Arc::from(shown(location.file?)),
        line: location.line?,
        column: location.column.unwrap_or(1).max(1),
    })
}

/// Whether a file is an executable that is not position-independent.
fn is_fixed(path: &Path) -> bool {
    let mut header = [0; 18];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut header));
    const FIXED: [u8; 2] = [2, 0];
    read.is_ok() && header[16..] == FIXED
}

fn variables(executable: &Path, base: u64) -> Vec<Variable> {
    let Ok(bytes) = std::fs::read(executable) else { return Vec::new() };
    let Ok(file) = object::File::parse(&*bytes) else { return Vec::new() };
    let data = |symbol: &object::Symbol<'_, '_>| symbol.kind() == SymbolKind::Data;
    file.symbols()
        .filter(data)
        .filter_map(|symbol| {
            let name = readable(symbol.name().ok().filter(|name| !name.is_empty())?);
            Some(Variable { from: base + symbol.address(), size: symbol.size(), name })
        })
        .collect()
}

/// The name of a variable in the source: `crate::COUNT` for a static of Rust. A compiler that
/// splits a variable numbers its parts; the first one represents it.
fn readable(symbol: &str) -> String {
    let name = format!("{:#}", rustc_demangle::demangle(symbol));
    name.strip_suffix(".0").unwrap_or(&name).to_owned()
}

/// Makes a path below the working directory relative to it.
fn shown(file: &str) -> String {
    let here = std::env::current_dir().ok();
    let below = here.and_then(|here| Path::new(file).strip_prefix(here).ok().map(Path::to_owned));
    below.map_or_else(|| file.to_owned(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_statics_are_those_of_the_source() {
        assert_eq!(readable("count"), "count");
        assert_eq!(readable("_ZN4lost5COUNT17hcab2a95db88e1cf5E.0"), "lost::COUNT");
        let v0 = "_RNvNtNtCsjrHSEGnQ3l9_3std9panicking11panic_count18GLOBAL_PANIC_COUNT";
        assert_eq!(readable(v0), "std::panicking::panic_count::GLOBAL_PANIC_COUNT");
    }
}
