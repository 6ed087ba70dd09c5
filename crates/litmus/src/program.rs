//! Litmus programs and their text form.
//!
//! ```
//! use preempt_litmus::Program;
//!
//! let text = "x.store(1,rel); r0 = y.load(acq) | r0 = x.cas(0,1,acq,rlx); if r0 == 0 { fence(sc) }";
//! let program = Program::parse(text);
//! assert_eq!(program.threads.len(), 2);
//! assert_eq!(program.locations, ["x", "y"]);
//! ```

/// A memory ordering, or a plain access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Order {
    /// A plain access.
    Plain,
    /// Relaxed.
    Relaxed,
    /// Acquire.
    Acquire,
    /// Release.
    Release,
    /// Acquire and release.
    AcqRel,
    /// Sequentially consistent.
    SeqCst,
}

impl Order {
    /// Whether reads and fences of this order acquire.
    pub fn acquires(self) -> bool {
        matches!(self, Order::Acquire | Order::AcqRel | Order::SeqCst)
    }

    /// Whether writes and fences of this order release.
    pub fn releases(self) -> bool {
        matches!(self, Order::Release | Order::AcqRel | Order::SeqCst)
    }

    fn parse(name: &str) -> Order {
        match name {
            "na" => Order::Plain,
            "rlx" => Order::Relaxed,
            "acq" => Order::Acquire,
            "rel" => Order::Release,
            "acqrel" => Order::AcqRel,
            "sc" => Order::SeqCst,
            _ => panic!("`{name}` is not a memory ordering"),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Order::Plain => "na",
            Order::Relaxed => "rlx",
            Order::Acquire => "acq",
            Order::Release => "rel",
            Order::AcqRel => "acqrel",
            Order::SeqCst => "sc",
        }
    }
}

/// The value that a store writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A constant.
    Constant(u64),
    /// A register plus a constant.
    Register(usize, u64),
}

/// One instruction of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Register, location, order.
    Load(usize, usize, Order),
    /// Location, value, order.
    Store(usize, Operand, Order),
    /// Register, location, summand, order.
    Add(usize, usize, u64, Order),
    /// Register, location, new value, order.
    Swap(usize, usize, u64, Order),
    /// Register, location, expected and new value, order of success and of failure.
    CompareExchange(usize, usize, u64, u64, Order, Order),
    /// A fence.
    Fence(Order),
    /// Skips this many instructions unless the register has the value.
    If(usize, u64, usize),
    /// Locks a mutex.
    Lock(usize),
    /// Unlocks a mutex.
    Unlock(usize),
}

/// The number of registers of a thread.
pub const REGISTERS: usize = 4;

/// The register of unused results.
const UNUSED: usize = REGISTERS - 1;

/// A program.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The names of locations and mutexes.
    pub locations: Vec<String>,
    /// For each of them, whether it is a mutex.
    pub mutexes: Vec<bool>,
    /// The instructions of each thread.
    pub threads: Vec<Vec<Instruction>>,
}

impl Program {
    /// Parses the text form. Panics on a syntax error.
    pub fn parse(text: &str) -> Program {
        let mut program = Program::default();
        for thread in text.split('|') {
            let mut instructions = Vec::new();
            program.block(thread, &mut instructions);
            program.threads.push(instructions);
        }
        program
    }

    /// The index of a location, which is added if it is new.
    pub fn location(&mut self, name: &str, is_mutex: bool) -> usize {
        if let Some(known) = self.locations.iter().position(|known| known == name) {
            return known;
        }
        self.locations.push(name.to_owned());
        self.mutexes.push(is_mutex);
        self.locations.len() - 1
    }

    /// Whether a location is accessed plainly.
    pub fn is_plain(&self, location: usize) -> bool {
        self.threads.iter().flatten().any(|instruction| {
            matches!(
                *instruction,
                Instruction::Load(_, accessed, Order::Plain)
                | Instruction::Store(accessed, _, Order::Plain) if accessed == location
            )
        })
    }

    fn block(&mut self, text: &str, instructions: &mut Vec<Instruction>) {
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = rest.find([';', '{']).unwrap_or(rest.len());
            let (statement, after) = rest.split_at(end);
            if !after.starts_with('{') {
                if !statement.trim().is_empty() {
                    self.statement(statement.trim(), instructions);
                }
                rest = after.get(1..).unwrap_or("").trim_start();
                continue;
            }
            let close = closing(after);
            let condition = statement.trim().strip_prefix("if ").expect("a block has a condition");
            let (register, value) = condition.split_once("==").expect("a condition compares");
            let at = instructions.len();
            instructions.push(Instruction::If(0, 0, 0));
            self.block(&after[1..close], instructions);
            let skipped = instructions.len() - at - 1;
            instructions[at] = Instruction::If(register_of(register), number(value), skipped);
            rest = after[close + 1..].trim_start();
        }
    }

    fn statement(&mut self, text: &str, instructions: &mut Vec<Instruction>) {
        let (register, call) = match text.split_once('=') {
            Some((register, call)) => (register_of(register), call.trim()),
            None => (UNUSED, text),
        };
        let (head, arguments) = call.split_once('(').expect("a statement is a call");
        let arguments = arguments.strip_suffix(')').expect("a call ends with a parenthesis");
        let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
        let order = |at: usize| Order::parse(arguments[at]);
        let Some((location, method)) = head.split_once('.') else {
            return instructions.push(Instruction::Fence(order(0)));
        };
        let location = self.location(location.trim(), matches!(method, "lock" | "unlock"));
        instructions.push(match method {
            "load" => Instruction::Load(register, location, order(0)),
            "store" => Instruction::Store(location, operand(arguments[0]), order(1)),
            "add" => Instruction::Add(register, location, number(arguments[0]), order(1)),
            "swap" => Instruction::Swap(register, location, number(arguments[0]), order(1)),
            "cas" => {
                let (expected, new) = (number(arguments[0]), number(arguments[1]));
                let orders = (order(2), order(3));
                Instruction::CompareExchange(register, location, expected, new, orders.0, orders.1)
            }
            "lock" => Instruction::Lock(location),
            "unlock" => Instruction::Unlock(location),
            _ => panic!("`{method}` is not a method"),
        });
    }

    /// The text form of the program. Parsing it gives the program back.
    pub fn show(&self) -> String {
        let threads: Vec<String> = self.threads.iter().map(|code| self.show_block(code)).collect();
        threads.join(" | ")
    }

    fn show_block(&self, code: &[Instruction]) -> String {
        let (mut shown, mut at) = (Vec::new(), 0);
        while at < code.len() {
            let name = |location: usize| &self.locations[location];
            shown.push(match code[at] {
                Instruction::Load(r, x, o) => format!("r{r} = {}.load({})", name(x), o.name()),
                Instruction::Store(x, Operand::Constant(v), o) => {
                    format!("{}.store({v},{})", name(x), o.name())
                }
                Instruction::Store(x, Operand::Register(r, v), o) => {
                    format!("{}.store(r{r}+{v},{})", name(x), o.name())
                }
                Instruction::Add(r, x, v, o) => format!("r{r} = {}.add({v},{})", name(x), o.name()),
                Instruction::Swap(r, x, v, o) => {
                    format!("r{r} = {}.swap({v},{})", name(x), o.name())
                }
                Instruction::CompareExchange(r, x, old, new, s, f) => {
                    format!("r{r} = {}.cas({old},{new},{},{})", name(x), s.name(), f.name())
                }
                Instruction::Fence(o) => format!("fence({})", o.name()),
                Instruction::If(r, v, skipped) => {
                    let block = self.show_block(&code[at + 1..=at + skipped]);
                    at += skipped;
                    format!("if r{r} == {v} {{ {block} }}")
                }
                Instruction::Lock(x) => format!("{}.lock()", name(x)),
                Instruction::Unlock(x) => format!("{}.unlock()", name(x)),
            });
            at += 1;
        }
        shown.join("; ")
    }

    /// The same program with every memory ordering replaced, plain accesses excepted.
    pub fn with_order(&self, order: Order) -> Program {
        let new = |old: &mut Order| {
            if *old != Order::Plain {
                *old = order;
            }
        };
        let mut program = self.clone();
        for instruction in program.threads.iter_mut().flatten() {
            match instruction {
                Instruction::Load(_, _, old)
                | Instruction::Store(_, _, old)
                | Instruction::Add(_, _, _, old)
                | Instruction::Swap(_, _, _, old)
                | Instruction::Fence(old) => new(old),
                Instruction::CompareExchange(_, _, _, _, success, failure) => {
                    new(success);
                    new(failure);
                }
                Instruction::If(..) | Instruction::Lock(_) | Instruction::Unlock(_) => {}
            }
        }
        program
    }
}

/// The position of the brace that closes the first one.
fn closing(text: &str) -> usize {
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 1 => return at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    panic!("a brace is not closed: {text}");
}

fn number(text: &str) -> u64 {
    text.trim().parse().unwrap_or_else(|_| panic!("`{text}` is not a number"))
}

fn register_of(text: &str) -> usize {
    let number = text.trim().strip_prefix('r').and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("`{text}` is not a register"))
}

fn operand(text: &str) -> Operand {
    if !text.starts_with('r') {
        return Operand::Constant(number(text));
    }
    let (register, summand) = text.split_once('+').unwrap_or((text, "0"));
    Operand::Register(register_of(register), number(summand))
}

/// The next operation of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// None: the thread has ended.
    End,
    /// Loads a location.
    Load(usize, Order),
    /// Stores a value.
    Store(usize, u64, Order),
    /// A read-modify-write: location, the change, the order if it writes, the order if it only
    /// reads.
    Update(usize, Change, Order, Order),
    /// A fence.
    Fence(Order),
    /// Locks a mutex.
    Lock(usize),
    /// Unlocks a mutex.
    Unlock(usize),
}

/// The change by a read-modify-write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Adds.
    Add(u64),
    /// Replaces.
    Swap(u64),
    /// Replaces the first value by the second one.
    Exchange(u64, u64),
}

impl Change {
    /// The value that it writes after reading `old`.
    pub fn new_value(self, old: u64) -> Option<u64> {
        match self {
            Change::Add(summand) => Some(old + summand),
            Change::Swap(new) => Some(new),
            Change::Exchange(expected, new) => (old == expected).then_some(new),
        }
    }
}

/// A thread in the middle of its code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    at: usize,
    /// The registers.
    pub registers: [u64; REGISTERS],
}

impl Position {
    /// The next operation.
    pub fn next(&mut self, code: &[Instruction]) -> Next {
        while let Some(&Instruction::If(register, value, skipped)) = code.get(self.at) {
            self.at += 1 + if self.registers[register] == value { 0 } else { skipped };
        }
        let Some(&instruction) = code.get(self.at) else { return Next::End };
        match instruction {
            Instruction::Load(_, location, order) => Next::Load(location, order),
            Instruction::Store(location, Operand::Constant(value), order) => {
                Next::Store(location, value, order)
            }
            Instruction::Store(location, Operand::Register(register, summand), order) => {
                Next::Store(location, self.registers[register] + summand, order)
            }
            Instruction::Add(_, location, summand, order) => {
                Next::Update(location, Change::Add(summand), order, order)
            }
            Instruction::Swap(_, location, new, order) => {
                Next::Update(location, Change::Swap(new), order, order)
            }
            Instruction::CompareExchange(_, location, expected, new, success, failure) => {
                Next::Update(location, Change::Exchange(expected, new), success, failure)
            }
            Instruction::Fence(order) => Next::Fence(order),
            Instruction::If(..) => unreachable!("conditions were passed"),
            Instruction::Lock(location) => Next::Lock(location),
            Instruction::Unlock(location) => Next::Unlock(location),
        }
    }

    /// Records that the operation was performed; `value` is what it read, if it reads.
    pub fn advance(&mut self, code: &[Instruction], value: u64) {
        match code[self.at] {
            Instruction::Load(register, ..)
            | Instruction::Add(register, ..)
            | Instruction::Swap(register, ..)
            | Instruction::CompareExchange(register, ..) => self.registers[register] = value,
            _ => {}
        }
        self.at += 1;
    }
}

/// The registers that a thread writes.
pub fn written(code: &[Instruction]) -> [bool; REGISTERS] {
    let mut written = [false; REGISTERS];
    for instruction in code {
        match *instruction {
            Instruction::Load(register, ..)
            | Instruction::Add(register, ..)
            | Instruction::Swap(register, ..)
            | Instruction::CompareExchange(register, ..) => written[register] = true,
            _ => {}
        }
    }
    written
}
