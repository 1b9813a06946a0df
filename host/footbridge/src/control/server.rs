//! The harness's end of its control socket.
//!
//! A connection is checked the moment it is accepted, then read line by line: one request, one answer, and before that
//! notices of what it waits for, where whoever asks hears them. At most
//! `MAX_REQUESTS` are carried out at a time, others wait, but for who asks only who is here; a connection that asks for
//! nothing keeps nobody out. Of more than `MAX_CONNECTIONS` the longest idle one gives way to the new one; where none is
//! idle, the new one is cut off. Nothing of a request is logged.

use std::{
    io::{self, Write as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

use footbridge_proto::{
    endpoint::{Endpoint, EndpointError, SocketPath},
    rpc::{self, ErrorObject, IncomingRequest, OutgoingAnswer},
};
use serde::{Serialize, de::Error as _};
use serde_json::{json, value::RawValue};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    sync::{Semaphore, SemaphorePermit, mpsc},
    task::JoinSet,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::{
    idle::{IdleConnection, IdleConnections},
    peer::{OwnProcess, RefusedPeer},
    wire::{ControlRequest, MAX_REQUEST, Refusal, RefusalKind},
};
use footbridge_audit::private_folder::{FolderError, make_private};
use footbridge_edge::listener::{AcceptPause, AcceptedStream, BindError, Listen, Listener, Listeners};

/// Requests that are carried out at a time: each may have a large answer.
const MAX_REQUESTS: usize = 16;

/// Connections at a time, idle ones too. Each may hold a request.
const MAX_CONNECTIONS: usize = 128;

/// How long a connection may be silent, and how long an answer may take to be read.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long what is being carried out may take when the harness ends.
const LAST: Duration = Duration::from_secs(8);

pub(crate) use super::peer::ControlPeer;

/// Carries requests out.
pub(crate) trait Handler: Send + Sync + 'static {
    /// Carries one out, for whoever asked. It may be dropped when the harness ends.
    fn handle(
        &self,
        request: ControlRequest,
        peer: ControlPeer,
        notices: Notices,
    ) -> impl Future<Output = Result<serde_json::Value, Refusal>> + Send;
}

/// Notices that wait to be written: more than one request has.
const NOTICES: usize = 4;

/// Where is said, before a request's answer, what it waits for. One that does not fit is lost.
#[derive(Debug, Clone)]
pub(crate) struct Notices(mpsc::Sender<String>);

impl Notices {
    /// Says this.
    pub(crate) fn say(&self, method: &str, params: &impl Serialize) {
        if let Ok(params) = serde_json::to_string(params) {
            let _lost = self.0.try_send(rpc::notification(method, Some(&params)) + "\n");
        }
    }
}

/// A control socket that is bound. Dropping it removes its file.
#[derive(Debug)]
pub(crate) struct Control {
    listener: Listener,
    home: OwnProcess,
}

/// Why there can be no control socket.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// Its folder cannot be used.
    #[error("cannot open the control socket: {0}")]
    Folder(#[from] FolderError),
    /// Its path does not fit.
    #[error("cannot open the control socket: {0}; FOOTBRIDGE_RUNTIME names another runtime folder")]
    Path(#[from] EndpointError),
    /// Nothing can listen there.
    #[error("cannot open the control socket: {0}")]
    Bind(#[from] BindError),
    /// This process cannot tell its own namespaces.
    #[error("cannot tell this process's own namespaces from /proc: {0}")]
    Home(#[from] io::Error),
}

impl Control {
    /// Binds the socket, in a folder that only this user can enter.
    ///
    /// # Errors
    /// [`ControlError`].
    pub(crate) fn bind(path: &Path) -> Result<Self, ControlError> {
        let home = OwnProcess::find()?;
        for folder in [path.parent().and_then(Path::parent), path.parent()].into_iter().flatten() {
            make_private(folder)?;
        }
        let endpoint = Endpoint::Unix(SocketPath::new(path)?);
        Ok(Self { listener: Listeners::default().bind(&Listen::at(endpoint))?, home })
    }

    /// Answers until `shutdown`.
    pub(crate) async fn serve(self, handler: Arc<impl Handler>, shutdown: CancellationToken) {
        let room = Room { places: Arc::new(Semaphore::new(MAX_REQUESTS)), idle: IdleConnections::default(), shutdown };
        let mut clients = JoinSet::new();
        let mut refused = 0_u64;
        let accept_pause = AcceptPause::new("commands");
        loop {
            let accepted = tokio::select! {
                () = room.shutdown.cancelled() => break,
                accepted = self.listener.accept(|_, _| {}) => accepted,
                Some(_ended) = clients.join_next() => continue,
            };
            let stream = match accepted {
                Ok((stream, _)) => {
                    accept_pause.is_over();
                    let AcceptedStream::Unix(stream) = stream else { continue };
                    stream
                }
                Err(error) => {
                    accept_pause.wait_after(error).await;
                    continue;
                }
            };
            let peer = match self.home.check(&stream) {
                Ok(peer) => peer,
                Err(stranger) => {
                    refused += 1;
                    // The first, the second, the fourth: a flood of them is no flood of lines.
                    if refused.is_power_of_two() {
                        tracing::warn!(%stranger, count = refused, "refused a connection to the control socket");
                    }
                    if matches!(stranger, RefusedPeer::Ours { .. }) {
                        let _peer_may_be_gone = turn_away(stream);
                    }
                    continue;
                }
            };
            if !make_room(&mut clients, &room.idle).await {
                tracing::debug!("too many commands at once: one was cut off");
                continue;
            }
            let (room, handler, silence) = (room.clone(), Arc::clone(&handler), room.idle.begin());
            clients.spawn(async move {
                if let Err(error) = converse(stream, peer, &*handler, &room, silence).await {
                    tracing::debug!(%error, "a command's connection ended early");
                }
            });
        }
        drop(self.listener);
        // What is being carried out gets to its end: half a session would be left otherwise.
        let all = async { while clients.join_next().await.is_some() {} };
        if timeout(LAST, all).await.is_err() {
            tracing::warn!("a command was still being carried out when the harness ended");
        }
        clients.shutdown().await;
    }
}

/// What all connections share.
#[derive(Clone)]
struct Room {
    /// For requests that are carried out.
    places: Arc<Semaphore>,
    idle: IdleConnections,
    shutdown: CancellationToken,
}

impl Room {
    /// A place for what is asked for, once there is one, if it takes one.
    async fn place_for(&self, asked: &Result<ControlRequest, Refusal>) -> Option<SemaphorePermit<'_>> {
        match asked {
            Ok(request) if request.takes_a_place() => self.places.acquire().await.ok(),
            _ => None,
        }
    }
}

/// How long a connection that has to give way may take.
const GIVE_WAY: Duration = Duration::from_millis(100);

/// Waits until there is room for one more connection; false where none of those that there are gives way.
async fn make_room(clients: &mut JoinSet<()>, idle: &IdleConnections) -> bool {
    while clients.try_join_next().is_some() {}
    while clients.len() >= MAX_CONNECTIONS {
        if !idle.close_oldest() {
            return false;
        }
        // One whose request came at this very moment goes on: then the next one has to.
        let _nobody_left = timeout(GIVE_WAY, clients.join_next()).await;
    }
    true
}

/// Answers line by line until the client leaves, has to give way, or the harness ends.
async fn converse(
    stream: UnixStream,
    peer: ControlPeer,
    handler: &impl Handler,
    room: &Room,
    mut silence: IdleConnection,
) -> io::Result<()> {
    let (reading, mut writing) = stream.into_split();
    let mut reading = BufReader::new(reading);
    let mut line = Vec::new();
    loop {
        line.clear();
        let limit = u64::try_from(MAX_REQUEST).unwrap_or(u64::MAX);
        let mut limited = (&mut reading).take(limit);
        let count = tokio::select! {
            read = timeout(PATIENCE, limited.read_until(b'\n', &mut line)) => read??,
            () = silence.over() => return Ok(()),
            () = room.shutdown.cancelled() => return Ok(()),
        };
        drop(silence);
        if count == 0 {
            return Ok(());
        }
        if !line.ends_with(b"\n") {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a request was cut short or too long"));
        }
        let (id, asked) = read(&line)?;
        let _place = tokio::select! {
            place = room.place_for(&asked) => place,
            () = room.shutdown.cancelled() => return Ok(()),
        };
        let ends_with_its_asker = asked.as_ref().is_ok_and(ControlRequest::ends_with_its_asker);
        let (notices, mut noticed) = mpsc::channel(NOTICES);
        let carried_out = async {
            match asked {
                Ok(request) => handler.handle(request, peer, Notices(notices)).await,
                Err(refusal) => Err(refusal),
            }
        };
        tokio::pin!(carried_out);
        let answer = loop {
            tokio::select! {
                biased;
                Some(notice) = noticed.recv() => timeout(PATIENCE, writing.write_all(notice.as_bytes())).await??,
                carried_out = &mut carried_out => break answer_line(id, carried_out)?,
                () = left(&mut reading), if ends_with_its_asker => return Ok(()),
                // Guests are served until all commands are through, so none may take as long as a call.
                () = room.shutdown.cancelled(), if ends_with_its_asker => return Ok(()),
            }
        };
        timeout(PATIENCE, writing.write_all(&answer)).await??;
        silence = room.idle.begin();
    }
}

/// Waits until whoever asks hangs up. One who asks for more already stays.
async fn left(reading: &mut (impl AsyncBufReadExt + Unpin)) {
    if let Ok([_, ..]) = reading.fill_buf().await {
        std::future::pending().await
    }
}

/// The id of a request, and what is asked for.
fn read(line: &[u8]) -> io::Result<(&RawValue, Result<ControlRequest, Refusal>)> {
    let read: IncomingRequest<'_> = serde_json::from_slice(line)?;
    let id = read.id.ok_or_else(|| serde_json::Error::missing_field("id"))?;
    let method = read.method().ok_or_else(|| serde_json::Error::missing_field("method"))?;
    let params = read.params.filter(|params| params.get() != "null");
    let none = RawValue::from_string("{}".to_owned())?;
    Ok((id, ControlRequest::read(&method, params.unwrap_or(&none))))
}

fn answer_line(id: &RawValue, answer: Result<serde_json::Value, Refusal>) -> io::Result<Vec<u8>> {
    let answer = answer.map_err(|refusal| ErrorObject {
        code: refusal.code().into(),
        message: refusal.message,
        data: Some(json!({ "kind": refusal.kind })),
    });
    let mut text = serde_json::to_vec(&OutgoingAnswer::new(id, answer))?;
    text.push(b'\n');
    Ok(text)
}

/// Tells a process that came of this harness why it is not heard, in an answer to whatever it asks. Waits for nothing:
/// a new socket has room for a line.
fn turn_away(stream: UnixStream) -> io::Result<()> {
    let why = "this footbridge takes no commands from what it started itself, such as the command of \"footbridge run\" and \
               MCP servers: use another terminal";
    let line = answer_line(RawValue::NULL, Err(Refusal::new(RefusalKind::Failed, why)))?;
    stream.into_std()?.write_all(&line)
}

/// A typed answer as it is sent.
///
/// # Errors
/// A refusal where it cannot be written as JSON, which our own types always can.
pub(crate) fn sent<T: Serialize>(answer: T) -> Result<serde_json::Value, Refusal> {
    serde_json::to_value(answer).map_err(|error| Refusal::new(RefusalKind::Failed, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_that_does_not_give_way_keeps_no_other_out() {
        let (mut clients, idle) = (JoinSet::new(), IdleConnections::default());
        for n in 0..MAX_CONNECTIONS {
            let silence = idle.begin();
            clients.spawn(async move {
                // The first one's request came at that very moment, and is long.
                if n == 0 {
                    return std::future::pending().await;
                }
                silence.over().await;
            });
        }
        assert!(timeout(Duration::from_secs(20), make_room(&mut clients, &idle)).await.unwrap());
    }
}
