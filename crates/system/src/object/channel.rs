//! Channels. Field 0 is the length of the queue; the other fields are the queue, oldest value
//! first.
//!
//! Receiving shifts the remaining values and writes 0 behind them, so equal queues are equal
//! states. A ring buffer would make receiving cheaper but multiply the states by the capacity.
//!
//! Without capacity, sender and receiver meet in three steps: the sender offers a value
//! ([`Action::Send`]), the receiver takes it ([`Action::Recv`]), and the sender continues
//! ([`Action::Sent`]). Field 0 is then the stage of this protocol, and field 1 the offered value.

use super::{Access, Action, Cells, Holds, Misuse, Mover, Object, ThreadId, foreign};

pub(super) struct Channel {
    pub(super) capacity: u32,
}

const LENGTH: usize = 0;
const OLDEST: usize = 1;

const STAGE: usize = 0;
const EMPTY: u64 = 0;
const OFFERED: u64 = 1;
const TAKEN: u64 = 2;

impl Channel {
    fn meets(&self) -> bool {
        self.capacity == 0
    }

    #[inline]
    fn has_room<C: Cells + ?Sized>(&self, cells: &C) -> bool {
        if self.meets() {
            cells.get(STAGE) == EMPTY
        } else {
            cells.get(LENGTH) < u64::from(self.capacity)
        }
    }

    #[inline]
    fn has_value<C: Cells + ?Sized>(&self, cells: &C) -> bool {
        if self.meets() { cells.get(STAGE) == OFFERED } else { cells.get(LENGTH) > 0 }
    }

    fn put<C: Cells + ?Sized>(&self, cells: &mut C, value: i64) {
        if self.meets() {
            cells.set(STAGE, OFFERED);
            cells.set(OLDEST, value as u64);
        } else {
            let length = cells.get(LENGTH);
            cells.set(OLDEST + length as usize, value as u64);
            cells.set(LENGTH, length + 1);
        }
    }

    fn take<C: Cells + ?Sized>(&self, cells: &mut C) -> i64 {
        let value = cells.get(OLDEST) as i64;
        if self.meets() {
            cells.set(STAGE, TAKEN);
            cells.set(OLDEST, 0);
        } else {
            let newest = cells.get(LENGTH) as usize;
            for slot in OLDEST..newest {
                cells.set(slot, cells.get(slot + 1));
            }
            cells.set(newest, 0);
            cells.set(LENGTH, newest as u64 - 1);
        }
        value
    }
}

impl Object for Channel {
    #[inline]
    fn fields(&self) -> usize {
        1 + self.capacity.max(1) as usize
    }

    fn holds(&self, field: usize, _threads: usize) -> Holds {
        match field {
            STAGE if self.meets() => Holds::Below(TAKEN + 1),
            LENGTH => Holds::Below(u64::from(self.capacity) + 1),
            _ => Holds::Payload,
        }
    }

    #[inline]
    fn enabled<C: Cells + ?Sized>(&self, cells: &C, _thread: ThreadId, action: Action) -> bool {
        match action {
            Action::Send(_) => self.has_room(cells),
            Action::Sent => !self.meets() || cells.get(STAGE) == TAKEN,
            Action::Recv => self.has_value(cells),
            Action::TrySend(_) | Action::TryRecv | Action::Len => true,
            _ => foreign("channel", action),
        }
    }

    #[inline]
    fn apply<C: Cells + ?Sized>(
        &self,
        cells: &mut C,
        _thread: ThreadId,
        action: Action,
    ) -> Result<i64, Misuse> {
        match action {
            Action::Send(value) => {
                self.put(cells, value);
                Ok(0)
            }
            Action::Sent => {
                if self.meets() {
                    cells.set(STAGE, EMPTY);
                }
                Ok(0)
            }
            Action::TrySend(_) if self.meets() => Err(Misuse::TryRendezvous),
            Action::TrySend(value) => {
                let room = self.has_room(cells);
                if room {
                    self.put(cells, value);
                }
                Ok(i64::from(room))
            }
            Action::Recv => Ok(self.take(cells)),
            Action::TryRecv => Ok(if self.has_value(cells) { self.take(cells) } else { 0 }),
            // A channel without capacity never stores a value.
            Action::Len => Ok(if self.meets() { 0 } else { cells.get(LENGTH) as i64 }),
            _ => foreign("channel", action),
        }
    }

    /// With capacity, [`Action::Sent`] touches nothing, which is less than a read; front ends need
    /// not perform it there.
    #[inline]
    fn access(&self, action: Action) -> Access {
        match action {
            Action::Len => Access::Read,
            Action::Sent if !self.meets() => Access::Read,
            Action::Send(_)
            | Action::Sent
            | Action::TrySend(_)
            | Action::Recv
            | Action::TryRecv => Access::Write,
            _ => foreign("channel", action),
        }
    }

    /// Nothing moves. The queue keeps the order of sends and of receives. A send cannot move left
    /// past the receive that makes room for it, nor right past the receive that takes its value.
    /// More would be true if only one thread sent and one received, but that is a fact about a
    /// program.
    #[inline]
    fn mover(&self, action: Action) -> Mover {
        match action {
            Action::Sent if !self.meets() => Mover::Both,
            Action::Send(_) | Action::Sent | Action::TrySend(_) => Mover::None,
            Action::Recv | Action::TryRecv | Action::Len => Mover::None,
            _ => foreign("channel", action),
        }
    }
}
