//! Guests in real virtual machines, which reach the harness over vsock: `calls` and `echo` go to the host,
//! `listening` is AF_VSOCK on both ends, inside a guest, and `recipe` is what the documentation tells people to type.
//!
//! Each boot costs seconds of both cores, so one machine serves several checks.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod calls;
mod echo;
mod listening;
mod recipe;

/// A line of shell that starts the relay and waits until it listens.
fn relay(port: u16, to: &str, more: &str) -> String {
    format!(
        "mkfifo ready-{port}\nfootbridge-relay --listen tcp:127.0.0.1:{port} --to {to} {more} --ready-fd 9 9>ready-{port} \
         >/dev/null 2>relay-{port}.log &\nread -r address <ready-{port}\n"
    )
}

/// A script of an agent that holds this token.
fn agent(token: &str, script: &str) -> String {
    format!("export TOOL_CLI_TOKEN={token}\nset -e\n{script}")
}

/// From nothing to a call, and two mistakes. It prints [`FOUR_STEPS_SAY`].
const FOUR_STEPS: &str = "
    tool-cli | grep -o demo
    tool-cli demo | grep -o get_weather
    tool-cli demo get_weather | grep -o city | head -n 1
    tool-cli demo get_weather '{\"city\": \"Zürich\"}' | grep -o '\"city\": \"Zürich\"'
    tool-cli --exit-codes demo get_weather '{\"town\": \"Bern\"}' 2>/dev/null || echo $?
    TOOL_CLI_TOKEN=wrong tool-cli --exit-codes 2>/dev/null || echo $?
";

const FOUR_STEPS_SAY: &str = "demo\nget_weather\ncity\n\"city\": \"Zürich\"\n2\n4\n";
