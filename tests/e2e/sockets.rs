//! Where a session listens, for programs that use the harness as a library: what is in the way is named and left alone.

use std::{
    fs,
    net::TcpListener,
    os::unix::{fs::symlink, net::UnixListener},
    path::Path,
    time::{Duration, Instant},
};

use footbridge::{config::Config, harness::Harness};
use footbridge_audit::FileJournal;
use footbridge_calls::session::SessionSpec;
use footbridge_core::gate::Policy;
use footbridge_core::random::new_token;
use footbridge_edge::listener::{BindError, Listen, Listener, Listeners};
use footbridge_processes::launch::Launcher;
use footbridge_proto::endpoint::Endpoint;
use footbridge_tests::Guest;
use tempfile::TempDir;
use tokio::time::sleep;

fn at(path: &Path) -> Endpoint {
    format!("unix:{}", path.display()).parse().unwrap()
}

fn bind(endpoint: &Endpoint) -> Result<Listener, BindError> {
    Listeners::default().bind(&Listen::at(endpoint.clone()))
}

/// What binding there says.
fn refusal(endpoint: &Endpoint) -> String {
    bind(endpoint).unwrap_err().to_string()
}

#[tokio::test]
async fn a_socket_that_is_taken_is_left_to_whoever_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let theirs = UnixListener::bind(&path).unwrap();
    let text = refusal(&at(&path));
    assert!(text.contains(path.to_str().unwrap()) && text.contains("stop it, or choose another address"), "{text}");
    let _still_theirs = std::os::unix::net::UnixStream::connect(&path).unwrap();
    drop(theirs);
    // Nobody answers there any more: what a crash left is replaced. A program that another test is just starting may hold it
    // open for a moment more.
    let deadline = Instant::now() + Duration::from_secs(60);
    let ours = loop {
        match bind(&at(&path)) {
            Ok(ours) => break ours,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        sleep(Duration::from_millis(5)).await;
    };
    let text = refusal(&at(&path));
    assert!(text.contains("is in use"), "{text}");
    drop(ours);
    assert!(!path.exists());
}

#[tokio::test]
async fn what_is_no_socket_is_named_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let [file, link, inner] = ["file", "link", "inner"].map(|name| folder.path().join(name));
    fs::write(&file, "kept").unwrap();
    symlink(&file, &link).unwrap();
    fs::create_dir(&inner).unwrap();
    for (path, what) in [(&file, "no socket"), (&link, "a symbolic link"), (&inner, "a folder")] {
        let text = refusal(&at(path));
        assert!(text.contains(path.to_str().unwrap()) && text.contains(what) && text.contains("remove it"), "{text}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[tokio::test]
async fn a_socket_s_folder_must_be_there_and_closed_to_others() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing/s");
    assert!(refusal(&at(&missing)).contains("missing/s"));
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let text = refusal(&at(&open.join("s")));
    assert!(text.contains("not writable by others") && text.contains(open.to_str().unwrap()), "{text}");
}

#[test]
fn a_path_that_is_too_long_relative_or_abstract_is_no_endpoint() {
    let long = format!("unix:/{}", "x".repeat(107));
    for (text, says) in [(long.as_str(), "107"), ("unix:s.sock", "absolute"), ("unix:@name", "abstract")] {
        let error = text.parse::<Endpoint>().unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}

#[tokio::test]
async fn a_port_that_is_taken_or_open_to_the_world_is_named() {
    let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = theirs.local_addr().unwrap().port();
    let text = refusal(&format!("tcp:127.0.0.1:{port}").parse().unwrap());
    assert!(text.contains(&format!("tcp:127.0.0.1:{port} is in use")), "{text}");
    let text = refusal(&"tcp:0.0.0.0:0".parse().unwrap());
    assert!(text.contains("can be reached from other machines") && text.contains("tcp:127.0.0.1:"), "{text}");
}

/// A harness without servers, and the folder that it writes to.
fn harness() -> (Harness, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let journal = FileJournal::create(&folder.path().join("audit")).unwrap();
    (Harness::start(Config::default(), journal, Launcher::Direct, None, None).unwrap(), folder)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sessions_of_one_harness_each_have_a_token_of_their_own() {
    let (harness, folder) = harness();
    let path = folder.path().join("s");
    let tcp = bind(&"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
    let Endpoint::Tcp(address) = tcp.endpoint().unwrap() else { panic!("not TCP") };
    let socket = bind(&at(&path)).unwrap();
    let (first, second) = (new_token().unwrap(), new_token().unwrap());
    for (name, token, listener) in [("first", &first, socket), ("second", &second, tcp)] {
        let spec = SessionSpec::new(name.parse().unwrap(), token, Policy::open());
        harness.open(spec, vec![listener]).unwrap();
    }
    let statuses = tokio::task::spawn_blocking(move || {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"listServers"}"#;
        let on_socket = Guest::at_socket(&path, first.expose());
        let on_port = Guest::at_port(address.port, second.expose());
        let status = |guest: &Guest| guest.posts(body).status;
        let swapped = (on_socket.showing(second.expose()), on_port.showing(first.expose()));
        [status(&on_socket), status(&on_port), status(&swapped.0), status(&swapped.1)]
    });
    assert_eq!(statuses.await.unwrap(), [200, 200, 401, 401]);
    harness.stop().await.unwrap();
    assert!(!folder.path().join("s").exists());
}
