//! Random programs with straight-line threads: no branch, no loop, no blocking. For the reduction
//! by blocks.

use std::fmt::Write;

use crate::random::{Random, Shape};

/// Variables that several threads may use.
const SHARED: [&str; 5] = ["x", "y", "z", "a[0]", "a[1]"];

/// The text of the random program with this seed. Some of its steps may fail.
pub fn program(seed: u64, shape: Shape) -> String {
    let mut random = Random::new(seed);
    let mut text = format!("// random straight lines {seed}\n");
    if random.percent(25) {
        text += "steps statement;\n";
    }
    text += "atomic var x = 0; atomic var y = 1; atomic var z: 0..=9 = 0; var a: [int; 2];\n";
    // Few variables make many conflicts.
    let places = &SHARED[..1 + random.below(SHARED.len())];
    let fails = random.percent(30);
    let threads = shape.threads.0 + random.below(shape.threads.1 - shape.threads.0 + 1);
    for thread in 0..threads {
        writeln!(text, "var p{thread} = 0;\nthread t{thread} {{\n    var r = 0;\n    var q = 1;")
            .expect("a string takes all text");
        let statements = if threads > 3 { shape.statements.min(2) } else { shape.statements };
        for _ in 0..random.below(statements + 1) {
            writeln!(text, "    {}", statement(&mut random, places, thread, fails))
                .expect("a string takes all text");
        }
        text += "}\n";
    }
    text
}

fn statement(random: &mut Random, places: &[&str], thread: usize, fails: bool) -> String {
    let (a, b) = (*random.pick(places), *random.pick(places));
    let number = random.below(3);
    match random.below(if fails { 18 } else { 15 }) {
        0..=2 => format!("{a} = {number};"),
        3..=5 => format!("r = {a};"),
        6 => format!("{a} = q;"),
        7 => format!("{a} = (r + {number}) % 4;"),
        8 => format!("atomic {{ {a} = ({b} + {number}) % 5; }}"),
        9 => format!("atomic {{ r = {a}; q = {b}; }}"),
        10 => format!("q = fetch_add({}, 1);", if a == "z" { "x" } else { a }),
        11 => format!("r = swap({a}, {number});"),
        12 => format!("q = {a} + {b};"),
        13 => format!("p{thread} = r;"),
        14 => "skip;".to_owned(),
        15 => format!("assert {a} != {number};"),
        16 => format!("assert r + q != {number};"),
        _ => format!("q = 6 / {a};"),
    }
}
