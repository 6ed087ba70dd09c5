//! Random programs with heap records: allocated by one thread, published to others, handed over,
//! linked and dropped; with fields that are used under the lock of the record, under a global lock,
//! or under none.
//!
//! The protection of a record changes during its life, and mistakes occur sometimes. Half of the
//! programs start with one thread that starts others and may join them, and that uses a variable
//! before and after without a lock.

use super::Random;
use super::text::Text;

/// The text of the program with this seed.
pub fn program(seed: u64) -> String {
    let mut random = Random::new(seed ^ 0x0BEC_0BD5);
    let threads = *random.pick(&[1, 1, 2, 2, 3]);
    // How often a lock is omitted: never, sometimes, often.
    let careless = *random.pick(&[0, 0, 5, 20, 50]);
    let mut generator =
        Generator { random, text: Text::default(), careless, depth: 0, repeats: false };
    generator.declarations(seed);
    for thread in 0..threads {
        generator.thread(thread, [5, 4, 3][threads - 1], threads);
    }
    generator.text.finish()
}

struct Generator {
    random: Random,
    text: Text,
    /// The percentage of uses of a field without its lock.
    careless: usize,
    depth: usize,
    /// Inside a loop, where nothing is allocated: a list that grows forever has too many states.
    repeats: bool,
}

impl Generator {
    fn declarations(&mut self, seed: u64) {
        self.text.line(format!("// random program with records {seed}"));
        if self.random.percent(60) {
            self.text.line("steps statement;");
        }
        for line in [
            "record Node { lock: mutex, value: 0..3, other: 0..3, next: *Node }",
            "mutex m;",
            "channel(1, *Node) ch;",
            "atomic var g: *Node;",
            "var h: *Node;",
            "var x: 0..3 = 0;",
            "atomic var f: 0..3 = 0;",
        ] {
            self.text.line(line);
        }
        self.text.open("init");
        self.text.line("g = new Node { value: 0, other: 0, next: null };");
        let line = *self.random.pick(&[
            "h = g;",
            "h = new Node { value: 1, other: 0, next: g };",
            "skip;",
        ]);
        self.text.line(line);
        self.text.close();
        // The pointer is dropped with the last access.
        self.text.line("fn put(n: *Node, v: 0..3) { if n != null { n.value = v; } }");
        self.text.line("fn get(n: *Node) -> 0..3 { if n == null { return 0; } return n.value; }");
        self.text.open("fn child(p: *Node)");
        self.text.line("var q: 0..3 = 0;");
        for _ in 0..1 + self.random.below(2) {
            self.statement();
        }
        self.text.close();
    }

    fn thread(&mut self, number: usize, statements: usize, threads: usize) {
        self.text.open(format!("thread t{number}"));
        self.text.line("var q: 0..3 = 0;");
        let start =
            *self.random.pick(&["new Node { value: 2, other: 0, next: null }", "g", "null"]);
        self.text.line(format!("var p: *Node = {start};"));
        let spawns = number == 0 && self.random.percent(if threads == 1 { 100 } else { 20 });
        let at = self.random.below(statements);
        for statement in 0..1 + statements.max(at) {
            if spawns && statement == at {
                self.family(threads);
            } else if self.random.percent(80) {
                self.statement();
            }
        }
        if self.random.percent(10) {
            self.text.line("loop { f = f; q = f; }");
        }
        self.text.close();
    }

    /// Starts threads, continues, and may join them.
    fn family(&mut self, threads: usize) {
        let children = if threads == 1 { 1 + self.random.below(2) } else { 1 };
        self.text.line("x = 1;");
        for child in 0..children {
            let given = *self.random.pick(&[
                "p",
                "new Node { value: 1, other: 1, next: null }",
                "new Node { value: 0, other: 2, next: p }",
            ]);
            self.text.line(format!("var k{child} = spawn child({given});"));
        }
        self.statement();
        for child in 0..children {
            if self.random.percent(75) {
                self.text.line(format!("join k{child};"));
            }
        }
        let line = *self.random.pick(&["x = 2;", "assert x != 2;", "q = x;"]);
        self.text.line(line);
    }

    fn statement(&mut self) {
        let value = self.random.below(3);
        match self.random.below(if self.depth >= 1 { 19 } else { 24 }) {
            0 | 1 if !self.repeats => {
                let next = *self.random.pick(&["null", "p", "g"]);
                self.text
                    .line(format!("p = new Node {{ value: {value}, other: 0, next: {next} }};"));
            }
            2..=4 => self.section(),
            5 | 6 => {
                let line = match self.random.below(3) {
                    0 => format!("put(p, {value});"),
                    1 => "q = get(p);".to_owned(),
                    _ => format!("assert get(p) != {value};"),
                };
                self.text.line(line);
            }
            7 | 8 => self.text.line("g = p;"),
            9 => self.text.line("p = g;"),
            10 => {
                let line = *self.random.pick(&["h = p;", "p = h;", "h = null;"]);
                self.guarded("m", line);
            }
            11 => {
                let line = *self.random.pick(&[
                    "p.next = g;",
                    "p = p.next;",
                    "p.next = p;",
                    "g = p.next;",
                    "g.next = p;",
                ]);
                self.text.line(format!("if p != null && g != null {{ {line} }}"));
            }
            12 => {
                let line = *self.random.pick(&["p = null;", "g = null;"]);
                self.text.line(line);
            }
            13 => {
                let line = *self.random.pick(&[
                    "ch.send(p); p = null;",
                    "ch.send(p);",
                    "p = ch.recv();",
                    "p = ch.recv();",
                ]);
                self.text.line(line);
            }
            14 => self.text.line(format!("f = {value};")),
            15 => self.text.line(format!("await f == {value};")),
            16 => self.text.line(format!("assert f != {value} || q != {value};")),
            17 => {
                let line = *self.random.pick(&["x = 0;", "q = x;", "assert x != 1;", "skip;"]);
                self.text.line(line);
            }
            18 => {
                let line = *self.random.pick(&[
                    "atomic { if p != null { g = p; p.value = 1; } }",
                    "atomic { p = g; g = null; }",
                    "atomic { if p != null { p.value = 2; p = null; } }",
                    "atomic { if g != null { q = g.value; } g = null; }",
                    "atomic { if g != null { g.next = p; } p = null; }",
                ]);
                self.text.line(line);
            }
            19 | 20 => {
                let head = match self.random.below(3) {
                    0 => format!("if q == {value}"),
                    1 => format!("if f == {value}"),
                    _ => "if p != null".into(),
                };
                self.text.open(head);
                self.nested();
                self.text.close();
            }
            21 => {
                self.text.open("choose");
                self.nested();
                self.text.close();
                self.text.or();
                self.nested();
                self.text.close();
            }
            22 => {
                self.text.open("loop");
                self.repeats = true;
                self.nested();
                self.repeats = false;
                self.text.line("choose { break; } or { f = f; }");
                self.text.close();
            }
            _ => self.section(),
        }
    }

    fn nested(&mut self) {
        self.depth += 1;
        self.statement();
        self.depth -= 1;
    }

    /// A few uses of a record's fields, under its own lock, under the global one, or under none.
    fn section(&mut self) {
        let (field, own) = *self.random.pick(&[("value", true), ("other", false)]);
        self.text.open("if p != null");
        let careless = self.random.percent(self.careless);
        let lock = match careless.then(|| self.random.below(3)) {
            None => Some(own),
            Some(0) => Some(!own),
            Some(_) => None,
        };
        let lock = lock.map(|own| if own { "p.lock".to_owned() } else { "m".to_owned() });
        if let Some(lock) = &lock {
            let tried = self.random.percent(5);
            self.text.line(if tried {
                format!("if !{lock}.try_lock() {{ {lock}.lock(); }}")
            } else {
                format!("{lock}.lock();")
            });
        }
        for _ in 0..1 + self.random.below(2) {
            let value = self.random.below(3);
            let line = match self.random.below(5) {
                0 => format!("q = p.{field};"),
                1 => format!("assert p.{field} != {value};"),
                2 => format!("p.{field} = (p.{field} + 1) % 3;"),
                _ => format!("p.{field} = {value};"),
            };
            self.text.line(line);
        }
        if let Some(lock) = lock.filter(|_| !self.random.percent(4)) {
            self.text.line(format!("{lock}.unlock();"));
        }
        self.text.close();
    }

    /// A line, usually under a lock.
    fn guarded(&mut self, lock: &str, line: &str) {
        if self.random.percent(self.careless) {
            return self.text.line(line);
        }
        self.text.line(format!("{lock}.lock();"));
        self.text.line(line);
        self.text.line(format!("{lock}.unlock();"));
    }
}
