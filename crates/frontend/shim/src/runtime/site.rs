//! Places in the test, as numbers for the recording and as source positions for reports.

use std::num::NonZeroU64;
use std::panic::Location as Site;

use preempt_replay::SiteId;
use preempt_system::Site as Position;

/// The number of a place: the address of its `Location`, which is a static of the program.
#[inline]
pub(crate) fn id(site: &'static Site<'static>) -> SiteId {
    let address = std::ptr::from_ref(site).expose_provenance() as u64;
    SiteId::new(NonZeroU64::new(address).expect("a reference is not null"))
}

/// The place with a number that [`id`] returned.
#[inline]
pub(crate) fn of(id: SiteId) -> &'static Site<'static> {
    // SAFETY: every `SiteId` of this crate comes from `id`, which takes a reference to a static and
    // exposes its provenance.
    unsafe { &*std::ptr::with_exposed_provenance(id.get() as usize) }
}

/// The source position of a place.
pub(crate) fn position(site: &Site<'_>) -> Position {
    Position { file: site.file().into(), line: site.line(), column: site.column() }
}
