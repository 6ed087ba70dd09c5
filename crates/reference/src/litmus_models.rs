//! Litmus programs as models with weak memory.
//!
//! The first thread spawns the others and joins them. Threads keep their registers in local
//! variables and leave them in plain variables at their ends, so that the first thread can assert
//! what they were.

use std::fmt::Write as _;

use preempt_litmus::program::{Instruction, Operand, REGISTERS, written};
use preempt_litmus::{Order, Program};

/// The program as a model.
pub fn model(program: &Program) -> String {
    model_with(program, "")
}

/// The program as a model that fails at the end of every execution, with the text of its outcome,
/// `no registers` if that is empty, or `another outcome`.
pub fn model_of_outcomes<'o>(
    program: &Program,
    outcomes: impl IntoIterator<Item = &'o str>,
) -> String {
    let mut end = String::new();
    for (name, _) in results(program) {
        let _ = writeln!(end, "    var final_{name} = {name};");
    }
    for outcome in outcomes {
        let equal = outcome.split_whitespace().map(|word| {
            let (name, value) = word.split_once('=').expect("an outcome consists of equations");
            format!("final_{} == {value}", name.replace('.', "_"))
        });
        let equal: Vec<String> = equal.collect();
        let condition = if equal.is_empty() { "true".to_owned() } else { equal.join(" && ") };
        let message = if outcome.is_empty() { "no registers" } else { outcome };
        let _ = writeln!(end, "    assert !({condition}), \"{message}\";");
    }
    model_with(program, &format!("{end}    assert false, \"another outcome\";\n"))
}

/// The variables that tell outcomes apart, and whether they are atomic.
fn results(program: &Program) -> Vec<(String, bool)> {
    let mut results = Vec::new();
    for (thread, code) in program.threads.iter().enumerate() {
        let registers = written(code).into_iter().enumerate().filter(|(_, written)| *written);
        results.extend(registers.map(|(register, _)| (format!("t{thread}_r{register}"), false)));
    }
    for (location, name) in program.locations.iter().enumerate() {
        if !program.mutexes[location] {
            results.push((name.clone(), !program.is_plain(location)));
        }
    }
    results
}

fn model_with(program: &Program, end: &str) -> String {
    let mut text = String::from("memory weak;\n");
    for (name, is_atomic) in results(program) {
        let atomic = if is_atomic { "atomic " } else { "" };
        let _ = writeln!(text, "{atomic}var {name} = 0;");
    }
    for (name, is_mutex) in program.locations.iter().zip(&program.mutexes) {
        if *is_mutex {
            let _ = writeln!(text, "mutex {name};");
        }
    }
    let threads = program.threads.iter().enumerate();
    for (thread, code) in threads.clone() {
        let _ = writeln!(text, "fn thread{thread}() {{");
        for register in 0..REGISTERS {
            let _ = writeln!(text, "    var r{register} = 0;");
        }
        block(program, code, &mut text);
        for register in (0..REGISTERS).filter(|&register| written(code)[register]) {
            let _ = writeln!(text, "    t{thread}_r{register} = r{register};");
        }
        text.push_str("}\n");
    }
    text.push_str("thread main {\n");
    for (thread, _) in threads.clone() {
        let _ = writeln!(text, "    var handle{thread} = spawn thread{thread}();");
    }
    for (thread, _) in threads {
        let _ = writeln!(text, "    join handle{thread};");
    }
    text + end + "}\n"
}

fn block(program: &Program, code: &[Instruction], text: &mut String) {
    let mut at = 0;
    while at < code.len() {
        if let Instruction::If(register, value, skipped) = code[at] {
            let _ = writeln!(text, "    if r{register} == {value} {{");
            block(program, &code[at + 1..=at + skipped], text);
            text.push_str("    }\n");
            at += 1 + skipped;
            continue;
        }
        let _ = writeln!(text, "    {};", statement(program, code[at]));
        at += 1;
    }
}

fn statement(program: &Program, instruction: Instruction) -> String {
    let name = |location: usize| &program.locations[location];
    match instruction {
        Instruction::Load(r, x, Order::Plain) => format!("r{r} = {}", name(x)),
        Instruction::Load(r, x, order) => format!("r{r} = load({}, {})", name(x), word(order)),
        Instruction::Store(x, value, Order::Plain) => format!("{} = {}", name(x), operand(value)),
        Instruction::Store(x, value, order) => {
            format!("store({}, {}, {})", name(x), operand(value), word(order))
        }
        Instruction::Add(r, x, value, order) => {
            format!("r{r} = fetch_add({}, {value}, {})", name(x), word(order))
        }
        Instruction::Swap(r, x, value, order) => {
            format!("r{r} = swap({}, {value}, {})", name(x), word(order))
        }
        Instruction::CompareExchange(r, x, old, new, success, failure) => format!(
            "r{r} = compare_exchange({}, {old}, {new}, {}, {})",
            name(x),
            word(success),
            word(failure)
        ),
        Instruction::Fence(order) => format!("fence({})", word(order)),
        Instruction::Lock(m) => format!("{}.lock()", name(m)),
        Instruction::Unlock(m) => format!("{}.unlock()", name(m)),
        Instruction::If(..) => unreachable!("a condition is a block"),
    }
}

fn operand(operand: Operand) -> String {
    match operand {
        Operand::Constant(value) => value.to_string(),
        Operand::Register(register, summand) => format!("r{register} + {summand}"),
    }
}

fn word(order: Order) -> &'static str {
    match order {
        Order::Plain => unreachable!("a plain access has no ordering"),
        Order::Relaxed => "relaxed",
        Order::Acquire => "acquire",
        Order::Release => "release",
        Order::AcqRel => "acq_rel",
        Order::SeqCst => "seq_cst",
    }
}
