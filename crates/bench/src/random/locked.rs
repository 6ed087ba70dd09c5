//! Random programs in which transactions can reduce something: variables that are mostly used under
//! their locks, local steps, and endless loops.
//!
//! Unlike those of [`program`](super::program) they need not terminate; they have few states, since
//! all variables have small ranges. Sometimes a thread omits a lock, takes the wrong one, or uses a
//! variable once before all others do: then the variable is protected in most executions, but not
//! in all.

use super::Random;
use super::text::Text;

/// The text of the program with this seed.
pub fn program(seed: u64) -> String {
    let mut random = Random::new(seed ^ 0x5DEE_CE66);
    let threads = 2 + random.below(2);
    // How often a lock is omitted: never, sometimes, often.
    let careless = *random.pick(&[0, 0, 3, 10, 30]);
    let mut generator = Generator {
        random,
        text: Text::default(),
        careless,
        depth: 0,
        held: Vec::new(),
        idle: "q = h;",
        again: "skip;",
    };
    generator.declarations(seed);
    for thread in 0..threads {
        generator.thread(thread, if threads > 2 { 3 } else { 5 });
    }
    generator.text.finish()
}

struct Generator {
    random: Random,
    text: Text,
    /// The percentage of uses of a protected variable without its lock.
    careless: usize,
    depth: usize,
    /// The locks of the enclosing sections.
    held: Vec<&'static str>,
    /// The operations of a thread in an endless loop. A step that never ends is another error.
    idle: &'static str,
    /// How an iteration of a loop ends early.
    again: &'static str,
}

/// Variables, their locks, and how these are acquired and released for reading and for writing.
const PROTECTED: [(&str, [&str; 2]); 4] = [
    ("p", ["m.lock();", "m.unlock();"]),
    ("a[0]", ["l[0].lock();", "l[0].unlock();"]),
    ("a[1]", ["l[1].lock();", "l[1].unlock();"]),
    ("v", ["w.write();", "w.unlock_write();"]),
];

impl Generator {
    fn declarations(&mut self, seed: u64) {
        self.text.line(format!("// random program with locks {seed}"));
        if self.random.percent(60) {
            self.text.line("steps statement;");
            (self.idle, self.again) = ("skip;", "continue;");
        }
        for line in [
            "mutex m;",
            "mutex l[2];",
            "rwlock w;",
            "condvar c;",
            "semaphore(1) s;",
            "event e;",
            "channel(1, 0..3) ch;",
            "var p: 0..3 = 0;",
            "var v: 0..3 = 0;",
            "var a: [0..3; 2];",
            "atomic var g: 0..3 = 0;",
            "atomic var h: 0..3 = 0;",
        ] {
            self.text.line(line);
        }
        self.text.open("fn child(k: 0..3)");
        self.text.line("var q: 0..3 = k;");
        self.section();
        self.text.close();
    }

    fn thread(&mut self, number: usize, statements: usize) {
        self.text.open(format!("thread t{number}"));
        self.text.line("var q: 0..3 = 0;");
        for _ in 0..1 + self.random.below(statements) {
            self.statement(number);
        }
        match self.random.below(10) {
            0 | 1 => self.text.line(format!("loop {{ {0} {0} }}", self.idle)),
            2 => self.text.line("assume false;"),
            _ => {}
        }
        self.text.close();
    }

    fn statement(&mut self, thread: usize) {
        match self.random.below(if self.depth >= 2 { 13 } else { 20 }) {
            0..=3 => self.section(),
            4 | 5 => {
                let (target, value) = (*self.random.pick(&["g", "h"]), self.random.below(3));
                self.text.line(format!("{target} = {value};"));
            }
            6 => {
                let (source, value) = (*self.random.pick(&["g", "h"]), self.random.below(3));
                let word = *self.random.pick(&["await", "assume"]);
                self.text.line(format!("{word} {source} == {value};"));
            }
            7 => {
                let (source, value) = (*self.random.pick(&["g", "h", "q"]), self.random.below(3));
                self.text.line(format!("assert {source} != {value};"));
            }
            8 => self.text.line("skip;"),
            9 => {
                let source = *self.random.pick(&["g", "h", "choose(0..3)"]);
                self.text.line(format!("q = {source};"));
            }
            10 => {
                let line = *self.random.pick(&[
                    "s.acquire();",
                    "s.release();",
                    "e.set();",
                    "e.wait();",
                    "e.reset();",
                ]);
                self.text.line(line);
            }
            11 => {
                let line = *self.random.pick(&[
                    "ch.send(q);",
                    "q = ch.recv();",
                    "c.notify_one();",
                    "c.notify_all();",
                ]);
                self.text.line(line);
            }
            12 => {
                let line = *self.random.pick(&[
                    "if s.try_acquire() { q = 1; }",
                    "if m.try_lock() { m.unlock(); }",
                    "yield;",
                ]);
                let line = if self.random.percent(30) { line } else { "skip;" };
                self.text.line(line);
            }
            13 | 14 => {
                let (source, value) = (*self.random.pick(&["g", "q", "q"]), self.random.below(3));
                self.block(thread, format!("if {source} == {value}"));
            }
            15 => {
                self.block(thread, "choose".into());
                self.text.or();
                self.statement_at(thread);
                self.text.close();
            }
            16 | 17 => {
                self.text.open("loop");
                self.depth += 1;
                self.statement(thread);
                if self.random.percent(70) {
                    let other = if self.random.percent(50) { "skip;" } else { self.again };
                    self.text.line(format!("choose {{ break; }} or {{ {other} }}"));
                }
                self.text.line(self.idle);
                self.depth -= 1;
                self.text.close();
            }
            18 => {
                self.text.open("atomic");
                let (target, value) =
                    (*self.random.pick(&["g", "h", "p", "a[0]"]), self.random.below(3));
                let (before, after) = *self.random.pick(&[
                    ("", ""),
                    ("m.lock(); ", ""),
                    ("m.lock(); ", "m.unlock();"),
                ]);
                self.text.line(format!("{before}{target} = {value}; {after}"));
                self.text.close();
            }
            _ if thread == 0 && !self.text.contains("spawn") => {
                self.text.line("var k = spawn child(q);");
                if self.random.percent(60) {
                    self.text.line("join k;");
                }
            }
            _ => self.section(),
        }
    }

    fn statement_at(&mut self, thread: usize) {
        self.depth += 1;
        self.statement(thread);
        self.depth -= 1;
    }

    fn block(&mut self, thread: usize, head: String) {
        self.text.open(head);
        for _ in 0..1 + self.random.below(2) {
            self.statement_at(thread);
        }
        self.text.close();
    }

    /// A few uses of a protected variable, under its lock or not.
    fn section(&mut self) {
        let (variable, [mut lock, mut unlock]) = *self.random.pick(&PROTECTED);
        let reads = variable == "v" && self.random.percent(50);
        if reads {
            [lock, unlock] = ["w.read();", "w.unlock_read();"];
        }
        let already = self.held.contains(&variable);
        let careless = self.random.percent(self.careless);
        if careless && self.random.percent(30) {
            [lock, unlock] = ["m.lock();", "m.unlock();"];
        }
        let locks = !already
            && (!careless || lock == "m.lock();" && variable != "p" && !self.held.contains(&"p"));
        if locks {
            self.text.line(lock);
            self.held.push(variable);
        }
        for _ in 0..1 + self.random.below(2) {
            self.access(variable, reads);
        }
        if self.held.len() < 2 && self.random.percent(15) {
            self.section();
        }
        if locks && variable == "p" && self.random.percent(20) {
            self.text.line("if p == 0 { c.wait(m); }");
        }
        if locks {
            self.held.pop();
            match self.random.below(25) {
                0 => {}
                1 => {
                    self.text.line(unlock);
                    self.text.line(unlock);
                }
                _ => self.text.line(unlock),
            }
        }
    }

    fn access(&mut self, variable: &str, reads: bool) {
        let value = self.random.below(3);
        match self.random.below(if reads { 2 } else { 6 }) {
            0 => self.text.line(format!("q = {variable};")),
            1 => self.text.line(format!("assert {variable} != {value};")),
            2 | 3 => self.text.line(format!("{variable} = {value};")),
            4 => self.text.line(format!("{variable} = q;")),
            _ => self.text.line(format!("{variable} = ({variable} + 1) % 3;")),
        }
    }
}
