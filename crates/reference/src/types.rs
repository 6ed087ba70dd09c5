//! The types of a model: their values, and the initial contents of places.

use std::collections::BTreeSet;

use preempt_lang::syntax::ast::{Expr, ExprKind, ObjectArg, RangeExpr, TypeExpr, TypeKind};

use crate::model::Model;
use crate::value::{Data, Object, Value};

/// A type, by its number in [`Model::types`].
pub type TypeId = usize;

/// A type. Two types are equal if they are written the same after their constants are evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// The integers from the first to the second, both included. `int` is the 32-bit range.
    Int(i64, i64),
    /// `bool`
    Bool,
    /// The enum with this number.
    Enum(usize),
    /// The record with this name.
    Record(String),
    /// `[T; n]`
    Array(TypeId, usize),
    /// `*T`
    Pointer(TypeId),
    /// `thread`
    Thread,
    /// The type of `null` before it is compared or assigned.
    Null,
    /// A synchronisation object.
    Object(ObjectType),
}

/// The kinds of synchronisation objects, with the parameters of their declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectType {
    /// `mutex`
    Mutex,
    /// `rwlock`
    RwLock,
    /// `condvar`
    Condvar,
    /// `semaphore(n)`
    Semaphore(i64),
    /// `event`, with the flags in its parentheses
    Event {
        /// Whether a successful `wait` resets it.
        auto: bool,
        /// Whether it is initially set.
        set: bool,
    },
    /// `barrier(n)`
    Barrier(usize),
    /// `channel(capacity, T)`
    Channel(usize, TypeId),
}

/// The smallest and the largest `int`.
pub const INT: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);

impl<'p> Model<'p> {
    /// The number of a type; adds the type if it is new.
    pub fn intern(&self, ty: Type) -> TypeId {
        let mut types = self.types.borrow_mut();
        types.iter().position(|known| *known == ty).unwrap_or_else(|| {
            types.push(ty);
            types.len() - 1
        })
    }

    /// The type with this number.
    pub fn ty(&self, id: TypeId) -> Type {
        self.types.borrow()[id].clone()
    }

    /// `int`
    pub fn int(&self) -> TypeId {
        self.intern(Type::Int(INT.0, INT.1))
    }

    /// The type that a type expression denotes.
    pub fn type_of_expr(&self, written: &'p TypeExpr) -> TypeId {
        let ty = match &written.kind {
            TypeKind::Named(name) => self.named_type(name),
            TypeKind::Range(range) => {
                let (lo, hi) = self.constant_range(range);
                Type::Int(lo, hi)
            }
            TypeKind::Array(element, length) => {
                Type::Array(self.type_of_expr(element), self.constant(length).int() as usize)
            }
            TypeKind::Pointer(to) => Type::Pointer(self.type_of_expr(to)),
            TypeKind::Object(word, arguments) => Type::Object(self.object_type(word, arguments)),
        };
        self.intern(ty)
    }

    fn named_type(&self, name: &str) -> Type {
        match name {
            "int" => Type::Int(INT.0, INT.1),
            "bool" => Type::Bool,
            "thread" => Type::Thread,
            _ => match self.enums.iter().position(|(known, _)| *known == name) {
                Some(number) => Type::Enum(number),
                None => Type::Record(name.to_owned()),
            },
        }
    }

    fn object_type(&self, word: &str, arguments: &'p [ObjectArg]) -> ObjectType {
        let number = |at: usize| match &arguments[at] {
            ObjectArg::Expr(e) => self.constant(e).int(),
            ObjectArg::Type(_) => panic!("{word} has a number in its parentheses"),
        };
        let is = |word: &str| {
            arguments
                .iter()
                .any(|argument| matches!(argument, ObjectArg::Expr(Expr { kind: ExprKind::Name(n), .. }) if n == word))
        };
        match word {
            "mutex" => ObjectType::Mutex,
            "rwlock" => ObjectType::RwLock,
            "condvar" => ObjectType::Condvar,
            "semaphore" => ObjectType::Semaphore(number(0)),
            "event" => ObjectType::Event { auto: is("auto"), set: is("set") },
            "barrier" => ObjectType::Barrier(number(0) as usize),
            "channel" => {
                let element = match &arguments[1] {
                    ObjectArg::Type(ty) => self.type_of_expr(ty),
                    ObjectArg::Expr(e) => match &e.kind {
                        ExprKind::Name(name) => self.intern(self.named_type(name)),
                        other => panic!("a channel carries a type, not {other:?}"),
                    },
                };
                ObjectType::Channel(number(0) as usize, element)
            }
            other => panic!("there is no object {other}"),
        }
    }

    /// The first and the last value of a range whose ends are constants. Empty if the last is
    /// smaller.
    pub fn constant_range(&self, range: &'p RangeExpr) -> (i64, i64) {
        let (lo, hi) = (self.constant(&range.lo).int(), self.constant(&range.hi).int());
        (lo, if range.inclusive { hi } else { hi - 1 })
    }

    /// The initial contents of a place of this type.
    pub fn zero(&self, id: TypeId) -> Data {
        match self.ty(id) {
            Type::Int(lo, hi) => Data::Scalar(Value::Int(if lo <= 0 && 0 <= hi { 0 } else { lo })),
            Type::Bool => Data::Scalar(Value::Bool(false)),
            Type::Enum(number) => Data::Scalar(Value::Variant(number, 0)),
            Type::Pointer(_) | Type::Thread | Type::Null => Data::Scalar(Value::Null),
            Type::Array(element, length) => Data::Parts(vec![self.zero(element); length]),
            Type::Record(name) => {
                Data::Parts(self.fields(&name).iter().map(|&(_, ty)| self.zero(ty)).collect())
            }
            Type::Object(object) => Data::Object(match object {
                ObjectType::Mutex => Object::Mutex(None),
                ObjectType::RwLock => Object::RwLock { readers: BTreeSet::new(), writer: None },
                ObjectType::Condvar => Object::Condvar(BTreeSet::new()),
                ObjectType::Semaphore(count) => Object::Semaphore(count),
                ObjectType::Event { set, .. } => Object::Event(set),
                ObjectType::Barrier(_) => Object::Barrier(BTreeSet::new()),
                ObjectType::Channel(0, _) => Object::Rendezvous(None),
                ObjectType::Channel(..) => Object::Channel(Vec::new()),
            }),
        }
    }

    /// The fields of a record with their types, in the order of their declaration.
    pub fn fields(&self, record: &str) -> Vec<(&'p str, TypeId)> {
        let (_, fields) =
            self.records.iter().find(|(name, _)| *name == record).expect("the record is declared");
        fields.iter().map(|(name, ty)| (name.text.as_str(), self.type_of_expr(ty))).collect()
    }
}
