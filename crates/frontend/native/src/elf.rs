//! Checks before a file is run that the runtime can be loaded into it.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// The size of an ELF header.
const HEADER: usize = 64;

/// The maximal number of bytes that are read to find the loader.
const MAX_HEADERS: u64 = 1 << 16;

/// Checks that `path` is an executable that can be explored. `Err` says why not and what to do.
pub fn inspect(path: &Path) -> Result<(), String> {
    let name = path.display();
    let metadata = fs::metadata(path).map_err(|error| format!("cannot run {name}: {error}"))?;
    if metadata.is_dir() {
        return Err(format!("{name} is a directory: name an executable"));
    }
    if let Some(advice) = advice_for_source(path) {
        return Err(format!("{name} is {advice}"));
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(format!("{name} is not executable: check its permissions (chmod +x)"));
    }
    if metadata.mode() & 0o6000 != 0 {
        return Err(format!(
            "{name} runs with the rights of another user (setuid or setgid), so no library can be \
             loaded into it: check a copy without that bit"
        ));
    }
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(MAX_HEADERS).read_to_end(&mut bytes))
        .map_err(|error| format!("cannot read {name}: {error}"))?;
    let loader = loader(&bytes).map_err(|why| format!("{name} {why}"))?;
    if loader.contains("musl") {
        return Err(format!(
            "{name} uses musl instead of glibc ({loader}), which is not supported: build it for \
             x86_64-unknown-linux-gnu"
        ));
    }
    if !Path::new(&loader).exists() {
        return Err(format!("{name} needs the loader {loader}, which does not exist here"));
    }
    Ok(())
}

/// What a file that is not an executable is, by its extension, and what to do with it.
fn advice_for_source(path: &Path) -> Option<&'static str> {
    Some(match path.extension()?.to_str()? {
        "pre" => "a model: check it with `preempt check`",
        "c" | "cc" | "cpp" | "cxx" => "source code: compile it, and name the executable",
        "rs" => "source code: build it, or use `cargo preempt test` in its crate",
        _ => return None,
    })
}

/// The little-endian number of `N` bytes at an offset.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<u64> {
    let field: [u8; N] = bytes.get(at..at + N)?.try_into().ok()?;
    Some(field.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

/// The path of the dynamic linker that an ELF file requests.
fn loader(bytes: &[u8]) -> Result<String, &'static str> {
    if bytes.starts_with(b"#!") {
        return Err(
            "is a script: name the interpreter, and the script as its argument, or the executable \
             itself",
        );
    }
    if bytes.len() < HEADER || !bytes.starts_with(b"\x7fELF") {
        return Err("is not an ELF executable");
    }
    let (class, order, machine) = (bytes[4], bytes[5], number::<2>(bytes, 18));
    if (class, order, machine) != (2, 1, Some(62)) {
        return Err("is not built for x86-64, the only architecture that is supported");
    }
    if !matches!(number::<2>(bytes, 16), Some(2 | 3)) {
        return Err("is an object file or a core dump, not an executable");
    }
    let damaged = "has headers that cannot be read: it may be damaged";
    let field = |at| number::<8>(bytes, at).ok_or(damaged);
    let (first, size) = (field(32)? as usize, number::<2>(bytes, 54).ok_or(damaged)? as usize);
    let count = number::<2>(bytes, 56).ok_or(damaged)? as usize;
    const INTERPRETER: u64 = 3;
    for header in (0..count).map(|nth| first + nth * size) {
        if number::<4>(bytes, header).ok_or(damaged)? == INTERPRETER {
            let (at, len) = (field(header + 8)? as usize, field(header + 32)? as usize);
            let path = at.checked_add(len).and_then(|end| bytes.get(at..end)).ok_or(damaged)?;
            let path = path.split(|&byte| byte == 0).next().unwrap_or_default();
            return Ok(String::from_utf8_lossy(path).into_owned());
        }
    }
    Err(
        "is linked statically, so no library can be loaded into it: link it dynamically (with gcc, \
         without -static; Go programs cannot be)",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with a program header for each loader.
    fn elf(kind: u8, machine: u8, loaders: &[&str]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        (bytes[16], bytes[18], bytes[32], bytes[54], bytes[56]) =
            (kind, machine, HEADER as u8, 56, loaders.len() as u8);
        let texts = HEADER + 56 * loaders.len();
        for (nth, loader) in loaders.iter().enumerate() {
            let mut header = vec![0; 56];
            (header[0], header[8], header[32]) = (3, (texts + nth) as u8, loader.len() as u8);
            bytes.extend(header);
        }
        loaders.iter().for_each(|loader| bytes.extend(loader.as_bytes()));
        bytes
    }

    #[test]
    fn the_loader_is_found_and_other_files_are_refused() {
        assert_eq!(loader(&elf(3, 62, &["/lib/ld.so"])).as_deref(), Ok("/lib/ld.so"));
        let refused = [
            (b"#!/bin/sh\n".to_vec(), "script"),
            (b"hello".to_vec(), "not an ELF"),
            (elf(3, 183, &["/lib/ld.so"]), "x86-64"),
            (elf(1, 62, &["/lib/ld.so"]), "object file"),
            (elf(2, 62, &[]), "statically"),
            (elf(3, 62, &["/lib/ld.so"])[..100].to_vec(), "damaged"),
        ];
        for (bytes, expected) in refused {
            let why = loader(&bytes).expect_err(expected);
            assert!(why.contains(expected), "{expected}: {why}");
        }
    }
}
