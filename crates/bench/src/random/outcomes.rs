//! Random programs of few steps that are difficult for reductions: steps with several outcomes and
//! different accesses, waits on plain variables after plain accesses, several `atomic` blocks in a
//! row, and threads that fail.
//!
//! Every program terminates. Two or three threads with few statements each have few enough
//! interleavings for brute force.

use super::Random;
use super::text::Text;

/// The main construct of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `choose` inside `atomic`, with different accesses in every alternative.
    Choices,
    /// `await` and `assume` on plain variables, after plain accesses and before them.
    Waits,
    /// Several `atomic` blocks in a row, some of them empty, with plain and atomic variables.
    Atomics,
    /// Threads that fail: assertions, indices, divisions, locks that are not held.
    Failures,
}

impl Kind {
    /// All kinds, in the order of the command's output.
    pub const ALL: [Kind; 4] = [Kind::Choices, Kind::Waits, Kind::Atomics, Kind::Failures];
}

/// The text of the random program of this kind with this seed.
pub fn program(kind: Kind, seed: u64) -> String {
    let mut generator = Generator { random: Random::new(seed), text: Text::default(), kind };
    generator.text.line(format!("// {kind:?} {seed}"));
    if generator.random.percent(15) {
        generator.text.line("steps statement;");
    }
    generator.text.line("const OFF = false;");
    generator.text.line("var x = 0;");
    generator.text.line("var y = 1;");
    generator.text.line("atomic var z: 0..=2 = 0;");
    generator.text.line("var a: [int; 2];");
    generator.text.line("mutex m;");
    let threads = 2 + generator.random.below(2);
    for thread in 0..threads {
        generator.text.open(format!("thread t{thread}"));
        generator.text.line("var l = 0;");
        for _ in 0..1 + generator.random.below(if threads == 2 { 4 } else { 2 }) {
            generator.statement();
        }
        generator.text.close();
    }
    generator.text.finish()
}

struct Generator {
    random: Random,
    text: Text,
    kind: Kind,
}

impl Generator {
    fn condition(&mut self) -> String {
        let variable = |random: &mut Random| *random.pick(&["x", "x", "y", "y", "z", "a[z % 2]"]);
        let comparison = |random: &mut Random| {
            let (left, op, right) =
                (variable(random), *random.pick(&["==", "!=", ">"]), random.below(2));
            format!("{left} {op} {right}")
        };
        let one = comparison(&mut self.random);
        match self.random.below(8) {
            0 => format!("{one} && {}", comparison(&mut self.random)),
            1 => format!("{one} || {}", comparison(&mut self.random)),
            2 => format!("{one} && z == 1"),
            3 => format!("z == 1 && {one}"),
            4 => format!("({one}) != OFF"),
            _ => one,
        }
    }

    /// One access, or none.
    fn simple(&mut self) -> String {
        let value = self.random.below(3);
        match self.random.below(10) {
            0 => format!("x = {value};"),
            1 => format!("y = {value};"),
            2 => format!("z = {value};"),
            3 => "x += 1;".into(),
            4 => "y += 1;".into(),
            5 => "l = x;".into(),
            6 => "l = y;".into(),
            7 => "l = z;".into(),
            8 => "a[z % 2] = l;".into(),
            _ => "skip;".into(),
        }
    }

    fn simple_line(&mut self) {
        let line = self.simple();
        self.text.line(line);
    }

    fn assertion(&mut self) {
        let condition = self.condition();
        self.text.line(format!("assert {condition} || l == 2;"));
    }

    /// A choice of two or three; the chosen block may choose again.
    fn choose(&mut self, depth: usize) {
        self.text.open("choose");
        for alternative in 0..2 + self.random.below(2) {
            if alternative > 0 {
                self.text.close();
                self.text.or();
            }
            match self.random.below(8) {
                0 if depth == 0 => self.choose(1),
                1 => self.assertion(),
                2 => {
                    let condition = self.condition();
                    self.text.line(format!("if {condition} {{ l = choose(0..2); }}"));
                }
                _ => self.simple_line(),
            }
        }
        self.text.close();
    }

    fn wait(&mut self) {
        let (word, condition) =
            (*self.random.pick(&["await", "await", "assume", "end: await"]), self.condition());
        self.text.line(format!("{word} {condition};"));
    }

    fn atomic_choice(&mut self) {
        self.text.open("atomic");
        if self.random.percent(20) {
            let condition = self.condition();
            self.text.line(format!("await {condition};"));
        }
        if self.random.percent(30) {
            self.simple_line();
        }
        if self.random.percent(20) {
            self.text.line("l = choose(0..z + 1);");
        }
        self.choose(0);
        if self.random.percent(30) {
            self.simple_line();
        }
        self.text.close();
    }

    fn atomics(&mut self) {
        for _ in 0..1 + self.random.below(3) {
            self.text.open("atomic");
            match self.random.below(6) {
                0 => {}
                1 => self.assertion(),
                2 => {
                    let condition = self.condition();
                    let (then, other) = (self.simple(), self.simple());
                    self.text.line(format!("if {condition} {{ {then} }} else {{ {other} }}"));
                }
                3 => self.choose(1),
                _ => {
                    self.simple_line();
                    self.simple_line();
                }
            }
            self.text.close();
        }
    }

    fn failure(&mut self) {
        let line = *self.random.pick(&[
            "a[y] = 1;",
            "l = 1 / y;",
            "m.unlock();",
            "assert OFF;",
            "l = a[x];",
            "l = x % z;",
        ]);
        self.text.line(line);
    }

    fn branch(&mut self) {
        let condition = match self.random.below(4) {
            0 => "OFF".into(),
            1 => "1 < 2".into(),
            _ => self.condition(),
        };
        let (then, other) = (self.simple(), self.simple());
        self.text.line(format!("if {condition} {{ {then} }} else {{ {other} }}"));
    }

    fn statement(&mut self) {
        let special = self.random.percent(55);
        match (self.kind, special) {
            (Kind::Choices, true) => self.atomic_choice(),
            (Kind::Waits, true) => {
                self.simple_line();
                self.wait();
            }
            (Kind::Atomics, true) => self.atomics(),
            (Kind::Failures, true) => self.failure(),
            _ => match self.random.below(16) {
                0..=6 => self.simple_line(),
                7 => self.assertion(),
                8 => self.wait(),
                9 => self.atomic_choice(),
                10 => self.atomics(),
                11 => self.failure(),
                12 | 13 => self.branch(),
                14 => self.choose(1),
                _ => {
                    self.text.line("m.lock();");
                    self.simple_line();
                    self.text.line("m.unlock();");
                }
            },
        }
    }
}
