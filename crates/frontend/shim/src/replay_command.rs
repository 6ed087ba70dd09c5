//! The shell command that replays a schedule of the running test.
//!
//! Cargo and libtest say which test runs: cargo sets the package's name and folder in the
//! environment, and the harness names the thread of a test after it. Where something is not known,
//! the command is less specific, and ends with the variable alone if the test is not known.

use std::path::{Path, PathBuf};

use preempt_report::ReplayCommand;

/// The command for the test that runs on this thread.
pub(crate) fn of_this_test() -> ReplayCommand {
    // A schedule fits only the memory model under which it was found.
    let memory = std::env::var("PREEMPT_MEMORY").ok().filter(|memory| memory == "weak");
    let memory = memory.map_or("", |_| "PREEMPT_MEMORY=weak ");
    let before = format!("{memory}PREEMPT_REPLAY=");
    let target = std::env::current_exe().ok().as_deref().and_then(target_of);
    let package = std::env::var("CARGO_PKG_NAME").ok();
    let after = match (package, test_name()) {
        (Some(package), Some(test)) => {
            let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
            let is_file = |target: &String| folder.is_some_and(|of| is_integration(&of, target));
            let target = target.filter(is_file).map(|target| format!(" --test {target}"));
            let target = target.unwrap_or_default();
            format!(" cargo test -p {package}{target} {test} -- --exact")
        }
        _ => String::new(),
    };
    ReplayCommand { before, after }
}

/// The same for a schedule of one scenario of a test of a data structure.
pub(crate) fn of_scenario(scenario: Option<&str>) -> ReplayCommand {
    let ReplayCommand { before, after } = of_this_test();
    let scenario = scenario.map(|scenario| format!("PREEMPT_SCENARIO='{scenario}' "));
    ReplayCommand { before: scenario.unwrap_or_default() + &before, after }
}

/// The name of the running test. libtest names the thread after it, unless it runs all tests on the
/// main thread; then the arguments may name a single one, as those of cargo-nextest do.
fn test_name() -> Option<String> {
    let thread = std::thread::current();
    let of_thread = thread.name().filter(|name| *name != "main").map(str::to_owned);
    let name = of_thread.or_else(|| {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        only_test(&arguments)
    });
    // Anything else would have to be quoted.
    let is_path = |name: &String| name.chars().all(|c| c.is_alphanumeric() || "_:".contains(c));
    name.filter(is_path)
}

/// The test that these arguments of a test program select, if they select one.
fn only_test(arguments: &[String]) -> Option<String> {
    let is_exact = arguments.iter().any(|argument| argument == "--exact");
    let mut names = arguments.iter().filter(|argument| !argument.starts_with('-'));
    let name = names.next().filter(|_| is_exact)?;
    names.next().is_none().then(|| name.clone())
}

/// The target of a test program: `deps/first-0123456789abcdef` is `first`.
fn target_of(program: &Path) -> Option<String> {
    let (target, hash) = program.file_stem()?.to_str()?.rsplit_once('-')?;
    let is_hash = hash.len() == 16 && hash.chars().all(|c| c.is_ascii_hexdigit());
    is_hash.then(|| target.to_owned())
}

/// Whether a package has an integration test of this name.
fn is_integration(package: &Path, target: &str) -> bool {
    let tests = package.join("tests").join(target);
    tests.with_extension("rs").is_file() || tests.is_dir()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_read_from_the_names_of_programs() {
        for (program, target) in [
            ("/a/target/debug/deps/first-0123456789abcdef", Some("first")),
            ("deps/two_words-fedcba9876543210.exe", Some("two_words")),
            ("/usr/bin/first", None),
            ("deps/first-else", None),
        ] {
            assert_eq!(target_of(Path::new(program)).as_deref(), target, "{program}");
        }
    }

    #[test]
    fn one_exact_name_among_the_arguments_is_the_test() {
        let only = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&word| word.to_owned()).collect();
            only_test(&arguments)
        };
        assert_eq!(only(&["--exact", "a::b", "--nocapture"]).as_deref(), Some("a::b"));
        assert_eq!(only(&["a::b"]), None, "a filter may match several tests");
        assert_eq!(only(&["--exact", "a", "b"]), None);
        assert_eq!(only(&["--exact"]), None);
    }

    #[test]
    fn the_command_names_this_test() {
        let ReplayCommand { before, after } = of_this_test();
        assert_eq!(before, "PREEMPT_REPLAY=");
        let name = concat!(module_path!(), "::the_command_names_this_test");
        let name = name.split_once("::").map_or(name, |(_, name)| name);
        // Unit tests have no `--test`.
        assert_eq!(after, format!(" cargo test -p preempt {name} -- --exact"));
    }
}
