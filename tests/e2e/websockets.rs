//! The `websockets` of PyPI in a sandbox, through a service that takes WebSockets, at a server of the same package.

use std::{fs, process::Command};

use footbridge_tests::{Host, Real, Running, Servers};

/// The credential that only the origin may see.
const KEY: &str = "the-real-credential";

/// Says what it hears again, to who shows the credential.
const ORIGIN: &str = r#"
import sys
from websockets.sync.server import serve
def shows(connection, request):
    if request.headers.get("authorization") != "Bearer " + sys.argv[1]:
        return connection.respond(401, "no")
def repeat(connection):
    for message in connection: connection.send(message)
with serve(repeat, "127.0.0.1", 0, process_request=shows, max_size=None) as server:
    print(server.socket.getsockname()[1], flush=True)
    server.serve_forever()
"#;

/// As a program would: a long text, bytes, a ping, and a closing handshake.
const CLIENT: &str = r#"
import os
from websockets.sync.client import connect
url, key = os.environ["CHAT_URL"].replace("http", "ws", 1), os.environ["CHAT_KEY"]
with connect(url + "/chat", additional_headers={"Authorization": "Bearer " + key}, subprotocols=["chat"]) as socket:
    for message in ["hello", "x" * 1_000_000, bytes(range(256)), "bye"]:
        socket.send(message)
        assert socket.recv() == message
    assert socket.ping().wait(10)
print("closed with", socket.close_code)
"#;

#[test]
fn a_client_and_a_server_of_pypi_talk_through_a_service() {
    let test = "a_client_and_a_server_of_pypi_talk_through_a_service";
    let Some(server) = Real::server(test, "pypi-server") else { return };
    let python = fs::canonicalize(server.program()).unwrap().with_file_name("python");
    let mut origin = Running::start(Command::new(&python).args(["-c", ORIGIN, KEY]));
    let port: u16 = origin.stdout.line().trim().parse().unwrap();
    let host = Host::with(&Servers::none()).settings(&format!(
        "[services.chat]\nurl = \"http://127.0.0.1:{port}\"\nheader = \"Authorization\"\n\
         credential = \"Bearer {KEY}\"\nwebsocket = true\n\
         environment = {{ CHAT_URL = \"{{url}}\", CHAT_KEY = \"{{token}}\" }}\n"
    ));
    // Wherever the checkout lies, the sandbox sees the interpreter.
    let host = host.option("--show").option(python.ancestors().nth(2).unwrap());
    let host = host.option("--service").option("chat").policy("open");
    let client = host.work().join("client.py");
    fs::write(&client, CLIENT).unwrap();
    let ran = host.runs_script(&format!("{} {}", python.display(), client.display()));
    assert!(ran.status == 0 && ran.stdout == "closed with 1000\n", "{ran:?}");
    let record = host.record();
    let intent = record.iter().find(|line| line["type"] == "intent").unwrap();
    assert_eq!(intent["name"], "GET /chat (websocket)");
    let outcome = record.iter().find(|line| line["type"] == "outcome").unwrap();
    assert!(outcome["outcome"] == "ok" && outcome["status"] == 101, "{outcome}");
    let passed = |way: &str| outcome[way].as_u64() > Some(1_000_000);
    assert!(passed("sent") && passed("received"), "{outcome}");
}
