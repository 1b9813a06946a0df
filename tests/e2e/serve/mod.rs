//! `footbridge serve` and `footbridge session`: many sessions of one daemon, through restarts, new tokens and ends.

mod between;
mod control;
mod descriptors;
mod ends;
mod limits;
mod mistakes;
mod restarts;
mod secrets;
mod services;
mod signals;
mod store;
mod threads;
mod tokens;

use footbridge_tests::Guest;
use serde_json::json;

/// A request that needs a token and no server.
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"listServers"}"#;

/// What the demo server says of a city, through the real `tool-cli`.
#[track_caller]
fn weather(guest: &Guest) -> String {
    guest.runs(&["demo", "get_weather", r#"{"city":"Bern"}"#]).well()
}

/// Whether a call is answered.
#[track_caller]
fn calls(guest: &Guest) {
    let answer = guest.calls("demo", "get_weather", json!({"city": "Bern"}));
    assert!(answer["result"].is_object(), "{answer}");
}
