//! Checks the methods of synchronisation objects.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{Expr, ExprKind, Method, ObjectType, Type};
use preempt_machine::source::Span;
use preempt_system::text::nearest;

use super::Checker;
use super::scopes::Purity;
use super::types::noun;
use crate::syntax::ast;

/// The argument of a method.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// The value of a channel.
    Element,
    /// The mutex that a condition variable belongs to.
    Mutex,
}

/// The result of a method.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    Nothing,
    Bool,
    Int,
    /// The value of a channel.
    Element,
}

/// A row of the table of methods; `None` for the wait of a condition variable, which is an
/// expression kind of its own.
type Row = (&'static str, Option<Method>, Takes, Gives);

const MUTEX: &[Row] = &[
    ("lock", Some(Method::Lock), Takes::Nothing, Gives::Nothing),
    ("try_lock", Some(Method::TryLock), Takes::Nothing, Gives::Bool),
    ("unlock", Some(Method::Unlock), Takes::Nothing, Gives::Nothing),
];
const RWLOCK: &[Row] = &[
    ("read", Some(Method::ReadLock), Takes::Nothing, Gives::Nothing),
    ("try_read", Some(Method::TryReadLock), Takes::Nothing, Gives::Bool),
    ("unlock_read", Some(Method::ReadUnlock), Takes::Nothing, Gives::Nothing),
    ("write", Some(Method::WriteLock), Takes::Nothing, Gives::Nothing),
    ("try_write", Some(Method::TryWriteLock), Takes::Nothing, Gives::Bool),
    ("unlock_write", Some(Method::WriteUnlock), Takes::Nothing, Gives::Nothing),
];
const CONDVAR: &[Row] = &[
    ("wait", None, Takes::Mutex, Gives::Nothing),
    ("notify_one", Some(Method::NotifyOne), Takes::Nothing, Gives::Nothing),
    ("notify_all", Some(Method::NotifyAll), Takes::Nothing, Gives::Nothing),
];
const SEMAPHORE: &[Row] = &[
    ("acquire", Some(Method::Acquire), Takes::Nothing, Gives::Nothing),
    ("try_acquire", Some(Method::TryAcquire), Takes::Nothing, Gives::Bool),
    ("release", Some(Method::Release), Takes::Nothing, Gives::Nothing),
];
const EVENT: &[Row] = &[
    ("set", Some(Method::Set), Takes::Nothing, Gives::Nothing),
    ("reset", Some(Method::Reset), Takes::Nothing, Gives::Nothing),
    ("wait", Some(Method::EventWait), Takes::Nothing, Gives::Nothing),
];
const BARRIER: &[Row] = &[("wait", Some(Method::BarrierWait), Takes::Nothing, Gives::Nothing)];
const CHANNEL: &[Row] = &[
    ("send", Some(Method::Send), Takes::Element, Gives::Nothing),
    ("try_send", Some(Method::TrySend), Takes::Element, Gives::Bool),
    ("recv", Some(Method::Recv), Takes::Nothing, Gives::Element),
    ("len", Some(Method::Len), Takes::Nothing, Gives::Int),
];

fn table(object: &ObjectType) -> &'static [Row] {
    match object {
        ObjectType::Mutex => MUTEX,
        ObjectType::RwLock => RWLOCK,
        ObjectType::Condvar => CONDVAR,
        ObjectType::Semaphore { .. } => SEMAPHORE,
        ObjectType::Event { .. } => EVENT,
        ObjectType::Barrier { .. } => BARRIER,
        ObjectType::Channel { .. } => CHANNEL,
    }
}

/// A call of a method, for a message.
fn signature((name, _, takes, _): &Row) -> String {
    let argument = match takes {
        Takes::Nothing => "",
        Takes::Element => "value",
        Takes::Mutex => "mutex",
    };
    format!("{name}({argument})")
}

/// The methods of an object, for a message.
pub(super) fn list(object: &ObjectType) -> String {
    table(object).iter().map(|row| format!("`{}`", signature(row))).collect::<Vec<_>>().join(", ")
}

impl<'a> Checker<'a> {
    /// `object.name(args)`
    pub(super) fn method(
        &mut self,
        object: &'a ast::Expr,
        name: &'a ast::Name,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        // `len` has no effect.
        if name.text != "len" || self.frame.purity == Purity::Constant {
            self.effect(span, &format!("`{}`", name.text))?;
        }
        let place = self.pointee_or_self(object)?;
        let Type::Object(kind) = &place.ty else {
            let ty = self.name_of(&place.ty);
            return self.refuse(
                Diagnostic::new(
                    name.span,
                    format!("`{}` has no method `{}`", self.excerpt(object.span), name.text),
                )
                .label("no such method")
                .related(object.span, format!("this is of type `{ty}`"))
                .hint("only mutexes, channels and the other synchronisation objects have methods"),
            );
        };
        let row @ &(_, method, takes, gives) = self.row(kind, name)?;
        let element = match kind {
            ObjectType::Channel { element, .. } => (**element).clone(),
            _ => Type::Int,
        };
        let expected = usize::from(takes != Takes::Nothing);
        if args.len() != expected {
            return self.argument_count(
                name.span,
                &name.text,
                expected,
                args.len(),
                &signature(row),
            );
        }
        let ty = match gives {
            Gives::Nothing | Gives::Int => Type::Int,
            Gives::Bool => Type::Bool,
            Gives::Element => element.clone(),
        };
        let kind = match (method, args) {
            (None, [mutex]) => {
                let role = "`wait`";
                let mutex = self.object_argument(mutex, &Type::Object(ObjectType::Mutex), role)?;
                ExprKind::CondWait { condvar: place, mutex }
            }
            (Some(method), args) => {
                let role = format!("the argument of `{}`", name.text);
                let args = args
                    .iter()
                    .map(|arg| self.typed(arg, &element, &role))
                    .collect::<Option<_>>()?;
                ExprKind::Method { object: place, method, args }
            }
            (None, _) => unreachable!("the wait of a condvar takes one argument"),
        };
        Some(Expr { kind, ty, span })
    }

    /// The row of a method of an object.
    fn row(&mut self, object: &ObjectType, name: &ast::Name) -> Option<&'static Row> {
        let rows = table(object);
        let found = rows.iter().find(|row| row.0 == name.text);
        if name.text == "try_send" && matches!(object, ObjectType::Channel { capacity: 0, .. }) {
            return self.refuse(
                Diagnostic::new(name.span, "a rendezvous channel has no `try_send`")
                    .label("the capacity of this channel is 0")
                    .hint("use `send`, or a channel with a capacity of at least 1"),
            );
        }
        if found.is_some() {
            return found;
        }
        let hint = match nearest(&name.text, rows.iter().map(|row| row.0)) {
            Some(near) => format!("did you mean `{near}`? it has {}", list(object)),
            None => format!("it has {}", list(object)),
        };
        self.refuse(
            Diagnostic::new(name.span, format!("a {} has no method `{}`", noun(object), name.text))
                .label("no such method")
                .hint(hint),
        )
    }
}
