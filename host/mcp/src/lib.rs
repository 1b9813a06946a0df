//! MCP servers: started, watched, listed, called and ended.
//!
//! [`Servers`] is the handle of all of them; it is cheap to clone. It is the
//! [`footbridge_calls::provider::ToolProvider`] that `footbridge run` has. One supervisor task owns each server. A call
//! comes in as an [`Outgoing`], which only an admission holds; there is no other way to send one, and none is ever sent
//! twice.
//!
//! Life of a server: starting, ready, unavailable, and starting again at its next use; see [`ServerState`]. A server
//! that fails in any way is unavailable by name while the others answer. What servers write is raw JSON here and
//! nowhere parsed into values beyond their listings. This stage refuses to know who calls and why it was allowed.
//!
//! Where to look: `supervisor` (the states), `connection` (open and gone), `lines` (stdio),
//! `http`, `http_sse`, `session_check`, `refusals`, `body`, `sse` (HTTP), `interceptor` and `pending_request` (raw
//! answers past the MCP library), `message_buffer` and `id_search` (what is kept of a message), `live` and `ask` (one
//! request), `call` (a guest's), `tasks` and `task_support` (one that its server runs as a task), `wrapped` and `program_call` (programs as tools), `elicitation` and `input_required` (their questions),
//! `listing`, `header_params`, `relisting`, `hearing` and `subscription` (whether changes are told), `restarts`, `ignored`, `stderr`, `configured` (which servers there are),
//! `server_log` (what is kept of them), `provided` (as a provider).

mod ask;
mod body;
mod call;
mod client;
mod configured;
mod connection;
mod elicitation;
mod header_params;
mod hearing;
mod http;
mod http_sse;
mod id_search;
mod ignored;
mod input_required;
mod interceptor;
mod line_writer;
mod lines;
mod listing;
mod live;
mod message;
mod message_buffer;
mod own_thread;
mod pending_request;
mod program_call;
mod provided;
mod refusals;
mod relisting;
mod restarts;
mod server_log;
mod session_check;
mod spec;
mod sse;
mod start_error;
mod status;
mod stderr;
mod subscription;
mod supervisor;
mod task_support;
mod tasks;
mod unanswered;
mod watched;
pub mod wrapped;

#[cfg(test)]
mod tests;

use footbridge_processes::launch::Launcher;
use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use configured::ServersChanged;
pub use http::OWN_HEADERS;
pub use server_log::{LogSource, ServerLog};
pub use spec::*;
pub use status::{ServerReport, ServerState};

pub use footbridge_calls::provider::{Outcome, RawResult};

use footbridge_calls::{
    events::Events,
    provider::{NoAnswer, NotSent, Outgoing, Unavailable},
    request::OutgoingRequest,
};
use footbridge_core::names::ServerName;

use configured::ConfiguredServers;
use footbridge_core::{budget::Budget, catalogue::Offered, limits::Limits, redact::Redactor};
use program_call::{OutputChecks, ProgramCall};
use provided::not_configured;
use status::{Published, Shared};

/// Uses of a server that is unavailable that may wait for its supervisor; more of them would say the same.
const WAKES: usize = 16;
/// Lines of standard error in a report.
const REPORT_LINES: usize = 20;

/// What all servers share.
#[derive(Debug, Clone)]
pub struct ServersContext {
    /// Limits on servers and calls.
    pub limits: Limits,
    /// Takes the values of configured secrets out of what servers say.
    pub redactor: Redactor,
    /// Where the bytes of large answers are taken from.
    pub budget: Budget,
    /// How programs are started.
    pub launcher: Launcher,
    /// Whether servers are told that they may ask a person while they run a call.
    pub elicitation: bool,
    /// Where what they write to their standard error is kept, if it is.
    pub log: Option<Arc<dyn ServerLog>>,
}

/// All MCP servers of one harness. Clones are handles of the same servers.
#[derive(Debug, Clone)]
pub struct Servers {
    inner: Arc<Inner>,
}

/// What comes of asking for a fresh start of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestartAsked {
    /// It is started afresh.
    Restarted,
    /// Nothing of it runs by itself, so there is nothing to start; why.
    NothingToStart(String),
    /// There is no such server.
    Unknown,
}

#[derive(Debug)]
struct Inner {
    configured: ConfiguredServers,
    context: Arc<ServersContext>,
    /// Of those whose tools are programs.
    outputs: OutputChecks,
    stop: CancellationToken,
    tracker: TaskTracker,
}

#[derive(Debug)]
struct Handle {
    spec: ServerSpec,
    shared: Arc<Shared>,
    /// Tells its supervisor that it is used, and was unavailable at this turn.
    wakes: mpsc::Sender<u64>,
    /// Ends it.
    stop: CancellationToken,
    /// Cancelled when it has ended.
    ended: CancellationToken,
}

impl Servers {
    /// Starts all servers in the background and returns at once. Of several with one name the last one counts.
    #[must_use]
    pub fn start(specs: Vec<ServerSpec>, context: ServersContext) -> Self {
        note_gap(&context.launcher, &specs);
        let context = Arc::new(context);
        let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
        let configured = ConfiguredServers::new(Arc::clone(&context), stop.clone(), tracker.clone());
        configured.replace(specs);
        Self { inner: Arc::new(Inner { configured, context, outputs: OutputChecks::default(), stop, tracker }) }
    }

    /// Puts these servers in the place of those that are: unchanged ones go on, changed ones are ended and started
    /// afresh, the others end. Returns at once.
    pub fn replace(&self, specs: Vec<ServerSpec>) -> ServersChanged {
        self.inner.configured.replace(specs)
    }

    /// The names of all servers, sorted.
    #[must_use]
    pub fn names(&self) -> Arc<[ServerName]> {
        Arc::clone(&self.inner.configured.current().names)
    }

    /// How a server is now.
    #[must_use]
    pub fn state(&self, name: &str) -> Option<ServerState> {
        Some(self.handle(name)?.shared.published.borrow().state.clone())
    }

    /// What a server offers. Waits up to `wait` while it is starting; a stopped one is started, and one that cannot say that
    /// its listing changed lists again where that is old.
    pub async fn ready(&self, name: &str, wait: Duration) -> Option<Result<Arc<Offered>, Unavailable>> {
        let handle = self.handle(name)?;
        let deadline = Instant::now() + wait;
        let live = handle.shared.published.borrow().live.clone();
        if let Some(live) = live {
            handle.shared.asks.renewed(live.interceptor.hearing(), wait).await;
        }
        Some(handle.ready(deadline).await)
    }

    /// Has a server that is ready asked again what it offers, unless it was a moment ago, and waits up to `wait`.
    async fn listed_now(&self, name: &str, wait: Duration) {
        let Some(handle) = self.handle(name) else { return };
        if matches!(handle.shared.published.borrow().state, ServerState::Ready(_)) {
            handle.shared.asks.listed_now(wait).await;
        }
    }

    /// What those servers offer that are ready. None is started for it.
    #[must_use]
    pub fn offered(&self) -> Vec<(ServerName, Arc<Offered>)> {
        let current = self.inner.configured.current();
        let offered =
            current.servers.iter().map(|(name, handle)| (name, handle.shared.published.borrow().state.clone()));
        let ready = offered.filter_map(|(name, state)| match state {
            ServerState::Ready(catalogue) => Some((name.clone(), catalogue)),
            ServerState::Starting | ServerState::Unavailable(_) => None,
        });
        ready.collect()
    }

    /// Hears of each change of a server's state, also of servers that are yet to come.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.inner.configured.changes()
    }

    /// Ends a server's connection, if it has one, cuts its start short, if it is starting, and starts it afresh. Returns
    /// at once.
    #[must_use]
    pub fn restart(&self, name: &str) -> RestartAsked {
        let Some(handle) = self.handle(name) else { return RestartAsked::Unknown };
        if let Some(why) = handle.spec.transport.never_starts() {
            return RestartAsked::NothingToStart(why);
        }
        handle.shared.anew.notify_one();
        RestartAsked::Restarted
    }

    /// All that the operator may see, in the order of names.
    #[must_use]
    pub fn report(&self) -> Vec<ServerReport> {
        let current = self.inner.configured.current();
        current.servers.values().map(|handle| handle.report(&self.inner.context)).collect()
    }

    /// Ends all servers, side by side, and waits for it. What is not done within the deadline is left to the drop of
    /// its parts, which kills programs.
    pub async fn shutdown(&self) {
        self.inner.stop.cancel();
        self.inner.tracker.close();
        let deadline = self.inner.context.limits.servers.close_time * 2 + Duration::from_secs(1);
        if tokio::time::timeout(deadline, self.inner.tracker.wait()).await.is_err() {
            tracing::warn!(left = self.inner.tracker.len(), "MCP servers did not end in time");
        }
    }

    /// Sends what was admitted.
    async fn send(&self, outgoing: Outgoing, cancel: &CancellationToken, events: Events) -> Outcome {
        let Some(handle) = self.handle(outgoing.server().as_str()) else {
            return Outcome::NotSent(NotSent::Unavailable(not_configured(outgoing.server()).to_string()));
        };
        let limits = &outgoing.limits().calls;
        let _place = match place(&handle.shared.places, limits.busy_after, cancel).await {
            Ok(place) => place,
            Err(why) => return Outcome::NotSent(why),
        };
        let Published { state, live, turn } = handle.shared.published.borrow().clone();
        // Once more: this is what the connection offers that the call goes to, and it waited for its place.
        if let ServerState::Ready(offered) = &state
            && !outgoing.request().is_current(|tool| offered.entries().tool(tool))
        {
            return Outcome::NotSent(NotSent::Changed);
        }
        if let (TransportSpec::Cli(cli), ServerState::Ready(_)) = (&handle.spec.transport, &state) {
            let Inner { context, outputs, .. } = &*self.inner;
            let run = ProgramCall { cli, shared: &handle.shared, context, outputs, stop: &handle.stop };
            return self.inner.tracker.track_future(Box::pin(run.carry_out(outgoing, cancel))).await;
        }
        let of_harness = &self.inner.context.limits;
        match live {
            Some(live) => {
                // A session that has more than the others is bounded by that alone.
                let is_beyond = limits.result_bytes > of_harness.calls.result_bytes;
                let _awaited = is_beyond.then(|| live.interceptor.beyond().awaits(limits.result_bytes));
                match call::carry_out(&live, outgoing, limits, cancel, events).await {
                    Outcome::TooLarge { limit, .. } if !is_beyond && of_harness.servers.line_bytes < limit => {
                        Outcome::TooLarge { limit: of_harness.servers.line_bytes, setting: "servers.line_bytes" }
                    }
                    outcome => outcome,
                }
            }
            None => Outcome::NotSent(NotSent::Unavailable(handle.wake_later(&state, turn))),
        }
    }

    fn handle(&self, name: &str) -> Option<Arc<Handle>> {
        let name: ServerName = name.parse().ok()?;
        self.inner.configured.current().servers.get(&name).cloned()
    }
}

/// Says what of `confine` of a program the kernel cannot do, if it is asked for.
fn note_gap(launcher: &Launcher, specs: &[ServerSpec]) {
    let confined = |spec: &ServerSpec| match &spec.transport {
        TransportSpec::Stdio(program) => program.confine,
        TransportSpec::Cli(cli) => cli.tools.iter().any(|tool| tool.program.confine),
        TransportSpec::Http(_) | TransportSpec::Sse(_) | TransportSpec::Lacking { .. } => false,
    };
    if let Some(gap) = launcher.gap().filter(|_| specs.iter().any(confined)) {
        tracing::info!("{gap}");
    }
}

/// A place among the calls in flight on one server.
async fn place(
    places: &Arc<Semaphore>,
    patience: Duration,
    cancel: &CancellationToken,
) -> Result<OwnedSemaphorePermit, NotSent> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(NotSent::Cancelled),
        got = tokio::time::timeout(patience, Arc::clone(places).acquire_owned()) => match got {
            Ok(Ok(place)) => Ok(place),
            _ => Err(NotSent::Busy),
        },
    }
}

impl Handle {
    async fn ready(&self, deadline: Instant) -> Result<Arc<Offered>, Unavailable> {
        let mut published = self.shared.published.subscribe();
        let first = published.borrow_and_update().clone();
        if let ServerState::Unavailable(_) = first.state {
            self.wake(first.turn);
            // Its supervisor answers with a new state, whatever it decides.
            let _changed = tokio::time::timeout_at(deadline, published.changed()).await;
        }
        let settled = published.wait_for(|now| !matches!(now.state, ServerState::Starting));
        match tokio::time::timeout_at(deadline, settled).await.map(|now| now.map(|now| now.state.clone())) {
            Ok(Ok(ServerState::Ready(catalogue))) => Ok(catalogue),
            Ok(Ok(ServerState::Unavailable(why))) => Err(Unavailable::because(why)),
            _ => Err(self.still_starting()),
        }
    }

    /// Says why nothing is sent now, and sees to it that a stopped server starts. The call itself does not wait: what
    /// was admitted was admitted against the definitions of the connection that is gone.
    fn wake_later(&self, state: &ServerState, turn: u64) -> String {
        match state {
            ServerState::Unavailable(why) => {
                self.wake(turn);
                why.to_string()
            }
            _ => self.still_starting().to_string(),
        }
    }

    fn wake(&self, turn: u64) {
        // A full queue holds the same already.
        let _told_already = self.wakes.try_send(turn);
    }

    fn still_starting(&self) -> Unavailable {
        let text = format!("Server \"{}\" is not available: it is still starting; try again", self.shared.name);
        Unavailable::starting(text)
    }

    fn report(&self, context: &ServersContext) -> ServerReport {
        let shared = &self.shared;
        let facts = shared.facts().clone();
        ServerReport {
            name: shared.name.clone(),
            kind: self.spec.transport.kind(),
            state: shared.published.borrow().state.clone(),
            pid: facts.pid,
            revision: facts.revision,
            restarts: facts.restarts,
            last_error: facts.last_error,
            stderr: shared.stderr.last_lines(REPORT_LINES, &context.redactor),
            left_out: facts.left_out,
            left_out_reasons: facts.left_out_reasons,
            disabled_in_vain: facts.disabled_in_vain,
            ignored: shared.ignored.count(),
            in_flight: context.limits.calls.in_flight_per_server.saturating_sub(shared.places.available_permits()),
        }
    }
}
