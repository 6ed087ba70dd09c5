//! Processes in network namespaces: other machines as far as the network is concerned. So parcels
//! are sorted, frames carry signatures, and a link can be taken down.
//!
//! Without the right to create namespaces, the test says so and checks nothing.

use super::*;

/// Two connected namespaces. They are removed with this value.
struct Namespaces([String; 2]);

fn ip(words: &str) -> bool {
    let run = Command::new("ip").args(words.split(' ')).stderr(Stdio::null()).status();
    run.is_ok_and(|status| status.success())
}

impl Namespaces {
    /// `None` if namespaces are not permitted here.
    fn new() -> Option<Namespaces> {
        let names = ["a", "b"].map(|end| format!("preempt-{}-{end}", std::process::id()));
        let [a, b] = &names;
        if !ip(&format!("netns add {a}")) {
            return None;
        }
        let namespaces = Namespaces(names.clone());
        let steps = [
            format!("netns add {b}"),
            format!("-n {a} link add veth0 type veth peer name veth0 netns {b}"),
            format!("-n {a} addr add 10.77.0.1/24 dev veth0"),
            format!("-n {b} addr add 10.77.0.2/24 dev veth0"),
            format!("-n {a} link set veth0 up"),
            format!("-n {b} link set veth0 up"),
        ];
        steps.iter().all(|step| ip(step)).then_some(namespaces)
    }

    /// A command in a namespace.
    fn command(&self, number: usize, words: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0[number], PREEMPT]).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for name in &self.0 {
            ip(&format!("netns del {name}"));
        }
    }
}

#[test]
fn processes_in_other_namespaces_are_other_machines() {
    let Some(namespaces) = Namespaces::new() else {
        eprintln!("not checked: network namespaces are not permitted here");
        return;
    };
    let (key, hosts) = (temporary("namespaces.key"), temporary("namespaces.txt"));
    fs::write(&key, "a secret of many letters\n").expect("it can be written");
    fs::write(&hosts, "10.77.0.1:4000\n10.77.0.2:4000\n").expect("it can be written");
    let (key, hosts) = (key.display().to_string(), hosts.display().to_string());
    let worker = ["worker", "--listen", "10.77.0.2:4000", "--cluster-key", &key];
    let worker = [&worker[..], &["--cluster-timeout", "2"]].concat();
    let cluster = ["--cluster", &hosts, "--process", "0", "--cluster-key", &key];
    let cluster = [&cluster[..], &["--cluster-timeout", "2"]].concat();
    for (file, options) in [
        ("philosophers/model.pre", &["--set", "N=6", "--keep-going"][..]),
        ("bench/indexer.pre", &["--set", "N=2"]),
    ] {
        let file = corpus(file);
        let check = [&["check", &file, "--order", "bfs", "--json"], options].concat();
        let other = namespaces.command(1, &worker).spawn().expect("ip is there");
        let first = namespaces.command(0, &[&check[..], &cluster].concat()).output();
        let first = first.expect("ip is there");
        let alone = preempt(&check);
        assert_eq!(numbers(&first), numbers(&alone), "{}", text(&first.stderr));
        let other = other.wait_with_output().expect("it ends");
        assert_eq!(other.status.code(), alone.status.code(), "{other:?}");
    }
    // The link goes down in the middle of a long search.
    let file = corpus("bench/grid.pre");
    let check = ["check", &file, "--set", "N=9", "--set", "K=30", "--order", "bfs", "--quiet"];
    let other = namespaces.command(1, &worker).spawn().expect("ip is there");
    let first = namespaces.command(0, &[&check[..], &cluster].concat()).spawn();
    let first = first.expect("ip is there");
    sleep(Duration::from_secs(2));
    assert!(ip(&format!("-n {} link set veth0 down", namespaces.0[0])));
    for process in [first, other] {
        let output = process.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        assert!(text(&output.stderr).contains("has not answered for 2 s"), "{output:?}");
    }
}
