//! The task that owns one server: it starts it, lists what it offers, notices its end and starts it again when it is
//! used next.
//!
//! States, published to the handles: starting (a pause first, if it ended before), ready, unavailable. From unavailable
//! only a use or the operator leads on; a lost HTTP session alone is opened again unasked. An operator who wants a fresh
//! start cuts any of them short, a start that hangs too. Failure paths: it does not
//! start; it ends; it starts too often and is left alone for a while. Each is logged once with its detail; a guest
//! reads the short text. Whatever happens, the connection is closed before the next one opens, and before the task
//! ends.

use std::{sync::Arc, time::Duration};

use footbridge_proto::text::Escaped;
use tokio::{sync::mpsc, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    ProtocolChoice, REPORT_LINES, ServerSpec, ServerState, ServersContext, TransportSpec,
    client::found,
    connection::{Connection, START_GRACE, open},
    listing::{self, ListError, Listed},
    relisting::{LastListing, Relisted, changed_tools, relist},
    restarts::{Advice, Restarts},
    start_error::StartError,
    status::Shared,
    stderr,
    subscription::subscribe,
};
use footbridge_core::catalogue::Offered;
use footbridge_processes::process::ProcessHandle;

/// Longest detail that is kept and logged: part of it may be a server's own text.
const DETAIL_BYTES: usize = 2_000;

/// Reasons for leaving out that are logged at once.
const LOGGED_REASONS: usize = 3;

/// The owner of one server.
pub(super) struct Supervisor {
    pub(super) spec: ServerSpec,
    pub(super) context: Arc<ServersContext>,
    pub(super) shared: Arc<Shared>,
    /// Turns at which it was unavailable, and used.
    pub(super) wakes: mpsc::Receiver<u64>,
    pub(super) stop: CancellationToken,
    pub(super) tracker: TaskTracker,
    pub(super) restarts: Restarts,
    /// What the server was found to speak.
    pub(super) choice: ProtocolChoice,
    /// What it offered last, also before it ended.
    pub(super) last: Option<Arc<Offered>>,
    /// Why it did not start last, for the guest; nothing where it ended by itself.
    pub(super) not_started: Option<&'static str>,
    /// What was logged since it was ready last: the same is logged once.
    pub(super) logged: Option<String>,
}

/// Why a connection is over.
enum Over {
    Stopped,
    Restart,
    Failed(StartError),
    Ended(String),
}

impl Supervisor {
    /// Runs until it is stopped.
    pub(super) async fn run(mut self) {
        let mut session_lost = false;
        loop {
            let (now, limits) = (Instant::now(), &self.context.limits.servers);
            let advice = if std::mem::take(&mut session_lost) {
                Advice::After(self.restarts.reopen(now, limits))
            } else {
                self.restarts.ask(now, limits)
            };
            match advice {
                Advice::Wait(left) => self.left_alone(left),
                Advice::After(pause) => {
                    self.shared.publish(ServerState::Starting, None);
                    match self.one_life(pause).await {
                        Over::Stopped => return,
                        Over::Restart => {
                            self.restarts = Restarts::new();
                            continue;
                        }
                        // Opening a session costs nothing, and whoever lost it will ask again at once.
                        Over::Ended(_) if !matches!(self.spec.transport, TransportSpec::Stdio(_)) => {
                            session_lost = true;
                            continue;
                        }
                        Over::Failed(_) | Over::Ended(_) => {}
                    }
                }
            }
            if self.until_used().await.is_none() {
                return;
            }
        }
    }

    /// From the pause before its start to the end of one connection. What is published at its end comes before it is
    /// closed, which takes time; whoever waits for a start that is cut short waits for the next one.
    async fn one_life(&mut self, pause: Duration) -> Over {
        let (shared, stop) = (Arc::clone(&self.shared), self.stop.clone());
        let deadline = Instant::now() + pause + self.context.limits.servers.start_time;
        let connected = tokio::select! {
            connected = self.connect(pause, deadline) => connected,
            over = told(&shared, &stop) => {
                self.program_has_ended().await;
                return over;
            }
        };
        let mut connection = match connected {
            Ok(connection) => connection,
            Err(error) => {
                shared.facts().pid = None;
                self.failed(&error);
                return Over::Failed(error);
            }
        };
        let over = self.serve(&mut connection, deadline).await;
        shared.facts().pid = None;
        match &over {
            Over::Restart if matches!(shared.published.borrow().state, ServerState::Starting) => {}
            Over::Stopped | Over::Restart => self.unavailable("it is being stopped; try again in a moment"),
            Over::Failed(error) => self.failed(error),
            Over::Ended(why) => self.ended(why),
        }
        let limits = &self.context.limits.servers;
        connection.close(limits.leave_time, limits.close_time).await;
        over
    }

    /// Waits until the program of a start that was cut short is gone, which was killed with it: the next one may need what
    /// it holds.
    async fn program_has_ended(&self) {
        let pid = self.shared.facts().pid.take().and_then(|pid| i32::try_from(pid).ok());
        let program = pid.and_then(|pid| ProcessHandle::open(pid).ok()?);
        if let Some(program) = program.and_then(|program| program.watch().ok()) {
            let _ended_or_too_slow =
                tokio::time::timeout(self.context.limits.servers.close_time, program.ended()).await;
        }
    }

    /// Opens a connection after a pause, and in time.
    async fn connect(&mut self, pause: Duration, deadline: Instant) -> Result<Connection, StartError> {
        tokio::time::sleep(pause).await;
        self.shared.facts().restarts = self.restarts.total();
        self.shared.ignored.begin();
        let opening = async {
            let opened = self.open().await;
            match opened {
                // Some older servers end when they are asked what they do not know: ask those in the older way.
                Err(StartError::Ended(_)) if self.choice == ProtocolChoice::Auto => {
                    let choice = ProtocolChoice::Initialize;
                    open(&self.spec.transport, choice, &self.context, &self.shared, &self.tracker).await
                }
                opened => opened,
            }
        };
        match tokio::time::timeout_at(deadline, opening).await {
            Err(_) => Err(self.too_slow()),
            Ok(Err(error)) => {
                self.choice = self.spec.protocol;
                Err(error.of_choice(self.spec.protocol))
            }
            Ok(Ok(connection)) => {
                if self.spec.protocol == ProtocolChoice::Auto {
                    self.choice = found(&connection.revision);
                }
                Ok(connection)
            }
        }
    }

    fn too_slow(&self) -> StartError {
        let time = self.context.limits.servers.start_time;
        StartError::Timeout { time, no_json: self.shared.ignored.no_json() }
    }

    async fn open(&self) -> Result<Connection, StartError> {
        open(&self.spec.transport, self.choice, &self.context, &self.shared, &self.tracker).await
    }

    /// Lists, publishes, and keeps the listing fresh until the end.
    async fn serve(&mut self, connection: &mut Connection, deadline: Instant) -> Over {
        let context = Arc::clone(&self.context);
        let limits = &context.limits.servers;
        let live = connection.live.clone();
        let (shared, stop) = (Arc::clone(&self.shared), self.stop.clone());
        let began = Instant::now();
        let first = tokio::select! {
            first = tokio::time::timeout_at(deadline, listing::list(&live, limits, None)) => first,
            why = connection.ended() => return Over::Failed(StartError::Ended(why)),
            over = told(&shared, &stop) => return over,
        };
        match first {
            Err(_) => return Over::Failed(self.too_slow()),
            Ok(Err(ListError::Gone(what))) => {
                return Over::Failed(match tokio::time::timeout(START_GRACE, connection.ended()).await {
                    Ok(why) => StartError::Ended(why),
                    Err(_) => ListError::Gone(what).into(),
                });
            }
            Ok(Err(error)) => return Over::Failed(error.into()),
            Ok(Ok(listed)) => {
                let listed_now = LastListing::of(began, listed.ttl, limits.list_age);
                self.shared.facts().revision = Some(connection.revision.clone());
                tracing::info!(server = %self.shared.name, revision = %connection.revision, "an MCP server is ready");
                self.shared.keep(&format!("ready, with revision {}", connection.revision));
                self.ready(listed, connection);
                shared.asks.listed(listed_now);
            }
        }
        let background = subscribe(live.clone());
        let relisting = relist(live.clone(), limits, Duration::ZERO, &shared.asks, self.last.clone());
        tokio::pin!(background, relisting);
        loop {
            tokio::select! {
                Relisted { listed, pace, began } = &mut relisting => {
                    let listed_now = match &listed {
                        Ok(listed) => LastListing::of(began, listed.ttl, limits.list_age),
                        Err(_) => LastListing::failed(began, limits.list_age),
                    };
                    let gap = pace.next(self.listed_again(listed, connection));
                    shared.asks.listed(listed_now.at(pace));
                    relisting.set(relist(live.clone(), limits, gap, &shared.asks, self.last.clone()));
                }
                why = connection.ended() => return Over::Ended(why),
                over = told(&shared, &stop) => return over,
                () = &mut background => {}
                // It is there already; none is to come where nobody has its handle any more.
                wake = self.wakes.recv() => if wake.is_none() {
                    return Over::Stopped;
                },
            }
        }
    }

    /// Publishes a listing that the server asked for, if it is another one than the last. Whether it is.
    fn listed_again(&mut self, listed: Result<Listed, ListError>, connection: &Connection) -> bool {
        match listed {
            Ok(listed) if self.last.as_ref().is_some_and(|last| last.is_same_as(&listed.catalogue)) => {
                self.logged = None;
                self.shared.disabled_in_vain(listed.disabled_in_vain());
                self.left_out(listed.left_out, listed.reasons);
                false
            }
            Ok(listed) => {
                self.ready(listed, connection);
                true
            }
            Err(error) => {
                self.note(&format!("it cannot be listed again: {error}"));
                false
            }
        }
    }

    /// Keeps what was left out of a listing; it is logged once.
    fn left_out(&self, count: usize, reasons: Vec<String>) {
        let mut facts = self.shared.facts();
        let before = std::mem::replace(&mut facts.left_out, count);
        let first = reasons.iter().take(LOGGED_REASONS).cloned().collect::<Vec<_>>().join("; ");
        facts.left_out_reasons = reasons;
        drop(facts);
        if count != before {
            tracing::warn!(server = %self.shared.name, count, %first, "entries of an MCP server are left out");
            let reasons = self.shared.facts().left_out_reasons.join("; ");
            self.shared.keep(&format!("{count} entries are left out: {reasons}"));
        }
    }

    fn ready(&mut self, listed: Listed, connection: &Connection) {
        self.shared.disabled_in_vain(listed.disabled_in_vain());
        self.left_out(listed.left_out, listed.reasons);
        let catalogue = Arc::new(listed.catalogue);
        if let Some(last) = self.last.replace(Arc::clone(&catalogue)) {
            let changed = changed_tools(last.entries(), catalogue.entries());
            if changed > 0 {
                tracing::warn!(server = %self.shared.name, changed, "tools of an MCP server changed, came or went");
            }
        }
        self.logged = None;
        self.shared.publish(ServerState::Ready(catalogue), Some(connection.live.clone()));
    }

    fn failed(&mut self, error: &StartError) {
        match (&self.spec.hint, error) {
            (Some(hint), StartError::Ended(_) | StartError::Launch(_)) => self.note(&format!("{error}; {hint}")),
            _ => self.note(&error.to_string()),
        }
        self.not_started = if let StartError::Ended(_) = error { None } else { Some(error.for_guest()) };
        self.unavailable(error.for_guest());
    }

    /// It was started too often, and is not for this long.
    fn left_alone(&self, left: Duration) {
        let seconds = left.as_secs() + 1;
        self.unavailable(&match self.not_started {
            Some(why) => format!("{why}; it was tried too often and is left alone for {seconds} s"),
            None => format!("it ended too often and is left alone; try again in {seconds} s"),
        });
    }

    fn ended(&mut self, why: &str) {
        self.not_started = None;
        self.note(why);
        self.unavailable("it ended; it is started again when it is used next, so try again");
    }

    /// Keeps a detail for the operator, with what the program said of it.
    fn note(&mut self, detail: &str) {
        let said = stderr::cause(&self.shared.stderr.last_lines(REPORT_LINES, &self.context.redactor));
        // Cut afterwards: a secret across the cut would not be found.
        let detail = self.context.redactor.scrub(detail);
        let detail = &detail[..detail.floor_char_boundary(DETAIL_BYTES)];
        let detail = match said {
            Some(line) => format!("{}; on its standard error: {line}", Escaped(detail)),
            None => Escaped(detail).to_string(),
        };
        if self.logged.as_ref() != Some(&detail) {
            tracing::warn!(server = %self.shared.name, %detail, "trouble with an MCP server");
            self.logged = Some(detail.clone());
        }
        self.shared.keep(&detail);
        self.shared.facts().last_error = Some(detail);
    }

    fn unavailable(&self, why: &str) {
        let text = format!("Server \"{}\" is not available: {why}", self.shared.name);
        self.shared.publish(ServerState::Unavailable(text.into()), None);
    }

    /// Waits for the next use, or for an operator who wants it; nothing if it was stopped.
    async fn until_used(&mut self) -> Option<()> {
        loop {
            let turn = tokio::select! {
                turn = self.wakes.recv() => turn?,
                over = told(&self.shared, &self.stop) => match over {
                    Over::Restart => {
                        self.restarts = Restarts::new();
                        return Some(());
                    }
                    _ => return None,
                },
            };
            if turn == self.shared.published.borrow().turn {
                return Some(());
            }
        }
    }
}

/// What whoever has a say in it wants of it, once they do: its end, or a fresh start.
async fn told(shared: &Shared, stop: &CancellationToken) -> Over {
    tokio::select! {
        biased;
        () = stop.cancelled() => Over::Stopped,
        () = shared.anew.notified() => Over::Restart,
    }
}
