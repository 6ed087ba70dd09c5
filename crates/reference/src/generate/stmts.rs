//! Generates statements.

use super::{Place, Ty, Var, Writer};

/// The maximum nesting depth of blocks.
const DEEPEST: usize = 3;

impl Writer {
    /// Generates statements until the budget is used up, or fewer.
    pub(super) fn statements(&mut self, depth: usize) {
        while self.budget > 0 {
            self.budget -= 1;
            if self.statement(depth) {
                return;
            }
            if depth > 0 && self.rng.one_in(2) {
                return;
            }
        }
    }

    /// A block with its own scope, after a head such as `if x == 1`.
    fn block(&mut self, head: &str, depth: usize) {
        self.line(&format!("{head} {{"));
        self.inside(depth);
        self.line("}");
    }

    fn inside(&mut self, depth: usize) {
        self.indent += 1;
        self.scopes.push(Vec::new());
        if !self.rng.one_in(8) {
            self.statements(depth + 1);
            self.maybe_leave();
        }
        self.scopes.pop();
        self.indent -= 1;
    }

    /// Generates one statement. Returns whether no statement can follow it.
    pub(super) fn statement(&mut self, depth: usize) -> bool {
        if self.straight {
            self.plain();
            return false;
        }
        let nested = depth < DEEPEST;
        match self.rng.below(100) {
            0..=15 => self.assignment(),
            16..=22 => self.compound(),
            23..=28 => self.local(),
            29..=34 if nested => self.branch(depth),
            35..=39 if nested => self.repeat(depth),
            40..=43 if nested => self.count(depth),
            44..=46 if nested => self.cases(depth),
            47..=53 => self.assertion(),
            54..=58 if !self.at.no_wait => self.wait(),
            59..=62 if nested && !self.at.no_choice => self.choice(depth),
            63 => self.line(self.nothing()),
            64..=70 if nested && !self.at.no_wait => self.atomic(depth),
            71..=74 => self.threads(),
            75 if nested => self.block("", depth),
            76 | 77 => return self.leave(),
            78 | 79 if self.at.looping => return self.leave(),
            78..=89 => self.object(depth),
            90..=93 => self.modification(),
            94 | 95 => {
                if let Some(call) = self.call(None, 1) {
                    self.line(&format!("{call};"));
                }
            }
            96 if !self.at.no_wait => self.marked(),
            _ => self.assignment(),
        }
        false
    }

    /// A simple assignment, or an assertion about a variable.
    fn plain(&mut self) {
        let names: Vec<String> = self.places(Ty::Int, true, false, 0);
        let (place, other) = (self.rng.pick(&names), self.rng.pick(&names));
        let number = self.rng.below(3);
        match self.rng.below(5) {
            0 => self.line(&format!("{place} = {number};")),
            1 => self.line(&format!("{place} = {other};")),
            2 => self.line(&format!("{place} += {number};")),
            3 => self.line(&format!("fetch_add({place}, {number});")),
            _ => self.line(&format!("assert {place} != {number};")),
        }
    }

    fn nothing(&self) -> &'static str {
        // `init` is atomic and quiet functions may be called inside `atomic`: `yield` is not
        // allowed.
        if self.at.no_choice || self.budget.is_multiple_of(2) { "skip;" } else { "yield;" }
    }

    pub(super) fn assignment(&mut self) {
        let ty = self.rng.pick(&[
            Ty::Int,
            Ty::Int,
            Ty::Int,
            Ty::Small,
            Ty::Small,
            Ty::Bool,
            Ty::Bool,
            Ty::Color,
            Ty::ToNode,
            Ty::ToNode,
            Ty::ToInt,
        ]);
        let mut places = self.places(ty, true, false, 1);
        if places.is_empty() {
            places = self.places(Ty::Int, true, false, 1);
            if places.is_empty() {
                return self.line("skip;");
            }
            let value = self.expr(Ty::Int, 2);
            let place = self.rng.pick(&places);
            return self.line(&format!("{place} = {value};"));
        }
        let place = self.rng.pick(&places);
        let value = self.expr(ty, 2);
        self.line(&format!("{place} = {value};"));
    }

    fn compound(&mut self) {
        let ty = self.rng.pick(&[Ty::Int, Ty::Int, Ty::Small]);
        let places = self.places(ty, true, false, 1);
        if places.is_empty() {
            return self.line("skip;");
        }
        let place = self.rng.pick(&places);
        let op = self.rng.pick(&["+", "+", "+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"]);
        let value = self.expr(Ty::Int, 1);
        self.line(&format!("{place} {op}= {value};"));
    }

    /// A local variable, which may shadow another.
    fn local(&mut self) {
        let ty = self.rng.pick(&[
            Ty::Int,
            Ty::Int,
            Ty::Int,
            Ty::Small,
            Ty::Bool,
            Ty::Color,
            Ty::ToNode,
            Ty::ToInt,
            Ty::Row,
        ]);
        let name = match self.rng.below(6) {
            0 if ty == Ty::Int => "x".to_owned(),
            1 if ty != Ty::Row => self.rng.pick(&["y", "f", "l1"]).to_owned(),
            _ => {
                self.names += 1;
                format!("l{}", self.names)
            }
        };
        // A scope declares each name once.
        if self.scopes.last().is_some_and(|scope| scope.iter().any(|var| var.name == name)) {
            return self.line("skip;");
        }
        let value = if ty == Ty::Row || self.rng.one_in(4) { None } else { Some(self.expr(ty, 2)) };
        match value {
            None => self.line(&format!("var {name}: {};", ty.text())),
            Some(value) => {
                let typed = matches!(ty, Ty::ToNode | Ty::ToInt | Ty::Small) || self.rng.one_in(3);
                let ty = if typed { format!(": {}", ty.text()) } else { String::new() };
                self.line(&format!("var {name}{ty} = {value};"));
            }
        }
        let var = Var { name, ty, fixed: false, local: true };
        self.scopes.last_mut().expect("statements are in a scope").push(var);
    }

    fn branch(&mut self, depth: usize) {
        let condition = self.condition(2, false);
        self.line(&format!("if {condition} {{"));
        self.inside(depth);
        if self.rng.one_in(4) {
            let condition = self.condition(1, false);
            self.line(&format!("}} else if {condition} {{"));
            self.inside(depth);
        }
        if self.rng.one_in(2) {
            self.line("} else {");
            self.inside(depth);
        }
        self.line("}");
    }

    /// `while` and `loop`: with a constant condition, with a counter, or waiting for another
    /// thread.
    fn repeat(&mut self, depth: usize) {
        let before = self.at;
        self.at = Place { looping: true, ..before };
        match self.rng.below(8) {
            0 | 1 => {
                let never =
                    self.rng.pick(&["false", "OFF", "2 == 0", "N != N", "!ON", "1 < 0 || OFF"]);
                self.block(&format!("while {never}"), depth);
            }
            2 if !self.at.no_wait => {
                let condition = self.condition(1, false);
                self.block(&format!("while {condition}"), depth);
            }
            3 | 4 => {
                let head = self.rng.pick(&["loop", "loop", "while true", "while !OFF && N > 1"]);
                self.line(&format!("{head} {{"));
                self.indent += 1;
                self.scopes.push(Vec::new());
                self.statements(depth + 1);
                self.line("break;");
                self.scopes.pop();
                self.indent -= 1;
                self.line("}");
            }
            5 if !self.at.no_wait => {
                let condition = self.condition(1, false);
                self.line("loop {");
                self.indent += 1;
                self.scopes.push(Vec::new());
                self.line(&format!("if {condition} {{"));
                self.line("    break;");
                self.line("}");
                self.statements(depth + 1);
                self.line("yield;");
                self.scopes.pop();
                self.indent -= 1;
                self.line("}");
            }
            _ => {
                self.names += 1;
                let name = format!("w{}", self.names);
                self.line(&format!("var {name} = 0;"));
                self.line(&format!("while {name} < {} {{", self.names % 2 + 1));
                self.indent += 1;
                self.scopes.push(Vec::new());
                self.line(&format!("{name} += 1;"));
                let var = Var { name, ty: Ty::Int, fixed: true, local: true };
                self.scopes.last_mut().expect("the scope of the body").push(var);
                self.statements(depth + 1);
                self.scopes.pop();
                self.indent -= 1;
                self.line("}");
            }
        }
        self.at = before;
    }

    fn count(&mut self, depth: usize) {
        let range = match self.rng.below(10) {
            0 => "2147483646..=2147483647".to_owned(),
            1 => "-2147483648..-2147483647".to_owned(),
            2 => "2147483647..=2147483647".to_owned(),
            3 => "3..3".to_owned(),
            4 => "2..=1".to_owned(),
            5 => format!("0..{}", self.int(1)),
            6 => "LAST..=N".to_owned(),
            _ => "0..N".to_owned(),
        };
        self.names += 1;
        let name = if self.rng.one_in(5) { "x".to_owned() } else { format!("j{}", self.names) };
        let before = self.at;
        self.at = Place { looping: true, ..before };
        self.scopes.push(vec![Var { name: name.clone(), ty: Ty::Int, fixed: true, local: true }]);
        self.block(&format!("for {name} in {range}"), depth);
        self.scopes.pop();
        self.at = before;
    }

    fn cases(&mut self, depth: usize) {
        match self.rng.below(3) {
            0 => {
                let value = self.expr(Ty::Color, 1);
                self.line(&format!("match {value} {{"));
                self.indent += 1;
                let heads: &[&str] = self.rng.pick(&[
                    &["Red | Blue =>", "Green =>"][..],
                    &["Green =>", "_ =>"][..],
                    &["Red =>", "Green =>", "Blue =>"][..],
                ]);
                heads.iter().for_each(|head| self.block(head, depth));
            }
            1 => {
                let value = self.condition(1, false);
                self.line(&format!("match {value} {{"));
                self.indent += 1;
                self.block("true =>", depth);
                self.block("false =>", depth);
            }
            _ => {
                let value = self.int(1);
                self.line(&format!("match {value} {{"));
                self.indent += 1;
                let heads: &[&str] = self.rng.pick(&[
                    &["0 =>", "1 | N..=3 =>", "_ =>"][..],
                    &["-5..1 =>", "_ =>"][..],
                    &["LAST =>", "_ =>"][..],
                ]);
                heads.iter().for_each(|head| self.block(head, depth));
            }
        }
        self.indent -= 1;
        self.line("}");
    }

    fn assertion(&mut self) {
        let condition = self.condition(2, false);
        self.names += 1;
        let message =
            if self.rng.one_in(3) { format!(", \"a{}\"", self.names) } else { String::new() };
        self.line(&format!("assert {condition}{message};"));
    }

    fn wait(&mut self) {
        let word = self.rng.pick(&["await", "await", "await", "assume"]);
        let condition = self.condition(2, true);
        self.line(&format!("{word} {condition};"));
    }

    fn choice(&mut self, depth: usize) {
        self.line("choose {");
        self.inside(depth);
        for _ in 0..self.rng.pick(&[0, 1, 1, 1, 2]) {
            self.line("} or {");
            self.inside(depth);
        }
        self.line("}");
    }

    fn atomic(&mut self, depth: usize) {
        self.line("atomic {");
        self.indent += 1;
        self.scopes.push(Vec::new());
        if self.rng.one_in(3) {
            match self.waiting_method() {
                Some(method) if self.rng.one_in(2) => self.line(&format!("{method};")),
                _ => self.wait(),
            }
        }
        let before = self.at;
        self.at = Place { no_wait: true, ..before };
        self.budget += 1;
        self.statements(depth + 1);
        self.maybe_leave();
        self.at = before;
        self.scopes.pop();
        self.indent -= 1;
        self.line("}");
    }

    /// `spawn` and `join`.
    fn threads(&mut self) {
        let handles = self.places(Ty::Thread, true, false, 0);
        if !handles.is_empty() && !self.at.no_wait && self.rng.one_in(2) {
            let handle = self.rng.pick(&handles);
            return self.line(&format!("join {handle};"));
        }
        // Functions do not spawn: otherwise the number of threads would be unbounded.
        let suited: Vec<_> = self.functions.clone();
        if suited.is_empty() || self.at.result.is_some() || self.at.looping {
            return self.line("skip;");
        }
        let function = self.rng.pick(&suited);
        let arguments: Vec<String> = function.params.iter().map(|&ty| self.expr(ty, 1)).collect();
        let spawn = format!("spawn {}({})", function.name, arguments.join(", "));
        match self.rng.below(3) {
            0 if !handles.is_empty() => {
                let handle = self.rng.pick(&handles);
                self.line(&format!("{handle} = {spawn};"));
            }
            1 => {
                self.names += 1;
                let name = format!("h{}", self.names);
                self.line(&format!("var {name} = {spawn};"));
                let var = Var { name, ty: Ty::Thread, fixed: false, local: true };
                self.scopes.last_mut().expect("statements are in a scope").push(var);
            }
            _ => self.line(&format!("{spawn};")),
        }
    }

    /// Now and then leaves a loop at the end of a block inside it. Not by `continue`: most loops
    /// would never end.
    fn maybe_leave(&mut self) {
        if self.at.looping && self.rng.one_in(3) {
            self.line("break;");
        }
    }

    /// `break`, `continue` or `return`.
    fn leave(&mut self) -> bool {
        match (self.at.looping, self.at.result) {
            (true, _) if self.rng.one_in(2) => {
                let word = self.rng.pick(&["break;", "continue;"]);
                self.line(word);
                true
            }
            (_, None) if !self.at.init => {
                self.line("return;");
                true
            }
            (_, Some(None)) => {
                self.line("return;");
                true
            }
            (_, Some(Some(ty))) => {
                let value = self.expr(ty, 1);
                self.line(&format!("return {value};"));
                true
            }
            _ => false,
        }
    }

    fn modification(&mut self) {
        let text = if self.rng.one_in(3) { self.cas() } else { self.modify(1) };
        if let Some(text) = text {
            self.line(&format!("{text};"));
        }
    }
}
