//! A call by an operator, through the same stages as a guest's: resolved, decided by a policy, recorded, carried out.
//!
//! It has a session of its own, which nobody else can use: nothing listens for it, and its token is thrown away. The
//! call ends with whoever waits for it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use footbridge_proto::json;
use serde_json::value::RawValue;

use super::{Harness, lists_by_control::SeenBySession, sessions::Places};
use footbridge_calls::{
    call::Stages,
    cause::{Cause, Failure},
    operator::Operator,
    provider::{NoAnswer, RawResult},
    request::{CallRequest, Target},
    session::{Session, SessionSpec},
    sessions::{Open, Sessions},
    watcher::Watcher,
};
use footbridge_core::{
    gate::Policy,
    limits::overrides::Overrides,
    names::{Labels, SessionName},
    random::new_token,
};
use footbridge_edge::Connections;
use footbridge_mcp::Servers;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::task::TaskTracker;

/// Names that are tried before it is given up: guests' sessions may have some of them.
const TRIES: usize = 100;

/// Places for calls and lists of operators who come in elsewhere.
pub(super) fn operator_places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(CALLS_BY_CONTROL))
}

/// Numbers of these sessions.
static NUMBER: AtomicU64 = AtomicU64::new(1);

/// A tool that an operator calls.
#[derive(Debug, Clone)]
pub struct OperatorCall {
    /// The server's name.
    pub server: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments: a JSON object, or nothing.
    pub arguments: Option<String>,
    /// What decides about it; `open` where there is none.
    pub policy: Option<Arc<Policy>>,
    /// How long its answer is waited for; then it is cancelled.
    pub timeout: Option<Duration>,
}

/// Why a call of an operator has no result.
#[derive(Debug, thiserror::Error)]
pub enum NotCalled {
    /// The arguments cannot be read.
    #[error("the arguments are no JSON: {0}")]
    Arguments(String),
    /// So many are carried out already, or lists looked at.
    #[error("{CALLS_BY_CONTROL} calls and lists of operators run already: try again once one has ended")]
    Busy,
    /// It has no session.
    #[error("the call has no session: {0}")]
    Session(String),
    /// What a guest would be answered too.
    #[error("{}", footbridge_edge::error_of(.0).message)]
    Failed(Failure),
    /// Its time was up, and it was cancelled: before it was sent, or after.
    #[error("its time was up: {}", footbridge_edge::error_of(.0).message)]
    OutOfTime(Failure),
}

/// Most calls, and lists of what can be called, by way of the control socket at a time: each may last, since it waits for
/// its server, and other commands need their places.
const CALLS_BY_CONTROL: usize = 8;

/// What carries out the calls of operators, apart from the harness: it goes to whoever lets them in. Clones share it.
#[derive(Clone)]
pub(crate) struct OperatorCalls {
    stages: Stages,
    sessions: Sessions<Places>,
    connections: Connections,
    tasks: TaskTracker,
    depth: usize,
    /// How long servers that are starting are waited for: one alone, and in a list of all.
    waits: (Duration, Duration),
    places: Arc<Semaphore>,
    servers: Option<Servers>,
}

impl Harness {
    /// For calls of operators who come in elsewhere.
    pub(crate) fn operator_calls(&self) -> OperatorCalls {
        let (stages, sessions, connections) = (self.stages.clone(), self.sessions.clone(), self.connections.clone());
        let (tasks, places) = (self.tasks.clone(), Arc::clone(&self.operator_places));
        let waits = (self.limits.calls.server_wait, self.limits.calls.list_wait);
        let (depth, servers) = (self.limits.edge.body_depth, self.servers.clone());
        OperatorCalls { stages, sessions, connections, tasks, depth, waits, places, servers }
    }

    /// Calls a tool for an operator, and gives what its server answered. Dropping this cancels the call.
    ///
    /// # Errors
    /// [`NotCalled`].
    pub async fn call(&self, operator: &Operator, call: OperatorCall) -> Result<RawResult, NotCalled> {
        self.call_watched(operator, call, Watcher::silent()).await
    }

    /// As [`Self::call`], and tells what happens meanwhile; a call that a person has to allow waits for as long as they
    /// have.
    ///
    /// # Errors
    /// [`NotCalled`].
    pub async fn call_watched(
        &self,
        operator: &Operator,
        call: OperatorCall,
        watcher: Watcher,
    ) -> Result<RawResult, NotCalled> {
        let policy = call.policy.clone().unwrap_or_else(Policy::open);
        self.operator_calls().call(operator, call, CalledAs::by(policy), watcher).await
    }
}

/// What a call of an operator has of a session.
struct CalledAs {
    policy: Arc<Policy>,
    labels: Labels,
    limits: Overrides,
    /// The one whose these are. The call ends with it.
    lent_by: Option<Arc<Session>>,
}

impl CalledAs {
    fn by(policy: Arc<Policy>) -> Self {
        Self { policy, labels: Labels::new(), limits: Overrides::default(), lent_by: None }
    }
}

impl OperatorCalls {
    /// Calls a tool as an open session would: by its policy, its labels and its limits. None where there is no such
    /// session. Dropping this cancels the call.
    ///
    /// # Errors
    /// [`NotCalled`].
    pub(crate) async fn call_like(
        &self,
        operator: &Operator,
        session: &SessionName,
        call: OperatorCall,
        watcher: Watcher,
    ) -> Option<Result<RawResult, NotCalled>> {
        let open = self.sessions.find(session)?;
        let _place = match self.place() {
            Ok(place) => place,
            Err(busy) => return Some(Err(busy)),
        };
        let (rules, spec) = (open.session().rules(), open.session().spec().clone());
        let (policy, lent_by) = (Arc::clone(rules.policy()), Some(Arc::clone(open.session())));
        let called_as = CalledAs { policy, labels: spec.labels, limits: spec.limits, lent_by };
        drop(open);
        Some(self.call(operator, call, called_as, watcher).await)
    }

    /// A place for a call or a list.
    ///
    /// # Errors
    /// [`NotCalled::Busy`].
    pub(super) fn place(&self) -> Result<SemaphorePermit<'_>, NotCalled> {
        self.places.try_acquire().map_err(|_| NotCalled::Busy)
    }

    /// What an open session sees. None where there is no such session.
    pub(super) fn seen_by(&self, session: &SessionName) -> Option<SeenBySession> {
        let rules = self.sessions.find(session)?.session().rules();
        Some(SeenBySession { rules, stages: self.stages.clone(), waits: self.waits, servers: self.servers.clone() })
    }

    /// The names of all open sessions but those of single calls, for which nothing listens.
    pub(super) fn session_names(&self) -> Vec<String> {
        let all = self.sessions.all().into_iter().filter(|open| !open.endpoints().is_empty());
        all.map(|open| open.session().name().to_string()).collect()
    }

    async fn call(
        &self,
        operator: &Operator,
        call: OperatorCall,
        called_as: CalledAs,
        watcher: Watcher,
    ) -> Result<RawResult, NotCalled> {
        let OperatorCall { server, tool, arguments, timeout, .. } = call;
        let arguments = arguments.map(|text| self.checked(text)).transpose()?;
        let request = CallRequest { server, target: Target::Tool(tool), arguments, meta: None, held: None };
        let lent_by = called_as.lent_by.clone();
        let open = self.open_for(called_as)?;
        let principal = open.principal(operator);
        let cancel = open.session().over().child_token();
        let cancelled = cancel.clone();
        let _cancelled_with_this = cancel.clone().drop_guard();
        let (stages, sessions) = (self.stages.clone(), self.sessions.clone());
        // In a task of its own: whoever waits may leave, and what was admitted gets its outcome.
        let mut calling = self.tasks.spawn(async move {
            let reply = stages.call(principal, request, &watcher, &cancel).await;
            sessions.call_over(open.session().name()).await;
            reply.into_answer()
        });
        let lost = |_| Err(Cause::HarnessFailed.into());
        let is_out_of_time = tokio::select! {
            biased;
            answer = &mut calling => return answer.unwrap_or_else(lost).map_err(NotCalled::Failed),
            () = over(lent_by.as_deref()) => false,
            () = passed(timeout) => true,
        };
        // What it says now tells whether it was sent.
        cancelled.cancel();
        calling.await.unwrap_or_else(lost).map_err(|failure| match &*failure.cause {
            Cause::Cancelled | Cause::NoAnswer { why: NoAnswer::Cancelled, .. } if is_out_of_time => {
                NotCalled::OutOfTime(failure)
            }
            _ => NotCalled::Failed(failure),
        })
    }

    /// Arguments as a guest's are: no member twice, and no deeper than they may be.
    fn checked(&self, text: String) -> Result<Box<RawValue>, NotCalled> {
        json::check(text.as_bytes(), self.depth).map_err(|error| NotCalled::Arguments(error.to_string()))?;
        RawValue::from_string(text).map_err(|error| NotCalled::Arguments(error.to_string()))
    }

    /// A session for one call.
    fn open_for(&self, CalledAs { policy, labels, limits, .. }: CalledAs) -> Result<Arc<Open<Places>>, NotCalled> {
        let failed = NotCalled::Session;
        let token = new_token().map_err(|error| failed(error.to_string()))?;
        for _ in 0..TRIES {
            // Processes of one user may share a chain.
            let name = format!("operator-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
            let name: SessionName = name.parse().map_err(|_| failed(format!("{name} is no name")))?;
            let places = Arc::new(self.connections.no_places());
            let spec = SessionSpec::new(name, &token, Arc::clone(&policy));
            let spec = SessionSpec { labels: labels.clone(), limits: limits.clone(), ..spec };
            if let Ok(open) = self.sessions.open(spec, Vec::new(), places) {
                return Ok(open);
            }
        }
        Err(failed("all of its names are taken".to_owned()))
    }
}

/// Waits until a session is over.
async fn over(session: Option<&Session>) {
    match session {
        Some(session) => session.over().cancelled().await,
        None => std::future::pending().await,
    }
}

/// Waits until so much time has passed.
async fn passed(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use footbridge_proto::rpc::Reason;
    use serde_json::{Value, json};

    use super::*;
    use footbridge_audit::VolatileJournal;
    use footbridge_calls::provider::{InProcess, ToolContext, ToolDefinition, ToolResult};
    use footbridge_core::limits::Limits;

    fn reason(error: &NotCalled) -> Reason {
        let NotCalled::Failed(failure) = error else { panic!("{error}") };
        failure.cause.reason()
    }

    const OPERATOR: Operator = Operator::UnixPeer { uid: 7, pid: 9 };

    fn harness() -> (Harness, VolatileJournal) {
        let say = |arguments: Value, _: ToolContext| async move { ToolResult::json(arguments) };
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        let tools = InProcess::new("x").tool(ToolDefinition::new("say").input_schema(schema), say).build().unwrap();
        let journal = VolatileJournal::new();
        let harness = Harness::over(Arc::new(tools), Limits::default(), &[], journal.clone(), None).unwrap();
        (harness, journal)
    }

    fn of(tool: &str, arguments: &str) -> OperatorCall {
        OperatorCall {
            server: "x".into(),
            tool: tool.into(),
            arguments: Some(arguments.into()),
            policy: None,
            timeout: None,
        }
    }

    /// The values of a field, in the order of the record.
    fn recorded(journal: &VolatileJournal, field: &str) -> Vec<String> {
        let lines = journal.lines();
        let values = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap()[field].clone());
        values.filter_map(|value| Some(value.as_str()?.to_owned())).collect()
    }

    #[tokio::test]
    async fn it_is_recorded_like_any_call() {
        let (harness, journal) = harness();
        let answer = harness.call(&OPERATOR, of("say", r#"{"n": 1}"#)).await.unwrap();
        assert!(answer.text.get().contains("\"n\":1"), "{}", answer.text);
        assert!(harness.sessions().is_empty());
        harness.stop().await.unwrap();
        let types = recorded(&journal, "type");
        let at = |what: &str| types.iter().position(|one| one == what);
        assert!(at("session") < at("intent") && at("intent") < at("outcome"), "{types:?}");
        assert!(at("outcome") < at("session_ended"), "{types:?}");
        assert_eq!(recorded(&journal, "peer"), ["operator:uid=7,pid=9"]);
        assert_eq!(recorded(&journal, "why"), ["call_over"]);
    }

    #[tokio::test]
    async fn the_policy_that_is_given_decides_about_it() {
        let (harness, journal) = harness();
        let policy = harness.policies().get("readonly").unwrap();
        let denied = OperatorCall { policy: Some(policy), ..of("say", "{}") };
        let error = harness.call(&OPERATOR, denied).await.unwrap_err();
        assert_eq!(reason(&error), Reason::DeniedByPolicy);
        harness.stop().await.unwrap();
        let types = recorded(&journal, "type");
        assert!(types.iter().any(|one| one == "refused") && !types.iter().any(|one| one == "intent"), "{types:?}");
    }

    #[tokio::test]
    async fn unknown_tools_and_bad_arguments_are_refused() {
        let (harness, journal) = harness();
        let unknown = harness.call(&OPERATOR, of("other", "{}")).await.unwrap_err();
        assert_eq!(reason(&unknown), Reason::UnknownTool);
        let unfit = harness.call(&OPERATOR, of("say", r#"{"n": "one"}"#)).await.unwrap_err();
        assert_eq!(reason(&unfit), Reason::InvalidArguments);
        assert!(harness.call(&OPERATOR, of("say", r#"{"n": 1, "n": 2}"#)).await.is_err());
        assert!(harness.sessions().is_empty());
        harness.stop().await.unwrap();
        let types = recorded(&journal, "type");
        assert_eq!(types.iter().filter(|one| *one == "refused").count(), 2, "{types:?}");
        assert!(!types.iter().any(|one| one == "intent"), "{types:?}");
    }
}
