//! Generates expressions and places.

use super::{Ty, Var, Writer};

impl Writer {
    /// The variables in scope that are not shadowed.
    pub(super) fn visible(&self) -> Vec<Var> {
        let mut found: Vec<Var> = Vec::new();
        let scopes = self.scopes.iter().rev().flat_map(|scope| scope.iter().rev());
        for var in scopes.chain(self.globals.iter()) {
            if found.iter().all(|known| known.name != var.name) {
                found.push(var.clone());
            }
        }
        found
    }

    /// The places of type `ty` in scope; only shared ones if `shared` is set, because locals have
    /// no address.
    pub(super) fn places(
        &mut self,
        ty: Ty,
        assigned: bool,
        shared: bool,
        depth: usize,
    ) -> Vec<String> {
        let mut places = Vec::new();
        for var in self.visible() {
            if (assigned && var.fixed) || (shared && var.local) {
                continue;
            }
            let name = &var.name;
            if var.ty == ty {
                places.push(name.clone());
            }
            match (var.ty, ty) {
                (Ty::Row, Ty::Int) => places.push(format!("{name}[{}]", self.index(depth))),
                (Ty::Grid, Ty::Small) => {
                    let (i, j) = (self.index(depth), self.index(depth));
                    places.push(format!("{name}[{i}][{j}]"));
                }
                (Ty::Cell, Ty::Small) => places.push(format!("{name}.val")),
                (Ty::Cell, Ty::Int) => places.push(format!("{name}.row[{}]", self.index(depth))),
                (Ty::ToInt, Ty::Int) => places.push(format!("*{name}")),
                (Ty::ToNode, Ty::Int) => {
                    places.push(format!("{name}.value"));
                    places.push(format!("(*{name}).value"));
                }
                (Ty::ToNode, Ty::ToNode) => places.push(format!("{name}.next")),
                _ => {}
            }
        }
        places
    }

    /// An index, usually within bounds.
    fn index(&mut self, depth: usize) -> String {
        match self.rng.below(10) {
            0..=2 => "0".to_owned(),
            3 | 4 => "1".to_owned(),
            5 | 6 => "LAST".to_owned(),
            7 if depth > 0 => self.int(depth - 1),
            _ => self.local_number().unwrap_or_else(|| "1".to_owned()),
        }
    }

    /// A local integer variable.
    fn local_number(&mut self) -> Option<String> {
        let locals: Vec<String> = self
            .visible()
            .into_iter()
            .filter(|var| var.local && var.ty == Ty::Int)
            .map(|var| var.name)
            .collect();
        (!locals.is_empty()).then(|| self.rng.pick(&locals))
    }

    /// An expression of type `ty`.
    pub(super) fn expr(&mut self, ty: Ty, depth: usize) -> String {
        if depth > 0 && self.rng.one_in(10) {
            let condition = self.condition(depth - 1, false);
            let (a, b) = (self.expr(ty, depth - 1), self.expr(ty, depth - 1));
            let text = format!("if {condition} {{ {a} }} else {{ {b} }}");
            // `null` on both sides of a choice would leave the type unknown.
            if !(a == "null" && b == "null") {
                return format!("({text})");
            }
        }
        match ty {
            Ty::Int => self.int(depth),
            Ty::Small => self.small(depth),
            Ty::Bool => self.condition(depth, false),
            Ty::Color => {
                let mut options = self.places(Ty::Color, false, false, depth);
                options.extend(["Red", "Green", "Blue"].map(str::to_owned));
                self.rng.pick(&options)
            }
            Ty::Thread => {
                let mut options = self.places(Ty::Thread, false, false, depth);
                options.push("null".to_owned());
                self.rng.pick(&options)
            }
            Ty::ToInt => {
                let mut options = self.places(Ty::ToInt, false, false, depth);
                options.push("&x".to_owned());
                let shared = self.places(Ty::Int, true, true, depth);
                options.extend(
                    shared
                        .iter()
                        .filter(|p| *p != "z" && !p.starts_with('*'))
                        .map(|p| format!("&{p}")),
                );
                if self.visible().iter().all(|var| var.name != "x" || !var.local) {
                    self.rng.pick(&options)
                } else {
                    "null".to_owned()
                }
            }
            Ty::ToNode => {
                let mut options = self.places(Ty::ToNode, false, false, depth);
                options.push("null".to_owned());
                if depth > 0 {
                    let value = self.int(depth - 1);
                    options.push(format!("new Node {{ value: {value} }}"));
                    options.push("new Node { }".to_owned());
                    let next = self.rng.pick(&options);
                    options.push(format!("new Node {{ next: {next}, value: 1 }}"));
                }
                self.rng.pick(&options)
            }
            Ty::ToMutex => self.rng.pick(&["&m".to_owned(), "null".to_owned()]),
            Ty::Row | Ty::Grid | Ty::Cell => unreachable!("they are not scalars"),
        }
    }

    /// An expression that is usually between 0 and 3.
    fn small(&mut self, depth: usize) -> String {
        let mut options = self.places(Ty::Small, false, false, depth);
        options.extend(["0", "1", "2", "LAST", "N"].map(str::to_owned));
        if depth > 0 {
            let by = self.int(depth - 1);
            options.push(format!("({by}) & 3"));
            options.push(by);
        }
        self.rng.pick(&options)
    }

    /// An integer expression.
    pub(super) fn int(&mut self, depth: usize) -> String {
        if depth == 0 || self.rng.one_in(3) {
            let mut options = self.places(Ty::Int, false, false, 0);
            options.extend(self.places(Ty::Small, false, false, 0));
            options.extend(["0", "1", "2", "N", "LAST", "-1"].map(str::to_owned));
            return self.rng.pick(&options);
        }
        match self.rng.below(20) {
            0..=5 => {
                let op = self.rng.pick(&["+", "+", "-", "*", "&", "|", "^"]);
                let (a, b) = (self.int(depth - 1), self.int(depth - 1));
                format!("({a} {op} {b})")
            }
            6 => {
                let op = self.rng.pick(&["/", "%", "<<", ">>"]);
                let (a, b) = (self.int(depth - 1), self.int(depth - 1));
                format!("({a} {op} {b})")
            }
            7 => format!("-({})", self.int(depth - 1)),
            8 | 9 if !self.at.no_choice => self.pick_range(depth),
            10..=12 => self.modify(depth).unwrap_or_else(|| "1".to_owned()),
            13..=15 => self.call(Some(Ty::Int), depth).unwrap_or_else(|| "2".to_owned()),
            16 => self.receive(Ty::Int).unwrap_or_else(|| "0".to_owned()),
            17 => {
                let body = self.quantified(depth - 1);
                format!("count(k in 0..N: {body})")
            }
            _ => {
                let places = self.places(Ty::Int, false, false, depth);
                if places.is_empty() { "1".to_owned() } else { self.rng.pick(&places) }
            }
        }
    }

    fn pick_range(&mut self, depth: usize) -> String {
        match self.rng.below(6) {
            0 => format!("choose(0..{})", self.int(depth - 1)),
            1 => "choose(0..=2)".to_owned(),
            2 => "choose(LAST..=N)".to_owned(),
            _ => "choose(0..N)".to_owned(),
        }
    }

    /// The body of a quantifier over `k`.
    fn quantified(&mut self, depth: usize) -> String {
        let k = Var { name: "k".to_owned(), ty: Ty::Int, fixed: true, local: true };
        self.scopes.push(vec![k]);
        let body = self.condition(depth, true);
        self.scopes.pop();
        body
    }

    /// A `cas`, `swap` or `fetch_…` whose result is an integer.
    pub(super) fn modify(&mut self, depth: usize) -> Option<String> {
        let places = self.places(Ty::Int, true, false, 0);
        if places.is_empty() {
            return None;
        }
        let place = self.rng.pick(&places);
        let value = self.int(depth.saturating_sub(1));
        let name = self.rng.pick(&[
            "fetch_add",
            "fetch_add",
            "fetch_sub",
            "fetch_and",
            "fetch_or",
            "fetch_xor",
            "swap",
        ]);
        Some(format!("{name}({place}, {value})"))
    }

    /// A `cas` on an integer, a bool, a variant or a pointer.
    pub(super) fn cas(&mut self) -> Option<String> {
        let ty = self.rng.pick(&[Ty::Int, Ty::Int, Ty::Bool, Ty::Color, Ty::ToNode, Ty::Small]);
        let places = self.places(ty, true, false, 0);
        if places.is_empty() {
            return None;
        }
        let place = self.rng.pick(&places);
        let (old, new) = (self.expr(ty, 0), self.expr(ty, 1));
        Some(format!("cas({place}, {old}, {new})"))
    }

    /// A call of a function with a result of type `result`, or of any function if it is `None`.
    pub(super) fn call(&mut self, result: Option<Ty>, depth: usize) -> Option<String> {
        let quiet = self.at.no_wait;
        let suited: Vec<_> = self
            .functions
            .iter()
            .filter(|f| (f.quiet || !quiet) && (result.is_none() || f.result == result))
            .cloned()
            .collect();
        if suited.is_empty() {
            return None;
        }
        let function = self.rng.pick(&suited);
        let arguments: Vec<String> =
            function.params.iter().map(|&ty| self.expr(ty, depth.min(1))).collect();
        Some(format!("{}({})", function.name, arguments.join(", ")))
    }

    /// An expression that receives from a channel.
    fn receive(&mut self, ty: Ty) -> Option<String> {
        let (name, fits) = if ty == Ty::Color { ("qc", true) } else { ("q", true) };
        if !fits || !self.objects.contains(&name) {
            return None;
        }
        if self.at.no_wait {
            return Some(format!("{name}.len()")).filter(|_| ty == Ty::Int);
        }
        Some(if ty == Ty::Int && self.rng.one_in(3) {
            format!("{name}.len()")
        } else {
            format!("{name}.recv()")
        })
    }

    /// A condition. With `pure` it has no effects and calls nothing.
    pub(super) fn condition(&mut self, depth: usize, pure: bool) -> String {
        let before = self.at;
        let functions = if pure { std::mem::take(&mut self.functions) } else { Vec::new() };
        if pure {
            (self.at.no_wait, self.at.no_choice) = (true, true);
        }
        let text = self.condition_here(depth, pure);
        if pure {
            self.functions = functions;
        }
        self.at = before;
        text
    }

    fn condition_here(&mut self, depth: usize, pure: bool) -> String {
        let number = |writer: &mut Writer| match pure {
            true => writer.pure_int(depth.min(1)),
            false => writer.int(depth.min(1)),
        };
        match self.rng.below(24) {
            0 => self.rng.pick(&["true", "false", "ON", "OFF", "1 < N", "!ON"]).to_owned(),
            1..=3 => {
                let flags = self.places(Ty::Bool, false, false, 0);
                if flags.is_empty() { "x != 0".to_owned() } else { self.rng.pick(&flags) }
            }
            4 => match self.visible().iter().find(|var| var.name == "i" && var.ty == Ty::Int) {
                Some(_) => self.rng.pick(&["i == 1", "i != i", "i < N", "i >= 2"]).to_owned(),
                None => "N == 2".to_owned(),
            },
            5..=11 => {
                let op = self.rng.pick(&["==", "==", "!=", "<", "<=", ">", ">="]);
                let (a, b) = (number(self), number(self));
                format!("{a} {op} {b}")
            }
            12 => {
                let places = self.places(Ty::Color, false, false, 0);
                let (op, variant) =
                    (self.rng.pick(&["==", "!="]), self.rng.pick(&["Red", "Green"]));
                if places.is_empty() {
                    format!("{variant} {op} Green")
                } else {
                    format!("{} {op} {variant}", self.rng.pick(&places))
                }
            }
            13 => {
                let places = self.places(Ty::ToNode, false, false, 0);
                let op = self.rng.pick(&["==", "!="]);
                if places.is_empty() {
                    "LAST == 1".to_owned()
                } else {
                    format!("{} {op} null", self.rng.pick(&places))
                }
            }
            14 | 15 if depth > 0 => {
                let op = self.rng.pick(&["&&", "||"]);
                let (a, b) = (self.condition(depth - 1, pure), self.condition(depth - 1, pure));
                format!("({a} {op} {b})")
            }
            16 if depth > 0 => format!("!({})", self.condition(depth - 1, pure)),
            17 if depth > 0 => {
                let word = self.rng.pick(&["all", "any"]);
                let body = self.quantified(depth - 1);
                let range = self.rng.pick(&["0..N", "0..=1", "1..=LAST"]);
                format!("{word}(k in {range}: {body})")
            }
            18 | 19 if !pure => self.cas().unwrap_or_else(|| "x == 1".to_owned()),
            20 if !pure => self.call(Some(Ty::Bool), depth).unwrap_or_else(|| "x > 0".to_owned()),
            21 | 22 if !pure => self.try_method().unwrap_or_else(|| "x >= 0".to_owned()),
            _ => format!(
                "x {} {}",
                self.rng.pick(&["==", "!=", "<"]),
                self.rng.pick(&["0", "1", "2"])
            ),
        }
    }

    /// An integer expression without effects.
    fn pure_int(&mut self, depth: usize) -> String {
        let mut options = self.places(Ty::Int, false, false, 0);
        options.extend(self.places(Ty::Small, false, false, 0));
        options.extend(["0", "1", "2", "N"].map(str::to_owned));
        if self.objects.contains(&"q") {
            options.push("q.len()".to_owned());
        }
        if depth > 0 {
            let (a, b) = (self.rng.pick(&options), self.rng.pick(&options));
            let op = self.rng.pick(&["+", "-", "*", "%"]);
            options.push(format!("({a} {op} {b})"));
        }
        self.rng.pick(&options)
    }

    /// A method that never waits and returns whether it succeeded.
    fn try_method(&mut self) -> Option<String> {
        let mut options = Vec::new();
        for object in self.objects.clone() {
            match object {
                // `init` and the functions that it may call take no locks.
                "m" | "ms[_]" | "r" if self.at.no_choice => {}
                "m" => options.push("m.try_lock()".to_owned()),
                "ms[_]" => options.push(format!("ms[{}].try_lock()", self.index(0))),
                "r" => options.extend(["r.try_read()", "r.try_write()"].map(str::to_owned)),
                "s" => options.push("s.try_acquire()".to_owned()),
                "q" => options.push(format!("q.try_send({})", self.int(1))),
                "qc" => options.push(format!("qc.try_send({})", self.expr(Ty::Color, 0))),
                _ => {}
            }
        }
        (!options.is_empty()).then(|| self.rng.pick(&options))
    }
}
