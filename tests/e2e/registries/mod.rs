//! Git, pip and npm in a sandbox whose only way out is the bridge, against a forge and registries on this machine; here by services,
//! in `tunnels` by tunnels.

mod tunnels;

use std::{fs, path::Path, process::Command};

use footbridge_tests::{Authority, Host, Ran, Real, Running, Servers, processes, programs, skipped};
use serde_json::Value;

/// The credential that only the origin may see.
const KEY: &str = "the-real-credential";

/// `git http-backend` behind HTTP, for who shows the credential.
const FORGE: &str = r#"
import base64, os, subprocess, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
root, key = sys.argv[1:]
class Forge(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_GET(self):
        expected = "Basic " + base64.b64encode(f"x-access-token:{key}".encode()).decode()
        if self.headers.get("authorization") != expected:
            self.send_response(401); self.send_header("content-length", "0"); self.end_headers(); return
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        env = dict(os.environ, GIT_PROJECT_ROOT=root, GIT_HTTP_EXPORT_ALL="1", PATH_INFO=path, QUERY_STRING=query,
            REQUEST_METHOD=self.command, REMOTE_USER="somebody", CONTENT_TYPE=self.headers.get("content-type", ""),
            CONTENT_LENGTH=str(len(body)), HTTP_CONTENT_ENCODING=self.headers.get("content-encoding", ""),
            GIT_PROTOCOL=self.headers.get("git-protocol", ""))
        out = subprocess.run(["git", "http-backend"], input=body, env=env, stdout=subprocess.PIPE, check=True).stdout
        head, _, rest = out.partition(b"\r\n\r\n")
        said = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(said.pop("Status", "200 OK").split()[0]))
        for name, value in said.items(): self.send_header(name, value)
        self.send_header("content-length", str(len(rest))); self.end_headers(); self.wfile.write(rest)
    do_POST = do_GET
server = ThreadingHTTPServer(("127.0.0.1", 0), Forge)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// pypiserver below the path of a service: its links hold whole paths. With TLS where it is told of certificates.
const INDEX: &str = r#"
import ssl, sys, pypiserver
from wsgiref.simple_server import WSGIRequestHandler, make_server
class Silent(WSGIRequestHandler):
    def log_message(self, *_): pass
app = pypiserver.app(roots=[sys.argv[1]])
def mounted(environ, start):
    environ["SCRIPT_NAME"] = "/s/pip"
    environ["PATH_INFO"] = environ["PATH_INFO"].removeprefix("/s/pip")
    return app(environ, start)
server = make_server(sys.argv[2], 0, mounted, handler_class=Silent)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3] + "/cert.pem", sys.argv[3] + "/key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

const WHEEL: &str = r#"
import sys, zipfile
with zipfile.ZipFile(sys.argv[1] + "/demo_pkg-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("demo_pkg.py", "print('from the wheel')\n")
    info = "demo_pkg-1.0.dist-info/"
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: demo-pkg\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "".join(f"{name},,\n" for name in ["demo_pkg.py", info + "METADATA", info + "WHEEL", info + "RECORD"]))
"#;

/// A server in Python, and the port that it says.
fn serves(python: &Path, text: &str, args: &[&str]) -> (Running, u16) {
    let mut running = Running::start(Command::new(python).args(["-c", text]).args(args));
    let port = running.stdout.line().trim().parse().unwrap();
    (running, port)
}

fn python(test: &str) -> Option<std::path::PathBuf> {
    let program = fs::canonicalize(Real::server(test, "pypi-server")?.program()).unwrap();
    Some(program.with_file_name("python"))
}

/// A host with one service of a preset, whose requests ask an operator's command, which allows what it hears.
fn behind(preset: &str, url: &str, policy: &str) -> Host {
    let host = Host::with(&Servers::none());
    let program = host.path().join("answers");
    programs::writes(
        &program,
        &format!("#!/bin/sh\ncat >> {}/heard\necho '{{\"decision\":\"allow\"}}'\n", host.path().display()),
    );
    let settings = format!(
        "[services.{preset}]\npreset = \"{preset}\"\nurl = \"{url}\"\ncredential = \"{KEY}\"\n[approval]\nwatch = false\n\
         command = [{:?}]\n{policy}",
        program.display().to_string()
    );
    host.settings(&settings).option("--service").option(preset)
}

/// It went well, and what the command shows has neither token nor credential.
fn went_well(ran: &Ran) {
    assert_eq!(ran.status, 0, "{ran:?}");
    for secret in ["fbt_", KEY] {
        assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret), "{ran:?}");
    }
}

/// The intents of requests, by their names.
fn asked(host: &Host) -> Vec<(String, String)> {
    let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    let intents = host.record().into_iter().filter(|line| line["type"] == "intent");
    intents.map(|line| (text(&line, "name"), text(&line, "decision"))).collect()
}

const PUSHES: &str = r#"
[policies.careful]
[[policies.careful.rules]]
decision = "ask"
service = "git"
path = "/**/git-receive-pack"
[[policies.careful.rules]]
decision = "allow"
kind = "http"
"#;

#[test]
fn git_clones_fetches_and_pushes_where_a_person_allows_it() {
    let test = "git_clones_fetches_and_pushes_where_a_person_allows_it";
    let Some(python) = python(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    let made = |words: &[&str]| Command::new("git").args(words).current_dir(folder.path()).output();
    if made(&["init", "--bare", "-q", "-b", "main", "team/repo.git"]).is_err() {
        return skipped(test, "git is missing");
    }
    assert!(made(&["-C", "team/repo.git", "config", "http.receivepack", "true"]).unwrap().status.success());
    let (_forge, port) = serves(&python, FORGE, &[folder.path().to_str().unwrap(), KEY]);
    let url = format!("http://127.0.0.1:{port}");
    let host = behind("git", &url, PUSHES).policy("careful");
    let script = format!(
        "set -e; git clone -q {url}/team/repo.git one; git clone -q {url}/team/repo.git two; cd one; echo hello > file\n\
         git add file; git -c user.name=a -c user.email=a@b.test commit -q -m first; git push -q origin HEAD:main\n\
         cd ../two; git fetch -q; git show origin/main:file"
    );
    let ran = host.runs_script(&script);
    went_well(&ran);
    assert!(ran.stdout.ends_with("hello\n"), "{ran:?}");
    let asked = asked(&host);
    let pushes: Vec<_> = asked.iter().filter(|(_, decision)| decision == "ask").collect();
    assert!(
        !pushes.is_empty() && pushes.iter().all(|(name, _)| name == "POST /team/repo.git/git-receive-pack"),
        "{asked:?}"
    );
    assert!(asked.iter().any(|(name, _)| name == "POST /team/repo.git/git-upload-pack"), "{asked:?}");
    let heard = fs::read_to_string(host.path().join("heard")).unwrap();
    assert!(heard.contains("git-receive-pack") && !heard.contains(KEY), "{heard}");
    host.leaves_nothing_behind();
    for (denied, says) in [("receive", "remote: "), ("upload", "fatal: remote error: ")] {
        let closed = format!(
            "[policies.closed]\n[[policies.closed.rules]]\ndecision = \"deny\"\nservice = \"git\"\n\
             path = \"/**/git-{denied}-pack\"\n[[policies.closed.rules]]\ndecision = \"allow\"\nkind = \"http\"\n"
        );
        let ran = behind("git", &url, &closed).policy("closed").runs_script(&format!(
            "git clone -q {url}/team/repo.git one && cd one && git -c user.name=a -c user.email=a@b.test commit -q --allow-empty \
             -m x && git push -q origin HEAD:main"
        ));
        assert!(ran.status != 0 && ran.stderr.contains(says) && ran.stderr.contains("is denied by policy"), "{ran:?}");
    }
}

#[test]
fn pip_installs_from_an_index_of_the_operator() {
    let Some(python) = python("pip_installs_from_an_index_of_the_operator") else { return };
    let folder = tempfile::tempdir().unwrap();
    let wheels = folder.path().to_str().unwrap();
    assert!(Command::new(&python).args(["-c", WHEEL, wheels]).status().unwrap().success());
    let (_index, port) = serves(&python, INDEX, &[wheels, "127.0.0.1"]);
    let host = behind("pip", &format!("http://127.0.0.1:{port}/s/pip"), "").policy("open");
    let host = host.option("--show").option(python.ancestors().nth(2).unwrap());
    let python = python.display();
    let ran = host.runs_script(&format!(
        "{python} -m pip install -q --disable-pip-version-check --target there demo-pkg && PYTHONPATH=there {python} -m demo_pkg"
    ));
    went_well(&ran);
    assert_eq!(ran.stdout, "from the wheel\n");
    let asked = asked(&host);
    assert!(asked.iter().any(|(name, _)| name == "GET /packages/demo_pkg-1.0-py3-none-any.whl"), "{asked:?}");
    host.leaves_nothing_behind();
}

/// A registry with one package, as it is kept on disk.
fn registry(folder: &Path) -> String {
    let package = folder.join("package");
    fs::create_dir_all(folder.join("storage/demo-pkg")).unwrap();
    fs::create_dir(&package).unwrap();
    let about = r#"{"name":"demo-pkg","version":"1.0.0","main":"index.js"}"#;
    fs::write(package.join("package.json"), about).unwrap();
    fs::write(package.join("index.js"), "console.log('from the package');\n").unwrap();
    let tarball = folder.join("storage/demo-pkg/demo-pkg-1.0.0.tgz");
    let packed = Command::new("tar").args(["-czf", tarball.to_str().unwrap(), "package"]).current_dir(folder).status();
    assert!(packed.unwrap().success());
    let version = r#"{"name":"demo-pkg","version":"1.0.0","main":"index.js","dist":{"tarball":"http://registry.test/demo-pkg/-/demo-pkg-1.0.0.tgz"}}"#;
    let all = format!(
        r#"{{"name":"demo-pkg","versions":{{"1.0.0":{version}}},"dist-tags":{{"latest":"1.0.0"}},"time":{{}},"_attachments":{{"demo-pkg-1.0.0.tgz":{{}}}},"_distfiles":{{}},"_uplinks":{{}},"_rev":""}}"#
    );
    fs::write(folder.join("storage/demo-pkg/package.json"), all).unwrap();
    let config = "storage: ./storage\nuplinks: {}\npackages:\n  '**':\n    access: $all\nlog: {type: stdout, format: pretty, level: http}\n";
    fs::write(folder.join("config.yaml"), config).unwrap();
    folder.join("config.yaml").display().to_string()
}

/// What npm needs on either side: a node and verdaccio for the registry, and itself.
fn npm(test: &str) -> Option<(Real, Real)> {
    let (node, verdaccio) = (Real::server(test, "node")?, Real::server(test, "verdaccio")?);
    let works = Command::new("npm").arg("--version").output().is_ok_and(|npm| npm.status.success());
    if !works {
        skipped(test, "npm is missing");
    }
    works.then_some((node, verdaccio))
}

/// A verdaccio with one package, and its address. Its processes end with its folder.
struct Registry {
    _running: Running,
    folder: tempfile::TempDir,
    url: String,
}

impl Registry {
    /// With TLS where there is an authority.
    fn start((node, verdaccio): &(Real, Real), address: &str, tls: Option<&Authority>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = registry(folder.path());
        let scheme = if tls.is_some() { "https" } else { "http" };
        if let Some(tls) = tls {
            let file = |name: &str| tls.path().join(name).display().to_string();
            let more = format!("https: {{key: {}, cert: {}}}\n", file("key.pem"), file("cert.pem"));
            fs::write(&config, fs::read_to_string(&config).unwrap() + &more).unwrap();
        }
        let free = || std::net::TcpListener::bind((address, 0)).unwrap().local_addr().unwrap().port();
        // Somebody else may take the port before it does.
        let started = (0..5).find_map(|_| {
            let url = format!("{scheme}://{address}:{}", free());
            let mut command = Command::new(node.program());
            command.arg(fs::canonicalize(verdaccio.program()).unwrap());
            command.args(["--config", &config, "--listen", &url]).current_dir(folder.path());
            let mut running = Running::start(command.env("HOME", folder.path()));
            running.stdout.shows_or_ends(&url).then_some((running, url))
        });
        let (running, url) = started.unwrap();
        Self { _running: running, folder, url }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        processes::end_all(self.folder.path());
    }
}

#[test]
fn npm_installs_from_a_registry_of_the_operator() {
    let Some(programs) = npm("npm_installs_from_a_registry_of_the_operator") else { return };
    let registry = Registry::start(&programs, "127.0.0.1", None);
    let host = behind("npm", &registry.url, "").policy("open");
    let ran = host.runs_script("npm install --no-audit --no-fund --silent demo-pkg && node -e 'require(\"demo-pkg\")'");
    went_well(&ran);
    assert!(ran.stdout.ends_with("from the package\n"), "{ran:?}");
    let asked = asked(&host);
    assert!(asked.iter().any(|(name, _)| name == "GET /demo-pkg/-/demo-pkg-1.0.0.tgz"), "{asked:?}");
    host.leaves_nothing_behind();
}
