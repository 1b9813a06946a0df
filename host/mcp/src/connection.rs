//! One connection to one server, from the handshake to the end of everything that belonged to it.
//!
//! States: opening (bounded by the start time), open, gone. It is gone when the program ended, even if something it
//! started still holds its output; when its output ended, even if it runs; or when an HTTP session is lost, see
//! `session_check`. Requests in flight learn it at that moment. Failure paths of opening are [`StartError`].

use std::{sync::Arc, time::Duration};

use rmcp::{
    RoleClient,
    model::ProtocolVersion,
    service::{ClientCacheConfig, ClientInitializeError, ClientServiceExt, RunningService},
    transport::{
        StreamableHttpClientTransport, common::client_side_sse::ExponentialBackoff,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    ProtocolChoice, ServersContext, TransportSpec,
    client::{ServerMessageHandler, found, lifecycle},
    http::{HttpClient, Means, STREAM_PAUSE},
    http_sse::HttpSse,
    interceptor::Interceptor,
    line_writer::LineWriter,
    lines::Lines,
    live::Live,
    message_buffer::Room,
    own_thread::OwnThread,
    session_check::SessionChecks,
    start_error::{MAX_REVISION, StartError},
    status::Shared,
    stderr::drain,
    watched::Watched,
};
use footbridge_outbound::HttpSpec;
use footbridge_processes::launch::{Process, ProgramSpec};

/// How long to wait for the rest once one of program and output has ended.
const GRACE: Duration = Duration::from_millis(250);

/// How often in a row a stream that ended is asked for again.
const STREAM_TRIES: usize = 10;

/// The same while it starts, where nobody waits for an answer and the reason matters more.
pub(super) const START_GRACE: Duration = Duration::from_secs(1);

/// An open connection.
pub(super) struct Connection {
    pub(super) live: Live,
    pub(super) revision: String,
    service: RunningService<RoleClient, ServerMessageHandler>,
    process: Option<Process>,
    broken: CancellationToken,
    drained: CancellationToken,
}

/// Opens a connection. What it starts in the background belongs to `tracker`.
pub(super) async fn open(
    transport: &TransportSpec,
    choice: ProtocolChoice,
    context: &ServersContext,
    shared: &Arc<Shared>,
    tracker: &TaskTracker,
) -> Result<Connection, StartError> {
    let by_library = !matches!(transport, TransportSpec::Stdio(_));
    let (redactor, ignored) = (context.redactor.clone(), Arc::clone(&shared.ignored));
    let interceptor = Arc::new(Interceptor::new(redactor, ignored, context.elicitation, by_library));
    let opening = Opening { context, shared, interceptor, tracker };
    let connection = match transport {
        TransportSpec::Stdio(spec) => opening.stdio(spec, choice).await?,
        TransportSpec::Http(spec) => opening.http(spec, choice).await?,
        TransportSpec::Sse(spec) => opening.sse(spec).await?,
        TransportSpec::Cli(_) | TransportSpec::Lacking { .. } => return Err(StartError::NoConnection),
    };
    if ProtocolVersion::KNOWN_VERSIONS.iter().any(|known| known.as_str() == connection.revision) {
        return Ok(connection);
    }
    let revision = connection.revision.chars().take(MAX_REVISION).collect();
    let limits = &context.limits.servers;
    connection.close(limits.leave_time, limits.close_time).await;
    Err(StartError::Revision(revision))
}

/// What a connection is opened with.
struct Opening<'a> {
    context: &'a ServersContext,
    shared: &'a Arc<Shared>,
    interceptor: Arc<Interceptor>,
    /// What goes on in the background.
    tracker: &'a TaskTracker,
}

impl Opening<'_> {
    async fn stdio(self, spec: &ProgramSpec, choice: ProtocolChoice) -> Result<Connection, StartError> {
        let Self { context, shared, interceptor, tracker } = &self;
        // What an earlier program said is no cause of what becomes of this one.
        shared.stderr.clear();
        let launched = context.launcher.launch(spec).await?;
        let mut process = launched.process;
        shared.facts().pid = process.pid();
        let (draining, redactor) = (Arc::clone(shared), context.redactor.clone());
        let drained = CancellationToken::new();
        let done = drained.clone().drop_guard();
        tracker.spawn(async move {
            drain(launched.stderr, &draining.stderr, &draining.name, draining.log.as_ref(), &redactor).await;
            drop(done);
        });
        let (interceptor, write_time) = (Arc::clone(interceptor), context.limits.calls.idle_time);
        let handler = ServerMessageHandler::new(&interceptor);
        let writer = LineWriter::new(launched.stdin, Arc::clone(&interceptor), write_time, (*tracker).clone());
        let lines = Lines::new(launched.stdout, writer.clone(), interceptor, self.room());
        let serve = handler.serve_with_lifecycle(lines, lifecycle(choice));
        tokio::pin!(serve);
        let served = tokio::select! {
            served = &mut serve => served,
            how = process.wait() => {
                process.kill(GRACE).await;
                last_words(&drained).await;
                return Err(StartError::Ended(how));
            }
        };
        let service = match served {
            Ok(service) => service,
            // Where its output ended, so did the program, most likely; that says more. One that is not spoken to any more
            // may end by that, and is asked in the older way next, unless this was it: then what it said counts.
            Err(error) => {
                writer.close().await;
                let ended = tokio::time::timeout(START_GRACE, process.wait()).await;
                if ended.is_ok() {
                    last_words(&drained).await;
                }
                return Err(match ended {
                    Ok(how) if choice == ProtocolChoice::Auto || is_of_transport(&error) => StartError::Ended(how),
                    _ => StartError::of_handshake(error, choice),
                });
            }
        };
        let broken = writer.broken().clone();
        Ok(self.opened(service, Some((process, writer)), broken, drained).await)
    }

    async fn http(self, spec: &HttpSpec, choice: ProtocolChoice) -> Result<Connection, StartError> {
        let limits = &self.context.limits;
        let broken = CancellationToken::new();
        // Whatever becomes of the handshake: nothing is checked for a connection that nobody has.
        let opening = broken.clone().drop_guard();
        let means = self.means(spec)?;
        let checks = SessionChecks::new(broken.clone(), self.tracker.clone(), &limits.servers);
        let mut config = StreamableHttpClientTransportConfig::with_uri(spec.url.as_str());
        config.reinit_on_expired_session = false;
        config.allow_stateless = true;
        // One place more than there are calls, for listings and subscriptions.
        config.max_concurrent_requests = limits.calls.in_flight_per_server + 4;
        config.retry_config = Arc::new(reconnects());
        let transport = StreamableHttpClientTransport::with_client(HttpClient::new(means.clone(), checks), config);
        let watched = Watched::new(transport, broken.clone());
        let handler = ServerMessageHandler::new(&self.interceptor);
        let service = match handler.serve_with_lifecycle(watched, lifecycle(choice)).await {
            Ok(service) => service,
            Err(error) => return Err(why_refused(&means, error, choice).await),
        };
        let connection = self.opened(service, None, broken.clone(), broken).await;
        opening.disarm();
        Ok(connection)
    }

    async fn sse(self, spec: &HttpSpec) -> Result<Connection, StartError> {
        let broken = CancellationToken::new();
        let means = self.means(spec)?;
        let transport = HttpSse::open(spec, means.clone(), broken.clone()).await.map_err(|error| {
            means
                .refusals
                .login()
                .map_or(StartError::NoStream(error), |(status, login)| StartError::Login(status, login))
        })?;
        self.interceptor.hearing().always();
        // The newer kind of revisions never had this transport: nothing else is to be set for it.
        let choice = ProtocolChoice::Initialize;
        let served =
            ServerMessageHandler::new(&self.interceptor).serve_with_lifecycle(transport, lifecycle(choice)).await;
        let service = match served {
            Ok(service) => service,
            Err(error) => return Err(why_refused(&means, error, ProtocolChoice::Auto).await),
        };
        Ok(self.opened(service, None, broken.clone(), broken).await)
    }

    fn means(&self, spec: &HttpSpec) -> Result<Means, StartError> {
        let thread = OwnThread::start().map_err(StartError::Thread)?;
        let connect_time = self.context.limits.servers.connect_time;
        Ok(Means::new(spec, thread, Arc::clone(&self.interceptor), self.room(), connect_time)?)
    }

    fn room(&self) -> Room {
        let Self { context, interceptor, .. } = self;
        Room {
            limit: context.limits.servers.line_bytes,
            share: context.budget.share(),
            patience: context.limits.calls.busy_after,
            beyond: interceptor.beyond().clone(),
        }
    }

    async fn opened(
        self,
        service: RunningService<RoleClient, ServerMessageHandler>,
        program: Option<(Process, LineWriter)>,
        broken: CancellationToken,
        drained: CancellationToken,
    ) -> Connection {
        let Self { shared, interceptor, .. } = self;
        let mut no_cache = ClientCacheConfig::default();
        no_cache.enabled = false;
        let peer = service.peer().clone();
        peer.set_response_cache_config(no_cache).await;
        let revision = peer.peer_info().map_or_else(String::new, |info| info.protocol_version.to_string());
        if program.is_some() && found(&revision) == ProtocolChoice::Initialize {
            interceptor.hearing().always();
        }
        let (name, origin) = (shared.name.clone(), Arc::clone(&shared.origin));
        let (process, lines) = program.unzip();
        let (disabled_tools, gone) = (Arc::clone(&shared.disabled_tools), CancellationToken::new());
        let live = Live { name, origin, peer, interceptor, lines, disabled_tools, gone };
        Connection { live, revision, service, process, broken, drained }
    }
}

/// Why a server over HTTP did not take the handshake, as far as that can be found out.
async fn why_refused(means: &Means, error: ClientInitializeError, choice: ProtocolChoice) -> StartError {
    match means.refusals.login() {
        Some((status, login)) => StartError::Login(status, login),
        None if means.refusals.may_be_older() && HttpSse::is_spoken(means).await => StartError::OlderTransport,
        None => StartError::of_http_handshake(error, choice, means.refusals.status()),
    }
}

/// How often and how fast streams are asked for again.
fn reconnects() -> ExponentialBackoff {
    let mut backoff = ExponentialBackoff::default();
    backoff.max_times = Some(STREAM_TRIES);
    backoff.base_duration = STREAM_PAUSE;
    backoff.max_delay = Some(Duration::from_secs(30));
    backoff
}

/// Whether there was nobody to speak to, in place of what was said.
fn is_of_transport(error: &ClientInitializeError) -> bool {
    matches!(error, ClientInitializeError::ConnectionClosed(_) | ClientInitializeError::TransportError { .. })
}

/// Waits a moment for what a program that ended wrote to standard error last.
async fn last_words(drained: &CancellationToken) {
    let _read = tokio::time::timeout(GRACE, drained.cancelled()).await;
}

impl Connection {
    /// Waits until it is gone, tells whoever waits for an answer, and says why. Safe to cancel and call again.
    pub(super) async fn ended(&mut self) -> String {
        let why = match &mut self.process {
            None => {
                self.broken.cancelled().await;
                "its connection or its session ended".to_owned()
            }
            Some(process) => tokio::select! {
                how = process.wait() => {
                    // Its last words may still be in the pipe.
                    let _read = tokio::time::timeout(GRACE, self.broken.cancelled()).await;
                    format!("it ended ({how})")
                }
                () = self.broken.cancelled() => match tokio::time::timeout(GRACE, process.wait()).await {
                    Ok(how) => format!("it ended ({how})"),
                    Err(_) => "it closed its output, or takes no input, and still ran".to_owned(),
                },
            },
        };
        self.live.gone.cancel();
        last_words(&self.drained).await;
        why
    }

    /// Ends it: input closed, then asked to end once `leave` is over, then by force. Takes at most `time`, and a moment.
    pub(super) async fn close(mut self, leave: Duration, time: Duration) {
        self.live.gone.cancel();
        let Some(process) = &mut self.process else {
            let _closed = self.service.close_with_timeout(time).await;
            self.broken.cancel();
            return;
        };
        let service = async { drop(self.service.close_with_timeout(time).await) };
        let program = async {
            let leave = leave.min(time / 2);
            if tokio::time::timeout(leave, process.wait()).await.is_err() {
                process.terminate();
                let _ended = tokio::time::timeout(time - leave, process.wait()).await;
            }
            process.kill(time).await;
        };
        tokio::join!(service, program);
        tracing::debug!(server = %self.live.name, "an MCP server was closed");
    }
}
