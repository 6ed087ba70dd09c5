//! Generates operations on synchronisation objects.

use super::Writer;

impl Writer {
    /// A method call that may wait. It may also start an `atomic` block.
    pub(super) fn waiting_method(&mut self) -> Option<String> {
        let mut options: Vec<String> = Vec::new();
        for object in self.objects.clone() {
            options.extend(match object {
                "m" => vec!["m.lock()".to_owned()],
                "ms[_]" => vec!["ms[LAST].lock()".to_owned()],
                "r" => vec!["r.read()".to_owned(), "r.write()".to_owned()],
                "s" => vec!["s.acquire()".to_owned()],
                "e" => vec!["e.wait()".to_owned()],
                "q" => vec!["q.send(1)".to_owned(), "q.recv()".to_owned()],
                "qc" => vec!["qc.send(Blue)".to_owned(), "qc.recv()".to_owned()],
                "q0" => vec!["q0.recv()".to_owned()],
                _ => Vec::new(),
            });
        }
        (!options.is_empty()).then(|| self.rng.pick(&options))
    }

    /// A statement that can wait, with the mark `end:`.
    pub(super) fn marked(&mut self) {
        match self.waiting_method() {
            Some(method) => self.line(&format!("end: {method};")),
            None => {
                let condition = self.condition(1, true);
                self.line(&format!("end: await {condition};"));
            }
        }
    }

    /// An operation on an object.
    pub(super) fn object(&mut self, depth: usize) {
        let cells = self.visible().iter().any(|var| var.name == "cell");
        if cells && !self.at.no_wait && self.rng.one_in(3) {
            return self.between("cell.lock.lock();", "cell.lock.unlock();", depth);
        }
        if self.objects.is_empty() {
            return self.assignment();
        }
        let object = self.rng.pick(&self.objects.clone());
        let quiet = self.at.no_wait;
        match object {
            // `init` and the functions that it may call take no locks.
            "m" | "ms[_]" | "r" if self.at.no_choice => self.line("skip;"),
            "m" if quiet => self.one_of(&["m.try_lock();", "m.unlock();"]),
            "m" => match self.rng.below(4) {
                0 => self.one_of(&["m.lock();", "m.unlock();", "m.try_lock();"]),
                1 if self.globals.iter().any(|var| var.name == "lp") => {
                    self.between("lp.lock();", "(*lp).unlock();", depth);
                }
                _ => self.between("m.lock();", "m.unlock();", depth),
            },
            "ms[_]" if quiet => self.one_of(&["ms[0].try_lock();"]),
            "ms[_]" => {
                let at = self.rng.pick(&["0", "1", "LAST", "x"]);
                self.between(&format!("ms[{at}].lock();"), &format!("ms[{at}].unlock();"), depth);
            }
            "r" if quiet => {
                self.one_of(&["r.try_read();", "r.unlock_read();", "r.unlock_write();"])
            }
            "r" => match self.rng.below(5) {
                0 => self.one_of(&["r.unlock_read();", "r.unlock_write();", "r.read();"]),
                1 | 2 => self.between("r.write();", "r.unlock_write();", depth),
                _ => self.between("r.read();", "r.unlock_read();", depth),
            },
            "c" if quiet => self.one_of(&["c.notify_one();", "c.notify_all();"]),
            "c" => match self.rng.below(5) {
                0 => self.one_of(&["c.wait(m);"]),
                1 | 2 => self.one_of(&["c.notify_one();", "c.notify_one();", "c.notify_all();"]),
                3 => {
                    self.line("m.lock();");
                    self.line("end: c.wait(m);");
                    self.line("m.unlock();");
                }
                _ => {
                    self.line("m.lock();");
                    self.line("c.wait(m);");
                    self.statement(3);
                    self.line("m.unlock();");
                }
            },
            "s" if quiet => self.one_of(&["s.release();", "s.try_acquire();"]),
            "s" => self.one_of(&["s.acquire();", "s.release();", "s.try_acquire();"]),
            "e" if quiet => self.one_of(&["e.set();", "e.reset();"]),
            "e" => self.one_of(&["e.set();", "e.reset();", "e.wait();"]),
            "b" if quiet => self.line("skip;"),
            "b" => self.line("b.wait();"),
            "q" => {
                let value = self.int(1);
                let send = if quiet { "try_send" } else { "send" };
                match self.rng.below(3) {
                    0 if !quiet => self.one_of(&["q.recv();", "x = q.recv();"]),
                    _ => self.line(&format!("q.{send}({value});")),
                }
            }
            "qc" if quiet => self.one_of(&["qc.try_send(Red);"]),
            "qc" => self.one_of(&["qc.send(Blue);", "qc.recv();", "qc.try_send(Green);"]),
            _ if quiet => self.line("skip;"),
            _ => self.one_of(&["q0.send(x);", "q0.send(2);", "x = q0.recv();", "q0.recv();"]),
        }
    }

    fn one_of(&mut self, lines: &[&str]) {
        let line = self.rng.pick(lines);
        // `x` may be a loop variable here, which cannot be assigned.
        let fixed = self.visible().iter().any(|var| var.name == "x" && var.fixed);
        match line.strip_prefix("x = ") {
            Some(rest) if fixed => self.line(rest),
            _ => self.line(line),
        }
    }

    fn between(&mut self, first: &str, last: &str, depth: usize) {
        self.line(first);
        if self.budget > 0 {
            self.budget -= 1;
            if self.statement(depth + 1) {
                return;
            }
        }
        self.line(last);
    }
}
