//! The pages that `--html` writes, in a real browser: `cargo test -p preempt-cli --test viewer`.
//!
//! Without a browser the tests say so and pass, unless `REQUIRE_BROWSER` is set;
//! `scripts/install-test-tools` installs one. The expected contents of a page are computed here
//! from its data, step by step, and not by its own scripts.
#![allow(clippy::unwrap_used)]

mod browser;
mod tests;

use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Trial};

use self::browser::Browser;

/// The browser that all tests use, one after the other; it is started by the first.
type Shared = Arc<Mutex<Option<Browser>>>;

fn main() {
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    let required = std::env::var_os("REQUIRE_BROWSER").is_some();
    let installed = browser::is_installed();
    if !installed && !required {
        eprintln!(
            "skipped: no chromium or no chromedriver on this machine; scripts/install-test-tools installs them"
        );
    }
    let shared = Shared::default();
    let trial = |(name, test): tests::Test| {
        let shared = shared.clone();
        Trial::test(name, move || match (installed, required) {
            (true, _) => with_browser(&shared, test),
            (false, true) => {
                Err("REQUIRE_BROWSER is set, and there is no chromium or no chromedriver".into())
            }
            (false, false) => Ok(()),
        })
    };
    let conclusion = libtest_mimic::run(&arguments, tests::ALL.into_iter().map(trial).collect());
    // Otherwise the browser would outlive the process.
    drop(shared.lock().unwrap_or_else(PoisonError::into_inner).take());
    conclusion.exit();
}

fn with_browser(shared: &Shared, test: fn(&Browser)) -> Result<(), libtest_mimic::Failed> {
    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
    if shared.is_none() {
        *shared = Some(Browser::start()?);
    }
    let browser = shared.as_ref().expect("the browser was started");
    browser.resize(1280, 900);
    browser.prefer("light");
    let _ = browser.complaints();
    test(browser);
    match &browser.complaints()[..] {
        [] => Ok(()),
        complaints => Err(format!("the page complains: {complaints:?}").into()),
    }
}
