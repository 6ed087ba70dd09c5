//! Executions to completion, executions and steps per CPU-second, and memory.

use anyhow::Result;

use super::meter::{Ended, Run};
use super::table::{Table, absent, executions, grouped, ratio, thousands};
use super::{Mode, Request, Times, Tool};

/// The tests that are explored completely, except those with an error.
const TESTS: [&str; 14] = [
    "atomic 2x5",
    "atomic 3x2",
    "atomic 3x3",
    "mutex 2x3",
    "mutex 3x2",
    "independent 3x3",
    "independent 4x3",
    "independent 3x3 in a Vec",
    "Treiber 2+1",
    "Chase-Lev 3,2,1",
    "Chase-Lev 3,2,2",
    "THE 2,2,1",
    "buffer of 1, 2 items",
    "spin lock, yields",
];

/// The tests of about a thousand steps, which are explored at random.
const LONG: [&str; 2] = ["atomic 4x250", "mutex 4x100"];

/// Repetitions of a measurement.
const REPETITIONS: u32 = 3;

/// CPU-seconds of a run that is long enough to average out other work of the machine.
const LONG_RUN: f64 = 2.0;

/// The largest preemption bound.
const BOUNDS: u32 = 3;

/// The results of the tools on one test.
struct Row {
    test: &'static str,
    runs: Vec<(Tool, Mode, Run)>,
}

impl Row {
    /// Runs a test once in each mode. A short search is measured over `repeat` CPU-seconds.
    fn count(test: &'static str, modes: &[(Tool, Mode)], repeat: f64, cap: f64) -> Result<Row> {
        let mut runs = Vec::new();
        for &(tool, mode) in modes {
            runs.push((tool, mode, Request { tool, mode, test, repeat, cap }.in_child()?));
        }
        Ok(Row { test, runs })
    }

    /// Runs a test several times, the tools taking turns. The fastest counts: other work of the
    /// machine only slows a run down. A long run is not repeated.
    fn measure(test: &'static str, modes: &[(Tool, Mode)], repeat: f64, cap: f64) -> Result<Row> {
        let mut row = Row::count(test, modes, repeat, cap)?;
        for _ in 1..REPETITIONS {
            for (tool, mode, run) in
                row.runs.iter_mut().filter(|(_, _, run)| run.seconds < LONG_RUN)
            {
                let again = Request { tool: *tool, mode: *mode, test, repeat, cap }.in_child()?;
                if again.rate() > run.rate() {
                    *run = again;
                }
            }
        }
        Ok(row)
    }

    fn get(&self, tool: Tool, mode: Mode) -> Option<&Run> {
        self.runs.iter().find(|(t, w, _)| (*t, *w) == (tool, mode)).map(|(_, _, run)| run)
    }

    /// Executions per CPU-second of a search that did not fail. With a bound every call of the body
    /// counts: Preempt abandons executions that it knows to be covered, which are work too.
    fn speed(&self, (tool, mode): (Tool, Mode)) -> Option<f64> {
        let run = self.get(tool, mode).filter(|run| !matches!(run.ended, Ended::Failed(_)))?;
        Some(if matches!(mode, Mode::Bound(_)) { run.runs_rate() } else { run.rate() })
    }

    /// The ratio of two rates.
    fn times(&self, one: (Tool, Mode), other: (Tool, Mode)) -> Option<f64> {
        Some(self.speed(one)? / self.speed(other)?)
    }

    /// Records rates below the target.
    fn judge(&self, behind: &mut Vec<String>, wanted: f64, one: (Tool, Mode), other: (Tool, Mode)) {
        if let Some(times) = self.times(one, other).filter(|&times| times < wanted) {
            behind.push(format!(
                "{}: {:?} {} makes {:.2} times the executions per CPU-second of {:?} {} (wanted: \
                 {wanted})",
                self.test,
                one.0,
                one.1.name(),
                times,
                other.0,
                other.1.name(),
            ));
        }
    }

    /// Records searches of ours with more executions than a peer that claims the same coverage.
    fn judge_counts(&self, behind: &mut Vec<String>, one: (Tool, Mode), other: (Tool, Mode)) {
        let (Some(ours), Some(theirs)) = (self.get(one.0, one.1), self.get(other.0, other.1))
        else {
            return;
        };
        if theirs.ended == Ended::Complete && ours.first > theirs.first {
            let more = if ours.ended == Ended::Capped { "more than " } else { "" };
            behind.push(format!(
                "{}: {:?} {} has {more}{} executions, {:?} {} {}",
                self.test,
                one.0,
                one.1.name(),
                grouped(ours.first),
                other.0,
                other.1.name(),
                grouped(theirs.first),
            ));
        }
    }
}

const ALL: (Tool, Mode) = (Tool::Preempt, Mode::All);
const DFS: (Tool, Mode) = (Tool::Preempt, Mode::Dfs);
const LOOM: (Tool, Mode) = (Tool::Loom, Mode::All);
const SHUTTLE: (Tool, Mode) = (Tool::Shuttle, Mode::Dfs);
const BOUNDED: [(Tool, Mode); 2] = [(Tool::Preempt, Mode::Bound(2)), (Tool::Loom, Mode::Bound(2))];
const RANDOM: [(Tool, Mode); 2] =
    [(Tool::Preempt, Mode::Random(1)), (Tool::Shuttle, Mode::Random(1))];
const PCT: [(Tool, Mode); 2] = [(Tool::Preempt, Mode::Pct(1)), (Tool::Shuttle, Mode::Pct(1))];

/// Explores the tests and prints the costs.
pub fn tests(times: Times, behind: &mut Vec<String>) -> Result<()> {
    let bounds: Vec<_> = [Tool::Preempt, Tool::Loom]
        .into_iter()
        .flat_map(|tool| [0, 1, 3].map(|bound| (tool, Mode::Bound(bound))))
        .collect();
    let mut rows = Vec::new();
    for test in TESTS {
        let mut row = Row::measure(test, &[ALL, DFS, LOOM, SHUTTLE], times.rate, times.cap)?;
        row.runs.extend(Row::measure(test, &[RANDOM, PCT].concat(), 0.0, times.rate)?.runs);
        row.runs.extend(Row::measure(test, &BOUNDED, times.rate, times.cap)?.runs);
        row.runs.extend(Row::count(test, &bounds, 0.0, times.cap)?.runs);
        rows.push(row);
    }
    counts(&rows, behind);
    rates(&rows, behind);
    verdicts(&rows, behind);
    memory(&rows);
    Ok(())
}

fn counts(rows: &[Row], behind: &mut Vec<String>) {
    println!(
        "\nExecutions to completion (+: capped, !: failed, though the test is right); also within \
         bounds of preemptions\n(runs ≤2: how often Preempt ran the body for that bound, \
         executions that it gave up as covered included)"
    );
    let mut table = Table::new([
        "test",
        "Preempt",
        "loom",
        "loom/ours",
        "Preempt dfs",
        "shuttle dfs",
        "shuttle/ours",
        "Preempt 0/1/2/3",
        "loom 0/1/2/3",
        "runs ≤2",
    ]);
    for row in rows {
        let get = |mode: (Tool, Mode)| row.get(mode.0, mode.1);
        let share = |peer: (Tool, Mode), ours: (Tool, Mode)| {
            let good = |run: &&Run| run.ended == Ended::Complete;
            Some(get(peer).filter(good)?.first as f64 / get(ours).filter(good)?.first as f64)
        };
        let within = |tool| {
            (0..=BOUNDS)
                .map(|b| executions(row.get(tool, Mode::Bound(b))))
                .collect::<Vec<_>>()
                .join("/")
        };
        table.row([
            row.test.to_owned(),
            executions(get(ALL)),
            executions(get(LOOM)),
            ratio(share(LOOM, ALL)),
            executions(get(DFS)),
            executions(get(SHUTTLE)),
            ratio(share(SHUTTLE, DFS)),
            within(Tool::Preempt),
            within(Tool::Loom),
            get(BOUNDED[0]).map_or_else(absent, |run| grouped(run.starts)),
        ]);
        row.judge_counts(behind, ALL, LOOM);
        row.judge_counts(behind, ALL, SHUTTLE);
        row.judge_counts(behind, DFS, SHUTTLE);
    }
    print!("{}", table.to_text());
}

fn rates(rows: &[Row], behind: &mut Vec<String>) {
    println!(
        "\nThousand executions per CPU-second, and ratios (steps: of an execution, on average over \
         random ones, as Preempt counts;\nof searches with a bound all runs of the body count, \
         given up or not)"
    );
    let mut table = Table::new([
        "test",
        "steps",
        "Preempt",
        "dfs",
        "loom",
        "shuttle dfs",
        "ours/loom",
        "dfs/loom",
        "dfs/shuttle",
        "≤2",
        "loom ≤2",
        "ratio",
        "random",
        "shuttle's",
        "ratio",
        "pct",
        "shuttle's",
        "ratio",
    ]);
    for row in rows {
        let get = |mode: (Tool, Mode)| row.get(mode.0, mode.1);
        let steps = get(RANDOM[0])
            .map_or_else(absent, |run| format!("{:.0}", run.steps as f64 / run.executions as f64));
        table.row([
            row.test.to_owned(),
            steps,
            thousands(row.speed(ALL)),
            thousands(row.speed(DFS)),
            thousands(row.speed(LOOM)),
            thousands(row.speed(SHUTTLE)),
            ratio(row.times(ALL, LOOM)),
            ratio(row.times(DFS, LOOM)),
            ratio(row.times(DFS, SHUTTLE)),
            thousands(row.speed(BOUNDED[0])),
            thousands(row.speed(BOUNDED[1])),
            ratio(row.times(BOUNDED[0], BOUNDED[1])),
            thousands(row.speed(RANDOM[0])),
            thousands(row.speed(RANDOM[1])),
            ratio(row.times(RANDOM[0], RANDOM[1])),
            thousands(row.speed(PCT[0])),
            thousands(row.speed(PCT[1])),
            ratio(row.times(PCT[0], PCT[1])),
        ]);
        row.judge(behind, 10.0, ALL, LOOM);
        row.judge(behind, 10.0, DFS, LOOM);
        row.judge(behind, 10.0, BOUNDED[0], BOUNDED[1]);
        row.judge(behind, 1.5, DFS, SHUTTLE);
        row.judge(behind, 1.5, RANDOM[0], RANDOM[1]);
        row.judge(behind, 1.5, PCT[0], PCT[1]);
    }
    print!("{}", table.to_text());
}

/// CPU-seconds of one complete search.
fn to_the_end(run: &Run) -> Option<f64> {
    (run.ended == Ended::Complete).then(|| run.seconds * run.first as f64 / run.executions as f64)
}

fn verdicts(rows: &[Row], behind: &mut Vec<String>) {
    println!(
        "\nCPU-milliseconds of a search to its end (>: capped), and how many times ours the others \
         are"
    );
    let mut table = Table::new([
        "test",
        "Preempt",
        "loom",
        "ratio",
        "shuttle dfs",
        "ratio",
        "Preempt ≤2",
        "loom ≤2",
        "ratio",
    ]);
    for row in rows {
        let mut cells = vec![row.test.to_owned()];
        for (ours, theirs) in [(ALL, &[LOOM, SHUTTLE][..]), (BOUNDED[0], &BOUNDED[1..])] {
            let Some(mine) = row.get(ours.0, ours.1) else { continue };
            cells.push(milliseconds(mine));
            for &peer in theirs {
                let Some(run) = row.get(peer.0, peer.1) else { continue };
                // A stopped search would have taken even longer.
                let share = to_the_end(mine)
                    .zip(to_the_end(run).or_else(|| capped(run)))
                    .map(|(mine, run)| run / mine);
                let more = if run.ended == Ended::Capped { ">" } else { "" };
                cells.extend([milliseconds(run), format!("{more}{}", ratio(share))]);
                if let Some(share) = share.filter(|&share| share < 1.0 && more.is_empty()) {
                    behind.push(format!(
                        "{}: {:?} {} ends in {share:.2} times the time of Preempt {}",
                        row.test,
                        peer.0,
                        peer.1.name(),
                        ours.1.name(),
                    ));
                }
            }
        }
        table.row(cells);
    }
    print!("{}", table.to_text());
}

fn capped(run: &Run) -> Option<f64> {
    (run.ended == Ended::Capped).then_some(run.seconds)
}

fn milliseconds(run: &Run) -> String {
    let text = |seconds: f64| format!("{:.3}", seconds * 1e3);
    to_the_end(run)
        .map(text)
        .or_else(|| Some(format!(">{}", text(capped(run)?))))
        .unwrap_or_else(absent)
}

fn memory(rows: &[Row]) {
    println!("\nPeak memory of the processes, MB: minimum and maximum over these tests");
    let mut table = Table::new(["", "least", "greatest"]);
    for mode in [
        ALL,
        DFS,
        LOOM,
        SHUTTLE,
        RANDOM[0],
        RANDOM[1],
        (Tool::Preempt, Mode::Bound(2)),
        (Tool::Loom, Mode::Bound(2)),
    ] {
        let peaks: Vec<u64> = rows
            .iter()
            .filter_map(|row| row.get(mode.0, mode.1))
            .map(|run| run.peak_bytes)
            .collect();
        let megabytes = |bytes: Option<&u64>| {
            bytes.map_or_else(absent, |&bytes| format!("{:.1}", bytes as f64 / 1e6))
        };
        let name = format!("{:?} {}", mode.0, mode.1.name());
        table.row([name, megabytes(peaks.iter().min()), megabytes(peaks.iter().max())]);
    }
    print!("{}", table.to_text());
}

/// Explores long tests at random and prints the rates of steps.
pub fn long(times: Times, behind: &mut Vec<String>) -> Result<()> {
    println!("\nLong tests: million steps per CPU-second, each tool's own steps");
    let mut table = Table::new([
        "test",
        "steps",
        "shuttle's",
        "random",
        "shuttle's",
        "ratio",
        "pct",
        "shuttle's",
        "ratio",
    ]);
    for test in LONG {
        let row = Row::measure(test, &[RANDOM, PCT].concat(), 0.0, times.rate)?;
        let get = |mode: (Tool, Mode)| row.get(mode.0, mode.1);
        let millions =
            |mode| get(mode).map_or_else(absent, |run| format!("{:.1}", run.steps_rate() / 1e6));
        let steps =
            |mode| get(mode).map_or_else(absent, |run| grouped(run.steps / run.executions.max(1)));
        let mut cells = vec![test.to_owned(), steps(RANDOM[0]), steps(RANDOM[1])];
        for pair in [RANDOM, PCT] {
            let times = get(pair[0])
                .zip(get(pair[1]))
                .map(|(ours, theirs)| ours.steps_rate() / theirs.steps_rate());
            cells.extend([millions(pair[0]), millions(pair[1]), ratio(times)]);
            if let Some(times) = times.filter(|&times| times < 1.0) {
                let mode = pair[0].1.name();
                behind.push(format!(
                    "{test}: Preempt {mode} makes {times:.2} times the steps per CPU-second of \
                     Shuttle (wanted: 1)"
                ));
            }
        }
        table.row(cells);
    }
    print!("{}", table.to_text());
    Ok(())
}
