//! Both ends of a control socket together, and clients that do not keep to it.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::{fs::PermissionsExt as _, net::UnixStream as Blocking},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    sync::{Semaphore, watch},
    task::{JoinHandle, spawn_blocking},
};
use tokio_util::sync::CancellationToken;

use super::{
    client::{ControlClient, ControlClientError},
    of_serve,
    server::{Control, ControlPeer, Handler, Notices, sent},
    wire::{
        ControlRequest, Created, DaemonRequest, HarnessInfo, ListSessions, MAX_REQUEST, PROTOCOL, Refusal,
        RevokeSession, Revoked, RotateSession, ShowSession,
    },
};

/// Answers at once, but for what it is held back from.
#[derive(Clone)]
struct Fake {
    /// How many it has begun to carry out.
    begun: watch::Sender<usize>,
    /// How many of those it may end.
    ends: Arc<Semaphore>,
}

impl Handler for Fake {
    async fn handle(&self, request: ControlRequest, _: ControlPeer, _: Notices) -> Result<serde_json::Value, Refusal> {
        match request {
            ControlRequest::Harness(_) => sent(HarnessInfo {
                harness: "serve".into(),
                version: "9".into(),
                protocol: PROTOCOL,
                pid: 1,
                reload_failed: None,
                record_failed: None,
            }),
            ControlRequest::Daemon(DaemonRequest::RotateSession(RotateSession { name, .. })) => sent(Created {
                name,
                was_there: false,
                token: Some("fbt_x".into()),
                token_digest: None,
                folder: None,
                endpoints: vec!["unix:/x".into()],
                expires: None,
                environment: BTreeMap::new(),
                notes: Vec::new(),
            }),
            ControlRequest::Daemon(DaemonRequest::ShowSession(ShowSession { name })) => {
                Err(Refusal::new(super::wire::RefusalKind::NotFound, format!("there is no session {name}")))
            }
            ControlRequest::Daemon(DaemonRequest::RevokeSession(RevokeSession { name })) => {
                self.begun.send_modify(|begun| *begun += 1);
                self.ends.acquire().await.unwrap().forget();
                sent(Revoked { name })
            }
            _ => sent(Vec::<u8>::new()),
        }
    }
}

struct World {
    path: PathBuf,
    fake: Fake,
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
        let fake = Fake { begun: watch::Sender::new(0), ends: Arc::new(Semaphore::new(0)) };
        let serving = tokio::spawn(control.serve(Arc::new(fake.clone()), shutdown.clone()));
        Self { path, fake, shutdown, serving, _folder: folder }
    }

    /// What comes back for these bytes until the server hangs up.
    async fn raw(&self, bytes: Vec<u8>) -> String {
        let path = self.path.clone();
        let talk = move || {
            let mut stream = Blocking::connect(path).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
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
        let mut client = ControlClient::connect(&path).unwrap();
        assert_eq!((client.harness.harness.as_str(), client.harness.version.as_str()), ("serve", "9"));
        assert!(client.call(&ListSessions {}).unwrap().is_empty());
        let created = client.call(&RotateSession { name: "a".into(), replaces: None }).unwrap();
        assert_eq!((created.name.as_str(), created.token.as_deref()), ("a", Some("fbt_x")));
        assert!(!format!("{created:?}").contains("fbt_"));
        let error = client.call(&ShowSession { name: "b".into() }).unwrap_err();
        assert!(
            matches!(&error, ControlClientError::Refusal(refusal) if refusal.message.contains("no session b")),
            "{error}"
        );
    };
    spawn_blocking(client).await.unwrap();
    world.shutdown.cancel();
    world.serving.await.unwrap();
    let error = ControlClient::connect(&world.path).unwrap_err().to_string();
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
    spawn_blocking(move || drop(ControlClient::connect(&path).unwrap())).await.unwrap();
}

/// So many connections, without a word.
fn silent(path: &Path, count: usize) -> Vec<Blocking> {
    let one = |_| {
        let stream = Blocking::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    };
    (0..count).map(one).collect()
}

/// One line goes there, and what comes back, empty where it hangs up.
fn asks(stream: &mut Blocking, line: &str) -> String {
    stream.write_all(line.as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer
}

const HELLO: &str = "{\"id\":1,\"method\":\"hello\",\"params\":{\"version\":\"9\"}}\n";
const REVOKE: &str = "{\"id\":1,\"method\":\"session.revoke\",\"params\":{\"name\":\"a\"}}\n";

#[tokio::test]
async fn idle_connections_keep_nobody_out_and_the_longest_idle_gives_way() {
    let world = World::start();
    let path = world.path.clone();
    let clients = move || {
        let mut idle = silent(&path, 128);
        // Then the first one has been silent for less time than the others.
        for number in (0..128).chain([0]) {
            assert!(asks(&mut idle[number], HELLO).contains("serve"), "{number}");
        }
        let mut client = ControlClient::connect(&path).unwrap();
        assert!(client.call(&ListSessions {}).unwrap().is_empty());
        assert_eq!(idle[1].read(&mut [0]).unwrap(), 0, "it gave way");
        for stays in [0, 2, 127] {
            assert!(asks(&mut idle[stays], HELLO).contains("serve"), "{stays}");
        }
    };
    spawn_blocking(clients).await.unwrap();
}

#[tokio::test]
async fn beyond_a_number_of_requests_more_wait_and_then_are_cut_off() {
    let world = World::start();
    let (path, mut begun) = (world.path.clone(), world.fake.begun.subscribe());
    let ask = move || {
        let mut busy = Vec::new();
        // One whose request was not read yet is still idle, and may give way.
        while busy.len() < 512 {
            let mut stream = silent(&path, 1).remove(0);
            let wait = if busy.len() < 128 { 1 } else { 200 };
            stream.set_read_timeout(Some(Duration::from_millis(wait))).unwrap();
            let _cut = stream.write_all(REVOKE.as_bytes());
            match stream.read(&mut [0]) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => busy.push(stream),
                _cut_off => return busy,
            }
        }
        panic!("none was cut off");
    };
    let mut busy = spawn_blocking(ask).await.unwrap();
    begun.wait_for(|begun| *begun == 16).await.unwrap();
    assert_eq!(*begun.borrow(), 16, "the others wait");
    world.fake.ends.add_permits(128);
    let answered = move || {
        let answers = busy.iter_mut().map(|stream| {
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            // One that was cut off with its request unread is reset.
            stream.read(&mut [0]).unwrap_or(0)
        });
        answers.sum::<usize>()
    };
    assert_eq!(spawn_blocking(answered).await.unwrap(), 128);
}

#[tokio::test]
async fn who_is_here_is_said_however_many_requests_are_carried_out() {
    let world = World::start();
    let (path, mut begun) = (world.path.clone(), world.fake.begun.subscribe());
    let busy = move || {
        let mut busy = silent(&path, 17);
        busy.iter_mut().for_each(|stream| stream.write_all(REVOKE.as_bytes()).unwrap());
        busy
    };
    let _busy = spawn_blocking(busy).await.unwrap();
    begun.wait_for(|begun| *begun == 16).await.unwrap();
    let path = world.path.clone();
    let client = spawn_blocking(move || ControlClient::connect(&path)).await.unwrap();
    assert_eq!(client.unwrap().harness.version, "9");
    assert_eq!(*begun.borrow(), 16, "all of them are still carried out, and one waits");
    world.fake.ends.add_permits(17);
}

#[tokio::test]
async fn what_is_never_carried_out_ends_with_the_harness() {
    let world = World::start();
    let (path, mut begun) = (world.path.clone(), world.fake.begun.subscribe());
    let waiting =
        spawn_blocking(move || ControlClient::connect(&path).unwrap().call(&RevokeSession { name: "a".into() }));
    begun.wait_for(|begun| *begun == 1).await.unwrap();
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
