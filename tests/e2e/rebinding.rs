//! Names that turn private, through the whole harness: in a network of its own with a resolver that changes its answers,
//! and an origin that is there at every address and says which one was dialled.

use std::{fs, process::Command};

use footbridge_tests::{Authority, Host, Running, Servers, programs, skipped, starting};

/// Resolver, origin and guest, which share the network with the harness. Prints what the guest hears, and at last which
/// addresses of the origin were reached.
const EVERYBODY: &str = r#"
import base64, http.client, os, socket, ssl, struct, sys, threading
folder = sys.argv[1]
answers = {"rebound.test": ["1.1.1.1", "127.0.0.1", "10.9.9.9", "169.254.169.254"], "inside.test": ["10.9.9.9"],
    "mixed.test": ["10.9.9.9+1.1.1.1"], "tunnel.test": ["1.1.1.1", "10.9.9.9"]}
asked, reached = {}, []
def resolver(at):
    while True:
        query, who = at.recvfrom(2000)
        end, labels = 12, []
        while query[end]:
            labels.append(query[end + 1:end + 1 + query[end]].decode()); end += query[end] + 1
        name, found = ".".join(labels).lower(), []
        if struct.unpack(">H", query[end + 1:end + 3])[0] == 1 and name in answers:
            count = asked[name] = asked.get(name, 0) + 1
            found = answers[name][min(count, len(answers[name])) - 1].split("+")
        records = b"".join(b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton(one) for one in found)
        at.sendto(query[:2] + b"\x81\x80" + query[4:6] + struct.pack(">H", len(found)) + b"\0\0\0\0" + query[12:end + 5] + records, who)
names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); names.bind(("127.0.0.1", 53))
threading.Thread(target=resolver, args=(names,), daemon=True).start()
server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
server.load_cert_chain(folder + "/cert.pem", folder + "/key.pem")
def origin(listener):
    while True:
        stream, _ = listener.accept()
        reached.append(stream.getsockname()[0])
        try:
            with server.wrap_socket(stream, server_side=True) as tls:
                to = b"HTTP/1.1 302 Found\r\nlocation: http://10.9.9.9/latest\r\n" if b" /private " in tls.recv(65536) else b"HTTP/1.1 200 OK\r\n"
                tls.sendall(to + b"connection: close\r\ncontent-length: 0\r\n\r\n")
        except OSError: pass
listener = socket.create_server(("0.0.0.0", 443))
threading.Thread(target=origin, args=(listener,), daemon=True).start()
port, token = int(os.environ["TOOL_CLI_PORT"]), os.environ["TOOL_CLI_TOKEN"]
def asks(service, path):
    guest = http.client.HTTPConnection("127.0.0.1", port)
    guest.request("GET", f"/s/{service}{path}", headers={"x-api-key": token})
    answer = guest.getresponse()
    said = answer.read().decode()
    whys = {"leads to a private address": "private", "its name cannot be resolved. Nothing was sent": "unknown"}
    print(service, answer.status, answer.getheader("location", ""), *(why for text, why in whys.items() if text in said), flush=True)
def tunnels():
    guest = socket.create_connection(("127.0.0.1", port))
    shown = base64.b64encode(f"session:{token}".encode()).decode()
    guest.sendall(f"CONNECT tunnel.test:443 HTTP/1.1\r\nHost: tunnel.test:443\r\nProxy-Authorization: Basic {shown}\r\n\r\n".encode())
    head = b""
    while not head.endswith(b"\r\n\r\n"): head += guest.recv(1)
    if b" 200 " in head.split(b"\r\n")[0]:
        with ssl.create_default_context(cafile=folder + "/ca.pem").wrap_socket(guest, server_hostname="tunnel.test") as tls:
            tls.sendall(b"GET / HTTP/1.1\r\n\r\n"); head = tls.recv(15)
    print("tunnel", head.split()[1].decode(), flush=True)
for _ in range(4): asks("rebound", "/")
asks("inside", "/"); asks("mixed", "/"); asks("mixed", "/private"); asks("nowhere", "/")
tunnels(); tunnels()
print("reached", sorted(set(reached)), len(reached))
"#;

const HEARD: &str = "rebound 200\nrebound 502 private\nrebound 502 private\nrebound 502 private\ninside 502 private\n\
                     mixed 200\nmixed 302 http://10.9.9.9/latest\nnowhere 502 unknown\ntunnel 200\ntunnel 502\nreached ['1.1.1.1'] 4\n";

/// A network of one's own, where names are asked of this machine.
const NETWORK: &str = "ip link set lo up; ip address add 1.1.1.1/32 dev lo; ip address add 10.9.9.9/32 dev lo
    ip address add 169.254.169.254/32 dev lo
    mount --bind \"$0/resolv.conf\" /etc/resolv.conf; mount --bind \"$0/nsswitch.conf\" /etc/nsswitch.conf";

#[test]
fn a_name_that_turns_private_leads_nowhere() {
    let test = "a_name_that_turns_private_leads_nowhere";
    if let Some(program) = ["unshare", "ip", "python3"].iter().find(|one| !programs::on_path(one)) {
        return skipped(test, &format!("{program} is missing"));
    }
    let names = ["rebound.test", "inside.test", "mixed.test", "tunnel.test"];
    let authority = Authority::of(&names);
    let folder = authority.path().display().to_string();
    fs::write(authority.path().join("resolv.conf"), "nameserver 127.0.0.1\n").unwrap();
    fs::write(authority.path().join("nsswitch.conf"), "hosts: dns\n").unwrap();
    let alone = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "sh", "-c", script, &folder]);
        command
    };
    let tried = alone(&format!("set -e; {NETWORK}")).output().unwrap();
    if !tried.status.success() {
        let why = String::from_utf8_lossy(&tried.stderr).trim().to_owned();
        return skipped(test, &format!("no network of its own: {why}"));
    }
    let service = |name: &str| {
        format!(
            "[services.{name}]\nurl = \"https://{name}.test\"\nca_file = \"{}\"\n",
            authority.certificates().display()
        )
    };
    // The resolver knows nothing of the last one.
    let all = ["rebound", "inside", "mixed", "nowhere"];
    let settings: String = all.iter().map(|name| service(name)).collect();
    let host = Host::open_with(&Servers::none());
    let host = host.settings(&(settings + "[tunnels]\nallow = [\"tunnel.test:443\"]\n"));
    let host = all.iter().chain(&["tunnels"]).fold(host, |host, name| host.option("--service").option(name));
    let run = host.run_of(&["python3", "-c", EVERYBODY, &folder]);
    let command = alone(&format!("set -e; {NETWORK}; exec \"$@\""));
    let ran = Running::start(&mut starting(&run, command)).ends();
    let heard: String =
        ran.stdout.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n").collect();
    assert_eq!((ran.status, &*heard), (0, HEARD), "{ran:?}");
    let record = host.record();
    let unsent = record.iter().filter(|line| line["type"] == "outcome" && line["outcome"] == "not_sent").count();
    assert_eq!(unsent, 6, "{record:#?}");
    host.leaves_nothing_behind();
}
