//! The panic hook: inside a check a panic is a result, and is not printed where it happens.
//!
//! An exception is a panic after which there is no result: if a destructor panics while its thread
//! already unwinds, the process aborts, and the messages so far have to be printed before that.

use std::any::Any;
use std::panic::{self, PanicHookInfo};
use std::sync::Once;

use preempt_system::ThreadId;

use super::{Runtime, Stage, current, site, unobserved, with};
use crate::stderr::say;

static INSTALLED: Once = Once::new();

/// Installs the hook, once. It passes panics outside executions to the previous hook.
pub(crate) fn install() {
    INSTALLED.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(
            move |info| if current::is_set() { note(info) } else { before(info) },
        ));
    });
}

fn note(info: &PanicHookInfo<'_>) {
    // These texts outlive the memory of the execution.
    let (text, site) = unobserved(|| (text(info.payload()), info.location().map(site::position)));
    let aborts = ABORTS.contains(&text.as_str());
    let words = with(|runtime| {
        let done = runtime.recording.state().counts()[runtime.current];
        runtime.verdict.panicking.insert(ThreadId::new(runtime.current));
        runtime.threads[runtime.current].said.push((text, site, done));
        aborts.then(|| last_words(runtime))
    });
    if let Some(words) = words {
        say(&words);
    }
}

/// The messages of panics in std after which the process aborts.
const ABORTS: [&str; 2] =
    ["panic in a destructor during cleanup", "panic in a function that cannot unwind"];

/// The messages of a thread's last two panics before the one that aborts.
fn last_words(runtime: &Runtime) -> String {
    let said = &runtime.threads[runtime.current].said;
    let before = &said[..said.len() - 1];
    let messages =
        before[before.len().saturating_sub(2)..].iter().map(|(text, site, _)| match site {
            Some(site) => format!("at {site}: {text}"),
            None => text.clone(),
        });
    let messages = messages.collect::<Vec<_>>().join("; then ");
    let name = runtime.thread_name(runtime.current);
    let (what, advice) = if runtime.stage != Stage::Running {
        (
            "was panicking when its execution was abandoned, and panicked again",
            "let destructors assert nothing if `preempt::thread::panicking()`",
        )
    } else {
        ("panicked while it was panicking", "a destructor must not panic while its thread unwinds")
    };
    format!(
        "{name} {what}, and the process has to abort: {messages}. Nothing more can be reported; \
         {advice}"
    )
}

/// The text of a panic.
pub(crate) fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned())
}
