//! An MCP server over stdio that misbehaves on purpose: `misbehaving-server MODE [ARGUMENT]`.
//!
//! Each mode is one trap that real servers have been seen to fall into, or that a hostile one would set; [`MODES`]
//! lists them all. Apart from its trap it is a plain server of the handshake revisions. With `MISBEHAVING_RECORD` set
//! it appends the method (and the request it is about) of everything it receives to that file.

mod calls;
mod conforming;
mod elicits;
mod listings;
mod prompts;
mod tasks;
mod vectors;
mod wire;

use std::{
    io::{self, BufRead, Write},
    process::{Command, ExitCode, Stdio},
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use wire::Wire;

/// Every mode, and what it does.
const MODES: [(&str, &str); 54] = [
    ("ok", "nothing wrong; tools echo, add, env"),
    ("conforming", "nothing wrong; what MCP's conformance suite asks of a server"),
    ("vectors", "the recorded catalogue of the server named in ARGUMENT"),
    ("never-initializes", "reads and never answers"),
    ("exits-at-start", "ends with status 3 before it answers"),
    ("refuses-handshake", "answers the handshake with an error, and ends with its input"),
    ("exits-after-initialize", "ends once it has answered the handshake"),
    ("exits-mid-call", "ends when a tool is called"),
    ("grandchild-holds-stdout", "ends when a tool is called, and leaves a process that holds its output"),
    ("ignores-eof", "goes on after its input ended"),
    ("ignores-eof-and-term", "goes on after its input ended and after SIGTERM"),
    ("forks-and-detaches", "starts a process in a session of its own; its one tool is named pid and the number"),
    ("rubbish-lines", "prints lines that are no JSON-RPC before each answer"),
    ("binary-noise", "prints bytes that are no text before each answer"),
    ("long-line", "answers a call with a line of ARGUMENT bytes, the id last"),
    ("endless-line", "answers a call with a line that never ends"),
    ("long-result", "answers a call with a result of about ARGUMENT bytes"),
    ("one-bad-tool", "lists tools of which some are unusable"),
    ("broken-schema", "lists a tool whose input schema is none, and one that is fine"),
    ("duplicate-tools", "lists one name twice"),
    ("endless-pages", "each page has a next one"),
    ("looping-cursor", "the second page leads back to itself"),
    ("number-as-cursor", "says that there is a second page, by a number"),
    ("tiny-entries", "a page of ARGUMENT entries that are no tools"),
    ("wrong-id", "answers a call with an id that nobody used"),
    ("text-id", "answers with the id as text"),
    ("duplicate-answers", "answers each call three times"),
    ("floods-progress", "sends progress as fast as it can for ARGUMENT messages, then answers"),
    ("slow-with-progress", "answers after ARGUMENT steps of 50 ms with progress"),
    ("progress-without-end", "sends progress every 20 ms and never answers"),
    ("never-answers-call", "takes a call and is silent"),
    ("never-reads", "answers the handshake and the listing, then reads no more"),
    ("broken-json", "answers a call with an object that is cut off"),
    ("not-utf-8", "answers a call with bytes that are no UTF-8"),
    ("not-an-object", "answers a call with a list"),
    ("list-changed", "the tool grow adds a tool and says so"),
    (
        "listing-of-a-file",
        "lists what the file ARGUMENT says at that moment; the tool nudge says that it changed; says of itself what is in \
         ARGUMENT.instructions",
    ),
    (
        "listings-fail",
        "lists tools, fails to list resources, breaks off its templates, and knows no prompts that it has",
    ),
    (
        "resources-of-a-file",
        "lists the URIs that the file ARGUMENT has at that moment, and never says that they changed",
    ),
    ("prompts", "has prompts, usable and not, and completions; the prompt grow adds one and says so"),
    ("asks-back", "asks for sampling, roots and elicitation when called, and tells what it was answered"),
    ("elicits", "asks a person what the arguments of a call say, and tells what it was answered"),
    ("wants-input", "of revision 2026-07-28; wants what the arguments of a call say before there is a result"),
    ("tasks", "has a tool that has to be called as a task, which goes on as the arguments of the call say"),
    ("tells-meta", "nothing wrong; answers a call with its _meta"),
    ("byte-order-mark", "nothing wrong but U+FEFF before its first message"),
    ("indented", "answers the handshake in several lines, behind one that holds a secret"),
    ("empty-discover", "answers server/discover with nothing; speaks a handshake revision, and ends with its input"),
    ("unknown-revision", "answers the handshake in a revision that nobody knows"),
    ("asks-without-end", "sends requests and never reads what it is answered"),
    ("big-integers", "answers with integers beyond 64 bits and members nobody knows"),
    ("deep-json", "answers with lists nested ARGUMENT deep"),
    ("stderr-flood", "writes to standard error without end"),
    ("batch", "answers with batches"),
];

/// Options of the mode.
struct Mode {
    name: String,
    argument: String,
}

impl Mode {
    fn is(&self, name: &str) -> bool {
        self.name == name
    }

    fn number(&self, otherwise: usize) -> usize {
        self.argument.parse().unwrap_or(otherwise)
    }
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let mode = Mode { name: args.next().unwrap_or_default(), argument: args.next().unwrap_or_default() };
    if mode.is("sleeper") {
        thread::sleep(Duration::from_secs(600));
        return ExitCode::SUCCESS;
    }
    if !MODES.iter().any(|(name, _)| mode.is(name)) {
        let mut usage = String::from("misbehaving-server MODE [ARGUMENT]\n");
        for (name, what) in MODES {
            usage += &format!("  {name}: {what}\n");
        }
        let _unread = io::stderr().write_all(usage.as_bytes());
        return ExitCode::from(2);
    }
    match run(&mode) {
        Ok(code) => code,
        // Our input or output is gone: so are we.
        Err(_) => ExitCode::SUCCESS,
    }
}

fn run(mode: &Mode) -> io::Result<ExitCode> {
    let wire = Wire::new();
    match mode.name.as_str() {
        "exits-at-start" => {
            io::stderr().write_all(b"fatal: \x1b[31mno licence\x1b[0m\n")?;
            return Ok(ExitCode::from(3));
        }
        "ignores-eof-and-term" if std::env::var_os("MISBEHAVING_DEAF").is_none() => return deaf(mode),
        "stderr-flood" => {
            thread::spawn(|| while io::stderr().write_all(&[b'e'; 4096]).is_ok() {});
        }
        _ => {}
    }
    let mut lines = io::stdin().lock().lines();
    let mut tools_listed = false;
    while let Some(line) = lines.next() {
        let line = line?;
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        record(&message);
        if mode.is("never-initializes") {
            continue;
        }
        noise(mode, &wire)?;
        if mode.is("conforming") && conforming::answer(&message, &wire)? {
            continue;
        }
        if mode.is("tasks") && tasks::answer(&message, &wire, &mut lines)? {
            continue;
        }
        match message["method"].as_str() {
            Some("initialize") if mode.is("refuses-handshake") => {
                wire.error(&message["id"], -32602, "no licence for this")?;
            }
            Some("initialize") if mode.is("indented") => {
                wire.raw(b"Ready with a-secret-of-the-server")?;
                let answer =
                    json!({"jsonrpc": "2.0", "id": message["id"], "result": initialize_result(&message, mode)});
                wire.raw(&serde_json::to_vec_pretty(&answer)?)?;
            }
            Some("initialize") => {
                if mode.is("byte-order-mark") {
                    wire.part("\u{feff}".as_bytes())?;
                }
                wire.result(&message["id"], &initialize_result(&message, mode))?;
                if mode.is("exits-after-initialize") {
                    return Ok(ExitCode::from(4));
                }
            }
            Some("server/discover") if mode.is("wants-input") => {
                let meta = json!({"io.modelcontextprotocol/serverInfo": {"name": "misbehaving", "version": "0"}});
                let result = json!({
                    "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
                    "ttlMs": 0, "cacheScope": "private", "_meta": meta,
                });
                wire.result(&message["id"], &result)?;
            }
            Some("server/discover") if mode.is("empty-discover") => wire.result(&message["id"], &json!({}))?,
            Some("ping") => wire.result(&message["id"], &json!({}))?,
            Some("tools/list") => {
                tools_listed = true;
                listings::answer(mode, &message, &wire)?;
            }
            Some("resources/list" | "resources/templates/list") => listings::resources(mode, &message, &wire)?,
            Some("resources/read") => {
                let uri = &message["params"]["uri"];
                wire.result(&message["id"], &json!({"contents": [{"uri": uri, "text": "what was read"}]}))?;
            }
            Some("prompts/list") if mode.is("prompts") => prompts::list(&message, &wire)?,
            Some("prompts/get") => prompts::get(&message, &wire)?,
            Some("completion/complete") => prompts::complete(&message, &wire)?,
            Some("tools/call") => {
                if let Some(code) = calls::answer(mode, &message, &wire, &mut lines)? {
                    return Ok(code);
                }
            }
            Some(_) if message.get("id").is_some() => wire.error(&message["id"], -32601, "no such method")?,
            _ => {}
        }
        if tools_listed && mode.is("never-reads") {
            thread::sleep(Duration::from_secs(600));
        }
    }
    if mode.is("ignores-eof-and-term") || mode.is("ignores-eof") {
        thread::sleep(Duration::from_secs(600));
    }
    Ok(ExitCode::SUCCESS)
}

fn initialize_result(message: &Value, mode: &Mode) -> Value {
    let mut capabilities = json!({"tools": {"listChanged": true}});
    if mode.is("listings-fail") {
        capabilities["prompts"] = json!({});
    }
    if ["ok", "listings-fail", "resources-of-a-file"].iter().any(|name| mode.is(name)) {
        capabilities["resources"] = json!({});
    }
    if mode.is("prompts") {
        capabilities["prompts"] = json!({"listChanged": true});
        capabilities["completions"] = json!({});
    }
    if mode.is("conforming") {
        capabilities = conforming::capabilities();
    }
    if mode.is("tasks") {
        capabilities = tasks::capabilities();
    }
    let unknown = json!("1999-01-01");
    let revision = if mode.is("unknown-revision") { &unknown } else { &message["params"]["protocolVersion"] };
    let mut result = json!({
        "protocolVersion": revision,
        "capabilities": capabilities,
        "serverInfo": {"name": "misbehaving", "version": "0"},
    });
    if mode.is("listing-of-a-file")
        && let Ok(text) = std::fs::read_to_string(format!("{}.instructions", mode.argument))
    {
        result["instructions"] = text.into();
    }
    result
}

/// What is printed before each answer.
fn noise(mode: &Mode, wire: &Wire) -> io::Result<()> {
    match mode.name.as_str() {
        "rubbish-lines" => {
            for rubbish in ["Server started!", "{\"jsonrpc\":", "[]", "{}", "null", "\u{1b}]0;title\u{7}", ""] {
                wire.raw(rubbish.as_bytes())?;
            }
            wire.raw(br#"{"jsonrpc":"2.0","id":null,"result":{}}"#)?;
            wire.raw(br#"{"jsonrpc":"2.0","id":987654,"result":{}}"#)
        }
        "binary-noise" => wire.raw(&(0..=255).filter(|byte| *byte != b'\n').collect::<Vec<u8>>()),
        _ => Ok(()),
    }
}

/// Starts this program again with SIGTERM ignored, which a program of the standard library cannot do for itself.
fn deaf(mode: &Mode) -> io::Result<ExitCode> {
    use std::os::unix::process::CommandExt;
    let us = std::env::current_exe()?;
    let script = "trap '' TERM; exec \"$0\" \"$@\"";
    let error =
        Command::new("/bin/sh").arg("-c").arg(script).arg(us).arg(&mode.name).env("MISBEHAVING_DEAF", "1").exec();
    Err(error)
}

/// A process in a session of its own that outlives us.
fn detach() -> io::Result<u32> {
    let us = std::env::current_exe()?;
    let child = Command::new("setsid").arg(us).arg("sleeper").stdin(Stdio::null()).stderr(Stdio::null()).spawn()?;
    Ok(child.id())
}

fn record(message: &Value) {
    let Some(path) = std::env::var_os("MISBEHAVING_RECORD") else { return };
    let what = message["method"].as_str().unwrap_or("answer");
    let about = message["params"].get("requestId").or(message.get("id")).cloned().unwrap_or(Value::Null);
    if let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(path) {
        let _unrecorded = file.write_all(format!("{what} {about}\n").as_bytes());
    }
}
