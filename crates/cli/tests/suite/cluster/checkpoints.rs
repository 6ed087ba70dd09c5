//! Checkpoints of several processes as files: resumed by other numbers of processes, refused where
//! they do not fit.

use super::*;

/// A new path for a checkpoint.
fn checkpoint(name: &str) -> String {
    let path = temporary(name);
    let _ = fs::remove_file(&path);
    let _ = fs::remove_dir_all(shards(&path.display().to_string()));
    path.display().to_string()
}

/// The directory with the shards of a checkpoint.
fn shards(path: &str) -> PathBuf {
    PathBuf::from(format!("{path}.shards"))
}

/// The options of a search with a million states.
fn large(file: &str) -> [&str; 8] {
    ["check", file, "--set", "N=6", "--set", "K=9", "--order", "bfs"]
}

#[test]
fn a_search_that_a_limit_ended_is_resumed_by_any_number_of_processes() {
    let (file, path) = (corpus("bench/grid.pre"), checkpoint("limited.checkpoint"));
    let check = large(&file);
    let alone = preempt(&[&check[..], &["--json"]].concat());
    let limited = ["--processes", "3", "--time", "0.1", "--checkpoint", &path];
    let ended = preempt(&[&check[..], &limited].concat());
    assert_eq!(ended.status.code(), Some(3), "{ended:?}");
    let stderr = text(&ended.stderr);
    assert!(stderr.contains("To resume, with a larger --time"), "{stderr}");
    let kept = fs::read_dir(shards(&path)).expect("there are shards").count();
    assert_eq!(kept, 3, "one shard of each process");
    for (processes, jobs) in [("3", "1"), ("1", "2"), ("2", "1"), ("4", "1")] {
        let options = ["--json", "--jobs", jobs, "--processes", processes, "--resume", &path];
        let resumed = preempt(&[&check[..], &options].concat());
        let mut numbers_of_resumed = numbers(&resumed);
        numbers_of_resumed["strategy"]["jobs"] = 1.into();
        assert_eq!(numbers_of_resumed, numbers(&alone), "{processes} processes");
        assert_eq!(resumed.status.code(), Some(0));
    }
    // A damaged shard is refused by all, and so is one that is missing.
    let shard = fs::read_dir(shards(&path)).expect("shards").flatten().next().expect("a shard");
    let bytes = fs::read(shard.path()).expect("it can be read");
    fs::write(shard.path(), &bytes[..bytes.len() / 2]).expect("it can be written");
    for why in ["is damaged", "cannot be read"] {
        let refused = preempt(&[&check[..], &["--processes", "2", "--resume", &path]].concat());
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let stderr = text(&refused.stderr);
        assert!(stderr.contains("of the checkpoint") && stderr.contains(why), "{stderr}");
        let _ = fs::remove_file(shard.path());
    }
    // One process cannot continue what several have begun.
    let alone = preempt(&[&check[..], &["--resume", &path]].concat());
    assert_eq!(alone.status.code(), Some(2));
    assert!(text(&alone.stderr).contains("whether it is distributed is true"), "{alone:?}");
}

#[test]
fn a_killed_process_leaves_a_checkpoint_and_the_command_that_resumes() {
    let path = checkpoint("killed.checkpoint");
    let every = ["--checkpoint-every", "0.05", "--checkpoint", &path];
    let search = long(&[&["--processes", "3"], &every[..]].concat());
    let workers = workers(search.id(), 2);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !Path::new(&path).exists() {
        assert!(Instant::now() < deadline, "there is no checkpoint");
        sleep(Duration::from_millis(20));
    }
    signal("-KILL", workers[1]);
    let output = search.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let stderr = text(&output.stderr);
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{stderr}");
    assert!(lines[0].starts_with("error: process ") && lines[0].ends_with(" is gone"), "{stderr}");
    assert!(lines[1].starts_with("To resume: preempt check "), "{stderr}");
    all_end(&workers);
    // Another model does not continue it.
    let file = corpus("abba/model.pre");
    let check = ["check", &file, "--order", "bfs", "--processes", "2", "--resume", &path];
    let other = preempt(&check);
    assert_eq!(other.status.code(), Some(2), "{other:?}");
    assert!(text(&other.stderr).contains("belongs to another program"), "{other:?}");
}
