//! The recorded answers of the public server and command.

use serde_json::Value;

/// A recorded file.
#[must_use]
pub fn read(name: &str) -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The cases of a recorded file.
#[must_use]
pub fn cases(name: &str) -> Vec<Value> {
    read(name)["cases"].as_array().unwrap().clone()
}
