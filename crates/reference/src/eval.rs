//! Evaluates expressions.

use preempt_lang::source::Span;
use preempt_lang::syntax::ast::{BinaryOp, Expr, ExprKind, UnaryOp};

use crate::model::{Function, fits, operate};
use crate::run::{Location, Run, Stop};
use crate::types::{Type, TypeId};
use crate::value::{At, Data, Local, Operand, Place, Root, Task, Thread, Value};

/// The arguments of a call.
pub fn arguments(e: &Expr) -> &[Expr] {
    match &e.kind {
        ExprKind::Call(_, arguments)
        | ExprKind::Method(_, _, arguments)
        | ExprKind::Spawn(_, arguments) => arguments,
        other => panic!("{other:?} is not a call"),
    }
}

/// The maximum number of threads.
const MOST_THREADS: usize = 64;
/// The maximum depth of recursion of one function.
const MOST_CALLS: usize = 1_000;
/// The maximum number of outcomes of one step.
const MOST_OUTCOMES: usize = 65_536;

impl<'m, 'p> Run<'m, 'p> {
    /// Performs a task that is part of an expression.
    pub fn evaluate(&mut self, task: Task<'p>) -> Result<(), Stop> {
        match task {
            Task::Eval(e) => self.eval(e.0),
            Task::Place(e) => self.begin_place(e.0),
            Task::AutoDeref(e) => {
                let follows = match self.top() {
                    Operand::Value(_) => {
                        self.me.todo.push(Task::Follow(e));
                        return Ok(());
                    }
                    Operand::Place(place) => matches!(self.model.ty(place.ty), Type::Pointer(_)),
                };
                if follows {
                    self.me.todo.extend([Task::Follow(e), Task::Read(e)]);
                }
                Ok(())
            }
            Task::Follow(e) => {
                let place = match self.value() {
                    Value::Pointer(place) => place,
                    _ => {
                        let Type::Pointer(ty) = self.model.ty(self.static_type(e.0)) else {
                            panic!("a pointer is followed")
                        };
                        Place { root: Root::Nowhere, path: Vec::new(), ty }
                    }
                };
                self.me.operands.push(Operand::Place(place));
                Ok(())
            }
            Task::Element => {
                let index = self.value().int();
                let mut place = self.place();
                let Type::Array(element, _) = self.model.ty(place.ty) else {
                    panic!("an array is indexed")
                };
                place.path.push(index);
                place.ty = element;
                self.me.operands.push(Operand::Place(place));
                Ok(())
            }
            Task::Field(e) => {
                let ExprKind::Field(_, name) = &e.0.kind else { panic!("a field is selected") };
                let mut place = self.place();
                let Type::Record(record) = self.model.ty(place.ty) else {
                    panic!("a record has fields")
                };
                let fields = self.model.fields(&record);
                let at = fields
                    .iter()
                    .position(|(n, _)| *n == name.text)
                    .expect("the checker found the declaration");
                place.path.push(at as i64);
                place.ty = fields[at].1;
                self.me.operands.push(Operand::Place(place));
                Ok(())
            }
            Task::Address(e) => {
                let place = self.place();
                self.check(&place, e.0.span)?;
                self.push(Value::Pointer(place));
                Ok(())
            }
            Task::Read(e) => {
                let place = self.place();
                let value = self.read(&place, e.0.span)?;
                self.push(value);
                Ok(())
            }
            Task::ReadKept(e) => {
                let Operand::Place(place) = self.top().clone() else { panic!("a place is read") };
                let value = self.read(&place, e.0.span)?;
                self.push(value);
                Ok(())
            }
            Task::Write(e) => {
                let (value, place) = (self.value(), self.place());
                self.write(&place, value, e.0.span)
            }
            Task::Operate(e) => self.operate(e.0),
            Task::Right(e) => {
                let ExprKind::Binary(op, _, right) = &e.0.kind else { panic!("`&&` or `||`") };
                let needed = self.value().bool() == (*op == BinaryOp::And);
                if needed {
                    self.me.todo.push(Task::Eval(At(right)));
                } else {
                    self.push(Value::Bool(*op == BinaryOp::Or));
                }
                Ok(())
            }
            Task::Either(e) => {
                let ExprKind::If(_, a, b) = &e.0.kind else { panic!("an if with values") };
                let taken = if self.value().bool() { a } else { b };
                self.me.todo.push(Task::Eval(At(taken)));
                Ok(())
            }
            Task::Modify(e) => self.modify(e.0),
            Task::Method(e) => self.method(e.0),
            Task::LetGo(e) => self.let_go(e.0),
            Task::Enter(e) => self.enter(e.0),
            Task::Fault(failure) => Err(Stop::Failed(failure)),
            Task::Leave(_) => {
                self.me.frames.pop();
                Ok(())
            }
            Task::Spawn(e) => self.spawn(e.0),
            Task::New(e) => self.make(e.0),
            Task::Pick(e) => {
                let ExprKind::Choose(range) = &e.0.kind else { panic!("a range is chosen from") };
                let (hi, lo) = (self.value().int(), self.value().int());
                let last = if range.inclusive { hi } else { hi - 1 };
                if last < lo {
                    let dots = if range.inclusive { "..=" } else { ".." };
                    let message = format!("nothing to choose from: {lo}{dots}{hi} is empty");
                    return Err(self.fail(e.0.span, message));
                }
                let count = (last - lo + 1) as usize;
                let before: usize = self.choices[..self.chosen].iter().map(|&(_, of)| of).product();
                if count * before > MOST_OUTCOMES {
                    let message =
                        "more than 65536 alternatives in one step: choose from fewer values";
                    return Err(self.fail(e.0.span, message));
                }
                let taken = self.choose(count) as i64;
                self.push(Value::Int(lo + taken));
                Ok(())
            }
            Task::Quantify(e, value, count) => {
                self.quantify(e.0, value, count);
                Ok(())
            }
            Task::Quantified(e, value, count) => {
                self.frame().pop();
                self.quantified(e.0, value, count);
                Ok(())
            }
            other => panic!("{other:?} is not part of an expression"),
        }
    }

    fn eval(&mut self, e: &'p Expr) -> Result<(), Stop> {
        let operands = self.operands_of_access(e);
        if self.fails_at_access(&operands) {
            return Ok(());
        }
        let at = At(e);
        match &e.kind {
            ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Null => {
                let value = self.model.constant(e);
                self.push(value);
            }
            ExprKind::Name(name) => match self.local(name) {
                Some(_) => self.me.todo.extend([Task::Read(at), Task::Place(at)]),
                None => match self.model.named_constant(name) {
                    Some(value) => self.push(value),
                    None => self.me.todo.extend([Task::Read(at), Task::Place(at)]),
                },
            },
            ExprKind::Index(..) | ExprKind::Field(..) | ExprKind::Deref(_) => {
                self.me.todo.extend([Task::Read(at), Task::Place(at)]);
            }
            ExprKind::AddressOf(place) => {
                self.me.todo.extend([Task::Address(at), Task::Place(At(place))]);
            }
            ExprKind::Unary(_, operand) => {
                self.me.todo.extend([Task::Operate(at), Task::Eval(At(operand))]);
            }
            ExprKind::Binary(BinaryOp::And | BinaryOp::Or, left, _) => {
                self.me.todo.extend([Task::Right(at), Task::Eval(At(left))]);
            }
            ExprKind::Binary(_, left, right) => {
                self.me.todo.extend([
                    Task::Operate(at),
                    Task::Eval(At(right)),
                    Task::Eval(At(left)),
                ]);
            }
            ExprKind::If(condition, ..) => {
                self.me.todo.extend([Task::Either(at), Task::Eval(At(condition))]);
            }
            ExprKind::Call(name, arguments) => {
                if self.model.functions.contains_key(name.text.as_str()) {
                    self.me.todo.push(Task::Enter(at));
                    self.me.todo.extend(arguments.iter().rev().map(|a| Task::Eval(At(a))));
                } else {
                    self.me.todo.push(Task::Modify(at));
                    self.me.todo.extend(arguments[1..].iter().rev().map(|a| Task::Eval(At(a))));
                    self.me.todo.push(Task::Place(At(&arguments[0])));
                }
            }
            ExprKind::Method(object, name, arguments) => {
                self.me.todo.push(Task::Method(at));
                for argument in arguments.iter().rev() {
                    if name.text == "wait" {
                        self.me
                            .todo
                            .extend([Task::AutoDeref(At(argument)), Task::Place(At(argument))]);
                    } else {
                        self.me.todo.push(Task::Eval(At(argument)));
                    }
                }
                self.me.todo.extend([Task::AutoDeref(At(object)), Task::Place(At(object))]);
            }
            ExprKind::Spawn(_, arguments) => {
                self.me.todo.push(Task::Spawn(at));
                self.me.todo.extend(arguments.iter().rev().map(|a| Task::Eval(At(a))));
            }
            ExprKind::New(_, fields) => {
                self.me.todo.push(Task::New(at));
                self.me.todo.extend(fields.iter().rev().map(|(_, e)| Task::Eval(At(e))));
            }
            ExprKind::Choose(range) => {
                self.me.todo.extend([
                    Task::Pick(at),
                    Task::Eval(At(&range.hi)),
                    Task::Eval(At(&range.lo)),
                ]);
            }
            ExprKind::Quantifier(_, _, range, _) => {
                let (lo, _) = self.model.constant_range(range);
                self.quantify(e, lo, 0);
            }
            ExprKind::Array(_) | ExprKind::Error => panic!("it is no value of an expression"),
        }
        Ok(())
    }

    fn begin_place(&mut self, e: &'p Expr) -> Result<(), Stop> {
        match &e.kind {
            ExprKind::Name(name) => {
                let (root, ty) = match self.local(name) {
                    Some((root, ty)) => (root, ty),
                    None => {
                        let globals = &self.model.globals;
                        let at = globals
                            .iter()
                            .position(|g| g.name == name)
                            .expect("the checker found the declaration");
                        (Root::Global(at), globals[at].ty)
                    }
                };
                self.me.operands.push(Operand::Place(Place { root, path: Vec::new(), ty }));
                Ok(())
            }
            ExprKind::Index(array, index) => {
                self.me.todo.extend([Task::Element, Task::Eval(At(index)), Task::Place(At(array))]);
                Ok(())
            }
            ExprKind::Field(record, _) => {
                self.me.todo.extend([
                    Task::Field(At(e)),
                    Task::AutoDeref(At(record)),
                    Task::Place(At(record)),
                ]);
                Ok(())
            }
            ExprKind::Deref(pointer) => {
                self.me.todo.extend([Task::Follow(At(pointer)), Task::Eval(At(pointer))]);
                Ok(())
            }
            _ => self.eval(e),
        }
    }

    /// A local variable of the innermost call.
    pub fn local(&self, name: &str) -> Option<(Root, TypeId)> {
        let number = self.me.frames.len().checked_sub(1)?;
        let frame = &self.me.frames[number];
        frame.iter().enumerate().rev().find_map(|(scope, locals)| {
            let at = locals.iter().rposition(|local| local.name == name)?;
            Some((Root::Local(number, scope, at), locals[at].ty))
        })
    }

    fn operate(&mut self, e: &'p Expr) -> Result<(), Stop> {
        let result = match &e.kind {
            ExprKind::Unary(UnaryOp::Not, _) => Ok(Value::Bool(!self.value().bool())),
            ExprKind::Unary(UnaryOp::Neg, _) => fits(-self.value().int()),
            ExprKind::Binary(op, ..) => {
                let (right, left) = (self.value(), self.value());
                operate(*op, &left, &right)
            }
            other => panic!("{other:?} has no operator"),
        };
        let value = result.map_err(|message| self.fail(e.span, message))?;
        self.push(value);
        Ok(())
    }

    /// `cas`, `swap` and `fetch_…`
    fn modify(&mut self, e: &'p Expr) -> Result<(), Stop> {
        let ExprKind::Call(name, arguments) = &e.kind else { panic!("an access by its name") };
        let mut operands: Vec<Value> = arguments[1..].iter().map(|_| self.value()).collect();
        operands.reverse();
        let place = self.place();
        let old = self.read(&place, e.span)?;
        // Whether it changes the value is not known beforehand, so it counts as a write.
        self.touch_place(&place, true);
        if name.text == "cas" {
            let equal = old == operands[0];
            if equal {
                self.write(&place, operands[1].clone(), e.span)?;
            }
            self.push(Value::Bool(equal));
            return Ok(());
        }
        let new = match name.text.as_str() {
            "swap" => Ok(operands[0].clone()),
            "fetch_add" => operate(BinaryOp::Add, &old, &operands[0]),
            "fetch_sub" => operate(BinaryOp::Sub, &old, &operands[0]),
            "fetch_and" => operate(BinaryOp::BitAnd, &old, &operands[0]),
            "fetch_or" => operate(BinaryOp::BitOr, &old, &operands[0]),
            "fetch_xor" => operate(BinaryOp::BitXor, &old, &operands[0]),
            other => panic!("there is no {other}"),
        };
        let new = new.map_err(|message| self.fail(e.span, message))?;
        self.write(&place, new, e.span)?;
        self.push(old);
        Ok(())
    }

    /// Reads a scalar.
    pub fn read(&mut self, place: &Place, span: Span) -> Result<Value, Stop> {
        self.check(place, span)?;
        self.touch_place(place, false);
        match self.data(place, span)? {
            Data::Scalar(value) => Ok(value.clone()),
            other => panic!("{other:?} is not a scalar"),
        }
    }

    /// Writes a scalar.
    pub fn write(&mut self, place: &Place, value: Value, span: Span) -> Result<(), Stop> {
        self.check(place, span)?;
        self.touch_place(place, true);
        self.check_range(place.ty, &value, span)?;
        *self.data(place, span)? = Data::Scalar(value);
        Ok(())
    }

    /// Checks that a value fits the type of the variable to which it is assigned.
    pub fn check_range(&self, ty: TypeId, value: &Value, span: Span) -> Result<(), Stop> {
        match (self.model.ty(ty), value) {
            (Type::Int(lo, hi), Value::Int(n)) if !(lo..=hi).contains(n) => {
                let message = format!("{n} is outside the range: {lo} to {hi}");
                Err(self.fail(span, message))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a value fits the type of a function's result.
    pub fn check_result(&self, ty: TypeId, value: &Value, span: Span) -> Result<(), Stop> {
        match (self.model.ty(ty), value) {
            (Type::Int(lo, hi), Value::Int(n)) if !(lo..=hi).contains(n) => {
                let message = format!("{n} is outside the range of the result: {lo} to {hi}");
                Err(self.fail(span, message))
            }
            _ => Ok(()),
        }
    }

    /// The function that is called or spawned.
    pub fn called(&self, call: &Expr) -> &'m Function<'p> {
        match &call.kind {
            ExprKind::Call(name, _) | ExprKind::Spawn(name, _) => {
                self.model.functions.get(name.text.as_str()).expect("the function is declared")
            }
            other => panic!("{other:?} is not a call"),
        }
    }

    /// The parameters of a function, with the values on top of the stack.
    fn parameters(&mut self, call: &'p Expr) -> Result<Vec<Local<'p>>, Stop> {
        let function = self.called(call);
        let mut values: Vec<Value> = function.params.iter().map(|_| self.value()).collect();
        values.reverse();
        let mut locals = Vec::new();
        for (&(name, ty), value) in function.params.iter().zip(values) {
            self.check_range(ty, &value, call.span)?;
            locals.push(Local { name, ty, data: Data::Scalar(value) });
        }
        Ok(locals)
    }

    fn enter(&mut self, call: &'p Expr) -> Result<(), Stop> {
        let parameters = self.parameters(call)?;
        let body = self.called(call).body;
        let active = |task: &&Task<'p>| match task {
            Task::Leave(other) => std::ptr::eq(self.called(other.0).body, body),
            _ => false,
        };
        if self.me.todo.iter().filter(active).count() >= MOST_CALLS {
            let message = "more than 1000 nested calls: the recursion seems to be endless";
            return Err(self.fail(call.span, message));
        }
        self.me.frames.push(vec![parameters, Vec::new()]);
        self.me.todo.extend([Task::Leave(At(call)), Task::Stmts(At(body), 0)]);
        Ok(())
    }

    fn spawn(&mut self, e: &'p Expr) -> Result<(), Stop> {
        let parameters = self.parameters(e)?;
        let function = self.called(e);
        let number = self.state.threads.len();
        if number == MOST_THREADS {
            let message = "more than 64 threads: a thread that has ended keeps its place";
            return Err(self.fail(e.span, message));
        }
        self.touch(Location::Threads, true, true);
        self.touch(Location::Thread(number), true, true);
        self.push(Value::Thread(number));
        let child = Thread {
            todo: vec![Task::Stmts(At(function.body), 0)],
            frames: vec![vec![parameters, Vec::new()]],
            spawned: true,
            result: function.result,
            ..Thread::default()
        };
        self.state.threads.push(Thread::default());
        let beginning = child.clone();
        // What the child does before its first access belongs to this step.
        let parent = (std::mem::replace(&mut self.me, child), self.number, self.nonstop);
        (self.number, self.nonstop) = (number, false);
        // A child that never rests must not make the step that spawns it endless.
        let tasks = std::mem::take(&mut self.tasks);
        let outcome = self.to_rest();
        self.tasks = tasks;
        let child = std::mem::replace(&mut self.me, parent.0);
        (self.number, self.nonstop) = (parent.1, parent.2);
        // A child that would fail before its first access stays at its beginning: failing is its
        // first step.
        self.state.threads[number] = if let Err(Stop::Failed(failure)) = outcome {
            self.unborn.push(failure);
            beginning
        } else {
            child
        };
        Ok(())
    }

    fn make(&mut self, e: &'p Expr) -> Result<(), Stop> {
        let ExprKind::New(name, fields) = &e.kind else { panic!("a record is made") };
        let ty = self.model.intern(Type::Record(name.text.clone()));
        self.touch(Location::Records(ty), true, true);
        let Data::Parts(mut parts) = self.model.zero(ty) else { panic!("a record has parts") };
        let declared = self.model.fields(&name.text);
        for (field, _) in fields.iter().rev() {
            let at = declared
                .iter()
                .position(|(n, _)| *n == field.text)
                .expect("the checker found the declaration");
            let value = self.value();
            self.check_range(declared[at].1, &value, e.span)?;
            parts[at] = Data::Scalar(value);
        }
        while self.state.heap.contains_key(&(self.number, self.me.made)) {
            self.me.made += 1;
        }
        let id = (self.number, self.me.made);
        self.me.made += 1;
        self.state.heap.insert(id, (ty, Data::Parts(parts)));
        let root = Root::Heap(id.0, id.1);
        self.push(Value::Pointer(Place { root, path: Vec::new(), ty }));
        Ok(())
    }

    fn quantify(&mut self, e: &'p Expr, value: i64, count: i64) {
        let ExprKind::Quantifier(word, name, range, body) = &e.kind else { panic!("a quantifier") };
        let (_, last) = self.model.constant_range(range);
        if value > last {
            self.push(match word.text.as_str() {
                "all" => Value::Bool(true),
                "any" => Value::Bool(false),
                _ => Value::Int(count),
            });
            return;
        }
        let (ty, data) = (self.model.int(), Data::Scalar(Value::Int(value)));
        self.frame().push(vec![Local { name: &name.text, ty, data }]);
        self.me.todo.extend([Task::Quantified(At(e), value, count), Task::Eval(At(body))]);
    }

    fn quantified(&mut self, e: &'p Expr, value: i64, count: i64) {
        let ExprKind::Quantifier(word, ..) = &e.kind else { panic!("a quantifier") };
        let holds = self.value().bool();
        match (word.text.as_str(), holds) {
            ("all", false) => self.push(Value::Bool(false)),
            ("any", true) => self.push(Value::Bool(true)),
            ("count", true) => self.quantify(e, value + 1, count + 1),
            _ => self.quantify(e, value + 1, count),
        }
    }
}
