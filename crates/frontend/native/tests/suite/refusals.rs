//! Files that cannot be explored are refused before they are run; others are explored.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use preempt_explore::{Cache, Order, Plan};
use preempt_native::narrate::narrate;
use preempt_native::{Executable, Native};
use preempt_report::recorder::Numbering;

use crate::compile::{compiled, compiled_with, folder};

fn refusal(path: &Path) -> String {
    Executable::find(path, Vec::new()).expect_err("it cannot be explored")
}

#[test]
fn files_that_are_not_dynamic_executables_are_refused_with_advice() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let script = target.join("script");
    std::fs::write(&script, "#!/bin/sh\n").expect("the target folder can be written");
    let mode = |path: &Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
            .expect("the mode of a file of ours can be set");
    };
    mode(&script, 0o755);
    let setuid = target.join("setuid");
    std::fs::copy(compiled("abba"), &setuid).expect("the target folder can be written");
    mode(&setuid, 0o4755);
    let text = target.join("text");
    std::fs::write(&text, "text\n").expect("the target folder can be written");
    mode(&text, 0o644);
    // The Go linker adds this section to a program that is linked with the C library, too.
    let section = target.join("go.h");
    let content = "__attribute__((section(\".go.buildinfo\"), used)) static char go[1];\n";
    std::fs::write(&section, content).expect("the target folder can be written");
    let section = section.to_str().expect("the path is UTF-8");
    for (path, words) in [
        (folder().join("no such program"), "No such file"),
        (folder(), "is a directory"),
        (folder().join("abba.c"), "is source code: compile it"),
        (folder().join("../abba/model.pre"), "is a model: check it with `preempt check`"),
        (text, "is not executable"),
        (compiled_with("abba", &["-include", section]), "is a Go program"),
        (script, "is a script"),
        (setuid, "setuid"),
        (compiled_with("abba", &["-static"]), "is linked statically"),
        (compiled_with("abba", &["-fsanitize=thread"]), "contains ThreadSanitizer itself"),
    ] {
        let why = refusal(&path);
        assert!(why.contains(words), "{}: {why}", path.display());
    }
    assert!(refusal(Path::new("no-such-program-in-path")).contains("neither here nor in PATH"));
}

#[test]
fn an_executable_that_is_not_position_independent_is_explored() {
    let fixed = compiled_with("abba", &["-no-pie"]);
    let executable = Executable::find(&fixed, Vec::new()).expect("the program can be explored");
    let plan = Plan { order: Order::Icb { cache: Cache::Hb }, bound: Some(1), ..Plan::new() };
    let search = plan.build_for_program().expect("the plan is possible");
    let (outcome, native) = search.run_program(Native::new(executable), &());
    let finding = &outcome.findings[0];
    let narrated = narrate(&native, &finding.schedule, Numbering::Slots, |_| None);
    let narrated = narrated.expect("a finding can be described").replayed;
    let lock = &narrated.trace.steps[3].narration;
    assert_eq!(lock.effects, ["a: free → held by t1"], "globals have names");
    assert!(lock.site.is_some(), "calls have lines");
}
