//! The four steps from nothing to a call, for a program inside a sandbox.
//!
//! ```sh
//! cargo run -p footbridge-guest --example four_steps -- ARGUMENTS    # such as '{"city": "Bern"}'
//! ```
//!
//! Where the bridge is and the token come from the environment, as for `tool-cli`. It calls the first tool of the
//! first server.
#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::error::Error;

use footbridge_guest::{Client, ClientError, answers::Block};
use serde_json::Value;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Value = serde_json::from_str(&std::env::args().nth(1).unwrap_or_else(|| "{}".to_owned()))?;
    let mut client = Client::from_env()?;

    let servers = client.servers()?;
    let server = servers.first().ok_or("there are no servers")?;
    println!("server: {} ({} tools)", server.name, server.tool_count);

    let tools = client.tools(&server.name)?;
    let tool = tools.first().ok_or("it has no tools")?;
    println!("tool: {}: {}", tool.name, tool.description.as_deref().unwrap_or_default());

    let full = client.describe(&server.name, &tool.name)?;
    println!("takes: {}", full.input_schema);

    match client.call(&server.name, &tool.name, &arguments) {
        Ok(result) if result.is_error => println!("the tool failed: {}", result.text()),
        Ok(result) => match result.structured::<Value>()? {
            Some(value) => println!("result: {value}"),
            None => result.blocks().for_each(|block| match block {
                Block::Text(text) => println!("text: {text}"),
                other => println!("block: {other:?}"),
            }),
        },
        Err(error) => println!("{}", told(&error)),
    }
    Ok(())
}

/// What a program can do about a refusal, besides reading its message.
fn told(error: &ClientError) -> String {
    let again = match error.retry_after() {
        Some(pause) => format!("ask again in {pause:?}"),
        None if error.may_have_happened() => "do not repeat it blindly".to_owned(),
        None => "nothing happened".to_owned(),
    };
    let reason = error.reason().map_or("no reason given", |reason| reason.as_str());
    format!("refused: {error} ({reason}; record {}; {again})", error.audit_id().unwrap_or("unknown"))
}
