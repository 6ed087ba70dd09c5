//! The panic hook: inside a check a panic is a result, and is not printed where it happens.

use std::any::Any;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

use preempt_system::ThreadId;

use super::{current, place, with};

static INSTALLED: Once = Once::new();

/// Installs the hook, once. It leaves panics outside of executions to the hook that was there.
pub(crate) fn install() {
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| if current::is_set() { note(info) } else { before(info) }));
    });
}

fn note(info: &PanicHookInfo<'_>) {
    let said = (text(info.payload()), info.location().map(place));
    with(|runtime| {
        runtime.panicking.insert(ThreadId::new(runtime.current));
        runtime.threads[runtime.current].said = Some(said);
    });
}

/// The text of a panic.
pub(crate) fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic without a text".to_owned())
}
