//! Processes that a scheduler or ssh starts.

use std::os::unix::fs::PermissionsExt as _;

use super::*;

/// A file with a secret.
fn key(name: &str) -> String {
    let path = temporary(name);
    fs::write(&path, "a secret of many letters\n").expect("it can be written");
    path.display().to_string()
}

#[test]
fn processes_find_each_other_by_their_environment() {
    let (addresses, key) = (free_addresses(3).join(","), key("environment.key"));
    let file = corpus("philosophers/model.pre");
    let check = ["check", &file, "--set", "N=5", "--order", "bfs", "--json"];
    let alone = preempt(&check);
    let run = |process: usize, words: &[&str]| {
        Command::new(PREEMPT)
            .args(words)
            .args(["--cluster-key", &key])
            .env("PREEMPT_HOSTS", &addresses)
            .env("PREEMPT_PROCESS", process.to_string())
            .output()
            .expect("the binary was built for this test")
    };
    let auto = [&check[..], &["--cluster", "auto"]].concat();
    thread::scope(|scope| {
        // One process with the model and the options, and one without.
        let second = scope.spawn(|| run(1, &auto));
        let third = scope.spawn(|| run(2, &["worker", "--listen", "auto"]));
        let first = run(0, &auto);
        assert_eq!(numbers(&first), numbers(&alone), "{}", text(&first.stderr));
        for other in [second, third] {
            let output = other.join().expect("the thread does not panic");
            assert_eq!(output.status.code(), alone.status.code(), "{output:?}");
            assert_eq!(text(&output.stdout), "");
        }
    });
    let nowhere = preempt(&["check", &file, "--order", "bfs", "--cluster", "auto"]);
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(text(&nowhere.stderr).contains("finds no cluster"), "{nowhere:?}");
}

#[test]
fn ssh_starts_the_other_processes() {
    let script = temporary("fake-ssh");
    // Like ssh, it gets a host and a command for the shell.
    let body = format!(
        "#!/bin/sh\n[ \"$1\" = 127.0.0.1 ] || exit 1\n\
         exec sh -c \"exec {PREEMPT} ${{2#preempt}}\"\n"
    );
    fs::write(&script, body).expect("it can be written");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let hosts = temporary("ssh-hosts.txt");
    fs::write(&hosts, free_addresses(3).join("\n")).expect("it can be written");
    let (hosts, script) = (hosts.display().to_string(), script.display().to_string());
    let file = corpus("philosophers/model.pre");
    let check = ["check", &file, "--set", "N=5", "--order", "bfs", "--json"];
    let ssh = format!("--ssh={script}");
    let together = preempt(&[&check[..], &["--cluster", &hosts, &ssh]].concat());
    assert_eq!(numbers(&together), numbers(&preempt(&check)), "{}", text(&together.stderr));
    // A host on which nothing can be started.
    let failing = ["--cluster", &hosts, "--ssh=false", "--cluster-timeout", "5"];
    let failed = preempt(&[&check[..], &failing].concat());
    assert_eq!(failed.status.code(), Some(3), "{failed:?}");
    assert!(text(&failed.stderr).contains("has ended or does not answer"), "{failed:?}");
}
