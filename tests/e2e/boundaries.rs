//! Services through each boundary, by the same script: a download of 1 GiB and an upload of 32 MiB that arrive whole, with
//! their digests in the record, events that pass one by one, and a tunnel.

use std::{
    fs,
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
};

use footbridge_tests::{
    Authority, Engine, Host, Running, Servers,
    microvm::{Cable, Image, Kernel, Vm},
    programs, sandboxes, skipped,
};
use serde_json::Value;

/// What a guest sends: the most that a request may have.
const UP: u64 = 32 << 20;
/// What that is, over and over.
const LINE: &str = "up\n";
/// What it gets.
const DOWN: u64 = 1 << 30;
/// What an emulated machine gets, which takes two minutes over as much as the others get.
const DOWN_EMULATED: u64 = 256 << 20;

/// One boundary at a time, or one conformance suite: each keeps all processors busy, and has to be done in time.
pub(crate) static TURN: Mutex<()> = Mutex::new(());

/// Gives so many bytes, says the digests of them and of what it is sent, and tells each event once the one before has been
/// heard. Once without TLS, once with, at an address that NO_PROXY does not name.
const ORIGIN: &str = r#"
import hashlib, ssl, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
block = bytes(range(256)) * 256
def parts(length): return (min(len(block), length - at) for at in range(0, length, len(block)))
def digest(blocks):
    made = hashlib.sha256()
    for one in blocks: made.update(one)
    return made.hexdigest().encode() + b"\n"
heard = {"one": threading.Event(), "two": threading.Event()}
class Origin(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def says(self, text):
        self.send_response(200); self.send_header("content-length", str(len(text))); self.end_headers(); self.wfile.write(text)
    def do_GET(self):
        if self.path == "/events": return self.events()
        if self.path.startswith("/heard/"): heard[self.path[7:]].set(); return self.says(b"")
        length = int(sys.argv[1])
        if self.path == "/large.sha256": return self.says(digest(block[:part] for part in parts(length)))
        if self.path != "/large": return self.says(b"by the tunnel\n")
        self.send_response(200); self.send_header("content-length", str(length)); self.end_headers()
        for part in parts(length): self.wfile.write(block[:part])
    def events(self):
        self.send_response(200); self.send_header("content-type", "text/event-stream"); self.send_header("connection", "close")
        self.end_headers()
        for name, event in heard.items():
            self.wfile.write(f"data: {name}\n\n".encode())
            if not event.wait(60): return self.wfile.write(b"data: nobody heard it\n\n")
    def do_POST(self):
        self.says(digest(self.rfile.read(part) for part in parts(int(self.headers["content-length"]))))
def serves(address, context):
    server = ThreadingHTTPServer((address, 0), Origin)
    if context: server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever).start()
    return server.server_port
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[2] + "/cert.pem", sys.argv[2] + "/key.pem")
print(serves("127.0.0.1", None), serves("127.0.0.2", context), flush=True)
"#;

/// Prints four digests: of what came, as it is and as the origin gave it, and of what was sent, as it was and as the origin
/// got it; then the events and what came through the tunnel.
const SCRIPT: &str = r#"
set -e
cd "$(mktemp -d)"
curl -sS -H "x-api-key: $KEY" "$BIG/large" | sha256sum | cut -d ' ' -f 1
curl -sS -H "x-api-key: $KEY" "$BIG/large.sha256"
yes up | head -c 33554432 >up
sha256sum up | cut -d ' ' -f 1
curl -sS -H "x-api-key: $KEY" --data-binary @up "$BIG/up"
rm up
curl -sSN -H "x-api-key: $KEY" "$BIG/events" | while read -r data event; do
  [ -z "$event" ] || { echo "$event"; curl -sS -H "x-api-key: $KEY" "$BIG/heard/$event"; }
done
echo "$CA" >ca.pem
curl -sS --cacert ca.pem "$TUNNEL"
rm ca.pem
"#;

/// An origin on this machine.
struct Origin {
    _running: Running,
    _turn: MutexGuard<'static, ()>,
    authority: Authority,
    ports: [u16; 2],
    down: u64,
}

impl Origin {
    /// It, unless this machine lacks what the test needs.
    fn start(test: &str, down: u64) -> Option<Self> {
        for program in ["python3", "curl"] {
            if !programs::on_path(program) {
                skipped(test, &format!("{program} is missing"));
                return None;
            }
        }
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let authority = Authority::of(&["127.0.0.2"]);
        let mut command = Command::new("python3");
        command.args(["-c", ORIGIN, &down.to_string()]).arg(authority.path());
        let mut running = Running::start(&mut command);
        let line = running.stdout.line();
        let (plain, tls) = line.split_once(' ').unwrap();
        let ports = [plain, tls].map(|port| port.parse().unwrap());
        Some(Self { _running: running, _turn: turn, authority, ports, down })
    }

    /// A host whose services lead there.
    fn behind(&self, host: Host) -> Host {
        let [plain, tls] = self.ports;
        host.settings(&format!(
            "[services.big]\nurl = \"http://127.0.0.1:{plain}\"\nenvironment = {{ BIG = \"{{url}}\", KEY = \"{{token}}\" }}\n\
             [tunnels]\nallow = [\"127.0.0.2:{tls}\"]\nallow_private = true\n"
        ))
    }

    /// The script, which finds the tunnel's end.
    fn script(&self) -> String {
        let certificates = fs::read_to_string(self.authority.certificates()).unwrap();
        format!("CA='{certificates}'\nTUNNEL=https://127.0.0.2:{}/\n{SCRIPT}", self.ports[1])
    }

    /// Whether all that it printed is right, and recorded.
    fn is_whole(&self, said: &str, host: &Host) {
        let [came, gave, sent, got, rest @ ..] = &said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
        assert_eq!((came, sent, rest), (gave, got, &["one", "two", "by the tunnel"][..]), "{said}");
        let record = host.record();
        let outcome = |name: &str| -> &Value {
            let intent = record.iter().find(|line| line["type"] == "intent" && line["name"] == name).unwrap();
            let is_its = |line: &&Value| line["type"] == "outcome" && line["id"] == intent["id"];
            record.iter().find(is_its).unwrap()
        };
        let (down, up) = (outcome("GET /large"), outcome("POST /up"));
        assert_eq!((down["received"].as_u64(), up["sent"].as_u64()), (Some(self.down), Some(UP)));
        let block: Vec<u8> = (0..=u8::MAX).collect();
        assert_eq!(down["received_digest"], of_repeated(&block, self.down));
        assert_eq!(up["sent_digest"], of_repeated(LINE.as_bytes(), UP));
        let tunnel = outcome(&format!("127.0.0.2:{}", self.ports[1]));
        let events = outcome("GET /events");
        assert!([down, up, events, tunnel].iter().all(|one| one["outcome"] == "ok"), "{record:?}");
    }
}

/// The digest of something over and over, so many bytes of it, as the record has it of a long body.
fn of_repeated(part: &[u8], length: u64) -> String {
    let many = part.repeat((64 * 1024_usize).div_ceil(part.len()));
    let (mut hasher, mut left) = (blake3::Hasher::new(), usize::try_from(length).unwrap());
    while left > 0 {
        let now = left.min(many.len());
        hasher.update(&many[..now]);
        left -= now;
    }
    format!("blake3:{}", hasher.finalize().to_hex())
}

/// What it printed; the time to be patient begins anew with each digest.
fn ends(mut running: Running) -> String {
    for _ in 0..4 {
        let _digest = running.stdout.line();
    }
    running.ends().well()
}

/// The words that give a run both.
fn with_services(host: Host) -> Host {
    ["--service", "big", "--service", "tunnels"].iter().fold(host, Host::option)
}

fn passes(test: &str, sandbox: &'static str) {
    let Some(origin) = Origin::start(test, DOWN) else { return };
    let host = origin.behind(with_services(Host::with(&Servers::none()).sandbox(sandbox).policy("open")));
    let said = ends(host.starts_script(&origin.script()));
    origin.is_whole(&said, &host);
    host.leaves_nothing_behind();
}

#[test]
fn services_pass_into_namespaces() {
    passes("services_pass_into_namespaces", "net");
}

#[test]
fn services_pass_into_bubblewrap() {
    let test = "services_pass_into_bubblewrap";
    if sandboxes::works(test, "bwrap", None) {
        passes(test, "bwrap");
    }
}

#[test]
fn services_pass_into_a_container() {
    let test = "services_pass_into_a_container";
    let Some(origin) = Origin::start(test, DOWN) else { return };
    for engine in Engine::each(test) {
        let host = origin.behind(with_services(engine.host(engine.with_program("curl"))));
        let said = ends(host.starts(&["sh", "-c", &origin.script()]));
        origin.is_whole(&said, &host);
        engine.leaves_nothing_behind();
    }
}

#[test]
fn services_pass_into_a_virtual_machine() {
    let test = "services_pass_into_a_virtual_machine";
    let Some(kernel) = Kernel::of(test, "6.12") else { return };
    let Some(origin) = Origin::start(test, DOWN_EMULATED) else { return };
    let daemon = origin.behind(Host::with(&Servers::none())).serves();
    let cable = Cable::new();
    let variables = daemon.host.path().join("vm.env");
    let at = format!("vsock-mux:{}:7179", cable.socket().display());
    let words =
        ["--listen", &at, "--service", "big", "--service", "tunnels", "--env-file", variables.to_str().unwrap()];
    let created = daemon.host.session(&[&["create", "vm", "--policy", "open"][..], &words].concat());
    assert_eq!(created.status, 0, "{created:?}");
    let image = Image::of(&kernel).with_program(&programs::find("curl").unwrap()).packed();
    let mut vm = Vm::boots(&cable, &image);
    let relay = "mkfifo ready\nfootbridge-relay --listen tcp:127.0.0.1:7179 --to vsock:host:7179 --ready-fd 9 9>ready \
                 >/dev/null 2>relay.log &\nread -r address <ready\n";
    assert_eq!(vm.runs(relay).well(), "");
    let exports = fs::read_to_string(&variables).unwrap();
    let said = vm.runs(&format!("set -a\n{exports}\nset +a\n{}", origin.script())).well();
    origin.is_whole(&said, &daemon.host);
}
