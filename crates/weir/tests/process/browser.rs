//! A headless browser, controlled through its pipe (Chrome DevTools Protocol): contents, actions and requests of a
//! page. Must never let it connect to another host.

use crate::support::{Folder, Running};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A page in a browser.
pub struct Browser {
    _running: Running,
    commands: File,
    answers: File,
    read: Vec<u8>,
    number: u64,
    session: String,
    /// Events received from the browser.
    pub events: Vec<Value>,
}

impl Browser {
    /// Starts a browser; `None`: there is none, which was printed.
    pub fn start(folder: &Folder) -> Option<Self> {
        let found = BROWSERS.iter().find(|name| Command::new(name).arg("--version").output().is_ok());
        let Some(name) = found else {
            eprintln!("SKIPPED: none of {BROWSERS:?} is installed: no page was looked at");
            return None;
        };
        let pipes = [folder.path("commands"), folder.path("answers")];
        let made = Command::new("mkfifo").args(&pipes).status().expect("mkfifo");
        assert!(made.success());
        let profile = format!("--user-data-dir={}", folder.path("profile").display());
        let mut command = Command::new("sh");
        command.arg("-c").arg("in=$1 out=$2; shift 2; exec \"$@\" 3<\"$in\" 4>\"$out\"").arg("sh").args(&pipes);
        command.arg(name).args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        // No other name resolves.
        command.args(["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--disable-dev-shm-usage"]);
        command.args([profile.as_str(), "--remote-debugging-pipe"]);
        let running = Running::start(&mut command);
        let commands = OpenOptions::new().write(true).open(&pipes[0]).expect("a pipe");
        let answers = File::open(&pipes[1]).expect("a pipe");
        let (session, events) = (String::new(), Vec::new());
        let mut browser = Self { _running: running, commands, answers, read: Vec::new(), number: 0, session, events };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
        for domain in ["Page.enable", "Runtime.enable", "Log.enable", "Network.enable"] {
            browser.call(domain, json!({}));
        }
        Some(browser)
    }

    fn message(&mut self) -> Value {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == 0) {
                let message: Vec<u8> = self.read.drain(..=end).collect();
                return serde_json::from_slice(&message[..end]).expect("JSON");
            }
            let mut piece = [0; 65_536];
            let count = self.answers.read(&mut piece).expect("an answer");
            assert!(count > 0, "the browser has gone");
            self.read.extend_from_slice(&piece[..count]);
        }
    }

    /// Sends a command and waits for its result.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut order = json!({ "id": self.number, "method": method, "params": parameters });
        if !self.session.is_empty() {
            order["sessionId"] = Value::from(self.session.as_str());
        }
        let mut text = order.to_string().into_bytes();
        text.push(0);
        self.commands.write_all(&text).expect("the browser");
        loop {
            let mut message = self.message();
            if message["id"] == self.number {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    pub fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
    }

    /// Evaluates an expression; waits for a promise.
    pub fn value(&mut self, expression: &str) -> Value {
        let wanted = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let mut result = self.call("Runtime.evaluate", wanted);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].take()
    }

    /// Waits until an expression is true in the page.
    pub fn wait(&mut self, expression: &str) {
        let wait = format!(
            "new Promise((done) => {{ const look = () => {{ let seen = false; try {{ seen = !!({expression}); }} catch (_) {{}} \
             if (seen) done(true); else setTimeout(look, 50); }}; look(); }})"
        );
        assert_eq!(self.value(&wait), true, "{expression}");
    }

    /// Clicks in the middle of an element, with mouse events.
    pub fn click(&mut self, selector: &str) {
        let place = self.middle(selector);
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({ "type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1 });
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Sets the window's size, and the system's colour scheme.
    pub fn look(&mut self, (width, height): (u32, u32), dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.call("Emulation.setEmulatedMedia", features);
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Moves the mouse to the middle of an element.
    pub fn hover(&mut self, selector: &str) {
        let place = self.middle(selector);
        let event = json!({ "type": "mouseMoved", "x": place[0], "y": place[1] });
        self.call("Input.dispatchMouseEvent", event);
    }

    fn middle(&mut self, selector: &str) -> Value {
        self.value(&format!(
            "(() => {{ const node = document.querySelector({selector:?}); node.scrollIntoView({{ block: 'center' }}); \
             const box = node.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()"
        ))
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "code": key }));
        }
    }

    /// Keeps a picture of the window in `target/tmp/dashboard`, for a person to look at.
    pub fn keep_picture(&mut self, name: &str) {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dashboard");
        std::fs::create_dir_all(&folder).expect("a folder");
        let picture = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        let picture = base::base64::decoded(picture["data"].as_str().expect("a picture").as_bytes()).expect("base64");
        assert!(picture.starts_with(b"\x89PNG"), "{name}");
        std::fs::write(folder.join(format!("{name}.png")), picture).expect("written");
    }

    /// Returns the URLs of all requests so far.
    pub fn requests(&self) -> Vec<String> {
        let sent = self.events.iter().filter(|event| event["method"] == "Network.requestWillBeSent");
        sent.filter_map(|event| event["params"]["request"]["url"].as_str().map(str::to_owned)).collect()
    }

    /// Returns exceptions and error messages.
    pub fn complaints(&self) -> Vec<&Value> {
        let is_one = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Log.entryAdded") => event["params"]["entry"]["level"] != "info",
            Some("Runtime.consoleAPICalled") => matches!(event["params"]["type"].as_str(), Some("error" | "warning")),
            _ => false,
        };
        self.events.iter().filter(is_one).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser's profile is deleted with the folder.
        let _ = self.commands.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let _ = self.answers.read_to_end(&mut Vec::new());
    }
}
