//! Clients of presets that no other test has, as they are, in a sandbox whose only way out is the bridge: SDKs of Google's,
//! OpenRouter's and Azure's models, of GitHub and GitLab, and cargo.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use footbridge_tests::{Host, Ran, Real, Running, ScriptedModel, Servers, Step, programs, skipped};
use serde_json::Value;

/// The credential that only the origin may see.
const KEY: &str = "the-real-credential";

/// A host with services of these presets at one address, each called as its preset.
fn with(presets: &[&str], url: &str) -> Host {
    let service =
        |name: &&str| format!("[services.{name}]\npreset = \"{name}\"\nurl = \"{url}\"\ncredential = \"{KEY}\"\n");
    let host = Host::with(&Servers::none()).settings(&presets.iter().map(service).collect::<String>());
    presets.iter().fold(host, |host, name| host.option("--service").option(name))
}

/// The interpreter that has the SDKs, and a host that shows it.
fn python(test: &str, host: impl FnOnce() -> Host) -> Option<(Host, PathBuf)> {
    let program = fs::canonicalize(Real::server(test, "pypi-server")?.program()).unwrap();
    let folder = program.ancestors().nth(2).unwrap();
    Some((host().option("--show").option(folder), program.with_file_name("python")))
}

fn runs(host: &Host, python: &Path, text: &str) -> Ran {
    let ran = host.runs(&[python.to_str().unwrap(), "-c", text]);
    for secret in ["fbt_", KEY] {
        assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{ran:?}");
    }
    ran
}

/// The intents by name, each with an outcome that is well.
fn passed(host: &Host) -> Vec<String> {
    let record = host.record();
    let went = |intent: &&Value| {
        record.iter().any(|line| line["type"] == "outcome" && line["id"] == intent["id"] && line["outcome"] == "ok")
    };
    let intents = record.iter().filter(|line| line["type"] == "intent").filter(went);
    intents.map(|intent| intent["name"].as_str().unwrap().to_owned()).collect()
}

/// Each client finds its service by what the preset sets.
const MODELS: &str = r#"
import os, openai
from google import genai
said = [{"role": "user", "content": "hi"}]
g = genai.Client()
print(g.models.generate_content(model="m", contents="hi").text)
print("".join(part.text or "" for part in g.models.generate_content_stream(model="m", contents="hi")))
o = openai.OpenAI(base_url=os.environ["OPENROUTER_BASE_URL"], api_key=os.environ["OPENROUTER_API_KEY"])
a = openai.AzureOpenAI(api_version="2024-10-21")
for client in (o, a):
    print(client.chat.completions.create(model="m", messages=said).choices[0].message.content)
    stream = client.chat.completions.create(model="m", messages=said, stream=True)
    print("".join(part.choices[0].delta.content or "" for part in stream if part.choices))
"#;

#[test]
fn sdks_of_google_openrouter_and_azure_reach_their_models() {
    let test = "sdks_of_google_openrouter_and_azure_reach_their_models";
    let model = ScriptedModel::start(vec![Step::Say("hello from the model".to_owned())]);
    let url = format!("http://127.0.0.1:{}", model.port);
    let Some((host, python)) = python(test, || with(&["gemini", "openrouter", "azure-openai"], &url)) else { return };
    let ran = runs(&host, &python, MODELS);
    assert_eq!((ran.status, &*ran.stdout), (0, &*"hello from the model\n".repeat(6)), "{ran:?}");
    let heard = model.heard();
    assert!(heard.len() == 6 && heard.iter().all(|one| one.head.contains(KEY) && !one.head.contains("fbt_")));
    let record = host.record();
    let used = record.iter().filter(|line| line["tokens_in"] == 11 && line["tokens_out"] == 5).count();
    assert_eq!((passed(&host).len(), used), (6, 6), "{record:?}");
    host.leaves_nothing_behind();
}

/// A forge as both SDKs know theirs, for who shows the credential.
const FORGE: &str = r#"
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
key = sys.argv[1]
class Forge(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        sent = json.loads(body) if body else {}
        title, asked = sent.get("title"), {"data": {"asked": sent.get("query")}}
        api = "https://api.github.com/repos/o/r"
        issue = {"id": 3, "iid": 3, "number": 3, "title": title, "url": api + "/issues/3"}
        pages = {"GET /user": {"login": "octo", "url": "https://api.github.com/users/octo"},
            "POST /repos/o/r/issues": issue, "GET /api/v4/projects/7": {"id": 7, "path_with_namespace": "o/r"},
            "POST /api/v4/projects/7/issues": issue, "POST /graphql": asked, "POST /api/graphql": asked}
        shown = [self.headers.get("authorization"), self.headers.get("private-token")]
        page = pages.get(f"{self.command} {self.path}") if f"Bearer {key}" in shown or key in shown else None
        text = json.dumps(page or {"message": "no"}).encode()
        self.send_response(404 if page is None else 201 if title else 200)
        self.send_header("content-type", "application/json"); self.send_header("content-length", str(len(text)))
        self.end_headers(); self.wfile.write(text)
    do_POST = do_GET
server = ThreadingHTTPServer(("127.0.0.1", 0), Forge)
print(server.server_port, flush=True)
server.serve_forever()
"#;

const ISSUES: &str = r#"
import os, github, gitlab, requests
g = github.Github(base_url=os.environ["GITHUB_API_URL"], auth=github.Auth.Token(os.environ["GITHUB_TOKEN"]))
print(g.get_user().login)
# One that was asked for has the address that the forge says, which PyGithub does not follow from another.
print(g.get_repo("o/r", lazy=True).create_issue(title="one").title)
print(g.requester.graphql_query("query { viewer }", {})[1]["data"]["asked"])
l = gitlab.Gitlab(os.environ["GITLAB_URL"], private_token=os.environ["GITLAB_TOKEN"])
project = l.projects.get(7)
print(project.path_with_namespace, project.issues.create({"title": "two"}).title)
# As gitlab.GraphQL sends it, which needs one more package.
shown = {"Authorization": "Bearer " + os.environ["GITLAB_TOKEN"]}
answer = requests.post(os.environ["GITLAB_URL"] + "/api/graphql", json={"query": "query { currentUser }"}, headers=shown)
print(answer.json()["data"]["asked"])
"#;

#[test]
fn sdks_of_forges_read_and_write() {
    let test = "sdks_of_forges_read_and_write";
    if !programs::on_path("python3") {
        return skipped(test, "python3 is missing");
    }
    let mut forge = Running::start(Command::new("python3").args(["-c", FORGE, KEY]));
    let url = format!("http://127.0.0.1:{}", forge.stdout.line());
    let Some((host, python)) = python(test, || with(&["github", "gitlab"], &url)) else { return };
    let ran = runs(&host, &python, ISSUES);
    assert_eq!(
        (ran.status, &*ran.stdout),
        (0, "octo\none\nquery { viewer }\no/r two\nquery { currentUser }\n"),
        "{ran:?}"
    );
    let expected = [
        "GET /user",
        "POST /repos/o/r/issues",
        "POST /graphql",
        "GET /api/v4/projects/7",
        "POST /api/v4/projects/7/issues",
        "POST /api/graphql",
    ];
    assert_eq!(passed(&host), expected);
    host.leaves_nothing_behind();
}

/// A sparse registry with one crate, for who shows the credential, whose downloads are below the service.
const CRATES: &str = r#"
import hashlib, io, json, sys, tarfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
key, dl = sys.argv[1:]
files = {"Cargo.toml": b'[package]\nname = "demo-crate"\nversion = "1.0.0"\nedition = "2021"\n',
    "src/lib.rs": b'pub fn says() -> &\'static str { "from the crate" }\n'}
packed = io.BytesIO()
with tarfile.open(fileobj=packed, mode="w:gz") as archive:
    for name, text in files.items():
        member = tarfile.TarInfo("demo-crate-1.0.0/" + name); member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
crate = packed.getvalue()
line = {"name": "demo-crate", "vers": "1.0.0", "deps": [], "cksum": hashlib.sha256(crate).hexdigest(), "features": {}, "yanked": False}
pages = {"/config.json": json.dumps({"dl": dl, "auth-required": True}).encode(), "/de/mo/demo-crate": json.dumps(line).encode(),
    "/dl/demo-crate/1.0.0/download": crate}
class Registry(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_GET(self):
        page = pages.get(self.path) if self.headers.get("authorization") == key else None
        self.send_response(404 if page is None else 200)
        self.send_header("content-length", str(len(page or b""))); self.end_headers(); self.wfile.write(page or b"")
server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
print(server.server_port, flush=True)
server.serve_forever()
"#;

#[test]
fn cargo_takes_a_crate_from_a_registry_of_the_operator() {
    let test = "cargo_takes_a_crate_from_a_registry_of_the_operator";
    let works = Command::new("cargo").arg("--version").output().is_ok_and(|cargo| cargo.status.success());
    if !works || !programs::on_path("python3") {
        return skipped(test, "cargo or python3 is missing");
    }
    let dl = "http://127.0.0.1:7179/s/cargo/dl";
    let mut registry = Running::start(Command::new("python3").args(["-c", CRATES, KEY, dl]));
    let host = with(&["cargo"], &format!("http://127.0.0.1:{}", registry.stdout.line()));
    fs::create_dir_all(host.work().join("src")).unwrap();
    let manifest = "[package]\nname = \"uses\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\
                    [dependencies]\ndemo-crate = { version = \"1\", registry = \"service\" }\n";
    fs::write(host.work().join("Cargo.toml"), manifest).unwrap();
    fs::write(host.work().join("src/main.rs"), "fn main() { println!(\"{}\", demo_crate::says()); }\n").unwrap();
    // What a toolchain keeps is the user's; what it loads goes into a folder of the test.
    let ran = host.runs_script("CARGO_HOME=$PWD/home cargo run --quiet");
    assert_eq!((ran.status, &*ran.stdout), (0, "from the crate\n"), "{ran:?}");
    assert!(!ran.stderr.contains("fbt_") && !ran.stderr.contains(KEY), "{ran:?}");
    let expected = ["GET /config.json", "GET /de/mo/demo-crate", "GET /dl/demo-crate/1.0.0/download"];
    assert_eq!(passed(&host), expected);
    host.leaves_nothing_behind();
}

/// Asks whoever has no key for one, connection after connection.
fn origin_that_takes_no_key() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            while reader.read_line(&mut String::new()).is_ok_and(|length| length > 2) {}
            let _gone =
                stream.write_all(b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno");
        }
    });
    port
}

/// The guest can do nothing about either: its operator is told, once.
#[test]
fn the_operator_is_told_of_a_credential_that_is_not_taken_and_of_a_service_that_no_variable_tells_of() {
    let test = "the_operator_is_told_of_a_credential_that_is_not_taken_and_of_a_service_that_no_variable_tells_of";
    if !programs::on_path("curl") {
        return skipped(test, "curl is missing");
    }
    let url = format!("http://127.0.0.1:{}", origin_that_takes_no_key());
    let settings = format!("[services.own]\nurl = \"{url}\"\nheader = \"x-api-key\"\ncredential = \"{KEY}\"\n");
    let host = Host::with(&Servers::none()).settings(&settings).option("--service").option("own");
    let ask = "curl -sS -H \"x-api-key: $TOOL_CLI_TOKEN\" http://127.0.0.1:$TOOL_CLI_PORT/s/own/";
    let ran = host.runs(&["sh", "-c", &format!("{ask}; {ask}")]);
    assert_eq!((ran.status, &*ran.stdout), (0, "nono"), "{ran:?}");
    assert_eq!(ran.stderr.matches("answers 401 to the credential that is put in here").count(), 1, "{ran:?}");
    assert_eq!(ran.stderr.matches("no variable tells the guest of the service \"own\"").count(), 1, "{ran:?}");
    host.leaves_nothing_behind();
}
