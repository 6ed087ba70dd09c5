//! The cost of exploring executables: processes per happens-before graph, CPU time of an execution
//! compared with a bare `fork`, of a scheduling point and of a switch.
//!
//! Everything goes through `preempt run` and `cargo preempt test` in processes of their own. CPU
//! time is that of all their processes, the executions included.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::package;
use crate::real::cargo_preempt;
use crate::table::{Table, absent, grouped};

/// The limits of the measured searches.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The most preemptions of the searches whose processes are counted.
    pub bound: u32,
    /// The most seconds of each of these searches.
    pub seconds: u32,
}

/// The program of `corpus/native` with two threads whose executions are timed.
const TWO_THREADS: &str = "no_lost_update";
/// The executions that are timed.
const RUNS: u64 = 2_000;

/// Measures and prints the tables.
pub fn run(ask: &Ask) -> Result<bool> {
    let folder = package::folder("native-speed")?;
    redundancy(ask, &folder)?;
    costs(&folder)?;
    Ok(true)
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compiles a C program. Returns the executable.
fn gcc(source: &Path, folder: &Path) -> Result<PathBuf> {
    let name = source.file_stem().context("a source has a name")?;
    let out = folder.join(name);
    let mut command = Command::new("gcc");
    command.args(["-g", "-O1", "-pthread", "-o"]).arg(&out).arg(source);
    ensure!(command.status()?.success(), "{} cannot be compiled", source.display());
    Ok(out)
}

/// `preempt run`, the binary beside this one.
fn preempt_run() -> Result<Command> {
    let path = std::env::current_exe()?.with_file_name("preempt");
    ensure!(path.exists(), "there is no {}: cargo build -p preempt-cli", path.display());
    let mut command = Command::new(path);
    command.args(["run", "--quiet"]);
    Ok(command)
}

/// The number before a word in a report: `"12,345 processes"`.
fn number_before(report: &str, word: &str) -> Option<u64> {
    let text: Vec<&str> = report.split_whitespace().collect();
    let is_word = |found: &str| {
        let found = found.trim_end_matches([',', ';']);
        found == word || found.strip_suffix('s') == Some(word)
    };
    let at = text.iter().position(|found| is_word(found))?;
    text[at.checked_sub(1)?].replace(',', "").parse().ok()
}

/// The CPU-seconds of all ended children of this process and their descendants.
fn children_seconds() -> Result<f64> {
    /// Clock ticks per second, which are the same on all Linux systems of this architecture.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit_once(") ").context("a process has a name")?.1.split(' ');
    // The fields 16 and 17 of `proc_pid_stat(5)`; the first one here is the third.
    let ticks: Vec<f64> = fields.skip(13).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS)
}

/// Runs a command. Returns what it prints and the CPU-seconds that it takes.
fn timed(command: &mut Command) -> Result<(String, f64)> {
    let before = children_seconds()?;
    let output = command.output()?;
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), children_seconds()? - before))
}

/// The cost of a search of a program within a bound.
struct Needed {
    graphs: u64,
    processes: u64,
}

impl Needed {
    /// Explores a program. `None` if it has errors, is refused or reaches the time limit: then
    /// there are no numbers for the whole bound.
    fn by(ask: &Ask, options: &[&str], program: &Path) -> Result<Option<Needed>> {
        let mut command = preempt_run()?;
        command.args(["--bound", &ask.bound.to_string(), "--time", &ask.seconds.to_string()]);
        let output = command.args(options).arg("--").arg(program).output()?;
        if output.status.code() != Some(0) {
            return Ok(None);
        }
        let report = String::from_utf8_lossy(&output.stdout);
        let processes = number_before(&report, "processes").or(number_before(&report, "process"));
        let numbers = number_before(&report, "trace").zip(processes);
        let (graphs, processes) = numbers.with_context(|| format!("numbers in {report}"))?;
        Ok(Some(Needed { graphs, processes }))
    }

    fn ratio(&self) -> f64 {
        self.processes as f64 / self.graphs.max(1) as f64
    }
}

/// The table of processes per graph, over the programs of `corpus/native` without errors: for the
/// default search, which caches happens-before graphs, and with the reduction that is complete for
/// its bound.
fn redundancy(ask: &Ask, folder: &Path) -> Result<()> {
    let corpus = repository().join("corpus/native");
    let mut sources: Vec<PathBuf> = fs::read_dir(&corpus)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "c"));
    sources.sort();
    let heads =
        ["program", "graphs", "processes", "per graph", "cb-por: graphs", "processes", "per graph"];
    let mut table = Table::new(heads);
    let mut ratios = [Vec::new(), Vec::new()];
    for source in &sources {
        let program = gcc(source, folder)?;
        let name = source.file_stem().context("a source has a name")?.to_string_lossy();
        // One graph needs one process, and there is nothing to reduce.
        let Some(default) = Needed::by(ask, &[], &program)?.filter(|needed| needed.graphs > 1)
        else {
            continue;
        };
        let reduced = Needed::by(ask, &["--reduce", "cb-por"], &program)?;
        let mut cells = vec![name.into_owned()];
        for (needed, ratios) in [Some(default), reduced].iter().zip(&mut ratios) {
            cells.extend(match needed {
                Some(needed) => {
                    ratios.push(needed.ratio());
                    let ratio = format!("{:.2}", needed.ratio());
                    [grouped(needed.graphs), grouped(needed.processes), ratio]
                }
                None => [absent(), absent(), absent()],
            });
        }
        table.row(cells);
    }
    println!(
        "Processes per happens-before graph within {} preemptions (programs of corpus/native)",
        ask.bound
    );
    print!("{}", table.to_text());
    for (name, ratios) in ["default", "cb-por"].iter().zip(&mut ratios) {
        ratios.sort_by(f64::total_cmp);
        let median = ratios.get(ratios.len() / 2).context("a program without errors")?;
        let most = ratios.last().context("a program without errors")?;
        println!("{name}: median {median:.2}, most {most:.2} processes per graph");
    }
    println!();
    Ok(())
}

/// The smallest of the numbers that executions of a program have written to a file.
fn written(program: &Path, file: &Path) -> Result<f64> {
    let _ = fs::remove_file(file);
    let mut command = preempt_run()?;
    // Only one thread can run at each point, so all executions are the same.
    command.args(["--order", "random", "--runs", "20"]);
    let output = command.arg("--").arg(program).arg(file).output()?;
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{report}{}", String::from_utf8_lossy(&output.stderr));
    let text = fs::read_to_string(file)
        .with_context(|| format!("{} has written nothing", program.display()))?;
    let numbers: Vec<f64> = text.lines().map(str::parse).collect::<Result<_, _>>()?;
    numbers.into_iter().min_by(f64::total_cmp).context("a number")
}

/// The table of costs.
fn costs(folder: &Path) -> Result<()> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("native");
    let corpus = repository().join("corpus/native");
    let mut table = Table::new(["what", "CPU time", "compared"]);
    let floor = gcc(&own.join("floor.c"), folder)?;
    let floor = Command::new(floor).arg(RUNS.to_string()).output()?.stdout;
    let floor: f64 = String::from_utf8_lossy(&floor).trim().parse()?;
    let micro = |nanoseconds: f64| format!("{:.0} µs", nanoseconds / 1e3);
    table.row(["fork, _exit and wait".into(), micro(floor), "1.0".into()]);
    let program = gcc(&corpus.join(format!("{TWO_THREADS}.c")), folder)?;
    let mut command = preempt_run()?;
    command.args(["--order", "random", "--runs", &RUNS.to_string()]).arg("--").arg(&program);
    let (report, seconds) = timed(&mut command)?;
    let processes = number_before(&report, "processes").context("a report")? as f64;
    let each = seconds / processes * 1e9;
    table.row([
        format!("execution of {TWO_THREADS}, with the controller"),
        micro(each),
        format!("{:.1} × fork", each / floor),
    ]);
    let point = written(&gcc(&own.join("points.c"), folder)?, &folder.join("points.txt"))?;
    table.row(["point without a switch".into(), format!("{point:.0} ns"), String::new()]);
    let switch = written(&gcc(&own.join("switches.c"), folder)?, &folder.join("switches.txt"))?;
    table.row([
        "switch, with its two points".into(),
        format!("{:.2} µs", switch / 1e3),
        String::new(),
    ]);
    let (executions, seconds) = test_rate(folder)?;
    table.row([
        format!("`cargo preempt test`, {} executions of a test", grouped(executions)),
        format!("{:.2} s", seconds),
        format!("{} executions per CPU-second", grouped((executions as f64 / seconds) as u64)),
    ]);
    print!("{}", table.to_text());
    Ok(())
}

/// Explores a small test of a crate without a cache, so that every process is an execution. Returns
/// the number of executions, and their CPU-seconds without building, which is done before.
fn test_rate(folder: &Path) -> Result<(u64, f64)> {
    let command = |executions: u64| -> Result<Command> {
        let mut command = cargo_preempt()?;
        command
            .current_dir(repository().join("crates/cli/tests/crates/gate"))
            .env("CARGO_TARGET_DIR", folder.join("gate"))
            .args(["preempt", "test", "--quiet", "--locked", "--lib", "--order", "icb"])
            .args(["--cache", "none", "--bound", "4", "--executions", &executions.to_string()])
            .args(["--", "--exact", "tests::the_gate_is_passed"]);
        Ok(command)
    };
    // Building, listing the tests and starting are paid for in both.
    timed(&mut command(1)?)?;
    let (_, few) = timed(&mut command(1)?)?;
    let (report, many) = timed(&mut command(RUNS + 1)?)?;
    // There may be fewer executions within the bound.
    let executions = number_after(&report, "tests::the_gate_is_passed");
    let executions = executions.with_context(|| format!("a number of executions in {report}"))?;
    Ok((executions - 1, many - few))
}

/// The number after a word in a report.
fn number_after(report: &str, word: &str) -> Option<u64> {
    let mut words = report.split_whitespace().skip_while(|found| *found != word);
    words.nth(1)?.replace(',', "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_from_reports() {
        let report = "  searched  32 executions, 1,032 traces, 9 states\n  children  1 process\n";
        assert_eq!(number_before(report, "trace"), Some(1_032));
        assert_eq!(number_before(report, "state"), Some(9));
        assert_eq!(number_before(report, "verdict"), None);
        assert_eq!(number_before("children  2,308 processes", "processes"), Some(2_308));
        assert_eq!(number_after("tests::a  12\ntests::b  1,270  70\n", "tests::b"), Some(1_270));
        assert_eq!(number_after("tests::a  12\n", "tests::b"), None);
    }
}
