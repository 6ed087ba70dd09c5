//! Shrinks a program on which the library and the reference disagree.

use crate::compare::{Disagreement, compare};
use crate::program::{Program, Statement};

/// Removes and simplifies statements as long as a disagreement remains. Returns the smallest
/// program found, and its disagreement.
pub fn shrink(program: &Program, disagreement: Disagreement) -> (Program, Disagreement) {
    let mut best = (program.clone(), disagreement);
    loop {
        let smaller = candidates(&best.0).into_iter().find_map(|candidate| {
            let disagreement = compare(&candidate).err()?;
            Some((candidate, disagreement))
        });
        match smaller {
            Some(found) => best = found,
            None => return best,
        }
    }
}

/// Programs that are slightly smaller.
fn candidates(program: &Program) -> Vec<Program> {
    let mut all = Vec::new();
    for thread in (1..program.threads.len()).rev() {
        all.extend(without_thread(program, thread));
    }
    for thread in 0..program.threads.len() {
        for block in simpler(&program.threads[thread]) {
            let mut smaller = program.clone();
            smaller.threads[thread] = block;
            all.push(smaller);
        }
    }
    for option in 0..2 {
        let mut smaller = program.clone();
        let flag =
            if option == 0 { &mut smaller.spurious_wakeups } else { &mut smaller.weak_failures };
        if std::mem::take(flag) {
            all.push(smaller);
        }
    }
    all.retain(is_valid);
    all
}

/// Whether every thread is spawned and no statement refers to a missing thread.
fn is_valid(program: &Program) -> bool {
    let mut started = vec![0; program.threads.len()];
    started[0] = 1;
    let mut open = true;
    for statements in &program.threads {
        let mut own = Vec::new();
        for statement in statements {
            match statement {
                Statement::Spawn(child) => {
                    started[*child] += 1;
                    own.push(*child);
                }
                Statement::Scope(children, _) => {
                    children.iter().for_each(|child| started[*child] += 1)
                }
                Statement::Join(child) | Statement::Detach(child) => {
                    open &= own.contains(child);
                    own.retain(|other| other != child);
                }
                Statement::Unpark(child) | Statement::IsFinished(child) => {
                    open &= own.contains(child)
                }
                _ => {}
            }
        }
    }
    open && started.iter().all(|&times| times == 1)
}

/// The program without `thread`, if that thread spawns no others.
fn without_thread(program: &Program, thread: usize) -> Option<Program> {
    let starts =
        |statement: &Statement| matches!(statement, Statement::Spawn(_) | Statement::Scope(..));
    if program.threads[thread].iter().any(starts)
        || program.receiver == thread && program.has_channel()
    {
        return None;
    }
    fn renamed(block: &mut Vec<Statement>, gone: usize) {
        block.retain(|statement| match statement {
            Statement::Spawn(of)
            | Statement::Join(of)
            | Statement::Detach(of)
            | Statement::Unpark(of)
            | Statement::IsFinished(of) => *of != gone,
            _ => true,
        });
        for statement in block {
            match statement {
                Statement::Spawn(of)
                | Statement::Join(of)
                | Statement::Detach(of)
                | Statement::Unpark(of)
                | Statement::IsFinished(of) => {
                    *of -= usize::from(*of > gone);
                }
                Statement::Scope(children, _) => {
                    children.retain(|child| *child != gone);
                    children.iter_mut().for_each(|child| *child -= usize::from(*child > gone));
                }
                _ => {}
            }
            if let Some(inner) = statement.blocks_mut() {
                renamed(inner, gone);
            }
        }
    }
    let mut smaller = program.clone();
    smaller.threads.remove(thread);
    smaller.receiver -= usize::from(smaller.receiver > thread);
    smaller.receiver = smaller.receiver.min(smaller.threads.len() - 1);
    smaller.threads.iter_mut().for_each(|block| renamed(block, thread));
    Some(smaller)
}

/// Copies of a block in which one statement is removed, replaced by its own block, or simplified.
fn simpler(block: &[Statement]) -> Vec<Vec<Statement>> {
    let mut all = Vec::new();
    for (at, statement) in block.iter().enumerate() {
        let with = |middle: &[Statement]| [&block[..at], middle, &block[at + 1..]].concat();
        all.push(with(&[]));
        if let Statement::Poll { atomic, rounds: rounds @ 2.., counter } = *statement {
            for rounds in [rounds / 2, rounds - 1] {
                all.push(with(&[Statement::Poll { atomic, rounds, counter }]));
            }
        }
        let Some(inner) = statement.blocks() else { continue };
        all.push(with(inner));
        if let Statement::Repeat(times @ 2.., inner) = statement {
            all.push(with(&[Statement::Repeat(times - 1, inner.clone())]));
        }
        for smaller in simpler(inner) {
            let mut statement = statement.clone();
            if let Some(inner) = statement.blocks_mut() {
                *inner = smaller;
            }
            all.push(with(&[statement]));
        }
    }
    all
}
