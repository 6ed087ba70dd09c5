//! Random programs: small enough for brute force, with all constructs that are difficult for
//! reductions.
//!
//! Every program terminates: loops have few iterations. It may block, fail, deadlock, misuse a lock
//! or wait forever; the oracle decides. The same seed gives the same program on every machine.

pub mod locked;
pub mod outcomes;
pub mod records;
mod text;

use self::text::Text;

/// A small random number generator (PCG, 64 bits of state): a recorded seed must give the same
/// program in five years.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Starts with a seed.
    pub fn new(seed: u64) -> Random {
        let mut random = Random(seed ^ 0x9E37_79B9_7F4A_7C15);
        random.next();
        random.next();
        random
    }

    fn next(&mut self) -> u32 {
        let old = self.0;
        self.0 =
            old.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((((old >> 18) ^ old) >> 27) as u32).rotate_right((old >> 59) as u32)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        ((u64::from(self.next()) * n as u64) >> 32) as usize
    }

    /// True with a probability of `n` percent.
    pub fn percent(&mut self, n: usize) -> bool {
        self.below(100) < n
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// The constructs of a random program.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// The least and the most threads.
    pub threads: (usize, usize),
    /// The most statements of a thread, not counting those that belong together (`lock` …
    /// `unlock`).
    pub statements: usize,
}

impl Default for Shape {
    fn default() -> Shape {
        Shape { threads: (2, 4), statements: 4 }
    }
}

/// The text of the random program with this seed.
pub fn program(seed: u64, shape: Shape) -> String {
    let mut random = Random::new(seed);
    let threads = shape.threads.0 + random.below(shape.threads.1 - shape.threads.0 + 1);
    // Four threads of full length have too many interleavings.
    let statements = if threads > 3 { shape.statements.min(2) } else { shape.statements };
    let mut generator = Generator { random, text: Text::default(), spawn: false, depth: 0 };
    generator.declarations(seed);
    for thread in 0..threads {
        generator.thread(thread, statements);
    }
    generator.text.finish()
}

struct Generator {
    random: Random,
    text: Text,
    /// Whether this thread may start another one.
    spawn: bool,
    depth: usize,
}

const SHARED: [&str; 4] = ["x", "y", "a[0]", "a[r]"];
const LOCALS: [&str; 2] = ["r", "q"];

impl Generator {
    fn declarations(&mut self, seed: u64) {
        self.text.line(format!("// random program {seed}"));
        if self.random.percent(20) {
            self.text.line("steps statement;");
        }
        self.text.line("var x = 0;");
        self.text.line("atomic var y: 0..=3 = 1;");
        self.text.line("var a: [int; 2];");
        self.text.line("mutex m, n;");
        self.text.line("condvar c;");
        self.text.line("rwlock w;");
        self.text.line("semaphore(1) s;");
        self.text.line("channel(1, int) ch;");
        self.text.line("channel(0, int) meet;");
        let event = *self.random.pick(&["event e;", "event(auto) e;"]);
        self.text.line(event);
        let parties = 2 + self.random.below(2);
        self.text.line(format!("barrier({parties}) b;"));
        self.text.open("fn helper(k: int)");
        self.spawn = false;
        self.text.line("var r: 0..=1 = 0;");
        self.text.line("var q = k;");
        for _ in 0..1 + self.random.below(2) {
            self.statement();
        }
        self.text.close();
    }

    fn thread(&mut self, number: usize, statements: usize) {
        self.text.open(format!("thread t{number}"));
        self.text.line("var r: 0..=1 = 0;");
        self.text.line("var q = 0;");
        self.spawn = number == 0 && self.random.percent(15);
        let count = 1 + self.random.below(statements);
        for _ in 0..count {
            self.statement();
        }
        self.text.close();
    }

    fn block(&mut self, head: impl AsRef<str>) {
        self.text.open(head);
        self.depth += 1;
        for _ in 0..1 + self.random.below(2) {
            self.statement();
        }
        self.depth -= 1;
        self.text.close();
    }

    fn value(&mut self) -> String {
        match self.random.below(6) {
            0 => "r".into(),
            1 => "q".into(),
            2 => self.random.below(3).to_string(),
            3 => format!("{} + 1", self.random.pick(&["x", "y", "q"])),
            4 => "(q + r) % 3".into(),
            _ => (*self.random.pick(&SHARED)).into(),
        }
    }

    fn condition(&mut self) -> String {
        let left = *self.random.pick(&["x", "y", "a[0]", "a[1]", "q", "r"]);
        let op = *self.random.pick(&["==", "!=", "<", ">="]);
        let right = self.random.below(3);
        match self.random.below(6) {
            0 => format!("{left} {op} {right} && x != 2"),
            1 => format!("{left} {op} {right} || y == 0"),
            _ => format!("{left} {op} {right}"),
        }
    }

    fn statement(&mut self) {
        let nested = self.depth >= 2;
        match self.random.below(if nested { 20 } else { 30 }) {
            0..=3 => {
                let (target, value) = (*self.random.pick(&SHARED), self.value());
                self.text.line(format!("{target} = {value};"));
            }
            4..=6 => {
                let (target, source) = (*self.random.pick(&LOCALS), *self.random.pick(&SHARED));
                let value = if target == "r" { format!("{source} % 2") } else { source.to_owned() };
                // A remainder may be negative, and `0..=1` may not hold it: then that is the
                // finding.
                self.text.line(format!("{target} = {value};"));
            }
            7 => self.text.line("x += 1;"),
            8 => {
                let value = 1 + self.random.below(2);
                let old = self.random.below(2);
                self.text.line(format!("if cas(y, {old}, {value}) {{ q = 1; }}"));
            }
            9 => self.text.line("q = fetch_add(x, 1);"),
            10 => {
                let condition = self.condition();
                let word = *self.random.pick(&["await", "await", "assume"]);
                self.text.line(format!("{word} {condition};"));
            }
            11 => {
                let condition = self.condition();
                self.text.line(format!("assert {condition} || q != 1;"));
            }
            12 => self.text.line("s.acquire();"),
            13 => self.text.line("s.release();"),
            14 => self.text.line("ch.send(q);"),
            15 => self.text.line("q = ch.recv();"),
            16 => {
                let line = *self.random.pick(&[
                    "e.set();",
                    "e.wait();",
                    "e.reset();",
                    "c.notify_one();",
                    "c.notify_all();",
                ]);
                self.text.line(line);
            }
            17 => {
                let line = *self.random.pick(&[
                    "q = choose(0..2);",
                    "yield;",
                    "skip;",
                    "x = swap(y, 2);",
                    "b.wait();",
                ]);
                self.text.line(line);
            }
            18 => {
                let line = *self.random.pick(&[
                    "meet.send(1);",
                    "q = meet.recv();",
                    "helper(q);",
                    "helper(1);",
                ]);
                let line = if self.text.contains("thread t0") { line } else { "skip;" };
                self.text.line(line);
            }
            19 => {
                if self.random.percent(30) {
                    self.text.line("if m.try_lock() { q = 2; m.unlock(); }");
                } else if self.spawn {
                    self.spawn = false;
                    self.text.line("var h = spawn helper(0);");
                    let then = if self.random.percent(70) { "join h;" } else { "x = 1;" };
                    self.text.line(then);
                } else {
                    self.text.line("q = ch.len();");
                }
            }
            20..=22 => self.critical_section(),
            23 | 24 => {
                let condition = self.condition();
                self.block(format!("if {condition}"));
            }
            25 => {
                let rounds = 1 + self.random.below(2);
                self.block(format!("for i in 0..{rounds}"));
            }
            26 => {
                self.block("choose");
                self.text.or();
                self.text.line("q = 1;");
                self.text.close();
            }
            27 => {
                self.text.open("atomic");
                if self.random.percent(30) {
                    let condition = self.condition();
                    self.text.line(format!("await {condition};"));
                }
                for _ in 0..1 + self.random.below(2) {
                    let (target, value) = (*self.random.pick(&SHARED), self.value());
                    self.text.line(format!("{target} = {value};"));
                }
                self.text.close();
            }
            28 => {
                self.text.line("q = 0;");
                let condition = self.condition();
                self.text.open(format!("while q < 2 && ({condition})"));
                self.text.line("q += 1;");
                self.text.close();
            }
            _ => {
                let scrutinee = *self.random.pick(&["x", "y", "q"]);
                self.text.open(format!("match {scrutinee}"));
                self.block("0 =>");
                self.text.line("_ => { q = 2; }");
                self.text.close();
            }
        }
    }

    fn critical_section(&mut self) {
        let (lock, unlock) = *self.random.pick(&[
            ("m.lock();", "m.unlock();"),
            ("m.lock();", "m.unlock();"),
            ("n.lock();", "n.unlock();"),
            ("w.read();", "w.unlock_read();"),
            ("w.write();", "w.unlock_write();"),
        ]);
        self.text.line(lock);
        self.depth += 2;
        for _ in 0..1 + self.random.below(2) {
            self.statement();
        }
        if lock == "m.lock();" && self.random.percent(35) {
            self.text.line("if x == 0 { c.wait(m); }");
        }
        self.depth -= 2;
        // Sometimes it is omitted, or done twice.
        match self.random.below(20) {
            0 => {}
            1 => {
                self.text.line(unlock);
                self.text.line(unlock);
            }
            _ => self.text.line(unlock),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use preempt_lang::source::Source;

    #[test]
    fn random_programs_are_programs() {
        let writers = [|seed| program(seed, Shape::default()), locked::program, records::program];
        let outcomes = |seed| outcomes::Kind::ALL.map(|kind| outcomes::program(kind, seed));
        let texts = (0..2_000).flat_map(|seed| {
            writers.map(|program| program(seed)).into_iter().chain(outcomes(seed))
        });
        for text in texts {
            let source = Source::new("random.pre", text.as_str());
            if let Err(diagnostics) = preempt_lang::check(&source, &[]) {
                let lines =
                    diagnostics.iter().map(|d| format!("{}: {}\n", source.site(d.span), d.message));
                panic!("{text}\n{}", lines.collect::<String>());
            }
        }
    }

    #[test]
    fn a_seed_is_a_program() {
        assert_eq!(program(7, Shape::default()), program(7, Shape::default()));
        assert_ne!(program(7, Shape::default()), program(8, Shape::default()));
    }
}
