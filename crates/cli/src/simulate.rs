//! `preempt simulate`: one run of a model, at random or as the user chooses.

use std::io::{self, BufRead as _};

use preempt_explore::cursor::Cursor;
use preempt_explore::model::ModelExecution;
use preempt_explore::pcg::Pcg;
use preempt_machine::Machine;
use preempt_report::recorder::{Fairness, Replayed, replay};
use preempt_report::text_report::{offer, variables};
use preempt_report::{Ending, token};
use preempt_system::{Capacity, Choice, Model as _, Narrate as _, Schedule, System as _, ThreadId};

use crate::args::Simulate;
use crate::{Exit, Refused, input, screen};

/// A run of the model.
type Run<'m> = Cursor<ModelExecution<'m, Machine>>;

/// Runs the command.
pub fn run(args: &Simulate) -> Result<Exit, Refused> {
    let mut machine = input::load(&args.model.file, &args.model.settings)?;
    let mut chooser: Box<dyn Chooser> = match args.interactive {
        true => Box::new(ByHand),
        false => Box::new(AtRandom(Pcg::new(args.seed, 0))),
    };
    let mut steps = Vec::new();
    while let Err(capacity) = extend(&machine, &mut steps, args.steps, &mut *chooser) {
        machine = machine.grow(capacity);
    }
    let schedule = Schedule::new(steps);
    let first = |replayed: &Replayed| replayed.failures_of_state().next().cloned();
    let (Replayed { trace, .. }, _) = replay(machine, &schedule, Fairness::Ignored, first);
    let layout = screen::layout();
    let how =
        if args.interactive { "chosen by hand".to_owned() } else { format!("seed {}", args.seed) };
    let end = match (&trace.failure, trace.next.is_empty()) {
        (Some(_), _) => "fails",
        (None, true) => "ends",
        (None, false) => "could continue",
    };
    screen::print(&format!(
        "{}\n{}\n{} steps, {how}: the run {end}\nreplay it with: {} {}\n",
        trace.to_text(&layout),
        variables(&trace, &layout),
        trace.steps.len(),
        input::replay_command(&args.model),
        token::token(&schedule, &Ending::of(trace.failure.as_ref())),
    ))?;
    Ok(if trace.failure.is_some() { Exit::Finding } else { Exit::Covered })
}

/// Decides which step a run takes next.
trait Chooser {
    /// Chooses one of `choices`, which is not empty.
    fn choose(&mut self, run: &mut Run<'_>, choices: &[Choice]) -> Decision;
}

enum Decision {
    Take(Choice),
    Back,
    Stop,
}

/// Extends a run that begins with `steps` until it ends, fails, has `most` steps, or is stopped.
fn extend(
    machine: &Machine,
    steps: &mut Vec<Choice>,
    most: usize,
    chooser: &mut dyn Chooser,
) -> Result<(), Capacity> {
    let mut run = Cursor::new(machine)?;
    let mut failed = run.system().failure().is_some();
    for &choice in steps.iter() {
        failed = run.step(choice)?.is_some();
    }
    while !failed && steps.len() < most && run.invariant().is_ok() {
        let choices: Vec<Choice> = (0..run.threads())
            .flat_map(|slot| run.choices(ThreadId::new(slot)).collect::<Vec<_>>())
            .collect();
        if choices.is_empty() {
            break;
        }
        match chooser.choose(&mut run, &choices) {
            Decision::Stop => break,
            Decision::Back => {
                steps.pop();
                run.rewind(steps.len());
            }
            Decision::Take(choice) => {
                // If the states are too small for it, the step is taken on a larger model.
                steps.push(choice);
                failed = run.step(choice)?.is_some();
            }
        }
    }
    Ok(())
}

/// Chooses any thread that can move, and any of its alternatives.
struct AtRandom(Pcg);

impl Chooser for AtRandom {
    fn choose(&mut self, _: &mut Run<'_>, choices: &[Choice]) -> Decision {
        let threads: Vec<&[Choice]> = choices.chunk_by(|a, b| a.thread == b.thread).collect();
        let of = self.0.pick(&threads);
        Decision::Take(*self.0.pick(of))
    }
}

/// Asks the user, on stdin.
struct ByHand;

impl Chooser for ByHand {
    fn choose(&mut self, run: &mut Run<'_>, choices: &[Choice]) -> Decision {
        let (layout, model) = (screen::layout(), run.system_mut());
        let described = choices
            .iter()
            .map(|&choice| (model.thread_name(choice.thread), model.narrate_next(choice)));
        say(&offer(&described.collect::<Vec<_>>(), &layout));
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
                    let shared = model.values().into_iter().filter(|value| value.owner.is_none());
                    shared.for_each(|shared| {
                        say(&format!("  {} = {}\n", shared.name, shared.value));
                    });
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
