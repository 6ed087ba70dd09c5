//! Generates random programs that follow the grammar. A program is a function of its seed.
//!
//! Every construct of docs/language.md has some weight; [`coverage`](crate::coverage) measures on
//! the syntax trees which constructs and pairs of constructs occur. Programs are small: few
//! threads, few statements, few values. The product accepts most of them; most have several
//! findings and at most a few hundred states.

mod exprs;
mod objects;
mod stmts;

/// A splitmix64 random number generator.
pub struct Rng(u64);

impl Rng {
    /// Starts the sequence of `seed`.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A random number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.number() % n as u64) as usize
    }

    /// True with probability 1/`n`.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A random element of `of`.
    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// The types of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ty {
    Int,
    /// `0..=3`
    Small,
    Bool,
    Color,
    Thread,
    /// `*int`
    ToInt,
    /// `*Node`
    ToNode,
    /// `*mutex`
    ToMutex,
    /// `[int; 2]`
    Row,
    /// `[[0..=3; 2]; 2]`
    Grid,
    /// A record with a lock, a number and a row.
    Cell,
}

impl Ty {
    fn text(self) -> &'static str {
        match self {
            Ty::Int => "int",
            Ty::Small => "0..=3",
            Ty::Bool => "bool",
            Ty::Color => "Color",
            Ty::Thread => "thread",
            Ty::ToInt => "*int",
            Ty::ToNode => "*Node",
            Ty::ToMutex => "*mutex",
            Ty::Row => "[int; N]",
            Ty::Grid => "[[0..=3; 2]; N]",
            Ty::Cell => "Cell",
        }
    }
}

/// A variable in scope.
#[derive(Clone, Debug)]
pub(crate) struct Var {
    name: String,
    ty: Ty,
    /// Parameters of threads and loop variables cannot be assigned.
    fixed: bool,
    /// Locals have no address.
    local: bool,
}

/// A function that can be called.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    name: &'static str,
    params: Vec<Ty>,
    result: Option<Ty>,
    /// The function neither waits nor chooses nor contains `atomic`, so it may be called
    /// everywhere.
    quiet: bool,
}

/// The declaration and the name of each object.
const OBJECTS: [(&str, &str); 19] = [
    ("mutex m;", "m"),
    ("mutex m;", "m"),
    ("mutex ms[N];", "ms[_]"),
    ("rwlock r;", "r"),
    ("rwlock r;", "r"),
    ("condvar c;", "c"),
    ("semaphore(1) s;", "s"),
    ("semaphore(0) s;", "s"),
    ("event e;", "e"),
    ("event(auto) e;", "e"),
    ("event(set) e;", "e"),
    ("event(auto, set) e;", "e"),
    ("barrier(2) b;", "b"),
    ("barrier(1) b;", "b"),
    ("barrier(3) b;", "b"),
    ("channel(1, int) q;", "q"),
    ("channel(2, Color) qc;", "qc"),
    ("channel(0, int) q0;", "q0"),
    ("channel(0, 0..=3) q0;", "q0"),
];

/// The constraints on statements at the current position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Inside `atomic`, in `init` or in a quiet function: no statement may wait.
    no_wait: bool,
    /// In `init` or in a quiet function: no statement may choose.
    no_choice: bool,
    /// Inside a loop: `break` and `continue` are allowed.
    looping: bool,
    /// In `init`, where `return` is not allowed.
    init: bool,
    /// In a function: the type of its result.
    result: Option<Option<Ty>>,
}

const BODY: Place =
    Place { no_wait: false, no_choice: false, looping: false, init: false, result: None };

/// The generator of one program.
pub(crate) struct Writer {
    rng: Rng,
    out: String,
    indent: usize,
    /// The number of statements that may still be generated.
    budget: usize,
    globals: Vec<Var>,
    scopes: Vec<Vec<Var>>,
    objects: Vec<&'static str>,
    functions: Vec<Function>,
    names: usize,
    at: Place,
    /// Whether threads are straight lines of accesses, without branches, waits, choices and calls.
    /// Cartesian searches only accept such programs.
    straight: bool,
}

/// The program of a seed.
pub fn program(seed: u64) -> String {
    let mut writer = Writer {
        rng: Rng::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x5851_f42d_4c95_7f2d),
        out: String::new(),
        indent: 0,
        budget: 0,
        globals: Vec::new(),
        scopes: Vec::new(),
        objects: Vec::new(),
        functions: Vec::new(),
        names: 0,
        at: BODY,
        straight: false,
    };
    writer.straight = writer.rng.one_in(12);
    writer.model();
    writer.out
}

impl Writer {
    pub(crate) fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.out.push_str("    ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn model(&mut self) {
        match self.rng.below(8) {
            0 | 1 => self.line("steps statement;"),
            2 => self.line("steps access;"),
            _ => {}
        }
        self.line("const N = 2;");
        self.line("const LAST: 0..=3 = N - 1;");
        self.line("const OFF = N == 3;");
        self.line("const ON = !OFF && 1 < N;");
        self.line("enum Color { Red, Green, Blue }");
        self.line("record Node { value: int, next: *Node }");
        self.line("record Cell { lock: mutex, val: 0..=3, row: [int; 2] }");
        self.declare_globals();
        let objects = if self.straight { 0 } else { self.rng.pick(&[0, 0, 1, 1, 2]) };
        for _ in 0..objects {
            let (declaration, name) = self.rng.pick(&OBJECTS);
            if self.objects.iter().any(|known| known.split('[').next() == name.split('[').next()) {
                continue;
            }
            self.line(declaration);
            self.objects.push(name);
        }
        if self.objects.contains(&"c") && !self.objects.contains(&"m") {
            self.line("mutex m;");
            self.objects.push("m");
        }
        if self.objects.contains(&"m") && self.rng.one_in(4) {
            self.global("lp", Ty::ToMutex, "var lp: *mutex;");
        }
        let functions = if self.straight { 0 } else { self.rng.pick(&[0, 0, 1, 1, 2]) };
        for number in 0..functions {
            self.function(number);
        }
        if (!self.straight && self.rng.one_in(4)) || self.globals.iter().any(|v| v.name == "lp") {
            self.init();
        }
        let threads = self.rng.pick(&[1, 2, 2, 2, 2, 3]);
        let mut instances = 0;
        for number in 0..threads {
            let several = instances < 2 && threads < 3 && self.rng.one_in(5);
            instances += if several { 2 } else { 1 };
            self.thread(number, several, threads);
        }
        if !self.straight && self.rng.one_in(4) {
            self.scopes = vec![Vec::new()];
            self.at = Place { no_wait: true, no_choice: true, ..BODY };
            let condition = self.condition(2, true);
            let name = if self.rng.one_in(2) { "steady: " } else { "" };
            self.line(&format!("invariant {name}{condition};"));
        }
    }

    fn global(&mut self, name: &str, ty: Ty, declaration: &str) {
        self.line(declaration);
        self.globals.push(Var { name: name.to_owned(), ty, fixed: false, local: false });
    }

    fn declare_globals(&mut self) {
        let n = self.rng.below(3);
        let atomic = if self.rng.one_in(3) { "atomic " } else { "" };
        self.global("x", Ty::Int, &format!("{atomic}var x = {n};"));
        for _ in 0..self.rng.below(3) + 1 {
            match self.rng.below(12) {
                0 | 1 => self.once("y", Ty::Small, "var y: 0..=3 = 1;"),
                2 => self.once("y", Ty::Small, "atomic var y: 0..4;"),
                3 => self.once("f", Ty::Bool, "var f = false;"),
                4 => self.once("f", Ty::Bool, "atomic var f: bool = ON;"),
                5 => self.once("col", Ty::Color, "var col = Green;"),
                6 => self.once("a", Ty::Row, "var a: [int; N] = [1, N];"),
                7 => self.once("a", Ty::Row, "var a: [int; 2] = 1;"),
                8 => self.once("g", Ty::Grid, "var g: [[0..=3; 2]; N] = [[0, 1], [2, 3]];"),
                9 => self.once("p", Ty::ToNode, "var p: *Node;"),
                10 => self.once("cell", Ty::Cell, "var cell: Cell;"),
                _ => self.once("h", Ty::Thread, "var h: thread;"),
            }
        }
        if self.rng.one_in(6) {
            self.global("px", Ty::ToInt, "var px: *int;");
        }
        if self.rng.one_in(12) {
            self.global("z", Ty::Int, "var z: -3..0;");
        }
    }

    fn once(&mut self, name: &str, ty: Ty, declaration: &str) {
        if self.globals.iter().all(|known| known.name != name) {
            self.global(name, ty, declaration);
        }
    }

    fn function(&mut self, number: usize) {
        let quiet = self.rng.one_in(2);
        let name = ["f0", "f1"][number];
        let param = self.rng.pick(&[Ty::Int, Ty::Int, Ty::Bool, Ty::Small, Ty::Color]);
        let result = self.rng.pick(&[None, Some(Ty::Int), Some(Ty::Bool), Some(Ty::Small)]);
        let recursive = result == Some(Ty::Int) && param == Ty::Int && self.rng.one_in(3);
        let arrow = result.map_or(String::new(), |ty| format!(" -> {}", ty.text()));
        self.line(&format!("fn {name}(n: {}){arrow} {{", param.text()));
        self.scopes =
            vec![vec![Var { name: "n".to_owned(), ty: param, fixed: false, local: true }]];
        self.at = Place { no_wait: quiet, no_choice: quiet, result: Some(result), ..BODY };
        self.budget = self.rng.below(3) + 1;
        self.indent += 1;
        self.scopes.push(Vec::new());
        if recursive {
            self.line("if n <= 0 {");
            self.line("    return 0;");
            self.line("}");
            self.budget = 1;
        }
        self.statements(0);
        if recursive {
            self.line(&format!("return {name}(if n > 2 {{ 2 }} else {{ n }} - 1) + 1;"));
        } else if let Some(ty) = result {
            let value = self.expr(ty, 1);
            self.line(&format!("return {value};"));
        }
        self.scopes.clear();
        self.indent -= 1;
        self.line("}");
        self.functions.push(Function { name, params: vec![param], result, quiet });
    }

    fn init(&mut self) {
        self.line("init {");
        self.indent += 1;
        self.scopes = vec![Vec::new()];
        self.at = Place { no_wait: true, no_choice: true, init: true, ..BODY };
        if self.globals.iter().any(|v| v.name == "lp") {
            self.line("lp = &m;");
        }
        self.budget = self.rng.below(3);
        self.statements(1);
        self.scopes.clear();
        self.indent -= 1;
        self.line("}");
    }

    fn thread(&mut self, number: usize, several: bool, threads: usize) {
        let mut parameters = Vec::new();
        if several {
            parameters.push(("i", self.rng.pick(&["0..N", "1..=2", "0..2"])));
        } else if self.rng.one_in(8) {
            parameters.push(("i", "3..=3"));
        }
        if !parameters.is_empty() && self.rng.one_in(4) {
            // One value, so that there are no more threads.
            parameters.push(("k", self.rng.pick(&["1..2", "N..=2"])));
        }
        let parameter = |(name, _): &(&str, &str)| Var {
            name: (*name).to_owned(),
            ty: Ty::Int,
            fixed: true,
            local: true,
        };
        self.scopes = vec![parameters.iter().map(parameter).collect()];
        let list: Vec<String> =
            parameters.iter().map(|(name, range)| format!("{name} in {range}")).collect();
        let list = if list.is_empty() { String::new() } else { format!("({})", list.join(", ")) };
        let head = format!("thread t{number}{list}");
        self.line(&format!("{head} {{"));
        self.indent += 1;
        self.scopes.push(Vec::new());
        self.at = BODY;
        self.budget = match threads {
            1 => self.rng.below(6) + 2,
            2 => self.rng.below(5) + 1,
            _ => self.rng.below(3) + 1,
        };
        self.statements(0);
        self.scopes.clear();
        self.indent -= 1;
        self.line("}");
    }
}
