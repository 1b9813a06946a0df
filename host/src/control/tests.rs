//! Both ends of a control socket together, and clients that do not keep to it.

use std::{
    io::{Read as _, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixStream as Blocking},
    path::PathBuf,
    sync::Arc,
};

use tempfile::TempDir;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio_util::sync::CancellationToken;

use super::{
    client::{Client, ClientError},
    of_serve,
    server::{Control, Handler, Peer, sent},
    wire::{
        Created, Harness, ListSessions, MAX_REQUEST, PROTOCOL, Refusal, Request, RevokeSession, RotateSession,
        ShowSession,
    },
};

struct Fake;

impl Handler for Fake {
    async fn handle(&self, request: Request, _peer: Peer) -> Result<serde_json::Value, Refusal> {
        match request {
            Request::Hello(_) => {
                sent(Harness { harness: "serve".into(), version: "9".into(), protocol: PROTOCOL, pid: 1 })
            }
            Request::RotateSession(RotateSession { name }) => {
                sent(Created { name, token: "fbt_x".into(), endpoints: vec!["unix:/x".into()], expires: None })
            }
            Request::ShowSession(ShowSession { name }) => {
                Err(Refusal::new(super::wire::Kind::NotFound, format!("there is no session {name}")))
            }
            Request::RevokeSession(_) => std::future::pending().await,
            _ => sent(Vec::<u8>::new()),
        }
    }
}

struct World {
    path: PathBuf,
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
    _folder: TempDir,
}

impl World {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = of_serve(&folder.path().join("rt"));
        let control = Control::bind(&path).unwrap();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(control.serve(Arc::new(Fake), shutdown.clone()));
        Self { path, shutdown, serving, _folder: folder }
    }

    /// What comes back for these bytes until the server hangs up.
    async fn raw(&self, bytes: Vec<u8>) -> String {
        let path = self.path.clone();
        let talk = move || {
            let mut stream = Blocking::connect(path).unwrap();
            stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
            // The server may hang up before it has read everything.
            let _cut = stream.write_all(&bytes);
            stream.shutdown(std::net::Shutdown::Write).unwrap_or_default();
            let mut all = Vec::new();
            let _reset = stream.read_to_end(&mut all);
            String::from_utf8(all).unwrap()
        };
        spawn_blocking(talk).await.unwrap()
    }
}

#[tokio::test]
async fn requests_are_answered_and_refused_by_name() {
    let world = World::start();
    let path = world.path.clone();
    let client = move || {
        let mut client = Client::connect(&path).unwrap();
        assert_eq!((client.harness.harness.as_str(), client.harness.version.as_str()), ("serve", "9"));
        assert!(client.call(&ListSessions {}).unwrap().is_empty());
        let created = client.call(&RotateSession { name: "a".into() }).unwrap();
        assert_eq!((created.name.as_str(), created.token.as_str()), ("a", "fbt_x"));
        assert!(!format!("{created:?}").contains("fbt_"));
        let error = client.call(&ShowSession { name: "b".into() }).unwrap_err();
        assert!(matches!(&error, ClientError::Refusal(refusal) if refusal.message.contains("no session b")), "{error}");
    };
    spawn_blocking(client).await.unwrap();
    world.shutdown.cancel();
    world.serving.await.unwrap();
    let error = Client::connect(&world.path).unwrap_err().to_string();
    assert!(error.contains("footbridge serve") && !world.path.exists(), "{error}");
}

#[tokio::test]
async fn what_another_version_would_ask_is_a_clear_error() {
    let world = World::start();
    let text =
        world.raw(b"{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"method\":\"approvals.frob\",\"params\":{}}\n".to_vec()).await;
    assert!(text.contains("\"id\":\"7\"") && text.contains("-32601") && text.contains("older or newer"), "{text}");
    let text =
        world.raw(b"{\"id\":1,\"method\":\"session.show\",\"params\":{\"name\":\"a\",\"more\":1}}\n".to_vec()).await;
    assert!(text.contains("-32602") && text.contains("unknown field"), "{text}");
}

#[tokio::test]
async fn rubbish_long_lines_and_half_lines_end_their_connection_alone() {
    let world = World::start();
    for bytes in [&b"rubbish\n"[..], b"{\"id\":1}\n", b"[]\n", b"{\"id\":1,\"method\":\"hello\"", b"\xff\n"] {
        assert_eq!(world.raw(bytes.to_vec()).await, "", "{bytes:?}");
    }
    assert_eq!(world.raw(vec![b' '; MAX_REQUEST + 1]).await, "");
    let path = world.path.clone();
    spawn_blocking(move || drop(Client::connect(&path).unwrap())).await.unwrap();
}

#[tokio::test]
async fn beyond_a_number_of_clients_more_wait_and_then_are_cut_off() {
    let world = World::start();
    let path = world.path.clone();
    let clients = move || {
        let mut held: Vec<Client> = (0..16).map(|_| Client::connect(&path).unwrap()).collect();
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| Client::connect(&path).unwrap());
            held.pop();
            held.push(waits.join().unwrap());
        });
        // They are accepted in the order that they come in.
        let idle: Vec<Blocking> = (0..112).map(|_| Blocking::connect(&path).unwrap()).collect();
        let mut cut = Blocking::connect(&path).unwrap();
        cut.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        assert_eq!(cut.read(&mut [0]).unwrap(), 0);
        drop(idle);
        held.pop();
        // There is room again as soon as the server has seen that they left.
        let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
        let client = loop {
            match Client::connect(&path) {
                Ok(client) => break client,
                Err(error) => assert!(std::time::Instant::now() < until, "{error}"),
            }
        };
        held.push(client);
        held
    };
    let mut held = spawn_blocking(clients).await.unwrap();
    let waiting = spawn_blocking(move || held[0].call(&RevokeSession { name: "never".into() }).map(drop));
    world.shutdown.cancel();
    world.serving.await.unwrap();
    assert!(waiting.await.unwrap().is_err());
}

#[tokio::test]
async fn its_file_and_folders_are_for_this_user_alone_and_there_is_one() {
    let world = World::start();
    let mode = |path: &std::path::Path| path.symlink_metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&world.path), 0o600);
    for folder in world.path.ancestors().skip(1).take(2) {
        assert_eq!(mode(folder), 0o700);
    }
    let error = Control::bind(&world.path).unwrap_err().to_string();
    assert!(error.contains("in use"), "{error}");
}
