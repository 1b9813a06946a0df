//! Large bodies through each boundary that a run sets up by itself: all of them arrive, and the record has their digests.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

use std::process::Command;

use footbridge_tests::{Host, Running, Servers, programs, skipped};
use serde_json::Value;

/// What a guest sends: the most that a request may have.
const UP: u64 = 32 << 20;
/// What it gets.
const DOWN: u64 = 64 << 20;

/// Gives so many bytes, and says the digest of what it is sent.
const ORIGIN: &str = r#"
import hashlib, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
block = bytes(range(256)) * 256
class Origin(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_GET(self):
        left = int(sys.argv[1])
        self.send_response(200); self.send_header("content-length", str(left)); self.end_headers()
        while left:
            left -= self.wfile.write(block[:left])
    def do_POST(self):
        left, digest = int(self.headers["content-length"]), hashlib.sha256()
        while left:
            part = self.rfile.read(min(left, 65536)); digest.update(part); left -= len(part)
        text = digest.hexdigest().encode() + b"\n"
        self.send_response(200); self.send_header("content-length", str(len(text))); self.end_headers(); self.wfile.write(text)
server = ThreadingHTTPServer(("127.0.0.1", 0), Origin)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// Prints three digests: of what came, and of what was sent, as it was and as the origin got it.
const SCRIPT: &str = r#"
curl -sS -H "x-api-key: $KEY" "$BIG/large" | sha256sum | cut -d ' ' -f 1
dd if=/dev/urandom of=up bs=1M count=32 status=none
sha256sum up | cut -d ' ' -f 1
curl -sS -H "x-api-key: $KEY" --data-binary @up "$BIG/up"
rm up
"#;

fn passes_whole(test: &str, sandbox: &'static str) {
    for program in ["python3", "curl"] {
        if !programs::on_path(program) {
            return skipped(test, &format!("{program} is missing"));
        }
    }
    let mut origin = Running::start(Command::new("python3").args(["-c", ORIGIN, &DOWN.to_string()]));
    let port = origin.stdout.line();
    let settings = format!(
        "[services.big]\nurl = \"http://127.0.0.1:{}\"\nenvironment = {{ BIG = \"{{url}}\", KEY = \"{{token}}\" }}\n",
        port.trim()
    );
    let host = Host::with(&Servers::none()).sandbox(sandbox).policy("open").settings(&settings);
    let host = host.option("--service").option("big");
    let said = host.runs_script(SCRIPT).well();
    let [came, sent, got] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert_eq!(sent, got);
    let outcomes: Vec<Value> = host.record().into_iter().filter(|line| line["type"] == "outcome").collect();
    let [down, up] = &outcomes[..] else { panic!("{outcomes:?}") };
    assert_eq!((down["received"].as_u64(), up["sent"].as_u64()), (Some(DOWN), Some(UP)));
    assert_eq!(down["received_digest"], format!("sha256:{came}"));
    assert_eq!(up["sent_digest"], format!("sha256:{sent}"));
    assert!(down["outcome"] == "ok" && up["outcome"] == "ok", "{outcomes:?}");
    host.leaves_nothing_behind();
}

#[test]
fn large_bodies_pass_whole_into_namespaces() {
    passes_whole("large_bodies_pass_whole_into_namespaces", "net");
}

#[test]
fn large_bodies_pass_whole_into_bubblewrap() {
    let test = "large_bodies_pass_whole_into_bubblewrap";
    let probe = Command::new("bwrap").args(["--ro-bind", "/", "/", "--unshare-all", "true"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        return skipped(test, "bwrap is missing, or cannot make namespaces");
    }
    passes_whole(test, "bwrap");
}
