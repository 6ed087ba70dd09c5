//! The declarations of a model, with names resolved, constants evaluated and types interned.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use preempt_lang::source::{Source, Span};
use preempt_lang::syntax::ast::{
    BinaryOp, Block, Expr, ExprKind, File, Item, ItemKind, Name, Stmt, StmtKind, TypeExpr, UnaryOp,
};

use crate::types::{INT, Type, TypeId};
use crate::value::{Data, Value};

/// A shared variable or object.
#[derive(Debug)]
pub struct Global<'p> {
    /// The name as declared.
    pub name: &'p str,
    /// The declared or inferred type.
    pub ty: TypeId,
    /// Declared with `atomic`.
    pub atomic: bool,
    /// The initial value.
    pub initial: Data,
}

/// A function.
#[derive(Debug)]
pub struct Function<'p> {
    /// Names and types of the parameters.
    pub params: Vec<(&'p str, TypeId)>,
    /// The type of the result, if there is one.
    pub result: Option<TypeId>,
    /// The body in the syntax tree.
    pub body: &'p Block,
}

/// A declared thread, which exists from the beginning.
#[derive(Debug)]
pub struct Start<'p> {
    /// Names and values of the parameters.
    pub params: Vec<(&'p str, i64)>,
    /// The body in the syntax tree.
    pub body: &'p Block,
}

/// A model whose declarations are resolved.
#[derive(Debug)]
pub struct Model<'p> {
    /// The source text, for the lines of failures.
    pub source: &'p Source,
    /// Whether a step is a statement instead of an access.
    pub by_statement: bool,
    /// The interned types.
    pub types: RefCell<Vec<Type>>,
    /// The expressions of the constants, by name.
    written: BTreeMap<&'p str, &'p Expr>,
    /// The enums and their variants.
    pub enums: Vec<(&'p str, Vec<&'p str>)>,
    /// The records and their fields.
    pub records: Vec<(&'p str, &'p [(Name, TypeExpr)])>,
    /// The shared variables and objects, in order of declaration.
    pub globals: Vec<Global<'p>>,
    /// The functions by name.
    pub functions: BTreeMap<&'p str, Function<'p>>,
    /// The declared threads, one entry per instance.
    pub starts: Vec<Start<'p>>,
    /// The blocks of `init`.
    pub init: Vec<&'p Block>,
    /// The invariants, with their names if they have one.
    pub invariants: Vec<(Option<&'p str>, &'p Expr)>,
    /// The lines of the statements that a thread, or `init`, has begun.
    pub begun: RefCell<BTreeSet<u32>>,
}

impl<'p> Model<'p> {
    /// Resolves a syntax tree. The product must have accepted the model: this function does not
    /// check for errors.
    pub fn new(file: &'p File, source: &'p Source) -> Model<'p> {
        let mut model = Model {
            source,
            by_statement: false,
            types: RefCell::default(),
            written: BTreeMap::new(),
            enums: Vec::new(),
            records: Vec::new(),
            globals: Vec::new(),
            functions: BTreeMap::new(),
            starts: Vec::new(),
            init: Vec::new(),
            invariants: Vec::new(),
            begun: RefCell::default(),
        };
        for item in &file.items {
            model.note_names(item);
        }
        for item in &file.items {
            model.declare(item);
        }
        model
    }

    /// Records the constants, enums and records, from which types are built.
    fn note_names(&mut self, item: &'p Item) {
        match &item.kind {
            ItemKind::Steps(word) => self.by_statement = word.text == "statement",
            ItemKind::Const { name, value, .. } => {
                self.written.insert(&name.text, value);
            }
            ItemKind::Enum { name, variants } => {
                self.enums.push((&name.text, variants.iter().map(|v| v.text.as_str()).collect()));
            }
            ItemKind::Record { name, fields } => self.records.push((&name.text, fields)),
            _ => {}
        }
    }

    fn declare(&mut self, item: &'p Item) {
        match &item.kind {
            ItemKind::Var { atomic, name, ty, init } => {
                let ty = match (ty, init) {
                    (Some(ty), _) => self.type_of_expr(ty),
                    (None, Some(init)) => self.type_of_value(&self.constant(init)),
                    (None, None) => panic!("a variable has a type or a value"),
                };
                let initial =
                    init.as_ref().map_or_else(|| self.zero(ty), |e| self.initial_data(ty, e));
                self.globals.push(Global { name: &name.text, ty, atomic: *atomic, initial });
            }
            ItemKind::Object { ty, declarators } => {
                for declarator in declarators {
                    let mut id = self.type_of_expr(ty);
                    for dimension in declarator.dimensions.iter().rev() {
                        id = self.intern(Type::Array(id, self.constant(dimension).int() as usize));
                    }
                    let initial = self.zero(id);
                    let name = &declarator.name.text;
                    self.globals.push(Global { name, ty: id, atomic: true, initial });
                }
            }
            ItemKind::Fn { name, params, result, body } => {
                let params =
                    params.iter().map(|(n, ty)| (n.text.as_str(), self.type_of_expr(ty))).collect();
                let result = result.as_ref().map(|ty| self.type_of_expr(ty));
                self.functions.insert(&name.text, Function { params, result, body });
            }
            ItemKind::Thread { params, body, .. } => {
                let mut combinations: Vec<Vec<(&'p str, i64)>> = vec![Vec::new()];
                for (name, range) in params {
                    let (lo, hi) = self.constant_range(range);
                    let longer = |some: &Vec<(&'p str, i64)>, value| {
                        let mut more = some.clone();
                        more.push((name.text.as_str(), value));
                        more
                    };
                    combinations = combinations
                        .iter()
                        .flat_map(|c| (lo..=hi).map(move |v| longer(c, v)))
                        .collect();
                }
                self.starts.extend(combinations.into_iter().map(|params| Start { params, body }));
            }
            ItemKind::Init(block) => self.init.push(block),
            ItemKind::Invariant { name, condition } => {
                self.invariants.push((name.as_ref().map(|n| n.text.as_str()), condition));
            }
            ItemKind::Steps(_)
            | ItemKind::Memory(_)
            | ItemKind::Const { .. }
            | ItemKind::Enum { .. }
            | ItemKind::Record { .. } => {}
        }
    }

    /// The type of a variable declared without a type, with this initial value.
    fn type_of_value(&self, value: &Value) -> TypeId {
        self.intern(match value {
            Value::Int(_) => Type::Int(INT.0, INT.1),
            Value::Bool(_) => Type::Bool,
            Value::Variant(number, _) => Type::Enum(*number),
            other => panic!("{other:?} says no type"),
        })
    }

    /// The initial value of a shared variable. A single value fills a whole array.
    fn initial_data(&self, ty: TypeId, e: &'p Expr) -> Data {
        match (self.ty(ty), &e.kind) {
            (Type::Array(element, _), ExprKind::Array(values)) => {
                Data::Parts(values.iter().map(|value| self.initial_data(element, value)).collect())
            }
            (Type::Array(element, length), _) => {
                Data::Parts(vec![self.initial_data(element, e); length])
            }
            _ => Data::Scalar(self.constant(e)),
        }
    }

    /// The value of the constant or variant called `name`.
    pub fn named_constant(&self, name: &str) -> Option<Value> {
        if let Some(value) = self.written.get(name) {
            return Some(self.constant(value));
        }
        self.enums.iter().enumerate().find_map(|(number, (_, variants))| {
            variants.iter().position(|v| *v == name).map(|variant| Value::Variant(number, variant))
        })
    }

    /// The value of a constant expression.
    pub fn constant(&self, e: &Expr) -> Value {
        match &e.kind {
            ExprKind::Int(n) => Value::Int(*n),
            ExprKind::Bool(b) => Value::Bool(*b),
            ExprKind::Null => Value::Null,
            ExprKind::Name(name) => self.named_constant(name).expect("the constant is declared"),
            ExprKind::Unary(UnaryOp::Not, e) => Value::Bool(!self.constant(e).bool()),
            ExprKind::Unary(UnaryOp::Neg, e) => Value::Int(-self.constant(e).int()),
            ExprKind::Binary(BinaryOp::And, l, r) => {
                Value::Bool(self.constant(l).bool() && self.constant(r).bool())
            }
            ExprKind::Binary(BinaryOp::Or, l, r) => {
                Value::Bool(self.constant(l).bool() || self.constant(r).bool())
            }
            ExprKind::Binary(op, l, r) => {
                operate(*op, &self.constant(l), &self.constant(r)).expect("constants have values")
            }
            ExprKind::If(c, a, b) => {
                if self.constant(c).bool() {
                    self.constant(a)
                } else {
                    self.constant(b)
                }
            }
            other => panic!("{other:?} is not constant"),
        }
    }

    /// The lines on which exactly one statement begins.
    pub fn statement_lines(&self, file: &File) -> BTreeSet<u32> {
        let mut lines = BTreeMap::new();
        for item in &file.items {
            if let ItemKind::Fn { body, .. }
            | ItemKind::Thread { body, .. }
            | ItemKind::Init(body) = &item.kind
            {
                self.add_lines(body, &mut lines);
            }
        }
        lines.into_iter().filter(|&(_, statements)| statements == 1).map(|(line, _)| line).collect()
    }

    fn add_lines(&self, block: &Block, lines: &mut BTreeMap<u32, u32>) {
        for stmt in &block.stmts {
            self.add_line(stmt, lines);
        }
    }

    fn add_line(&self, stmt: &Stmt, lines: &mut BTreeMap<u32, u32>) {
        *lines.entry(self.line(stmt.span)).or_default() += 1;
        match &stmt.kind {
            StmtKind::If { then, otherwise, .. } => {
                self.add_lines(then, lines);
                otherwise.iter().for_each(|block| self.add_lines(block, lines));
            }
            StmtKind::While { body, .. }
            | StmtKind::Loop { body }
            | StmtKind::For { body, .. }
            | StmtKind::Atomic(body)
            | StmtKind::Block(body) => self.add_lines(body, lines),
            StmtKind::Match { arms, .. } => {
                arms.iter().for_each(|arm| self.add_lines(&arm.body, lines));
            }
            StmtKind::Choose(blocks) => {
                blocks.iter().for_each(|block| self.add_lines(block, lines));
            }
            StmtKind::End(inner) => self.add_line(inner, lines),
            _ => {}
        }
    }

    /// The line of a span.
    pub fn line(&self, span: Span) -> u32 {
        self.source.site(span).line
    }
}

/// The result of an operator, or an error message.
pub fn operate(op: BinaryOp, left: &Value, right: &Value) -> Result<Value, &'static str> {
    match op {
        BinaryOp::Eq => return Ok(Value::Bool(left == right)),
        BinaryOp::Ne => return Ok(Value::Bool(left != right)),
        _ => {}
    }
    let (a, b) = (left.int(), right.int());
    let number = match op {
        BinaryOp::Lt => return Ok(Value::Bool(a < b)),
        BinaryOp::Le => return Ok(Value::Bool(a <= b)),
        BinaryOp::Gt => return Ok(Value::Bool(a > b)),
        BinaryOp::Ge => return Ok(Value::Bool(a >= b)),
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div | BinaryOp::Rem if b == 0 => return Err("division by zero"),
        BinaryOp::Div => a / b,
        BinaryOp::Rem => a % b,
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::Shl | BinaryOp::Shr if !(0..=31).contains(&b) => {
            return Err("shift by less than 0 or more than 31");
        }
        BinaryOp::Shl => a << b,
        BinaryOp::Shr => a >> b,
        BinaryOp::Eq | BinaryOp::Ne | BinaryOp::And | BinaryOp::Or => {
            unreachable!("handled before")
        }
    };
    fits(number)
}

/// An integer value, or an error message if `number` does not fit 32 bits.
pub fn fits(number: i64) -> Result<Value, &'static str> {
    if (INT.0..=INT.1).contains(&number) {
        Ok(Value::Int(number))
    } else {
        Err("integer overflow: the result does not fit 32 bits")
    }
}
