//! `--cluster auto`: the processes of a cluster, from environment variables.
//!
//! - Slurm: `SLURM_PROCID`, `SLURM_STEP_NODELIST` and `SLURM_STEP_TASKS_PER_NODE`, which `srun`
//!   sets.
//! - Kubernetes: `HOSTNAME`, which ends with the number of the pod in a StatefulSet or an indexed
//!   Job; `PREEMPT_PROCESSES`, the number of pods; `PREEMPT_SERVICE`, the headless service.
//! - Anywhere: `PREEMPT_HOSTS`, addresses `host:port` separated by commas; `PREEMPT_PROCESS`.
//!
//! `PREEMPT_PORT` is the first port, 4000 by default. Tasks of one machine use successive ports.

use preempt_cluster::Hosts;
use preempt_cluster::join::MOST_PROCESSES;

/// The first port without `PREEMPT_PORT`.
const DEFAULT_PORT: u16 = 4000;

/// The position of a process in a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The number of this process.
    pub process: usize,
    /// The addresses of all processes.
    pub hosts: Hosts,
}

/// The position that the variables describe. `get` returns the value of a variable.
pub fn position(get: impl Fn(&str) -> Option<String>) -> Result<Position, String> {
    let number = |name: &str| -> Result<Option<usize>, String> {
        let value = get(name).map(|text| text.trim().parse());
        value.transpose().map_err(|_| format!("{name} is not a number"))
    };
    let port = match get("PREEMPT_PORT") {
        Some(text) => text.trim().parse().map_err(|_| "PREEMPT_PORT is not a port".to_owned())?,
        None => DEFAULT_PORT,
    };
    let found = if let Some(hosts) = get("PREEMPT_HOSTS") {
        let process = number("PREEMPT_PROCESS")?.ok_or("PREEMPT_HOSTS needs PREEMPT_PROCESS")?;
        Position { process, hosts: hosts.split(',').map(|host| host.trim().to_owned()).collect() }
    } else if let Some(process) = number("SLURM_PROCID")? {
        Position { process, hosts: slurm_hosts(&get, port)? }
    } else if let Some(processes) = number("PREEMPT_PROCESSES")? {
        kubernetes(&get, processes, port)?
    } else {
        return Err("--cluster auto finds no cluster: there is neither PREEMPT_HOSTS, nor \
                    SLURM_PROCID (start with srun), nor PREEMPT_PROCESSES"
            .into());
    };
    let Position { process, hosts } = &found;
    if hosts.len() > MOST_PROCESSES {
        return Err(format!("there can be at most {MOST_PROCESSES} processes"));
    }
    if *process >= hosts.len() {
        return Err(format!(
            "this is process {process}, but the environment describes {} processes, numbered \
             from 0",
            hosts.len()
        ));
    }
    Ok(found)
}

/// The addresses of the tasks of a job step.
fn slurm_hosts(get: &impl Fn(&str) -> Option<String>, port: u16) -> Result<Hosts, String> {
    if let Some(distribution) = get("SLURM_DISTRIBUTION")
        && !distribution.starts_with("block")
    {
        // The list of nodes does not say which task is where.
        return Err(format!(
            "SLURM_DISTRIBUTION is {distribution}: start with srun --distribution=block"
        ));
    }
    let either = |names: [&'static str; 2]| {
        let value = names.iter().find_map(|name| get(name));
        value.ok_or_else(|| format!("there is no {}: start with srun", names[0]))
    };
    let nodes = either(["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"])?;
    let tasks = either(["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"])?;
    let names = host_list(&nodes).ok_or_else(|| format!("{nodes} is not a list of nodes"))?;
    let counts = task_counts(&tasks).ok_or_else(|| format!("{tasks} are not counts of tasks"))?;
    if names.len() != counts.len() {
        return Err(format!("{nodes} and {tasks} describe different numbers of nodes"));
    }
    let mut hosts = Hosts::new();
    for (name, count) in names.iter().zip(counts) {
        for task in 0..count {
            let port = u16::try_from(task).ok().and_then(|task| port.checked_add(task));
            let port = port
                .ok_or("PREEMPT_PORT plus the number of tasks exceeds the largest port, 65535")?;
            hosts.push(format!("{name}:{port}"));
        }
    }
    Ok(hosts)
}

/// Expands a list of hosts: `a[1-2,04],b` is a1, a2, a04 and b. `None` if it is not one.
fn host_list(text: &str) -> Option<Vec<String>> {
    let (mut hosts, mut depth, mut start) = (Vec::new(), 0u32, 0);
    for (at, c) in text.char_indices().chain([(text.len(), ',')]) {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.checked_sub(1)?,
            ',' if depth == 0 => {
                hosts.extend(expanded(&text[start..at])?);
                start = at + 1;
            }
            _ => {}
        }
    }
    (depth == 0 && hosts.len() <= MOST_PROCESSES && !hosts.is_empty()).then_some(hosts)
}

/// Expands the brackets of one item, from left to right.
fn expanded(item: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = item.split_once('[') else {
        return (!item.is_empty() && !item.contains(']')).then(|| vec![item.to_owned()]);
    };
    let (inside, after) = rest.split_once(']')?;
    let tails = if after.is_empty() { vec![String::new()] } else { expanded(after)? };
    let mut hosts = Vec::new();
    for range in inside.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (low, high): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if high < low || high - low >= MOST_PROCESSES {
            return None;
        }
        for number in low..=high {
            let name = format!("{before}{number:0width$}", width = first.len());
            hosts.extend(tails.iter().map(|tail| format!("{name}{tail}")));
        }
        if hosts.len() > MOST_PROCESSES {
            return None;
        }
    }
    Some(hosts)
}

/// Expands counts of tasks: `2(x3),1` is 2, 2, 2 and 1. `None` if they are not counts.
fn task_counts(text: &str) -> Option<Vec<usize>> {
    let mut counts = Vec::new();
    for item in text.split(',') {
        let (count, times) = match item.strip_suffix(')') {
            Some(item) => item.split_once("(x")?,
            None => (item, "1"),
        };
        let (count, times): (usize, usize) = (count.parse().ok()?, times.parse().ok()?);
        if count > MOST_PROCESSES || times > MOST_PROCESSES {
            return None;
        }
        counts.extend(std::iter::repeat_n(count, times));
    }
    (counts.len() <= MOST_PROCESSES).then_some(counts)
}

/// The pods of a StatefulSet or of an indexed Job.
fn kubernetes(
    get: &impl Fn(&str) -> Option<String>,
    processes: usize,
    port: u16,
) -> Result<Position, String> {
    let name = get("HOSTNAME").ok_or("there is no HOSTNAME")?;
    let split = name.rsplit_once('-').and_then(|(set, number)| Some((set, number.parse().ok()?)));
    let (set, process): (&str, usize) = split.ok_or_else(|| {
        format!(
            "HOSTNAME is {name}, which does not end with the number of a pod: use a StatefulSet"
        )
    })?;
    if processes > MOST_PROCESSES {
        return Err(format!("there can be at most {MOST_PROCESSES} processes"));
    }
    let service = get("PREEMPT_SERVICE").map_or_else(String::new, |service| format!(".{service}"));
    let hosts = (0..processes).map(|number| format!("{set}-{number}{service}:{port}")).collect();
    Ok(Position { process, hosts })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Position, String> {
        let variables: Vec<(String, String)> =
            variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        position(|name| variables.iter().find(|(known, _)| known == name).map(|(_, v)| v.clone()))
    }

    fn refused(variables: &[(&str, &str)]) -> String {
        of(variables).expect_err("it is refused")
    }

    #[test]
    fn a_step_of_slurm_lists_its_tasks_by_node() {
        // `srun -N 3 --ntasks 5` on nodes tux01 to tux03, as task 4.
        let found = of(&[
            ("SLURM_PROCID", "4"),
            ("SLURM_LOCALID", "0"),
            ("SLURM_NTASKS", "5"),
            ("SLURM_STEP_NODELIST", "tux[01-03]"),
            ("SLURM_STEP_TASKS_PER_NODE", "2(x2),1"),
        ]);
        let hosts = ["tux01:4000", "tux01:4001", "tux02:4000", "tux02:4001", "tux03:4000"];
        assert_eq!(found, Ok(Position { process: 4, hosts: hosts.map(String::from).into() }));
        // One task on one node, with another port.
        let found = of(&[
            ("SLURM_PROCID", "0"),
            ("SLURM_JOB_NODELIST", "login"),
            ("SLURM_TASKS_PER_NODE", "1"),
            ("PREEMPT_PORT", "5123"),
        ]);
        assert_eq!(found, Ok(Position { process: 0, hosts: vec!["login:5123".into()] }));
    }

    #[test]
    fn a_step_whose_tasks_are_elsewhere_is_refused() {
        let step = [("SLURM_STEP_NODELIST", "n[1-2]"), ("SLURM_STEP_TASKS_PER_NODE", "1(x2)")];
        let with = |more: &[(&'static str, &'static str)]| [more, &step].concat();
        assert!(of(&with(&[("SLURM_PROCID", "1")])).is_ok());
        assert!(
            of(&with(&[("SLURM_PROCID", "1"), ("SLURM_DISTRIBUTION", "block:cyclic")])).is_ok()
        );
        let cyclic = refused(&with(&[("SLURM_PROCID", "1"), ("SLURM_DISTRIBUTION", "cyclic")]));
        assert!(cyclic.contains("--distribution=block"), "{cyclic}");
        assert!(refused(&with(&[("SLURM_PROCID", "2")])).contains("describes 2 processes"));
        assert!(refused(&[("SLURM_PROCID", "0")]).contains("SLURM_STEP_NODELIST"));
        let other = [("SLURM_PROCID", "0"), step[0], ("SLURM_STEP_TASKS_PER_NODE", "1(x3)")];
        assert!(refused(&other).contains("different numbers of nodes"));
        let high = with(&[("SLURM_PROCID", "1"), ("PREEMPT_PORT", "70000")]);
        assert!(refused(&high).contains("not a port"));
    }

    #[test]
    fn pods_are_numbered_by_their_names() {
        // Pod 2 of a StatefulSet of three replicas behind the headless service `search`.
        let found = of(&[
            ("HOSTNAME", "preempt-worker-2"),
            ("PREEMPT_PROCESSES", "3"),
            ("PREEMPT_SERVICE", "search"),
            ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
        ]);
        let hosts = [0, 1, 2].map(|number| format!("preempt-worker-{number}.search:4000"));
        assert_eq!(found, Ok(Position { process: 2, hosts: hosts.into() }));
        assert!(refused(&[("PREEMPT_PROCESSES", "3")]).contains("no HOSTNAME"));
        let deployment = [("PREEMPT_PROCESSES", "3"), ("HOSTNAME", "web-7d9c5b-x2x")];
        assert!(refused(&deployment).contains("use a StatefulSet"));
        let more = [("PREEMPT_PROCESSES", "3"), ("HOSTNAME", "worker-3")];
        assert!(refused(&more).contains("describes 3 processes"));
    }

    #[test]
    fn addresses_can_be_given_as_they_are() {
        let found = of(&[("PREEMPT_HOSTS", "a:1, b:2"), ("PREEMPT_PROCESS", "1")]);
        assert_eq!(found, Ok(Position { process: 1, hosts: vec!["a:1".into(), "b:2".into()] }));
        assert!(refused(&[("PREEMPT_HOSTS", "a:1")]).contains("PREEMPT_PROCESS"));
        assert!(refused(&[]).contains("finds no cluster"));
        assert!(refused(&[("SLURM_PROCID", "x")]).contains("SLURM_PROCID is not a number"));
    }

    #[test]
    fn lists_of_hosts_are_expanded_or_refused() {
        for (text, hosts) in [
            ("a", "a"),
            ("a,b", "a b"),
            ("tux[1-3]", "tux1 tux2 tux3"),
            ("tux[08-10,12]", "tux08 tux09 tux10 tux12"),
            ("r[0-1]n[1-2],x", "r0n1 r0n2 r1n1 r1n2 x"),
            ("n[001]-ib", "n001-ib"),
        ] {
            let expected: Vec<String> = hosts.split(' ').map(String::from).collect();
            assert_eq!(host_list(text), Some(expected), "{text}");
        }
        for text in ["", "a,", "a[", "a]", "a[1-", "a[]", "a[2-1]", "a[x]", "a[1-9999999]", "[1]]"]
        {
            assert_eq!(host_list(text), None, "{text}");
        }
        assert_eq!(task_counts("2(x3),1"), Some(vec![2, 2, 2, 1]));
        for text in ["", "x", "2(x", "2(y3)", "1(x99999999)"] {
            assert_eq!(task_counts(text), None, "{text}");
        }
    }
}
