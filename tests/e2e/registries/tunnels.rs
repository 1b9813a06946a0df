//! Npm and pip through tunnels to registries with TLS, and apt through the plain proxy, by nothing but the variables that a
//! run sets. The index and the archive are at an address that NO_PROXY does not name.

use std::{fs, path::Path, process::Command};

use footbridge_tests::{Authority, Host, Servers, programs, skipped};
use serde_json::Value;

use super::{INDEX, Registry, WHEEL, npm, python, serves, went_well};

const ADDRESS: &str = "127.0.0.2";

/// A host whose tunnels lead to one place alone; `kind` is what they are for.
fn tunnels(kind: &str, place: &str) -> Host {
    let settings = format!("[tunnels]\n{kind} = [\"{place}\"]\nallow_private = true\n");
    Host::with(&Servers::none()).settings(&settings).option("--service").option("tunnels").policy("open")
}

fn port_of(url: &str) -> &str {
    url.rsplit(':').next().unwrap()
}

/// What a client in the sandbox trusts, in the folder that it works in.
fn trusts(host: &Host, authority: &Authority) {
    fs::copy(authority.certificates(), host.work().join("ca.pem")).unwrap();
}

/// The names of what the record has of a kind, each with an outcome that is well, or of which something came: npm ends
/// with its connections open, and may be gone before they are.
fn passed(host: &Host, kind: &str) -> Vec<String> {
    let record = host.record();
    let intents = record.iter().filter(|line| line["type"] == "intent" && line["kind"] == kind);
    let went = |intent: &&Value| {
        let outcome = record.iter().find(|line| line["type"] == "outcome" && line["id"] == intent["id"]);
        outcome.is_some_and(|line| line["outcome"] == "ok" || line["received"].as_u64() > Some(0))
    };
    intents.filter(went).map(|intent| intent["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn npm_installs_through_a_tunnel() {
    let Some(programs) = npm("npm_installs_through_a_tunnel") else { return };
    let authority = Authority::of(&["localhost"]);
    let registry = Registry::start(&programs, "localhost", Some(&authority));
    let host = tunnels("allow", &format!("localhost:{}", port_of(&registry.url)));
    trusts(&host, &authority);
    // Node finds no server name in the certificate for an address, and localhost is one that NO_PROXY names.
    let script = "NO_PROXY= no_proxy= npm install --no-audit --no-fund --silent --fetch-retries 0 --cafile ca.pem --registry URL/ demo-pkg && \
                  node -e 'require(\"demo-pkg\")'";
    let ran = host.runs_script(&script.replace("URL", &registry.url));
    went_well(&ran);
    assert!(ran.stdout.ends_with("from the package\n"), "{ran:?}");
    assert!(passed(&host, "tunnel").iter().any(|name| registry.url.ends_with(name)), "{:?}", host.record());
    host.leaves_nothing_behind();
}

#[test]
fn pip_installs_through_a_tunnel() {
    let Some(python) = python("pip_installs_through_a_tunnel") else { return };
    let folder = tempfile::tempdir().unwrap();
    let wheels = folder.path().to_str().unwrap();
    assert!(Command::new(&python).args(["-c", WHEEL, wheels]).status().unwrap().success());
    let authority = Authority::of(&[ADDRESS]);
    let (_index, port) = serves(&python, INDEX, &[wheels, ADDRESS, authority.path().to_str().unwrap()]);
    let host =
        tunnels("allow", &format!("{ADDRESS}:{port}")).option("--show").option(python.ancestors().nth(2).unwrap());
    trusts(&host, &authority);
    let python = python.display();
    let ran = host.runs_script(&format!(
        "{python} -m pip install -q --disable-pip-version-check --cert ca.pem --target there \
         --index-url https://{ADDRESS}:{port}/s/pip/simple/ demo-pkg && PYTHONPATH=there {python} -m demo_pkg"
    ));
    went_well(&ran);
    assert_eq!(ran.stdout, "from the wheel\n");
    assert!(passed(&host, "tunnel").contains(&format!("{ADDRESS}:{port}")), "{:?}", host.record());
    host.leaves_nothing_behind();
}

/// Makes a repository of one package in the folder that it starts in.
const REPOSITORY: &str = r#"
set -e
arch=$(dpkg --print-architecture) at=dists/stable/main/binary-$(dpkg --print-architecture)
mkdir -p deb/DEBIAN deb/usr/share/demo-pkg pool "$at"
printf 'Package: demo-pkg\nVersion: 1.0\nArchitecture: all\nMaintainer: a <a@b.test>\nDescription: a demo\n' >deb/DEBIAN/control
echo from the package >deb/usr/share/demo-pkg/text
dpkg-deb --root-owner-group --build deb pool/demo-pkg_1.0_all.deb >made
sum() { sha256sum "$1" | cut -d ' ' -f 1; }
{ cat deb/DEBIAN/control; echo Filename: pool/demo-pkg_1.0_all.deb; echo "Size: $(stat -c %s pool/demo-pkg_1.0_all.deb)"
  echo "SHA256: $(sum pool/demo-pkg_1.0_all.deb)"; echo; } >"$at/Packages"
gzip -k "$at/Packages"
{ printf 'Suite: stable\nCodename: stable\nArchitectures: %s\nComponents: main\nSHA256:\n' "$arch"
  for file in Packages Packages.gz; do
    echo " $(sum "$at/$file") $(stat -c %s "$at/$file") main/binary-$arch/$file"; done; } >dists/stable/Release
"#;

/// Serves that folder.
const ARCHIVE: &str = r#"
import functools, sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
class Silent(SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
server = ThreadingHTTPServer((sys.argv[2], 0), functools.partial(Silent, directory=sys.argv[1]))
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// An apt that knows and changes nothing of the machine.
const INSTALL: &str = r#"
set -e
mkdir -p state/lists/partial cache/archives/partial etc/sources.list.d etc/preferences.d etc/apt.conf.d etc/trusted.gpg.d
touch state/status
echo "deb [trusted=yes] URL stable main" >etc/sources.list
cat >apt.conf <<CONF
Dir::Etc "$PWD/etc";
Dir::State "$PWD/state";
Dir::State::status "$PWD/state/status";
Dir::Cache "$PWD/cache";
APT::Sandbox::User "root";
CONF
export APT_CONFIG=$PWD/apt.conf
apt-get -qq update
apt-get -qq download demo-pkg
dpkg-deb -x demo-pkg_1.0_all.deb there
cat there/usr/share/demo-pkg/text
"#;

#[test]
fn apt_takes_a_package_through_the_plain_proxy() {
    let test = "apt_takes_a_package_through_the_plain_proxy";
    if let Some(program) = ["apt-get", "dpkg-deb", "gzip", "python3"].iter().find(|one| !programs::on_path(one)) {
        return skipped(test, &format!("{program} is missing"));
    }
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("sh").args(["-c", REPOSITORY]).current_dir(folder.path()).status().unwrap();
    assert!(made.success());
    let (_archive, port) = serves(Path::new("python3"), ARCHIVE, &[folder.path().to_str().unwrap(), ADDRESS]);
    let host = tunnels("plain", &format!("{ADDRESS}:{port}"));
    let ran = host.runs_script(&INSTALL.replace("URL", &format!("http://{ADDRESS}:{port}/")));
    went_well(&ran);
    assert!(ran.stdout.ends_with("from the package\n"), "{ran:?}");
    let package = format!("GET /{ADDRESS}:{port}/pool/demo-pkg_1.0_all.deb");
    assert!(passed(&host, "http").contains(&package), "{:?}", host.record());
    host.leaves_nothing_behind();
}
