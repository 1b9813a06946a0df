//! A small bridge of either generation, answering from the recorded catalogue, and a runner for `tool-cli`.
//!
//! Each test binary uses its own part of it.
#![allow(dead_code, reason = "every test binary uses another part")]
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Command, Output, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use serde_json::{Value, json};

pub(crate) const TOKEN: &str = "fbt_the-token-of-this-test";

/// A recorded file.
pub(crate) fn vectors(name: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// One request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Got {
    pub(crate) line: String,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: String,
}

impl Got {
    pub(crate) fn method(&self) -> String {
        let body: Value = serde_json::from_str(&self.body).unwrap();
        body["method"].as_str().unwrap().to_owned()
    }
}

type Handler = dyn Fn(&Got) -> Vec<u8> + Send + Sync;

/// Listens on a free loopback port until it is dropped.
pub(crate) struct Bridge {
    pub(crate) port: u16,
    pub(crate) got: Arc<Mutex<Vec<Got>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Bridge {
    /// Answers with whatever bytes the handler gives.
    pub(crate) fn raw(handler: impl Fn(&Got) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::on(TcpListener::bind(("127.0.0.1", 0)).unwrap(), handler)
    }

    /// The same, on a listener that is there already.
    pub(crate) fn on(listener: TcpListener, handler: impl Fn(&Got) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let port = listener.local_addr().unwrap().port();
        let (got, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (seen, stopped) = (Arc::clone(&got), Arc::clone(&stop));
        let handler: Arc<Handler> = Arc::new(handler);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                serve(stream.unwrap(), &seen, handler.as_ref());
            }
        });
        Self { port, got, stop, thread: Some(thread) }
    }

    /// Answers every request with this result.
    pub(crate) fn result(result: Value) -> Self {
        Self::raw(move |got| ok(&json!({"jsonrpc": "2.0", "result": result, "id": id_of(got)})))
    }

    /// Answers every request with this error.
    pub(crate) fn error(error: Value) -> Self {
        Self::raw(move |got| ok(&json!({"jsonrpc": "2.0", "error": error, "id": id_of(got)})))
    }

    /// Answers as recorded.
    pub(crate) fn of_generation(generation: u8) -> Self {
        let recorded = vectors("tool-cli-0.3.0-wire.json");
        Self::raw(move |got| answer(&recorded, generation, got))
    }

    /// The first request.
    pub(crate) fn first(&self) -> Got {
        self.got.lock().unwrap()[0].clone()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        drop(TcpStream::connect(("127.0.0.1", self.port)));
        self.thread.take().unwrap().join().unwrap();
    }
}

fn serve(mut stream: TcpStream, seen: &Mutex<Vec<Got>>, handler: &Handler) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let mut headers = HashMap::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).unwrap();
        let Some((name, value)) = header.trim().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |text| text.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let got = Got { line: line.trim().to_owned(), headers, body: String::from_utf8(body).unwrap() };
    seen.lock().unwrap().push(got.clone());
    // A client that left is part of some tests.
    let _ = stream.write_all(&handler(&got));
}

/// A 200 with this body.
pub(crate) fn ok(body: &Value) -> Vec<u8> {
    http(200, &body.to_string())
}

/// An answer with a length.
pub(crate) fn http(status: u16, body: &str) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body.as_bytes()].concat()
}

pub(crate) fn id_of(got: &Got) -> Value {
    serde_json::from_str::<Value>(&got.body).unwrap()["id"].clone()
}

/// What the recorded server says: a recorded case where there is one, or the same from the catalogue.
fn answer(recorded: &Value, generation: u8, got: &Got) -> Vec<u8> {
    if got.headers.get("authorization") != Some(&format!("Bearer {TOKEN}")) {
        return http(401, r#"{"error":"Unauthorized"}"#);
    }
    let request: Value = serde_json::from_str(&got.body).unwrap();
    let same = |case: &Value| {
        let body: Option<Value> = case["request"]["body"].as_str().and_then(|text| serde_json::from_str(text).ok());
        body.is_some_and(|body| body["method"] == request["method"] && body["params"] == request["params"])
            && case["request"]["auth"] == "Bearer <token>"
    };
    let mut response = match recorded["cases"].as_array().unwrap().iter().find(|case| same(case)) {
        Some(case) => case["response"]["json"].clone(),
        None => from_catalogue(recorded, generation, &request),
    };
    response["jsonrpc"] = "2.0".into();
    response["id"] = request["id"].clone();
    ok(&response)
}

fn from_catalogue(recorded: &Value, generation: u8, request: &Value) -> Value {
    let (method, params) = (request["method"].as_str().unwrap(), &request["params"]);
    let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
    let tool =
        recorded["catalogue"][text("server")].as_array().into_iter().flatten().find(|t| t["name"] == text("tool"));
    match method {
        "getBridgeInfo" if generation == 1 => json!({"result": footbridge_proto::wire::bridge_info("test", "0")}),
        "describeTool" => json!({"result": tool.unwrap()}),
        "callTool" if text("tool") == "check_weather" => {
            let city = &params["arguments"]["city"];
            json!({"result": {"content": [], "structuredContent": {"city": city, "tempC": 21}}})
        }
        "callTool" if text("tool") == "alerts" => json!({"result": {"content": []}}),
        _ => json!({"error": {"code": -32601, "message": format!("Method not found: {method}")}}),
    }
}

/// `tool-cli` with a clean environment, the token, and the port of a bridge.
pub(crate) fn tool_cli(bridge: &Bridge, args: &[&str]) -> Command {
    let mut command = bare(args);
    command.env("TOOL_CLI_PORT", bridge.port.to_string()).env("TOOL_CLI_TOKEN", TOKEN);
    command
}

/// `tool-cli` with a clean environment.
pub(crate) fn bare(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tool-cli"));
    command.args(args).env_clear().stdin(Stdio::null());
    command
}

/// Exit status, standard output and standard error of a whole run.
pub(crate) fn run(command: &mut Command) -> (Option<i32>, String, String) {
    told(&command.output().unwrap())
}

pub(crate) fn told(output: &Output) -> (Option<i32>, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}
