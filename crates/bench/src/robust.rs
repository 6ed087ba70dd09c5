//! Kills controllers and children at random moments: no process or file may remain, and a resumed
//! search must have the numbers of an uninterrupted one.
//!
//! The subject is `preempt run` itself, in processes of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::Value;

/// The number of kills, and their seed.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The binary `preempt` [default: the one beside this program].
    pub preempt: Option<PathBuf>,
    /// The number of controllers to kill.
    pub controllers: u32,
    /// The number of children to kill.
    pub children: u32,
    /// The seed of the moments.
    pub seed: u64,
}

/// The program of `corpus/native` whose schedules are explored, and the options: some thousands of
/// executions.
const PROGRAM: &str = "reorder_plain";
const OPTIONS: [&str; 8] =
    ["run", "--json", "--quiet", "--order", "icb", "--bound", "3", "--keep-going"];

/// The time that the kernel may take to end the processes of a killed controller.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Kills controllers and children, and prints the results.
pub fn run(ask: &Ask) -> Result<bool> {
    let scene = Scene::new(ask)?;
    let mut random = Random(ask.seed);
    let reference = scene.numbers(scene.search(None).output()?.stdout)?;
    println!("uninterrupted: {reference}");
    let resumed = scene.kill_controllers(ask.controllers, &mut random, &reference)?;
    println!(
        "{} controllers killed, {resumed} of them resumed; no process is left",
        ask.controllers
    );
    println!("the search that was resumed last has the same numbers");
    let restarted = scene.kill_children(ask.children, &mut random)?;
    println!("{} children killed, {restarted} searches started; nothing left", ask.children);
    Ok(true)
}

/// Numbers that only depend on the seed (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) % most
    }
}

/// The folder with the program and the checkpoint. It is removed at the end.
struct Scene {
    preempt: PathBuf,
    folder: PathBuf,
    program: PathBuf,
    checkpoint: PathBuf,
}

impl Scene {
    fn new(ask: &Ask) -> Result<Scene> {
        let beside = std::env::current_exe()?.with_file_name("preempt");
        let preempt = ask.preempt.clone().unwrap_or(beside);
        if !preempt.is_file() {
            bail!("there is no {}: cargo build -p preempt-cli", preempt.display());
        }
        let folder = std::env::temp_dir().join(format!("preempt-robust-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let program = folder.canonicalize()?.join(PROGRAM);
        let source = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../corpus/native")
            .join(format!("{PROGRAM}.c"));
        let mut gcc = Command::new("gcc");
        gcc.args(["-g", "-O1", "-pthread", "-o"]).arg(&program).arg(source);
        ensure!(gcc.status()?.success(), "{PROGRAM}.c cannot be compiled");
        let checkpoint = folder.join("checkpoint");
        Ok(Scene { preempt, folder, program, checkpoint })
    }

    /// A search, resumed from the checkpoint if that is given.
    fn search(&self, resume: Option<&Path>) -> Command {
        let mut command = Command::new(&self.preempt);
        command.args(OPTIONS).args(["--cache", "none"]);
        command.arg("--checkpoint").arg(&self.checkpoint).args(["--checkpoint-every", "0.05"]);
        command.args(resume.iter().flat_map(|path| [Path::new("--resume"), path]));
        command.arg("--").arg(&self.program).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// The numbers of a search that must be the same however often it was interrupted.
    fn numbers(&self, output: Vec<u8>) -> Result<String> {
        let report: Value = serde_json::from_slice(&output)?;
        let parts = ["verdict", "complete", "executions", "bounds", "findings"];
        Ok(parts.map(|part| format!("{part} {}", report[part])).join(", "))
    }

    /// The processes of the program: their ids and those of their parents.
    fn processes(&self) -> Vec<(u32, u32)> {
        let all = fs::read_dir("/proc").into_iter().flatten().flatten();
        let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        ids.filter(|id| {
            fs::read_link(format!("/proc/{id}/exe")).is_ok_and(|exe| exe == self.program)
        })
        .filter_map(|id| {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
            Some((id, parent))
        })
        .collect()
    }

    /// Kills a controller. `Err` if processes of the program are left.
    fn kill(&self, controller: &mut Child) -> Result<()> {
        // Errors mean that it has ended.
        let _ = controller.kill();
        controller.wait()?;
        let killed = Instant::now();
        while !self.processes().is_empty() {
            if killed.elapsed() > TIMEOUT {
                bail!("left behind: {:?}", self.processes());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Returns how many of the controllers resumed a search.
    fn kill_controllers(&self, count: u32, random: &mut Random, reference: &str) -> Result<u32> {
        let mut resumed = 0;
        let mut compared = false;
        // A search that has ended removes its checkpoint or leaves one that has ended.
        let _ = fs::remove_file(&self.checkpoint);
        for _ in 0..count {
            let saved = self.checkpoint.exists().then_some(&*self.checkpoint);
            resumed += u32::from(saved.is_some());
            let mut controller = self.search(saved).spawn()?;
            std::thread::sleep(Duration::from_millis(5 + random.below(3_000)));
            if controller.try_wait()?.is_some() {
                let numbers = self.numbers(controller.wait_with_output()?.stdout)?;
                if numbers != reference {
                    bail!("resumed: {numbers}");
                }
                compared = true;
                let _ = fs::remove_file(&self.checkpoint);
                continue;
            }
            self.kill(&mut controller)?;
        }
        let saved = self.checkpoint.exists().then_some(&*self.checkpoint);
        if saved.is_some() || !compared {
            let numbers = self.numbers(self.search(saved).output()?.stdout)?;
            if numbers != reference {
                bail!("resumed: {numbers}");
            }
        }
        Ok(resumed)
    }

    /// Returns how many searches were started.
    fn kill_children(&self, count: u32, random: &mut Random) -> Result<u32> {
        let mut started = 0;
        let mut killed = 0;
        while killed < count {
            started += 1;
            let mut controller = self.search(None).spawn()?;
            while killed < count && controller.try_wait()?.is_none() {
                std::thread::sleep(Duration::from_micros(random.below(3_000)));
                let all = self.processes();
                let is_server = |id: u32| all.iter().any(|&(server, _)| server == id);
                let children: Vec<u32> = all
                    .iter()
                    .filter(|(_, parent)| is_server(*parent))
                    .map(|&(id, _)| id)
                    .collect();
                let Some(&child) = children.first() else { continue };
                let mut kill = Command::new("kill");
                kill.args(["-9", &child.to_string()]).stderr(Stdio::null());
                let done = kill.status()?;
                killed += u32::from(done.success());
            }
            self.kill(&mut controller)?;
        }
        Ok(started)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // Files that cannot be removed stay in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
