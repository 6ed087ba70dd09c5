//! Static types of expressions, for variables without a declared type and for the targets of null
//! pointers.

use preempt_lang::syntax::ast::{BinaryOp, Expr, ExprKind, UnaryOp};

use crate::run::Run;
use crate::types::{ObjectType, Type, TypeId};
use crate::value::Value;

impl<'p> Run<'_, 'p> {
    /// The type of an expression at the thread's current position.
    pub fn static_type(&self, e: &'p Expr) -> TypeId {
        let model = self.model;
        let bool = || model.intern(Type::Bool);
        match &e.kind {
            ExprKind::Int(_) | ExprKind::Choose(_) => model.int(),
            ExprKind::Bool(_) => bool(),
            ExprKind::Null => model.intern(Type::Null),
            ExprKind::Name(name) => self.type_of_name(name),
            ExprKind::Index(array, _) => match model.ty(self.static_type(array)) {
                Type::Array(element, _) => element,
                other => panic!("{other:?} has no elements"),
            },
            ExprKind::Field(record, name) => {
                let mut ty = model.ty(self.static_type(record));
                if let Type::Pointer(to) = ty {
                    ty = model.ty(to);
                }
                let Type::Record(record) = ty else { panic!("{ty:?} has no fields") };
                let fields = model.fields(&record);
                fields.iter().find(|(n, _)| *n == name.text).expect("the field is declared").1
            }
            ExprKind::Unary(UnaryOp::Not, _) => bool(),
            ExprKind::Unary(UnaryOp::Neg, _) => model.int(),
            ExprKind::AddressOf(place) => model.intern(Type::Pointer(self.static_type(place))),
            ExprKind::Deref(pointer) => match model.ty(self.static_type(pointer)) {
                Type::Pointer(to) => to,
                other => panic!("{other:?} points to nothing"),
            },
            ExprKind::Binary(op, ..) => {
                use BinaryOp as B;
                match op {
                    B::Eq | B::Ne | B::Lt | B::Le | B::Gt | B::Ge | B::And | B::Or => bool(),
                    _ => model.int(),
                }
            }
            ExprKind::If(_, a, b) => match self.static_type(a) {
                ty if model.ty(ty) == Type::Null => self.static_type(b),
                ty => ty,
            },
            ExprKind::Call(name, arguments) => match model.functions.get(name.text.as_str()) {
                Some(function) => function.result.expect("its result is used"),
                None if name.text == "cas" => bool(),
                None => self.static_type(&arguments[0]),
            },
            ExprKind::Method(object, name, _) => match name.text.as_str() {
                "len" => model.int(),
                "recv" => {
                    let mut ty = model.ty(self.static_type(object));
                    if let Type::Pointer(to) = ty {
                        ty = model.ty(to);
                    }
                    match ty {
                        Type::Object(ObjectType::Channel(_, element)) => element,
                        other => panic!("{other:?} has nothing to receive"),
                    }
                }
                _ => bool(),
            },
            ExprKind::Spawn(..) => model.intern(Type::Thread),
            ExprKind::New(name, _) => {
                let record = model.intern(Type::Record(name.text.clone()));
                model.intern(Type::Pointer(record))
            }
            ExprKind::Quantifier(word, ..) => {
                if word.text == "count" {
                    model.int()
                } else {
                    bool()
                }
            }
            ExprKind::Array(_) | ExprKind::Error => panic!("it is no value of an expression"),
        }
    }

    fn type_of_name(&self, name: &str) -> TypeId {
        let locals = self.me.frames.last().into_iter().flatten().rev();
        if let Some(local) = locals.flat_map(|scope| scope.iter().rev()).find(|l| l.name == name) {
            return local.ty;
        }
        let model = self.model;
        match model.named_constant(name) {
            Some(Value::Bool(_)) => model.intern(Type::Bool),
            Some(Value::Variant(number, _)) => model.intern(Type::Enum(number)),
            Some(_) => model.int(),
            None => {
                model
                    .globals
                    .iter()
                    .find(|g| g.name == name)
                    .expect("the checker found the declaration")
                    .ty
            }
        }
    }
}
