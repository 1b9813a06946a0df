//! The front for other programs: any provider, served on any listener.
//!
//! It is the same [`Harness`] that `footbridge run` starts; this adds what a program needs to start one in a few
//! lines. States: running, stopped.

use std::sync::Arc;

use footbridge_proto::{
    endpoint::{Endpoint, TcpHost},
    token::Token,
    vars,
};

use crate::harness::{Harness, OpenError};
use footbridge_audit::{RecordLost, Recorder};
use footbridge_calls::{
    operator::Operator,
    pins::{PinStore, Pins},
    provider::ToolProvider,
    session::SessionSpec,
};
use footbridge_core::{
    gate::Policy,
    limits::Limits,
    names::{BadSessionName, Labels, SessionName},
    random::{NoRandomness, new_token},
    secret::Secret,
};
use footbridge_edge::listener::{BindError, Listen};

/// Serves a provider to sandboxes, each through a session with a listener and a token of its own.
///
/// Lives on a tokio runtime with time and I/O. Dropping it does not end it: that is [`Self::stop`].
///
/// ```no_run
/// use footbridge::{FileJournal, InProcess, Server, ToolContext, ToolDefinition, ToolResult};
/// use serde_json::Value;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let tools = InProcess::new("greetings")
///     .tool(ToolDefinition::new("hello"), |_: Value, _: ToolContext| async { ToolResult::text("hello") })
///     .build()?;
/// let server = Server::over(tools).start(FileJournal::create("/var/lib/example/audit".as_ref())?)?;
/// let served = server.serve("agent-1", &"tcp:127.0.0.1:0".parse()?)?;
/// println!("{}", served.endpoint);
/// server.stop().await?;
/// # Ok(())
/// # }
/// ```
pub struct Server {
    harness: Harness,
    policy: Arc<Policy>,
}

/// What a [`Server`] is started with.
pub struct ServerBuilder {
    provider: Arc<dyn ToolProvider>,
    limits: Limits,
    policy: Arc<Policy>,
    secrets: Vec<Secret>,
    pins: Option<Pins>,
}

/// A session that is served: what its sandbox needs to know.
#[derive(Debug, Clone)]
pub struct Served {
    /// Where it listens; with the port that the system chose.
    pub endpoint: Endpoint,
    /// What opens it. It is shown nowhere else.
    pub token: Token,
}

/// Why a session cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum CannotServe {
    /// Its name is none.
    #[error("a session cannot be called {0:?}: {1}")]
    Name(String, BadSessionName),
    /// Nothing can listen there.
    #[error(transparent)]
    Bind(#[from] BindError),
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// There is no token to be had.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

impl Server {
    /// Starts to put a server over this provider together: default limits, and a policy that allows all that resolves.
    #[must_use]
    pub fn over(provider: impl ToolProvider) -> ServerBuilder {
        let (limits, policy) = (Limits::default(), Policy::open());
        ServerBuilder { provider: Arc::new(provider), limits, policy, secrets: Vec::new(), pins: None }
    }

    /// Serves a new session. A Unix socket is for the user of this process alone; TCP is loopback only, and port 0
    /// means one that the system chooses.
    ///
    /// # Errors
    /// [`CannotServe`].
    pub fn serve(&self, name: &str, listen: &Endpoint) -> Result<Served, CannotServe> {
        self.serve_as(name, &Listen::at(listen.clone()), Labels::new())
    }

    /// As [`Self::serve`], for other users or guests too, and with labels that the record shows beside the session.
    ///
    /// # Errors
    /// [`CannotServe`].
    pub fn serve_as(&self, name: &str, listen: &Listen, labels: Labels) -> Result<Served, CannotServe> {
        let name: SessionName = name.parse().map_err(|bad| CannotServe::Name(name.to_owned(), bad))?;
        let listener = self.harness.listeners().bind(listen)?;
        let endpoint = listener.endpoint().map_err(OpenError::from)?;
        let token = new_token()?;
        let spec = SessionSpec { labels, ..SessionSpec::new(name, &token, Arc::clone(&self.policy)) };
        self.harness.open(spec, vec![listener])?;
        Ok(Served { endpoint, token })
    }

    /// Ends a session: its connections are cut and its calls cancelled. False if there is none of that name.
    pub async fn end(&self, name: &str) -> bool {
        match name.parse() {
            Ok(name) => {
                let operator = Operator::ThisProcess { uid: nix::unistd::geteuid().as_raw() };
                self.harness.revoke(&operator, &name).await
            }
            Err(_) => false,
        }
    }

    /// Ends everything, in order and within a deadline: no new connections, calls get a moment, the provider ends, the
    /// record is written out.
    ///
    /// # Errors
    /// [`RecordLost`]: all has ended, and not all of it is recorded.
    pub async fn stop(self) -> Result<(), RecordLost> {
        self.harness.stop().await
    }
}

impl ServerBuilder {
    /// Other limits than the defaults.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Which calls may be made.
    #[must_use]
    pub fn policy(mut self, policy: Arc<Policy>) -> Self {
        self.policy = policy;
        self
    }

    /// A value that must not reach a guest: it is taken out of everything that calls answer.
    #[must_use]
    pub fn secret(mut self, value: impl Into<String>) -> Self {
        self.secrets.push(Secret::new(value));
        self
    }

    /// Pins the definitions of its tools in this store, which has to be given for that: a tool whose definition is
    /// another than it was is refused until somebody accepted the change, by
    /// [`PinReview::accept_pins`](crate::store::PinReview::accept_pins) or with
    /// `footbridge servers pins accept` on the same state folder. For providers whose tools come from elsewhere; those
    /// of [`InProcess`](crate::InProcess) change with the program and nobody else.
    #[must_use]
    pub fn pins(mut self, store: impl PinStore) -> Self {
        self.pins = Some(Pins::in_store(Arc::new(store)));
        self
    }

    /// Starts it. Every call is written to this journal before it reaches the provider, and again when it came back;
    /// [`FileJournal`](crate::FileJournal) is the one to use, or a [`Recorder`] for settings and signed heads.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn start(self, recorder: impl Into<Recorder>) -> std::io::Result<Server> {
        let harness = Harness::over(self.provider, self.limits, &self.secrets, recorder, self.pins)?;
        Ok(Server { harness, policy: self.policy })
    }
}

impl Served {
    /// The environment for a client on this machine: where the bridge is, and the token. An endpoint that a client
    /// cannot reach without a relay has no variables but the token's.
    #[must_use]
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let mut found = match &self.endpoint {
            Endpoint::Tcp(tcp) => {
                let host = match tcp.host {
                    TcpHost::Ip(ip) => ip.to_string(),
                    TcpHost::Localhost => "localhost".to_owned(),
                };
                vec![(vars::HOST, host), (vars::PORT, tcp.port.to_string())]
            }
            Endpoint::Unix(path) => vec![(vars::SOCKET, path.as_path().display().to_string())],
            _ => Vec::new(),
        };
        found.push((vars::TOKEN, self.token.expose().to_owned()));
        found
    }
}
