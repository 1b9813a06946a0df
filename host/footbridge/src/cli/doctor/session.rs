//! The daemon, and one session of it: its listeners, each with one harmless request, which shows no token.

use std::{
    fs::Metadata,
    io::{self, Read, Write},
    net::TcpStream,
    os::unix::{
        fs::{FileTypeExt as _, PermissionsExt as _},
        net::UnixStream,
    },
    path::Path,
    time::Duration,
};

use footbridge_cli::findings::Finding;
use footbridge_proto::endpoint::Endpoint;

use crate::{
    config::folders::Folders,
    control::{
        self,
        client::ControlClient,
        wire::{ListServers, ListenerInfo, ServerInfo, SessionInfo, ShowSession},
    },
    report::counted,
};
use footbridge_core::names::SessionName;

/// How long a listener may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);
/// Asks for nothing that there is.
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// The daemon, and this session.
pub(super) fn look(folders: &Folders, name: Option<&SessionName>) -> Vec<Finding> {
    let socket = control::of_serve(&folders.runtime);
    let mut client = match ControlClient::connect(&socket) {
        Ok(client) => client,
        Err(error) if name.is_some() => {
            return vec![Finding::problem("daemon", error.to_string()).mend("footbridge serve")];
        }
        Err(_) if socket.symlink_metadata().is_err() => return vec![Finding::skipped("daemon", "none runs")],
        Err(error) => return vec![Finding::note("daemon", error.to_string())],
    };
    let mut all = vec![match &client.harness.reload_failed {
        None => Finding::ok("daemon", format!("{} runs as process {}", client.harness.version, client.harness.pid)),
        Some(failed) => Finding::problem("daemon", failed.to_string())
            .mend("footbridge config check, then footbridge config reload"),
    }];
    if let Some(why) = &client.harness.record_failed {
        let problem = Finding::problem("record of the daemon", format!("the last one could not be written: {why}"));
        all.push(
            problem.means("no call is made until one can").mend("footbridge audit verify, and a look at the disk"),
        );
    }
    let Some(name) = name else { return all };
    match client.call(&ShowSession { name: name.to_string() }) {
        Ok(session) => {
            all.extend(listeners(&session));
            match client.call(&ListServers {}) {
                Ok(servers) => all.extend(servers.iter().map(server)),
                Err(error) => all.push(Finding::problem("servers of the daemon", error.to_string())),
            }
        }
        Err(error) => all.push(Finding::problem("session", error.to_string()).mend("footbridge session list")),
    }
    all
}

/// A server of the daemon.
fn server(server: &ServerInfo) -> Finding {
    let check = format!("{} of the daemon", server.name);
    match (server.status.as_str(), &server.why) {
        ("unavailable", why) => {
            let why = server.last_error.as_ref().or(why.as_ref());
            Finding::problem(&check, why.map_or("it is not available", String::as_str))
                .means("its tools are in no session")
                .mend(format!(
                    "look at footbridge servers logs {0}, then footbridge servers restart {0}; or, once what its entry needs \
                     is there, footbridge config reload",
                    server.name
                ))
        }
        ("ready", _) => Finding::ok(&check, format!("it is ready, with {}", counted(server.tools as u64, "tool"))),
        (status, _) => Finding::note(&check, format!("it is {status}")),
    }
}

fn listeners(session: &SessionInfo) -> Vec<Finding> {
    if let Some(why) = &session.closed {
        let closed = Finding::problem("session", format!("{} is closed: {why}", session.name));
        let mend = "mend what is said there, as the policy in footbridge.toml, then footbridge config reload: it opens by itself \
                    within seconds; or, if it is not needed any more, footbridge session revoke";
        return vec![closed.mend(format!("{mend} {}", session.name))];
    }
    let head = Finding::ok("session", format!("{}, policy {}, {} calls", session.name, session.policy, session.calls));
    std::iter::once(head).chain(session.listeners.iter().map(listener)).collect()
}

fn listener(listener: &ListenerInfo) -> Finding {
    let check = format!("listener {}", listener.endpoint);
    if let Some(why) = &listener.broken {
        return Finding::problem(&check, why.clone()).mend("once that is mended it listens by itself");
    }
    match listener.endpoint.parse::<Endpoint>() {
        Ok(Endpoint::Unix(path)) => unix(&check, path.as_path(), listener),
        Ok(Endpoint::Tcp(to)) => {
            let address = to.to_string();
            let address = address.trim_start_matches("tcp:");
            let asked = TcpStream::connect(address).and_then(|stream| {
                stream.set_read_timeout(Some(PATIENCE))?;
                status(stream)
            });
            answered(&check, asked, "")
        }
        Ok(Endpoint::Vsock(_)) if !Path::new("/dev/vsock").exists() => {
            Finding::problem(&check, "/dev/vsock is not there")
                .means("virtual machines of this host cannot connect")
                .mend("modprobe vhost_vsock")
        }
        _ => Finding::skipped(&check, "it can be asked only from the other side: tool-cli doctor"),
    }
}

fn unix(check: &str, path: &Path, listener: &ListenerInfo) -> Finding {
    let meta = match path.symlink_metadata() {
        Ok(meta) => meta,
        Err(error) => {
            return Finding::problem(check, error.to_string())
                .means("somebody removed the socket: sandboxes that start now see none")
                .mend("footbridge session revoke NAME, and create it again");
        }
    };
    if !meta.file_type().is_socket() {
        return Finding::problem(check, "what is there is no socket").mend("remove it, and create the session again");
    }
    let asked = UnixStream::connect(path).and_then(|stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        status(stream)
    });
    answered(check, asked, &who(&meta, listener))
}

/// Who may connect to a socket.
fn who(meta: &Metadata, listener: &ListenerInfo) -> String {
    let users: Vec<String> = listener.allow_uids.iter().map(ToString::to_string).collect();
    let users = if users.is_empty() { String::new() } else { format!(", for user {}", users.join(", ")) };
    format!(", mode {:04o}{users}", meta.permissions().mode() & 0o7777)
}

/// The status of an answer without a token.
fn status(mut stream: impl Read + Write) -> io::Result<String> {
    stream.write_all(REQUEST)?;
    let mut head = [0; 12];
    stream.read_exact(&mut head)?;
    let head = String::from_utf8_lossy(&head).into_owned();
    let status = head.strip_prefix("HTTP/1.1 ").map(str::to_owned);
    status.ok_or_else(|| io::Error::other(format!("it answers {head:?}, which is no HTTP")))
}

fn answered(check: &str, asked: io::Result<String>, who: &str) -> Finding {
    match asked {
        Ok(status) => Finding::ok(check, format!("it answers, and wants a token (HTTP {status}{who})")),
        Err(error) => Finding::problem(check, format!("{error}{who}"))
            .means("it takes no connection of this user, or hangs")
            .mend("footbridge session show NAME says who may connect"),
    }
}
