//! `preempt simulate`: one run of a model, at random or as the user chooses.

use std::io::{self, BufRead as _};

use preempt_explore::pcg::Pcg;
use preempt_explore::replay;
use preempt_machine::{Machine, Stepper};
use preempt_report::text_report::{offer, variables};
use preempt_report::{Ending, Trace, token};
use preempt_system::{
    Capacity, Choice, Model as _, Narrate as _, Schedule, Step, Stepper as _, ThreadId,
};

use crate::args::Simulate;
use crate::{Exit, Refused, input, screen};

/// Runs the command.
pub fn run(args: &Simulate) -> Result<Exit, Refused> {
    let mut machine = input::load(&args.model.file, &args.model.settings)?;
    let mut chooser: Box<dyn Chooser> = match args.interactive {
        true => Box::new(ByHand),
        false => Box::new(AtRandom(Pcg::new(args.seed, 0))),
    };
    let mut steps = Vec::new();
    while let Err(capacity) = go_on(&machine, &mut steps, args.steps, &mut *chooser) {
        machine = machine.grow(capacity);
    }
    let schedule = Schedule::new(steps);
    let (replayed, machine) = replay(machine, &schedule).expect("the steps were just taken");
    let trace = Trace::of(&machine, &schedule, &replayed, replayed.failure());
    let layout = screen::layout();
    let how =
        if args.interactive { "chosen by hand".to_owned() } else { format!("seed {}", args.seed) };
    let end = match (replayed.failure(), replayed.enabled(replayed.steps()).is_empty()) {
        (Some(_), _) => "fails",
        (None, true) => "ends",
        (None, false) => "could go on",
    };
    screen::print(&format!(
        "{}\n{}\n{} steps, {how}: the run {end}\nreplay it with: {} {}\n",
        trace.to_text(&layout),
        variables(&trace, &layout),
        replayed.steps(),
        input::replay_command(&args.model),
        token::token(&schedule, &Ending::of(replayed.failure())),
    ))?;
    Ok(if replayed.failure().is_some() { Exit::Finding } else { Exit::Covered })
}

/// Who decides.
trait Chooser {
    /// One of `choices`, of which there is at least one.
    fn choose(&mut self, stepper: &mut Stepper<'_>, state: &[u64], choices: &[Choice]) -> Decision;
}

enum Decision {
    Take(Choice),
    Back,
    Stop,
}

/// Takes steps from where `steps` end until the run ends, fails, is long enough, or is stopped.
fn go_on(
    machine: &Machine,
    steps: &mut Vec<Choice>,
    most: usize,
    chooser: &mut dyn Chooser,
) -> Result<(), Capacity> {
    let mut stepper = machine.stepper();
    loop {
        let Some(mut state) = state_after(machine, &mut stepper, steps)? else { return Ok(()) };
        loop {
            let choices = choices(machine, &mut stepper, &state)?;
            if choices.is_empty() || steps.len() >= most || stepper.invariant(&state).is_err() {
                return Ok(());
            }
            match chooser.choose(&mut stepper, &state, &choices) {
                Decision::Stop => return Ok(()),
                Decision::Back => break,
                Decision::Take(choice) => {
                    let step = stepper.step(&mut state, choice);
                    steps.push(choice);
                    match step {
                        Step::Moved { .. } => {}
                        Step::Full(capacity) => return Err(capacity),
                        _ => return Ok(()),
                    }
                }
            }
        }
        steps.pop();
    }
}

/// The state after a schedule, unless it has gone wrong.
fn state_after(
    machine: &Machine,
    stepper: &mut Stepper<'_>,
    steps: &[Choice],
) -> Result<Option<Vec<u64>>, Capacity> {
    let mut state = vec![0; machine.shape().words];
    let mut step = stepper.initial(&mut state);
    for &choice in steps {
        if let Step::Moved { .. } = step {
            step = stepper.step(&mut state, choice);
        }
    }
    match step {
        Step::Moved { .. } => Ok(Some(state)),
        Step::Full(capacity) => Err(capacity),
        _ => Ok(None),
    }
}

/// All that can happen in a state.
fn choices(
    machine: &Machine,
    stepper: &mut Stepper<'_>,
    state: &[u64],
) -> Result<Vec<Choice>, Capacity> {
    let mut choices = Vec::new();
    for thread in (0..machine.shape().threads).map(ThreadId::new) {
        let (mut alternative, mut alternatives) = (0, 1);
        while alternative < alternatives {
            let choice = Choice { thread, alternative };
            alternative += 1;
            match stepper.step(&mut state.to_vec(), choice) {
                Step::Moved { alternatives: known } => alternatives = alternatives.max(known),
                Step::Failed(_) => alternatives = alternatives.max(stepper.alternatives()),
                Step::Full(capacity) => return Err(capacity),
                Step::Absent | Step::Blocked { .. } | Step::Ended | Step::Vacant => continue,
            }
            choices.push(choice);
        }
    }
    Ok(choices)
}

/// Any thread that can move, and any of its alternatives.
struct AtRandom(Pcg);

impl Chooser for AtRandom {
    fn choose(&mut self, _: &mut Stepper<'_>, _: &[u64], choices: &[Choice]) -> Decision {
        let threads: Vec<&[Choice]> = choices.chunk_by(|a, b| a.thread == b.thread).collect();
        let of = self.0.pick(&threads);
        Decision::Take(*self.0.pick(of))
    }
}

/// The user, on stdin.
struct ByHand;

impl Chooser for ByHand {
    fn choose(&mut self, stepper: &mut Stepper<'_>, state: &[u64], choices: &[Choice]) -> Decision {
        let layout = screen::layout();
        let told = choices
            .iter()
            .map(|&choice| (stepper.thread_name(choice.thread), stepper.narrate(state, choice)));
        say(&offer(&told.collect::<Vec<_>>(), &layout));
        loop {
            say(&format!("1-{}, or v: variables, u: undo, q: quit > ", choices.len()));
            let mut line = String::new();
            match io::stdin().lock().read_line(&mut line) {
                Ok(0) | Err(_) => {
                    say("\n");
                    return Decision::Stop;
                }
                Ok(_) => {}
            }
            match line.trim() {
                "q" => return Decision::Stop,
                "u" => return Decision::Back,
                "v" => {
                    for (name, value) in stepper.variables(state) {
                        say(&format!("  {name} = {value}\n"));
                    }
                }
                number => {
                    match number.parse::<usize>().ok().and_then(|n| choices.get(n.wrapping_sub(1)))
                    {
                        Some(&choice) => return Decision::Take(choice),
                        None => say(&format!("`{number}` is not one of the steps above\n")),
                    }
                }
            }
        }
    }
}

/// Writes a part of the dialogue. An output that cannot be written is reported when the run is
/// shown.
fn say(text: &str) {
    let _ = screen::print(text);
}
