//! A call by an operator, through the same stages as a guest's: resolved, decided by a policy, recorded, carried out.
//!
//! It has a session of its own, which nobody else can use: nothing listens for it, and its token is thrown away. The
//! call ends with whoever waits for it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use footbridge_proto::json;
use serde_json::value::RawValue;

use super::{Harness, sessions::Places};
use footbridge_calls::{
    cause::{Cause, Failure},
    operator::Operator,
    provider::RawResult,
    request::{CallRequest, Target},
    session::SessionSpec,
    sessions::Open,
    watcher::Watcher,
};
use footbridge_core::{gate::Policy, names::SessionName, random::new_token};

/// Names that are tried before it is given up: guests' sessions may have some of them.
const TRIES: usize = 100;

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
}

/// Why a call of an operator has no result.
#[derive(Debug, thiserror::Error)]
pub enum NotCalled {
    /// The arguments cannot be read.
    #[error("the arguments are no JSON: {0}")]
    Arguments(String),
    /// It has no session.
    #[error("the call has no session: {0}")]
    Session(String),
    /// What a guest would be answered too.
    #[error("{}", footbridge_edge::error_of(.0).message)]
    Failed(Failure),
}

impl Harness {
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
        let OperatorCall { server, tool, arguments, policy } = call;
        let arguments = arguments.map(|text| self.checked(text)).transpose()?;
        let request = CallRequest { server, target: Target::Tool(tool), arguments, held: None };
        let open = self.open_for(policy.unwrap_or_else(Policy::open))?;
        let principal = open.principal(operator);
        let cancel = open.session().over().child_token();
        let _cancelled_with_this = cancel.clone().drop_guard();
        let (stages, sessions) = (self.stages.clone(), self.sessions.clone());
        // In a task of its own: whoever waits may leave, and what was admitted gets its outcome.
        let calling = self.tasks.spawn(async move {
            let reply = stages.call(principal, request, &watcher, &cancel).await;
            sessions.call_over(open.session().name()).await;
            reply.into_answer()
        });
        let lost = |_| Err(Cause::HarnessFailed.into());
        calling.await.unwrap_or_else(lost).map_err(NotCalled::Failed)
    }

    /// Arguments as a guest's are: no member twice, and no deeper than they may be.
    fn checked(&self, text: String) -> Result<Box<RawValue>, NotCalled> {
        json::check(text.as_bytes(), self.limits.edge.body_depth)
            .map_err(|error| NotCalled::Arguments(error.to_string()))?;
        RawValue::from_string(text).map_err(|error| NotCalled::Arguments(error.to_string()))
    }

    /// A session for one call.
    fn open_for(&self, policy: Arc<Policy>) -> Result<Arc<Open<Places>>, NotCalled> {
        let failed = NotCalled::Session;
        let token = new_token().map_err(|error| failed(error.to_string()))?;
        for _ in 0..TRIES {
            // Processes of one user may share a chain.
            let name = format!("operator-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
            let name: SessionName = name.parse().map_err(|_| failed(format!("{name} is no name")))?;
            let places = Arc::new(self.connections.no_places());
            if let Ok(open) =
                self.sessions.open(SessionSpec::new(name, &token, Arc::clone(&policy)), Vec::new(), places)
            {
                return Ok(open);
            }
        }
        Err(failed("all of its names are taken".to_owned()))
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
        OperatorCall { server: "x".into(), tool: tool.into(), arguments: Some(arguments.into()), policy: None }
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
        harness.stop().await;
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
        harness.stop().await;
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
        harness.stop().await;
        let types = recorded(&journal, "type");
        assert_eq!(types.iter().filter(|one| *one == "refused").count(), 2, "{types:?}");
        assert!(!types.iter().any(|one| one == "intent"), "{types:?}");
    }
}
