//! Pins, end to end: a server whose definitions change, and what guests and operators see of it.

mod accepted;
mod refused;
mod store;

use std::{fs, path::PathBuf, thread, time::Duration, time::Instant};

use footbridge_tests::{Guest, PATIENCE, Servers, Tape};
use serde_json::{Value, json};

/// What a server lists, in a file that a test changes.
struct Listing {
    folder: tempfile::TempDir,
    tape: Tape,
}

impl Listing {
    /// Of these tools.
    fn of(tools: &[Value]) -> Self {
        let listing = Self { folder: tempfile::tempdir().unwrap(), tape: Tape::new() };
        listing.becomes(tools);
        listing
    }

    /// From now on these.
    fn becomes(&self, tools: &[Value]) {
        let next = self.folder.path().join("next");
        fs::write(&next, Value::from(tools.to_vec()).to_string()).unwrap();
        fs::rename(next, self.file()).unwrap();
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("listing.json")
    }

    /// The server that lists them, as `x`.
    fn server(&self) -> Servers {
        Servers::none().recording("x", &["listing-of-a-file", self.file().to_str().unwrap()], &self.tape)
    }
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// The two tools that most tests begin with; `nudge` is there to be called, so that the server says that its list
/// changed.
fn plain() -> [Value; 2] {
    [tool("nudge", "stays"), tool("t", "what it was")]
}

/// The same, and the other one's description is this.
fn with(description: &str) -> [Value; 2] {
    [tool("nudge", "stays"), tool("t", description)]
}

/// The description that a listing shows of `t`.
fn described(guest: &Guest) -> String {
    let listed = guest.asks("listTools", json!({"server": "x"}));
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}")).clone();
    let found = tools.iter().find(|tool| tool["name"] == "t").unwrap_or_else(|| panic!("{listed}"));
    found["description"].as_str().unwrap().to_owned()
}

/// Waits until a listing shows this of `t`.
#[track_caller]
fn shows(guest: &Guest, part: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !described(guest).contains(part) {
        assert!(Instant::now() < deadline, "{part:?} does not show in time, only {:?}", described(guest));
        thread::sleep(Duration::from_millis(20));
    }
}

/// Checks that `t` is refused as one that changed.
#[track_caller]
fn refuses(guest: &Guest) {
    for method in ["callTool", "describeTool", "checkCall"] {
        let answer = guest.asks(method, json!({"server": "x", "tool": "t"}));
        let error = &answer["error"];
        assert_eq!(
            (&error["code"], &error["data"]["reason"]),
            (&json!(-32001), &json!("definition_changed")),
            "{answer}"
        );
        assert!(error["message"].as_str().unwrap().contains("\"t\" on server \"x\" is not what it was"), "{answer}");
    }
}

/// Checks that `t` is called.
#[track_caller]
fn calls(guest: &Guest) {
    let answer = guest.calls("x", "t", json!({}));
    assert_eq!(answer["result"]["content"][0]["text"], "called", "{answer}");
}
