//! Mirrors of [`std::sync::Arc`] and [`std::sync::Weak`].
//!
//! An `Arc` gives what is in it a name that is the same in every schedule, orders its last drop after all others for the race
//! detector, and is a leak if it outlives the execution in which it was made.
//!
//! To clone and to drop is no scheduling point unless it can matter: where the program looks at the counts, or where the destructor of
//! the value synchronises, so that it matters who drops it last. Whether it does is found out; the search begins anew then.
//!
//! The one thing that std's can and these cannot is to become an `Arc<dyn Trait>` by itself: use [`Arc::from_std`].

use std::borrow::Borrow;
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::panic::Location as Site;
use std::sync::{Arc as Std, Weak as StdWeak};

use preempt_system::{FailureKind, ThreadId};

use crate::runtime::identity::Shared;
use crate::runtime::names::Place;
use crate::runtime::needs::{Need, go_wrong, need};
use crate::runtime::op::{Act, NOTHING, Op};
use crate::runtime::{Runtime, inside, point, tell, with};

/// A mirror of [`std::sync::Arc`].
pub struct Arc<T: ?Sized> {
    std: ManuallyDrop<Std<T>>,
    /// The execution in which it was made; 0 outside of all.
    execution: u64,
}

/// A mirror of [`std::sync::Weak`].
pub struct Weak<T: ?Sized>(StdWeak<T>);

impl<T> Arc<T> {
    /// A new one.
    #[track_caller]
    pub fn new(value: T) -> Arc<T> {
        Arc::from_std(Std::new(value))
    }

    /// A pinned one.
    #[track_caller]
    pub fn pin(value: T) -> std::pin::Pin<Arc<T>> {
        // SAFETY: the value is not moved out of an `Arc` that is pinned: who has only a pin cannot.
        unsafe { std::pin::Pin::new_unchecked(Arc::new(value)) }
    }

    /// The value, if there is no other reference to it.
    #[track_caller]
    pub fn try_unwrap(this: Arc<T>) -> Result<T, Arc<T>> {
        look(address(&this.std), "try_unwrap", Site::caller());
        let execution = this.execution;
        let (address, std) = this.into_std_keeping();
        Std::try_unwrap(std).inspect(|_| forget(address)).map_err(|std| Arc { std: ManuallyDrop::new(std), execution })
    }

    /// The value, if this is the last reference.
    #[track_caller]
    pub fn into_inner(this: Arc<T>) -> Option<T> {
        look(address(&this.std), "into_inner", Site::caller());
        let (address, std) = this.into_std_keeping();
        Std::into_inner(std).inspect(|_| forget(address))
    }

    /// The pointer that [`Arc::from_raw`] takes back.
    pub fn into_raw(this: Arc<T>) -> *const T {
        Std::into_raw(this.into_std_keeping().1)
    }

    /// Takes back what [`Arc::into_raw`] gave.
    ///
    /// # Safety
    ///
    /// As of [`std::sync::Arc::from_raw`].
    pub unsafe fn from_raw(pointer: *const T) -> Arc<T> {
        // SAFETY: the caller's.
        Arc { std: ManuallyDrop::new(unsafe { Std::from_raw(pointer) }), execution: 0 }
    }
}

impl<T: ?Sized> Arc<T> {
    /// The same value, from now on seen by a check: also of an `Arc<dyn Trait>`.
    #[track_caller]
    pub fn from_std(std: Std<T>) -> Arc<T> {
        let mut execution = 0;
        if inside() {
            let (address, size, site) = (address(&std), size_of_val(&*std), Site::caller());
            execution = with(|runtime| {
                let slot = runtime.current;
                let created = &mut runtime.threads[slot].created;
                let nth = *created;
                *created += 1;
                let known = runtime.met.shared.iter().any(|shared| shared.address == address);
                if !known {
                    let shared = Shared { address, size, slot: slot as u8, nth, ..Shared::new("`Arc`", site) };
                    runtime.met.shared.push(shared);
                }
                runtime.execution
            });
        }
        Arc { std: ManuallyDrop::new(std), execution }
    }

    /// std's, which a check does not see any more.
    fn into_std_keeping(self) -> (usize, Std<T>) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used again, and not dropped.
        let std = unsafe { ManuallyDrop::take(&mut this.std) };
        (address(&std), std)
    }

    /// Stops a thread that uses what another execution has made: nothing can be said about such a test.
    fn belongs_here(&self, site: &'static Site<'static>) {
        if self.execution != 0 && self.execution != with(|runtime| runtime.execution) {
            with(|runtime| {
                let message = "the test uses an `Arc` that was made in another execution: what outlives an execution, as a static does, \
                               must be made before the first one";
                runtime.fail(FailureKind::Runtime, message.into(), Some(site));
            });
            go_wrong();
        }
    }

    /// A weak reference.
    pub fn downgrade(this: &Arc<T>) -> Weak<T> {
        Weak(Std::downgrade(&this.std))
    }

    /// How many references there are.
    #[track_caller]
    pub fn strong_count(this: &Arc<T>) -> usize {
        look(address(&this.std), "strong_count", Site::caller());
        Std::strong_count(&this.std)
    }

    /// How many weak references there are.
    #[track_caller]
    pub fn weak_count(this: &Arc<T>) -> usize {
        look(address(&this.std), "weak_count", Site::caller());
        Std::weak_count(&this.std)
    }

    /// The value, if there is no other reference.
    #[track_caller]
    pub fn get_mut(this: &mut Arc<T>) -> Option<&mut T> {
        look(address(&this.std), "get_mut", Site::caller());
        Std::get_mut(&mut this.std)
    }

    /// Whether both are references to the same value.
    pub fn ptr_eq(this: &Arc<T>, other: &Arc<T>) -> bool {
        Std::ptr_eq(&this.std, &other.std)
    }

    /// A pointer to the value.
    pub fn as_ptr(this: &Arc<T>) -> *const T {
        Std::as_ptr(&this.std)
    }
}

impl<T: Clone> Arc<T> {
    /// The value, of which a copy is made if there are other references.
    #[track_caller]
    pub fn make_mut(this: &mut Arc<T>) -> &mut T {
        look(address(&this.std), "make_mut", Site::caller());
        if Std::get_mut(&mut this.std).is_none() {
            *this = Arc::new((**this).clone());
        }
        Std::get_mut(&mut this.std).expect("the only reference")
    }

    /// The value, or a copy of it.
    #[track_caller]
    pub fn unwrap_or_clone(this: Arc<T>) -> T {
        Arc::try_unwrap(this).unwrap_or_else(|this| (*this).clone())
    }
}

fn address<T: ?Sized>(std: &Std<T>) -> usize {
    Std::as_ptr(std).cast::<()>().addr()
}

/// The execution forgets an `Arc`.
fn forget(address: usize) {
    if inside() {
        with(|runtime| runtime.met.shared.retain(|shared| shared.address != address));
    }
}

fn find(runtime: &mut Runtime, address: usize) -> Option<&mut Shared> {
    runtime.met.shared.iter_mut().rev().find(|shared| shared.address == address)
}

/// The program looks at the counts of an `Arc`: a scheduling point, and from now on so are its clones and drops.
fn look(address: usize, verb: &'static str, site: &'static Site<'static>) {
    if !inside() {
        return;
    }
    let Some(shared) = with(|runtime| find(runtime, address).cloned()) else { return };
    let made = std::ptr::from_ref(shared.site).addr();
    if !with(|runtime| runtime.needs.counted.contains(&made)) {
        need(Need::Counted(made));
    }
    count(&shared, verb, site);
    // It may be the only one who is left.
    with(|runtime| {
        if let Some(clock) = find(runtime, address).map(|shared| shared.clock.clone()) {
            let current = runtime.current;
            runtime.join_clock(current, &clock);
        }
    });
}

/// A step that touches the counts of an `Arc`.
fn count(shared: &Shared, verb: &'static str, site: &'static Site<'static>) {
    let place = Place::Shared { slot: shared.slot, nth: shared.nth, offset: u32::MAX };
    let object = with(|runtime| runtime.names.locate(place, None, "arc", shared.site));
    point(Op { act: Act::Update, object, other: NOTHING, verb, site });
    tell(|| format!("{verb}()"));
    with(|runtime| {
        (runtime.outcome.changed, runtime.outcome.effective) = (true, true);
        runtime.state.change(&runtime.names.objects, object);
    });
}

fn is_counted(runtime: &Runtime, shared: &Shared) -> bool {
    !runtime.needs.counted.is_empty() && runtime.needs.counted.contains(&std::ptr::from_ref(shared.site).addr())
}

/// Whether the count of an `Arc` matters: then what to call it.
fn counted(address: usize) -> Option<Shared> {
    with(|runtime| {
        if runtime.needs.counted.is_empty() {
            return None;
        }
        let shared = find(runtime, address).cloned()?;
        is_counted(runtime, &shared).then_some(shared)
    })
}

impl<T: ?Sized> Clone for Arc<T> {
    #[track_caller]
    fn clone(&self) -> Arc<T> {
        if inside() {
            self.belongs_here(Site::caller());
            if let Some(shared) = counted(address(&self.std)) {
                count(&shared, "clone", Site::caller());
            }
        }
        Arc { std: self.std.clone(), execution: self.execution }
    }
}

impl<T: ?Sized> Drop for Arc<T> {
    fn drop(&mut self) {
        let std = &mut self.std;
        if !inside() {
            // SAFETY: this is the drop of what holds it.
            return unsafe { ManuallyDrop::drop(std) };
        }
        let address = address(std);
        if let Some(shared) = counted(address) {
            count(&shared, "drop", shared.site);
        }
        let last = Std::strong_count(std) == 1;
        let before = with(|runtime| runtime.drop_reference(address, last));
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(std) };
        if last && inside() {
            forget(address);
            with(|runtime| runtime.threads[runtime.current].dropping = before);
        }
    }
}

impl Runtime {
    /// A reference to an `Arc` is dropped. If it is the last one and somebody else might have been, what its destructor does must not
    /// be synchronisation, unless drops are steps. Returns what was being dropped before.
    fn drop_reference(&mut self, address: usize, last: bool) -> Option<usize> {
        let current = self.current;
        let before = self.threads[current].dropping;
        if self.needs.races {
            if let Some(clock) = find(self, address).map(|shared| shared.clock.clone()) {
                let mut own = self.races.clock(current);
                own.join(&clock);
                find(self, address).expect("it was there").clock = own;
                if last {
                    self.join_clock(current, &clock);
                }
            }
        }
        let Some(shared) = find(self, address) else { return before };
        shared.droppers.insert(ThreadId::new(current));
        let shared = shared.clone();
        if last && shared.droppers.len() > 1 && !is_counted(self, &shared) {
            self.threads[current].dropping = Some(std::ptr::from_ref(shared.site).addr());
        }
        before
    }

    fn join_clock(&mut self, thread: usize, clock: &preempt_system::VectorClock) {
        if self.needs.races {
            self.races.join(thread, clock);
        }
    }
}

impl<T: ?Sized> Deref for Arc<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.std
    }
}

impl<T: ?Sized> AsRef<T> for Arc<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T: ?Sized> Borrow<T> for Arc<T> {
    fn borrow(&self) -> &T {
        self
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for Arc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized + PartialEq> PartialEq for Arc<T> {
    fn eq(&self, other: &Arc<T>) -> bool {
        **self == **other
    }
}

impl<T: ?Sized + Eq> Eq for Arc<T> {}

impl<T: Default> Default for Arc<T> {
    #[track_caller]
    fn default() -> Arc<T> {
        Arc::new(T::default())
    }
}

impl<T> From<T> for Arc<T> {
    #[track_caller]
    fn from(value: T) -> Arc<T> {
        Arc::new(value)
    }
}

impl<T> Weak<T> {
    /// A reference to nothing.
    pub const fn new() -> Weak<T> {
        Weak(StdWeak::new())
    }
}

impl<T: ?Sized> Weak<T> {
    /// A reference to the value, if it is still there.
    #[track_caller]
    pub fn upgrade(&self) -> Option<Arc<T>> {
        look(self.0.as_ptr().cast::<()>().addr(), "upgrade", Site::caller());
        self.0.upgrade().map(|std| Arc { std: ManuallyDrop::new(std), execution: 0 })
    }

    /// How many references there are.
    #[track_caller]
    pub fn strong_count(&self) -> usize {
        look(self.0.as_ptr().cast::<()>().addr(), "strong_count", Site::caller());
        self.0.strong_count()
    }

    /// Whether both are references to the same value.
    pub fn ptr_eq(&self, other: &Weak<T>) -> bool {
        self.0.ptr_eq(&other.0)
    }
}

impl<T: ?Sized> Clone for Weak<T> {
    fn clone(&self) -> Weak<T> {
        Weak(self.0.clone())
    }
}

impl<T> Default for Weak<T> {
    fn default() -> Weak<T> {
        Weak::new()
    }
}

impl<T: ?Sized> fmt::Debug for Weak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(Weak)")
    }
}
