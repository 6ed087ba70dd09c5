//! A real browser, driven over the WebDriver protocol: HTTP with JSON to a `chromedriver` on this
//! machine.
//!
//! Tests wait for the expected state of a page with a generous deadline, so that a slow machine
//! fails no test. The browser is ended when its value is dropped, even if the test fails.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long a page may take to reach the expected state.
const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a request may take; the first one starts the browser.
const ANSWER: Duration = Duration::from_secs(180);

const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
    "--force-device-scale-factor=1",
];

/// The names of keys that are not characters.
pub mod key {
    pub const SHIFT: &str = "\u{e008}";
    pub const ENTER: &str = "\u{e007}";
    pub const ESCAPE: &str = "\u{e00c}";
    pub const PAGE_UP: &str = "\u{e00e}";
    pub const PAGE_DOWN: &str = "\u{e00f}";
    pub const END: &str = "\u{e010}";
    pub const HOME: &str = "\u{e011}";
    pub const UP: &str = "\u{e013}";
    pub const DOWN: &str = "\u{e015}";
}

/// The driver process, and the profile folder of the browser.
struct Driver {
    process: Child,
    port: u16,
    profile: PathBuf,
}

/// A browser with one window.
pub struct Browser {
    driver: Driver,
    session: String,
}

/// Whether this machine has a browser and its driver.
pub fn is_installed() -> bool {
    let version =
        |program: &str| Command::new(program).arg("--version").stderr(Stdio::null()).output();
    ["chromedriver", "chromium"]
        .into_iter()
        .all(|program| version(program).is_ok_and(|said| said.status.success()))
}

impl Driver {
    fn start() -> Result<Driver, String> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let nth = STARTED.fetch_add(1, Ordering::Relaxed);
        let profile =
            std::env::temp_dir().join(format!("preempt-viewer-test-{}-{nth}", std::process::id()));
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let process =
            command.spawn().map_err(|error| format!("chromedriver cannot be started: {error}"))?;
        let mut driver = Driver { process, port: 0, profile };
        let mut lines =
            BufReader::new(driver.process.stdout.take().expect("the output is piped")).lines();
        let said = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            port.trim_end_matches('.').parse().ok()
        });
        driver.port = said.ok_or("chromedriver ended without saying its port")?;
        // The pipe must be drained, or the browser would block.
        thread::spawn(move || lines.for_each(drop));
        Ok(driver)
    }

    /// One request, and the value of its answer.
    fn request(&self, method: &str, path: &str, body: &Value) -> Result<Value, String> {
        let wrong = |error: std::io::Error| format!("{method} {path}: {error}");
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(wrong)?;
        stream.set_read_timeout(Some(ANSWER)).map_err(wrong)?;
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            self.port,
            body.len()
        );
        stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(body.as_bytes()))
            .map_err(wrong)?;
        let mut answer = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            if answer.read_line(&mut line).map_err(wrong)? == 0 || line == "\r\n" {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value
                    .trim()
                    .parse()
                    .map_err(|_| format!("{method} {path}: a length of {value}"))?;
            }
        }
        let mut bytes = vec![0; length];
        answer.read_exact(&mut bytes).map_err(wrong)?;
        let mut answer: Value =
            serde_json::from_slice(&bytes).map_err(|error| format!("{method} {path}: {error}"))?;
        let value = answer["value"].take();
        match value["error"].as_str() {
            Some(error) => Err(format!(
                "{method} {path}: {error}: {}",
                value["message"].as_str().unwrap_or_default()
            )),
            None => Ok(value),
        }
    }

    fn session(&self) -> Result<String, String> {
        let mut args: Vec<String> = FLAGS.iter().map(|&flag| flag.to_owned()).collect();
        args.push(format!("--user-data-dir={}", self.profile.display()));
        let wishes = json!({
            "browserName": "chrome",
            "goog:chromeOptions": {"args": args},
            "goog:loggingPrefs": {"browser": "ALL"},
        });
        let made =
            self.request("POST", "/session", &json!({"capabilities": {"alwaysMatch": wishes}}))?;
        made["sessionId"].as_str().map(str::to_owned).ok_or("the session has no name".to_owned())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        // A browser outlives its driver. Ours is identified by its folder.
        let profile = self.profile.display().to_string();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            if String::from_utf8_lossy(&command).contains(&profile) {
                let _ = Command::new("kill")
                    .arg("-9")
                    .arg(entry.file_name())
                    .stderr(Stdio::null())
                    .status();
            }
        }
        let _ = std::fs::remove_dir_all(&self.profile);
    }
}

impl Browser {
    /// A new browser. On a loaded machine a start may fail once.
    pub fn start() -> Result<Browser, String> {
        let once = || {
            let driver = Driver::start()?;
            let session = driver.session()?;
            Ok(Browser { driver, session })
        };
        once().or_else(|_: String| once())
    }

    fn post(&self, what: &str, body: &Value) -> Value {
        self.attempt(what, body).unwrap_or_else(|error| panic!("{error}"))
    }

    fn attempt(&self, what: &str, body: &Value) -> Result<Value, String> {
        self.driver.request("POST", &format!("/session/{}/{what}", self.session), body)
    }

    /// Opens a page from a file, at a place in it such as `#step=3`.
    pub fn open(&self, file: &Path, place: &str) {
        // Only another address makes the browser load a page again.
        self.post("url", &json!({"url": "about:blank"}));
        let path: String = file.display().to_string().bytes().map(percent).collect();
        self.post("url", &json!({"url": format!("file://{path}{place}")}));
    }

    /// The result of a script in the page.
    pub fn run(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({"script": script, "args": []}))
    }

    /// Waits until a script returns the expected value. A script may fail meanwhile, because
    /// elements that it uses do not exist yet.
    #[track_caller]
    pub fn expect(&self, script: &str, expected: &Value) {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let seen = self.attempt("execute/sync", &json!({"script": script, "args": []}));
            if seen.as_ref() == Ok(expected) {
                return;
            }
            let seen = seen.map_or_else(|error| error, |seen| seen.to_string());
            assert!(Instant::now() < deadline, "{script}\nexpected: {expected}\nseen:     {seen}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Presses keys one after the other, the first ones held down if they are a shift.
    pub fn press(&self, keys: &[&str]) {
        let (held, keys): (Vec<&&str>, Vec<&&str>) =
            keys.iter().partition(|&&key| key == key::SHIFT);
        let act = |kind: &str, key: &str| json!({"type": kind, "value": key});
        let mut actions: Vec<Value> = held.iter().map(|key| act("keyDown", key)).collect();
        actions.extend(keys.iter().flat_map(|key| [act("keyDown", key), act("keyUp", key)]));
        actions.extend(held.iter().map(|key| act("keyUp", key)));
        self.post(
            "actions",
            &json!({"actions": [{"type": "key", "id": "keys", "actions": actions}]}),
        );
    }

    /// Moves the pointer to the middle of an element, and clicks if requested.
    pub fn point(&self, selector: &str, click: Click) {
        self.expect(
            &format!("return document.querySelector({}) !== null", json!(selector)),
            &json!(true),
        );
        let at = self.run(&format!(
            "const r = document.querySelector({}).getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2];",
            json!(selector)
        ));
        let at = |axis: usize| at[axis].as_f64().expect("a place") as i64;
        let mut actions =
            vec![json!({"type": "pointerMove", "duration": 0, "x": at(0), "y": at(1)})];
        if click == Click::Yes {
            actions.extend(
                ["pointerDown", "pointerUp"].map(|kind| json!({"type": kind, "button": 0})),
            );
        }
        self.post(
            "actions",
            &json!({"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]}),
        );
    }

    /// Sets the preferred colour scheme: `light` or `dark`.
    pub fn prefer(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let params = json!({"features": features});
        self.post(
            "goog/cdp/execute",
            &json!({"cmd": "Emulation.setEmulatedMedia", "params": params}),
        );
    }

    /// The size of the window.
    pub fn resize(&self, width: u32, height: u32) {
        self.post("window/rect", &json!({"width": width, "height": height}));
    }

    /// The window as a PNG.
    pub fn screenshot(&self) -> Vec<u8> {
        let path = format!("/session/{}/screenshot", self.session);
        let image = self
            .driver
            .request("GET", &path, &Value::Null)
            .unwrap_or_else(|error| panic!("{error}"));
        base64(image.as_str().expect("an image is a text"))
    }

    /// The messages of pages since the last call: errors of scripts and attempted connections.
    pub fn complaints(&self) -> Vec<Value> {
        let log = self.post("se/log", &json!({"type": "browser"}));
        log.as_array().cloned().unwrap_or_default()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.driver.request("DELETE", &format!("/session/{}", self.session), &Value::Null);
    }
}

/// Whether the pointer only moves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Click {
    Yes,
    No,
}

/// A byte of a path in an address.
fn percent(byte: u8) -> String {
    if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
        char::from(byte).to_string()
    } else {
        format!("%{byte:02X}")
    }
}

/// The bytes of a text in base 64.
fn base64(text: &str) -> Vec<u8> {
    let digit = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => panic!("`{}` is not a digit in base 64", char::from(c)),
    };
    let digits: Vec<u8> = text.bytes().filter(|&c| c != b'=').map(digit).collect();
    let bytes = digits.chunks(4).flat_map(|digits| {
        let word = digits
            .iter()
            .enumerate()
            .fold(0u32, |word, (at, &digit)| word | u32::from(digit) << (26 - 6 * at));
        word.to_be_bytes().into_iter().take(digits.len() - 1)
    });
    bytes.collect()
}
