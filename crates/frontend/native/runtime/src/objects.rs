//! The states of all synchronisation objects of the program, by address.
//!
//! An object is in the table as soon as it is used. If the program initialises memory as an object
//! again, a new *life* begins: the controller counts it as another object.

use crate::block::ObjectKind;
use crate::footprint::Access;
use crate::object::{Action, Kind, Misuse};
use crate::schedule::{fault, full, log_create};
use crate::thread::ThreadId;

/// The number of entries for the first objects, a power of two: a table that fits on two pages, so
/// that executions with few objects touch few pages.
const FEW: usize = 64;

/// The objects among these. The rest of the entries stay free, so that every search ends.
const MOST_OF_FEW: usize = 48;

/// The number of entries for further objects, a power of two.
const MANY: usize = 1 << 16;

/// The number of all entries.
pub const CAPACITY: usize = FEW + MANY;

/// The most words of an object's state.
const FIELDS: usize = 2;

/// One object. An entry of zeros is free, so that the table takes no room in the library's file.
#[derive(Clone, Copy)]
pub struct Object {
    address: u64,
    /// An [`ObjectKind`].
    which: u8,
    parameter: u32,
    cells: [u64; FIELDS],
    /// The number of its changes.
    version: u32,
    /// How often the owner of a recursive mutex has locked it again.
    pub relocked: u32,
    /// The virtual time of the last operation that wrote, in nanoseconds: see
    /// [`crate::hooks::time`].
    pub written: u64,
    /// The same for operations that only read.
    pub read: u64,
}

const NONE: Object = Object {
    address: 0,
    which: 0,
    parameter: 0,
    cells: [0; FIELDS],
    version: 0,
    relocked: 0,
    written: 0,
    read: 0,
};

/// All objects: two tables with open addressing, the second of which is used when the first has
/// [`MOST_OF_FEW`] objects. Nothing is removed, so a search ends at a free entry.
pub struct Objects {
    count: usize,
    /// Those of the first table, then those of the second.
    entries: [Object; CAPACITY],
}

impl Objects {
    pub const EMPTY: Objects = Objects { count: 0, entries: [NONE; CAPACITY] };

    /// The object of this sort at an address. Its state is the initial one if it was never used;
    /// `parameter` is only asked then.
    pub fn at(
        &mut self,
        which: ObjectKind,
        address: u64,
        parameter: impl FnOnce() -> u32,
    ) -> &mut Object {
        let at = self.place(which, address);
        if self.entries[at].address == 0 {
            self.begin(at, which, address, parameter());
        }
        &mut self.entries[at]
    }

    /// The index of an object, which is stable.
    pub fn index(&mut self, which: ObjectKind, address: u64) -> u32 {
        let at = self.place(which, address);
        if self.entries[at].address == 0 {
            self.begin(at, which, address, 0);
        }
        at as u32
    }

    /// The object at an index.
    pub fn get(&mut self, index: u32) -> &mut Object {
        &mut self.entries[index as usize]
    }

    /// The number of changes of the object at an index.
    pub fn version(&self, index: u32) -> u32 {
        self.entries[index as usize].version
    }

    /// Begins a new life of the object at an address.
    pub fn create(&mut self, which: ObjectKind, address: u64, parameter: u32) {
        let at = self.place(which, address);
        self.begin(at, which, address, parameter);
    }

    fn place(&self, which: ObjectKind, address: u64) -> usize {
        // Objects that are neighbours in memory are neighbours here, so that an execution touches
        // few pages of the table: it is copied when it is written.
        const NEAR: u32 = 10;
        let far = (address >> NEAR ^ (which as u64) << 56).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let near = (address & ((1 << NEAR) - 1)) / 4;
        let hash = ((far >> 40) + near) as usize;
        let at = self.place_from(0, FEW, hash, which, address);
        if self.entries[at].address == 0 && self.count >= MOST_OF_FEW {
            return self.place_from(FEW, MANY, hash, which, address);
        }
        at
    }

    /// The entry of an object, or the free one where it would be, in the table of `len` entries
    /// that begins with `first`.
    #[inline(always)]
    fn place_from(
        &self,
        first: usize,
        len: usize,
        hash: usize,
        which: ObjectKind,
        address: u64,
    ) -> usize {
        let mut at = hash & (len - 1);
        loop {
            let entry = &self.entries[first + at];
            if entry.address == 0 || (entry.address == address && entry.which == which as u8) {
                return first + at;
            }
            at = (at + 1) & (len - 1);
        }
    }

    fn begin(&mut self, at: usize, which: ObjectKind, address: u64, parameter: u32) {
        if self.entries[at].address == 0 {
            self.count += 1;
            if self.count > MANY / 2 {
                full("the program uses more than 32768 synchronisation objects");
            }
        }
        let version = self.entries[at].version + 1;
        let mut object = Object { address, which: which as u8, parameter, version, ..NONE };
        if let Some(kind) = object.kind_if_any() {
            (0..kind.fields()).for_each(|field| object.cells[field] = kind.initial(field));
        }
        self.entries[at] = object;
        log_create(which, address, parameter);
    }
}

impl Object {
    /// Its semantics; an atomic variable has none here, because its value is in the program's
    /// memory.
    fn kind_if_any(&self) -> Option<Kind> {
        match ObjectKind::of(self.which)? {
            ObjectKind::Mutex | ObjectKind::Once => Some(Kind::Mutex),
            ObjectKind::RwLock => Some(Kind::RwLock),
            ObjectKind::Condvar | ObjectKind::Futex => Some(Kind::Condvar),
            ObjectKind::Semaphore => Some(Kind::Semaphore { initial: self.parameter }),
            ObjectKind::Barrier => Some(Kind::Barrier { parties: self.parameter }),
            ObjectKind::Atomic => None,
        }
    }

    fn kind(&self) -> Kind {
        self.kind_if_any().unwrap_or_else(|| fault("an atomic variable has no actions"))
    }

    /// Whether `thread` can perform `action` now.
    pub fn can(&self, thread: ThreadId, action: Action) -> bool {
        self.kind().enabled(&self.cells[..], thread, action)
    }

    /// The number of ways to perform `action` now.
    pub fn ways(&self, thread: ThreadId, action: Action) -> u32 {
        self.kind().alternatives(&self.cells[..], thread, action)
    }

    /// Performs an action. A misuse changes nothing; the controller, which performs the same
    /// action, reports it.
    pub fn act(&mut self, thread: ThreadId, action: Action) -> Result<i64, Misuse> {
        let (kind, before) = (self.kind(), self.cells);
        let reply = kind.apply(&mut self.cells[..], thread, action);
        self.version += u32::from(self.cells != before);
        reply
    }

    /// Counts a change of an atomic variable.
    pub fn change(&mut self) {
        self.version += 1;
    }

    /// How `action` accesses the object.
    pub fn access(&self, action: Action) -> Access {
        self.kind().access(action)
    }

    /// Passes the virtual time of a thread through the object. Returns the thread's new time: later
    /// than everything that happens before the access, and the same for all orders of independent
    /// accesses.
    pub fn pass(&mut self, time: u64, access: Access) -> u64 {
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
    pub fn leave(&mut self, thread: ThreadId) {
        self.cells[0] &= !(1 << thread.index());
        self.version += 1;
    }

    /// Whether threads wait: for a condition variable, a futex word or a barrier.
    pub fn is_awaited(&self) -> bool {
        self.cells[0] != 0
    }

    /// How many threads wait: for a condition variable, a futex word or a barrier.
    pub fn waiting(&self) -> i64 {
        i64::from(self.cells[0].count_ones())
    }

    /// Whether `thread` holds the lock.
    pub fn is_held_by(&self, thread: ThreadId) -> bool {
        self.kind().lock_mode(&self.cells[..], thread).is_some()
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
