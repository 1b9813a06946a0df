//! What goes over a control socket. Both ends are this crate, though they may be of different versions: members that
//! are not known are refused in requests and ignored in answers.
//!
//! Names and addresses are texts here; whoever carries a request out makes sense of them.

mod approvals;
mod calls;
mod lists;
mod servers;
mod sessions;

use std::{collections::BTreeMap, fmt};

use footbridge_calls::approval::{ApprovalInfo, ApprovalShown};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

pub(crate) use approvals::{
    AllowApproval, Answered, By, DenyApproval, ListApprovals, ListRemembered, RevokeApproval, ShowApproval,
};

pub(crate) use calls::{CallHeld, CallTool, CalledTool};
pub(crate) use lists::{ListSessionNames, ListTools, ListedServer, ListedTool};
pub(crate) use servers::{AcceptedPin, ListServers, PinsAccepted, PinsRecorded, RestartServer, Restarted, ServerInfo};
pub(crate) use sessions::{BudgetInfo, LimitSession, LimitedSession};

/// Changes when an older program could misread a newer one.
pub(crate) const PROTOCOL: u32 = 1;

/// Longest request, bytes.
pub(crate) const MAX_REQUEST: usize = 256 * 1024;

/// Longest answer, bytes.
pub(crate) const MAX_ANSWER: usize = 16 << 20;

/// What a line before an answer says that is no answer, and has a [`CallHeld`].
pub(crate) const CALL_HELD: &str = "calls.held";

/// A method: its name, its parameters, and what it answers.
pub(crate) trait Method: Serialize {
    /// The name.
    const NAME: &'static str;
    /// What comes back.
    type Answer: DeserializeOwned;
}

macro_rules! methods {
    ($($(#[$about:meta])* $group:ident $request:ident {
        $($(#[$doc:meta])* $name:literal $params:ident -> $answer:ty;)*
    })*) => {
        $($(impl Method for $params {
            const NAME: &'static str = $name;
            type Answer = $answer;
        })*

        $(#[$about])*
        #[derive(Debug)]
        pub(crate) enum $request {
            $($(#[$doc])* $params($params),)*
        })*

        /// Everything that can be asked for, by who answers it.
        #[derive(Debug)]
        pub(crate) enum ControlRequest {
            $($(#[$about])* $group($request),)*
        }

        impl ControlRequest {
            /// Makes sense of a method and its parameters.
            ///
            /// # Errors
            /// The answer to send, where the method is unknown or its parameters do not fit.
            pub(crate) fn read(method: &str, params: &RawValue) -> Result<Self, Refusal> {
                match method {
                    $($($name => {
                        serde_json::from_str(params.get()).map($request::$params).map(Self::$group).map_err(bad_params)
                    })*)*
                    _ => Err(unknown_method(method)),
                }
            }
        }
    };
}

methods! {
    /// About the harness itself.
    Harness HarnessRequest {
        /// Who is there.
        "hello" Hello -> HarnessInfo;
    }
    /// What the daemon alone does.
    Daemon DaemonRequest {
        /// Read the configuration again.
        "config.reload" ReloadConfig -> ReloadReport;
        /// Make a session.
        "session.create" CreateSession -> Created;
        /// Make a session, or give the one that is there as asked for already.
        "session.ensure" EnsureSession -> Created;
        /// Show all sessions.
        "session.list" ListSessions -> Vec<SessionInfo>;
        /// Show one session.
        "session.show" ShowSession -> SessionInfo;
        /// Give a session another token.
        "session.rotate" RotateSession -> Created;
        /// End a session.
        "session.revoke" RevokeSession -> Revoked;
    }
    /// About a session of any harness.
    Session SessionRequest {
        /// Give a session other budgets.
        "session.limit" LimitSession -> LimitedSession;
    }
    /// About approvals.
    Approval ApprovalRequest {
        /// Show all approvals that are pending or granted.
        "approvals.list" ListApprovals -> Vec<ApprovalInfo>;
        /// Show the calls that are allowed again without asking.
        "approvals.remembered" ListRemembered -> Vec<ApprovalInfo>;
        /// Show one with its whole arguments.
        "approvals.show" ShowApproval -> ApprovalShown;
        /// Allow a call.
        "approvals.allow" AllowApproval -> Answered;
        /// Deny a call.
        "approvals.deny" DenyApproval -> Answered;
        /// Take a yes back.
        "approvals.revoke" RevokeApproval -> Answered;
    }
    /// About MCP servers and pins.
    Server ServerRequest {
        /// Show all MCP servers.
        "servers.list" ListServers -> Vec<ServerInfo>;
        /// Start an MCP server afresh.
        "servers.restart" RestartServer -> Restarted;
        /// Record that changed definitions were accepted.
        "pins.accepted" PinsAccepted -> PinsRecorded;
    }
    /// Calls, and what can be called.
    Tool ToolRequest {
        /// Call a tool.
        "calls.make" CallTool -> CalledTool;
        /// Show which tools a session sees.
        "calls.tools" ListTools -> Vec<ListedServer>;
        /// Show the names of the sessions whose tools can be listed and called.
        "calls.sessions" ListSessionNames -> Vec<String>;
    }
}

/// Who asks.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hello {
    /// Its version.
    pub(crate) version: String,
}

/// Who answers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HarnessInfo {
    /// `serve` or `run`.
    pub(crate) harness: String,
    /// Its version.
    pub(crate) version: String,
    /// Its [`PROTOCOL`].
    pub(crate) protocol: u32,
    /// Its process.
    pub(crate) pid: u32,
    /// Why its configuration is not what the files say: they were read again, and had a mistake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reload_failed: Option<ReloadFailed>,
    /// Why its last record could not be written: no call is made until one can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) record_failed: Option<String>,
}

impl HarnessInfo {
    /// This process, of this kind.
    #[must_use]
    pub(crate) fn this(harness: &str) -> Self {
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let (harness, protocol, pid) = (harness.to_owned(), PROTOCOL, std::process::id());
        Self { harness, version, protocol, pid, reload_failed: None, record_failed: None }
    }
}

/// The configuration, once more.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReloadConfig {}

/// How reading it went: with a mistake, everything is as it was before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReloadReport {
    /// What is wrong with it.
    pub(crate) mistakes: Vec<String>,
    /// What is odd, and what did not take effect.
    pub(crate) notes: Vec<String>,
    /// Which servers and services it changed, as in `servers added: a, b`.
    #[serde(default)]
    pub(crate) changes: Vec<String>,
}

/// A reading that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReloadFailed {
    /// When, RFC 3339.
    pub(crate) at: String,
    /// What is wrong.
    pub(crate) mistakes: Vec<String>,
}

impl fmt::Display for ReloadFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at, mistakes } = self;
        write!(f, "the daemon's configuration is not what the files say: reading them again at {at} failed, and ")?;
        write!(f, "everything stayed as it was. {}. Correct it, then \"footbridge config reload\"", mistakes.join("; "))
    }
}

impl ControlRequest {
    /// Whether it waits where many are carried out already. Who is here is always said at once: nothing is held or asked
    /// for that, and a service manager's watchdog lives on it.
    #[must_use]
    pub(crate) fn takes_a_place(&self) -> bool {
        !matches!(self, Self::Harness(HarnessRequest::Hello(_)))
    }

    /// Whether it is given up when whoever asks leaves. What is half done otherwise is done to its end.
    #[must_use]
    pub(crate) fn ends_with_its_asker(&self) -> bool {
        matches!(self, Self::Tool(ToolRequest::CallTool(_) | ToolRequest::ListTools(_)))
    }
}

/// A new session.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateSession {
    /// Its name.
    pub(crate) name: String,
    /// Endpoints to listen on; without one, a Unix socket in a folder of its own.
    pub(crate) listen: Vec<String>,
    /// Virtual machines that may come in over vsock.
    pub(crate) peer_cids: Vec<u32>,
    /// The name of its policy.
    pub(crate) policy: String,
    /// How long it lives, milliseconds.
    pub(crate) ttl_ms: Option<u64>,
    /// The process that it ends with.
    pub(crate) pid: Option<i32>,
    /// What the operator finds it by.
    pub(crate) labels: BTreeMap<String, String>,
    /// The mode of its Unix sockets.
    pub(crate) socket_mode: u32,
    /// Their owner, where it is not to be the harness's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) socket_owner: Option<u32>,
    /// Users besides the harness's own that may connect to its Unix sockets.
    pub(crate) allow_uids: Vec<u32>,
    /// The services that it may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) services: Vec<String>,
    /// Its own limits, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) limits: BTreeMap<String, String>,
    /// The digest of the token in the file that its own takes the place of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaces: Option<String>,
}

/// A session that is to be there, as this would make it.
#[derive(Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct EnsureSession(pub(crate) CreateSession);

/// All sessions.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListSessions {}

/// One session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ShowSession {
    /// Its name.
    pub(crate) name: String,
}

/// Another token for a session. The old one ends at once; calls that run go on.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RotateSession {
    /// Its name.
    pub(crate) name: String,
    /// As in [`CreateSession`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) replaces: Option<String>,
}

/// The end of a session: its connections are cut, its calls cancelled.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RevokeSession {
    /// Its name.
    pub(crate) name: String,
}

/// The token's file in a session's own folder.
pub(crate) const TOKEN_FILE: &str = "token";

/// A session and its token.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Created {
    /// Its name.
    pub(crate) name: String,
    /// Whether it was there already, as asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) was_there: bool,
    /// Its token; of one that was there only where its folder still has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token: Option<String>,
    /// The digest of a token that is not kept, by which a file is known to hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_digest: Option<String>,
    /// Its own folder, with its socket and its token, for a sandbox to mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) folder: Option<String>,
    /// Where it listens, as it is connected to.
    pub(crate) endpoints: Vec<String>,
    /// When it ends by itself, RFC 3339.
    pub(crate) expires: Option<String>,
    /// What its guest sets for its services; some of it holds the token.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) environment: BTreeMap<String, String>,
    /// What whoever asked for it should know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
}

impl fmt::Debug for Created {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Created").field("name", &self.name).field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

/// A session that was ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Revoked {
    /// Its name.
    pub(crate) name: String,
}

/// How a session is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SessionInfo {
    /// Its name.
    pub(crate) name: String,
    /// The name of its policy.
    pub(crate) policy: String,
    /// When it was created, RFC 3339.
    pub(crate) created: String,
    /// When it ends by itself, RFC 3339.
    pub(crate) expires: Option<String>,
    /// The process that it ends with.
    pub(crate) pid: Option<i32>,
    /// What the operator finds it by.
    pub(crate) labels: BTreeMap<String, String>,
    /// Its limits that are not those of the harness, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) limits: BTreeMap<String, String>,
    /// The services that it may use.
    #[serde(default)]
    pub(crate) services: Vec<String>,
    /// Its own folder, with its socket and its token, for a sandbox to mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) folder: Option<String>,
    /// Where it listens.
    pub(crate) listeners: Vec<ListenerInfo>,
    /// Why it is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) closed: Option<String>,
    /// Connections that are open.
    pub(crate) connections: usize,
    /// Calls in flight.
    pub(crate) calls: usize,
    /// What it has spent of its budgets, by their names: those that are limited, or of which there is any use.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) budgets: BTreeMap<String, BudgetInfo>,
}

/// How a listener is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ListenerInfo {
    /// Where.
    pub(crate) endpoint: String,
    /// The mode of its file, octal, for Unix sockets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<String>,
    /// The owner of its file, where that is not the harness's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<u32>,
    /// Users besides the harness's own that may connect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) allow_uids: Vec<u32>,
    /// The virtual machine that may connect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) peer_cid: Option<u32>,
    /// Why nothing listens there; it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) broken: Option<String>,
}

/// What kind of no an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RefusalKind {
    /// This harness does not know the method: it is older or newer than the command.
    UnknownMethod,
    /// The request makes no sense.
    Invalid,
    /// There is no such thing.
    NotFound,
    /// Something is in the way: a name, a socket, a CID that is taken.
    Taken,
    /// The harness could not do it.
    Failed,
    /// A kind of a newer harness.
    #[serde(other)]
    Other,
}

/// A request that was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    /// Which kind of no.
    pub(crate) kind: RefusalKind,
    /// What is wrong, and what to do.
    pub(crate) message: String,
}

impl Refusal {
    /// A refusal with its message.
    pub(crate) fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// Its code in JSON-RPC.
    #[must_use]
    pub(crate) fn code(&self) -> i32 {
        match self.kind {
            RefusalKind::UnknownMethod => -32601,
            RefusalKind::Invalid => -32602,
            _ => -32000,
        }
    }
}

fn unknown_method(method: &str) -> Refusal {
    let version = env!("CARGO_PKG_VERSION");
    let method: String = method.chars().take(64).collect();
    Refusal::new(
        RefusalKind::UnknownMethod,
        format!(
            "the running footbridge ({version}) does not know \"{method}\": it is older or newer than this command; restart it with the same version"
        ),
    )
}

fn bad_params(error: serde_json::Error) -> Refusal {
    Refusal::new(RefusalKind::Invalid, format!("the parameters cannot be read: {error}"))
}
