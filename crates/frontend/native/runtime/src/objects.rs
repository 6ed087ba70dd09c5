//! The states of all synchronisation objects of the program, by address.
//!
//! An object enters the table when it is first used. If the program initialises an object again at
//! the same address, a new *life* begins, which the controller counts as another object.

use crate::block::ObjectKind;
use crate::footprint::Access;
use crate::object::{Action, Kind, Misuse};
use crate::schedule::{fault, full, log_create};
use crate::thread::ThreadId;

/// The number of entries of the small table, a power of two. It takes two pages, so that executions
/// with few objects touch few pages.
const SMALL: usize = 64;

/// The maximal number of objects in the small table. The other entries stay free, so that every
/// lookup ends.
const SMALL_MAX: usize = 48;

/// The number of entries of the large table, a power of two.
const LARGE: usize = 1 << 16;

/// The number of all entries.
pub const CAPACITY: usize = SMALL + LARGE;

/// The maximal number of words of an object's state.
const FIELDS: usize = 2;

/// One object. A free entry is all zeros, so that the table takes no space in the library's file.
#[derive(Clone, Copy)]
pub struct Object {
    address: u64,
    /// An [`ObjectKind`].
    kind: u8,
    parameter: u32,
    cells: [u64; FIELDS],
    /// The number of times that it has changed.
    version: u32,
    /// How often the owner of a recursive mutex has locked it beyond the first time.
    pub relocked: u32,
    /// The virtual time of the last operation that wrote, in nanoseconds: see
    /// [`crate::hooks::time`].
    pub written: u64,
    /// The virtual time of the last operation that only read.
    pub read: u64,
}

const NONE: Object = Object {
    address: 0,
    kind: 0,
    parameter: 0,
    cells: [0; FIELDS],
    version: 0,
    relocked: 0,
    written: 0,
    read: 0,
};

/// All objects: two tables with open addressing, the second of which is used when the first has
/// [`SMALL_MAX`] objects. Nothing is removed, so a lookup ends at a free entry.
pub struct Objects {
    count: usize,
    /// The entries of the small table, then those of the large one.
    entries: [Object; CAPACITY],
}

impl Objects {
    pub const EMPTY: Objects = Objects { count: 0, entries: [NONE; CAPACITY] };

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.count
    }

    /// The object of this kind at an address. An object that was never used gets its initial state;
    /// `parameter` is called only then.
    pub fn at(
        &mut self,
        kind: ObjectKind,
        address: u64,
        parameter: impl FnOnce() -> u32,
    ) -> &mut Object {
        let at = self.find(kind, address);
        if self.entries[at].address == 0 {
            self.begin(at, kind, address, parameter());
        }
        &mut self.entries[at]
    }

    /// The index of an object, which never changes.
    pub fn index(&mut self, kind: ObjectKind, address: u64) -> u32 {
        let at = self.find(kind, address);
        if self.entries[at].address == 0 {
            self.begin(at, kind, address, 0);
        }
        at as u32
    }

    /// The object at an index.
    pub fn get(&mut self, index: u32) -> &mut Object {
        &mut self.entries[index as usize]
    }

    /// The number of times that the object at an index has changed.
    pub fn version(&self, index: u32) -> u32 {
        self.entries[index as usize].version
    }

    /// Begins a new life of the object at an address.
    pub fn create(&mut self, kind: ObjectKind, address: u64, parameter: u32) {
        let at = self.find(kind, address);
        self.begin(at, kind, address, parameter);
    }

    fn find(&self, kind: ObjectKind, address: u64) -> usize {
        // Neighbours in memory are neighbours in the table, so that an execution touches few of its
        // pages: each page is copied on its first write.
        const NEAR: u32 = 10;
        let far = (address >> NEAR ^ (kind as u64) << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let near = (address & ((1 << NEAR) - 1)) / 4;
        let hash = ((far >> 40) + near) as usize;
        let at = self.find_in(0, SMALL, hash, kind, address);
        if self.entries[at].address == 0 && self.count >= SMALL_MAX {
            return self.find_in(SMALL, LARGE, hash, kind, address);
        }
        at
    }

    /// The index of an object in the table of `len` entries that begins at `first`, or of the free
    /// entry where it would be.
    #[inline(always)]
    fn find_in(
        &self,
        first: usize,
        len: usize,
        hash: usize,
        kind: ObjectKind,
        address: u64,
    ) -> usize {
        let mut at = hash & (len - 1);
        loop {
            let entry = &self.entries[first + at];
            if entry.address == 0 || (entry.address == address && entry.kind == kind as u8) {
                return first + at;
            }
            at = (at + 1) & (len - 1);
        }
    }

    fn begin(&mut self, at: usize, kind: ObjectKind, address: u64, parameter: u32) {
        if self.entries[at].address == 0 {
            self.count += 1;
            if self.count > LARGE / 2 {
                full("the program uses more than 32768 synchronisation objects");
            }
        }
        let version = self.entries[at].version + 1;
        let mut object = Object { address, kind: kind as u8, parameter, version, ..NONE };
        if let Some(kind) = object.semantics_if_any() {
            (0..kind.fields()).for_each(|field| object.cells[field] = kind.initial(field));
        }
        self.entries[at] = object;
        log_create(kind, address, parameter);
    }
}

impl Object {
    /// The semantics of the object. An atomic variable has none here, because its value is in the
    /// program's memory.
    fn semantics_if_any(&self) -> Option<Kind> {
        match ObjectKind::of(self.kind)? {
            ObjectKind::Mutex | ObjectKind::Once => Some(Kind::Mutex),
            ObjectKind::RwLock => Some(Kind::RwLock),
            ObjectKind::Condvar | ObjectKind::Futex => Some(Kind::Condvar),
            ObjectKind::Semaphore => Some(Kind::Semaphore { initial: self.parameter }),
            ObjectKind::Barrier => Some(Kind::Barrier { parties: self.parameter }),
            ObjectKind::Atomic => None,
        }
    }

    fn semantics(&self) -> Kind {
        self.semantics_if_any().unwrap_or_else(|| fault("an atomic variable has no actions"))
    }

    /// Whether `thread` can perform `action` now.
    pub fn can(&self, thread: ThreadId, action: Action) -> bool {
        self.semantics().enabled(&self.cells[..], thread, action)
    }

    /// The number of alternatives that `action` has now.
    pub fn alternatives(&self, thread: ThreadId, action: Action) -> u32 {
        self.semantics().alternatives(&self.cells[..], thread, action)
    }

    /// Performs an action. A misuse changes nothing; the controller, which performs the same
    /// action, reports it.
    pub fn act(&mut self, thread: ThreadId, action: Action) -> Result<i64, Misuse> {
        let (kind, before) = (self.semantics(), self.cells);
        let reply = kind.apply(&mut self.cells[..], thread, action);
        self.version += u32::from(self.cells != before);
        reply
    }

    /// Records that an atomic variable has changed.
    pub fn change(&mut self) {
        self.version += 1;
    }

    /// Sets the number of times that the object has changed.
    pub fn set_version(&mut self, version: u32) {
        self.version = version;
    }

    /// How `action` accesses the object.
    pub fn access(&self, action: Action) -> Access {
        self.semantics().access(action)
    }

    /// Updates the virtual times of the object for an access by a thread whose time is `time`.
    /// Returns the thread's new time: later than everything that happens before the access, and the
    /// same for all orders of independent accesses.
    pub fn advance_time(&mut self, time: u64, access: Access) -> u64 {
        match access {
            Access::Read => {
                let now = time.max(self.written) + 1;
                self.read = self.read.max(now);
                now
            }
            Access::Write => {
                self.written = time.max(self.written).max(self.read) + 1;
                self.written
            }
        }
    }

    /// Removes a thread from the set of those that wait on a condition variable or a futex word.
    pub fn cancel_wait(&mut self, thread: ThreadId) {
        self.cells[0] &= !(1 << thread.index());
        self.version += 1;
    }

    /// Whether threads wait on this condition variable, futex word or barrier.
    pub fn is_awaited(&self) -> bool {
        self.cells[0] != 0
    }

    /// The number of threads that wait on this condition variable or futex word.
    pub fn waiting(&self) -> i64 {
        i64::from(self.cells[0].count_ones())
    }

    /// Whether `thread` holds the lock.
    pub fn is_held_by(&self, thread: ThreadId) -> bool {
        self.semantics().lock_mode(&self.cells[..], thread).is_some()
    }

    /// Whether `thread` holds the lock for writing.
    pub fn is_owned_by(&self, thread: ThreadId) -> bool {
        self.cells[0] == thread.index() as u64 + 1
    }

    /// Whether any thread holds the lock.
    pub fn is_held(&self) -> bool {
        self.cells != [0; FIELDS]
    }

    /// The count of a semaphore.
    pub fn count(&self) -> u64 {
        self.cells[0]
    }
}
