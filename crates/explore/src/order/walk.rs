//! Random executions: the loop that all random searches share.
//!
//! Every execution has its own random numbers, determined by the seed and the number of the
//! execution, so each can be drawn without the executions before it, unless the [`Chooser`] learns
//! from them. The alternative of a thread is always drawn uniformly; the chooser decides which
//! thread moves. So several workers can draw executions, each the next number that no worker has
//! taken, if the chooser does not learn.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use preempt_system::{Choice, Program, System, ThreadId};

use crate::codec::{Damaged, Save};
use crate::engine::cursor::Cursor;
use crate::engine::estimate::Round;
use crate::engine::execution::{Cut, Stop, Visitor};
use crate::engine::pcg::Pcg;
use crate::engine::workers::Workers;

/// The most steps of an execution, unless the plan has a limit of depth: a longer one is assumed to
/// run forever.
const LONGEST: u32 = 20_000;

/// Decides which thread moves.
pub(crate) trait Chooser<S: System>: Save {
    /// An execution begins.
    fn begin(&mut self, random: &mut Pcg) {
        let _ = random;
    }

    /// Chooses one of the threads that are enabled at the cursor. There is at least one.
    fn choose(&mut self, cursor: &Cursor<S>, random: &mut Pcg) -> ThreadId;

    /// The thread has moved.
    fn moved(&mut self, cursor: &Cursor<S>, thread: ThreadId) {
        let _ = (cursor, thread);
    }

    /// The execution has ended or was cut.
    fn end(&mut self) {}

    /// Whether it belongs to the same search as a `fresh` one. Checked for what a checkpoint
    /// contains.
    fn fits(&self, fresh: &Self) -> bool {
        let _ = fresh;
        true
    }
}

/// The executions to draw.
pub(crate) struct Draws {
    pub(crate) runs: u64,
    pub(crate) seed: u64,
    pub(crate) steps: Option<u32>,
}

/// Draws as many executions as the plan says. Every worker has its own chooser. Pauses between two
/// executions: the remaining work is the number of the next one, and the choosers.
pub(crate) fn draw_executions<'p, P: Program, C: Chooser<P::System<'p>> + Send>(
    workers: &mut Workers<'p, P>,
    draws: &Draws,
    chooser: impl Fn() -> C,
) -> Result<(), Stop<P::Need>> {
    let saved = workers.stats.resume(|from| {
        let (choosers, next): (Vec<C>, u64) = from.get()?;
        let fits = choosers.len() == workers.count()
            && choosers.iter().all(|chosen| chosen.fits(&chooser()));
        if fits { Ok((choosers, next)) } else { Err(Damaged) }
    });
    if saved.is_none() {
        workers.stats.begin_round(Round::Draws(draws.runs));
    }
    let (mut choosers, next) =
        saved.unwrap_or_else(|| ((0..workers.count()).map(|_| chooser()).collect(), 0));
    let next = AtomicU64::new(next);
    loop {
        choosers = workers.work(
            choosers,
            || {},
            |_, mut chooser, cursor, stats| {
                while !stats.is_pausing() {
                    let run = next.fetch_add(1, Relaxed);
                    if run >= draws.runs {
                        break;
                    }
                    draw(cursor, draws, run, &mut chooser, stats)?;
                }
                Ok(chooser)
            },
        )?;
        let run = next.load(Relaxed);
        if run >= draws.runs {
            return Ok(());
        }
        workers.stats.pause(|to| {
            to.put(&choosers);
            to.put(&run);
        })?;
    }
}

/// Draws one execution.
fn draw<S: System>(
    cursor: &mut Cursor<S>,
    draws: &Draws,
    run: u64,
    chooser: &mut impl Chooser<S>,
    visitor: &mut impl Visitor<S>,
) -> Result<(), Stop<S::Need>> {
    let longest = draws.steps.unwrap_or(LONGEST) as usize;
    let mut random = Pcg::new(draws.seed, run);
    cursor.rewind(0);
    chooser.begin(&mut random);
    while !cursor.enabled().is_empty() && cursor.len() < longest {
        let thread = chooser.choose(cursor, &mut random);
        let alternatives = &cursor.pending(thread).footprints[..];
        let drawn = match alternatives {
            [_] => 0,
            // Under weak memory a load reads the newest store every other time, and a store is the
            // newest one every other time, however many older stores there are.
            [.., (last, _)] if cursor.pending(thread).is_stale(*last) && random.below(2) == 0 => 0,
            _ => random.below(alternatives.len() as u32),
        };
        let choice = Choice { thread, alternative: alternatives[drawn as usize].0 };
        let failure = cursor.step(choice)?;
        visitor.step(cursor, failure)?;
        chooser.moved(cursor, thread);
    }
    chooser.end();
    match cursor.enabled().is_empty() {
        true => visitor.end(cursor),
        false => visitor.cut(cursor, Cut::Steps),
    }
}
