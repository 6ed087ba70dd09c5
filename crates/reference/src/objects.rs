//! Executes the methods of synchronisation objects.

use preempt_lang::source::Span;
use preempt_lang::syntax::ast::{Expr, ExprKind};

use crate::run::{Location, Run, Stop};
use crate::types::{ObjectType, Type};
use crate::value::{At, Data, Object, Operand, Place, Root, Task, Value};

/// Whether a method has a result.
pub fn has_result(method: &str) -> bool {
    method.starts_with("try_") || matches!(method, "recv" | "len")
}

/// Whether a method writes: it then conflicts with all methods of the object, and otherwise only
/// with those that write. The outcome of the call does not matter.
fn writes(method: &str, object: &ObjectType) -> bool {
    match method {
        "read" | "try_read" | "unlock_read" | "len" => false,
        "wait" => !matches!(object, ObjectType::Event { auto: false, .. }),
        _ => true,
    }
}

/// The maximum count of a semaphore.
const MOST_PERMITS: i64 = 4_294_967_295;

impl<'p> Run<'_, 'p> {
    /// Calls a method, which is an access to the object.
    pub fn method(&mut self, e: &'p Expr) -> Result<(), Stop> {
        let ExprKind::Method(_, name, arguments) = &e.kind else { panic!("a method is called") };
        let (me, span) = (self.number, e.span);
        let blocked = Err(Stop::Blocked { resting: self.me.marks > 0 });
        let mut given: Vec<Operand> = arguments.iter().map(|_| self.pop()).collect();
        given.reverse();
        let place = self.place();
        self.check(&place, span)?;
        let Type::Object(ty) = self.model.ty(place.ty) else { panic!("an object has methods") };
        if let (ObjectType::Channel(_, element), [Operand::Value(sent)]) = (&ty, &given[..]) {
            self.check_range(*element, sent, span)?;
        }
        let object = self.object(&place, span)?;
        if !matches!(object, Object::Condvar(_)) {
            self.touch_object(&place, writes(&name.text, &ty));
        }
        // The object after the call, and the result.
        let (after, result) = match (name.text.as_str(), object.clone()) {
            ("lock", Object::Mutex(None)) => (Object::Mutex(Some(me)), None),
            ("try_lock", Object::Mutex(None)) => (Object::Mutex(Some(me)), Some(Value::Bool(true))),
            ("try_lock", busy @ Object::Mutex(_)) => (busy, Some(Value::Bool(false))),
            ("unlock", Object::Mutex(holder)) => {
                if holder != Some(me) {
                    let message = "the thread unlocks a mutex that it does not hold";
                    return Err(self.fail(span, message));
                }
                (Object::Mutex(None), None)
            }
            ("read" | "try_read", Object::RwLock { mut readers, writer: None })
                if !readers.contains(&me) =>
            {
                readers.insert(me);
                let result = (name.text == "try_read").then_some(Value::Bool(true));
                (Object::RwLock { readers, writer: None }, result)
            }
            ("write" | "try_write", Object::RwLock { readers, writer: None })
                if readers.is_empty() =>
            {
                let result = (name.text == "try_write").then_some(Value::Bool(true));
                (Object::RwLock { readers, writer: Some(me) }, result)
            }
            ("try_read" | "try_write", busy @ Object::RwLock { .. }) => {
                (busy, Some(Value::Bool(false)))
            }
            ("unlock_read", Object::RwLock { mut readers, writer }) => {
                if !readers.remove(&me) {
                    return Err(self.fail(
                        span,
                        "the thread ends reading under a lock that it does not hold for reading",
                    ));
                }
                (Object::RwLock { readers, writer }, None)
            }
            ("unlock_write", Object::RwLock { readers, writer }) => {
                if writer != Some(me) {
                    return Err(self.fail(
                        span,
                        "the thread ends writing under a lock that it does not hold for writing",
                    ));
                }
                (Object::RwLock { readers, writer: None }, None)
            }
            ("wait", Object::Condvar(mut waiting)) => {
                let Operand::Place(mutex) = given.remove(0) else { panic!("a mutex is given") };
                self.check(&mutex, span)?;
                self.touch_object(&mutex, true);
                if self.object(&mutex, span)? != Object::Mutex(Some(me)) {
                    let message = "the thread unlocks a mutex that it does not hold";
                    return Err(self.fail(span, message));
                }
                self.set_object(&mutex, Object::Mutex(None), span)?;
                waiting.insert(me);
                self.me.operands.push(Operand::Place(mutex));
                self.wait_for(e, &place);
                (Object::Condvar(waiting), None)
            }
            ("notify_one", Object::Condvar(mut waiting)) => {
                if !waiting.is_empty() {
                    let taken = self.choose(waiting.len());
                    let woken = *waiting.iter().nth(taken).expect("one of those that wait");
                    waiting.remove(&woken);
                }
                (Object::Condvar(waiting), None)
            }
            ("notify_all", Object::Condvar(_)) => (Object::Condvar(Default::default()), None),
            ("acquire", Object::Semaphore(n)) if n > 0 => (Object::Semaphore(n - 1), None),
            ("try_acquire", Object::Semaphore(n)) => {
                (Object::Semaphore((n - 1).max(0)), Some(Value::Bool(n > 0)))
            }
            ("release", Object::Semaphore(MOST_PERMITS)) => {
                let message = "the semaphore is released more often than it can count";
                return Err(self.fail(span, message));
            }
            ("release", Object::Semaphore(n)) => (Object::Semaphore(n + 1), None),
            ("set", Object::Event(_)) => (Object::Event(true), None),
            ("reset", Object::Event(_)) => (Object::Event(false), None),
            ("wait", Object::Event(true)) => {
                (Object::Event(!matches!(ty, ObjectType::Event { auto: true, .. })), None)
            }
            ("wait", Object::Barrier(mut waiting)) => {
                let ObjectType::Barrier(needed) = ty else { panic!("a barrier has a number") };
                waiting.insert(me);
                if waiting.len() == needed {
                    waiting.clear();
                }
                self.wait_for(e, &place);
                (Object::Barrier(waiting), None)
            }
            ("send" | "try_send", Object::Channel(mut values)) => {
                let ObjectType::Channel(capacity, _) = ty else { panic!("a channel") };
                if values.len() < capacity {
                    values.push(value(given.remove(0)));
                    (
                        Object::Channel(values),
                        (name.text == "try_send").then_some(Value::Bool(true)),
                    )
                } else if name.text == "try_send" {
                    (Object::Channel(values), Some(Value::Bool(false)))
                } else {
                    return blocked;
                }
            }
            ("recv", Object::Channel(mut values)) if !values.is_empty() => {
                let value = values.remove(0);
                (Object::Channel(values), Some(value))
            }
            ("len", Object::Channel(values)) => {
                let length = Value::Int(values.len() as i64);
                (Object::Channel(values), Some(length))
            }
            ("send", Object::Rendezvous(None)) => {
                let value = value(given.remove(0));
                self.wait_for(e, &place);
                (Object::Rendezvous(Some((me, Some(value)))), None)
            }
            ("recv", Object::Rendezvous(Some((sender, Some(value))))) => {
                (Object::Rendezvous(Some((sender, None))), Some(value))
            }
            ("len", meeting @ Object::Rendezvous(_)) => (meeting, Some(Value::Int(0))),
            (
                "lock" | "read" | "write" | "wait" | "acquire" | "send" | "recv",
                Object::Mutex(_)
                | Object::RwLock { .. }
                | Object::Semaphore(_)
                | Object::Event(_)
                | Object::Channel(_)
                | Object::Rendezvous(_),
            ) => return blocked,
            (method, object) => panic!("{object:?} has no method {method}"),
        };
        self.touch_object(&place, writes(&name.text, &ty));
        *self.data(&place, span)? = Data::Object(after);
        if let Some(result) = result {
            self.push(result);
        }
        Ok(())
    }

    /// Schedules the second half of a method as the next task.
    fn wait_for(&mut self, e: &'p Expr, place: &Place) {
        self.me.operands.push(Operand::Place(place.clone()));
        self.me.todo.push(Task::LetGo(At(e)));
    }

    /// The second half of a method: continues once the object has released the thread.
    pub fn let_go(&mut self, e: &'p Expr) -> Result<(), Stop> {
        let (me, span) = (self.number, e.span);
        let place = self.place();
        let blocked = Err(Stop::Blocked { resting: self.me.marks > 0 });
        match self.object(&place, span)? {
            Object::Condvar(waiting) => {
                let mutex = self.place();
                self.touch_object(&place, false);
                let free = self.object(&mutex, span)? == Object::Mutex(None);
                if waiting.contains(&me) {
                    return blocked;
                }
                if !free {
                    self.touch_object(&mutex, false);
                    return blocked;
                }
                self.set_object(&mutex, Object::Mutex(Some(me)), span)
            }
            Object::Barrier(waiting) => {
                self.touch_object(&place, false);
                if waiting.contains(&me) { blocked } else { Ok(()) }
            }
            Object::Rendezvous(Some((sender, None))) if sender == me => {
                self.set_object(&place, Object::Rendezvous(None), span)
            }
            Object::Rendezvous(_) => {
                self.touch_object(&place, false);
                blocked
            }
            other => panic!("no wait for {other:?} takes two steps"),
        }
    }

    fn object(&mut self, place: &Place, span: Span) -> Result<Object, Stop> {
        match self.data(place, span)? {
            Data::Object(object) => Ok(object.clone()),
            other => panic!("{other:?} is no object"),
        }
    }

    fn set_object(&mut self, place: &Place, object: Object, span: Span) -> Result<(), Stop> {
        self.touch_object(place, true);
        *self.data(place, span)? = Data::Object(object);
        Ok(())
    }

    fn touch_object(&mut self, place: &Place, write: bool) {
        if !matches!(place.root, Root::Local(..) | Root::Nowhere) {
            self.touch(Location::Shared(place.root, place.path.clone()), write, true);
        }
    }
}

fn value(operand: Operand) -> Value {
    match operand {
        Operand::Value(value) => value,
        Operand::Place(place) => panic!("a value is sent, not {place:?}"),
    }
}
