//! The real stages in front of a server of this process, which notes every call that reaches it, and how long the
//! record was at that moment.

use crate::cause::Failure;
use crate::provider::InProcess;
use crate::provider::ToolContext;
use crate::provider::ToolDefinition;
use crate::provider::ToolResult;
use std::{convert::Infallible, fs, io::Write as _, path::PathBuf, sync::Arc, time::Duration};

use footbridge_proto::{approval::ApprovalStatus, rpc::Reason};
use serde_json::{Value, value::RawValue};
use tokio_util::sync::CancellationToken;

use super::{Fault, Memory};
use crate::{
    admit::Admitted,
    approval::{Answer, Approvals, Clear, Cleared},
    auth::{
        Principal,
        tests::{principal, principal_under},
    },
    call::Stages,
    decide,
    operator::Operator,
    provider::RawResult,
    record::Audit,
    request::{CallRequest, Target},
    resolve::Resolver,
    upstream::{Executed, Guard, Upstream},
    watcher::Watcher,
};
use footbridge_core::{budget::Budget, gate::Policy, limits::CallLimits, redact::Redactor};

/// Longer than anything takes here, on a busy machine.
pub(super) const LONG: Duration = Duration::from_secs(30);

/// A call that reached the server.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) tag: String,
    /// Bytes of the record when it did.
    pub(super) recorded: usize,
}

/// A server with one tool, `note`, that takes one call at a time. A call waits while the file `hold` exists.
fn noting(folder: PathBuf) -> InProcess {
    let turn = Arc::new(tokio::sync::Mutex::new(()));
    let schema = serde_json::json!({"type": "object"});
    let note = move |arguments: Value, _: ToolContext| {
        let (turn, folder) = (Arc::clone(&turn), folder.clone());
        async move {
            let _turn = turn.lock().await;
            let recorded = fs::metadata(folder.join("journal")).map_or(0, |journal| journal.len());
            let mut left = fs::OpenOptions::new().append(true).create(true).open(folder.join("left")).unwrap();
            writeln!(left, "{recorded} {arguments}").unwrap();
            while folder.join("hold").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            ToolResult::default()
        }
    };
    InProcess::new("s").tool(ToolDefinition::new("note").input_schema(schema), note).build().unwrap()
}

pub(super) struct World {
    folder: tempfile::TempDir,
    upstream: Upstream,
    resolver: Resolver,
}

impl World {
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = noting(folder.path().to_owned());
        let limits = CallLimits { server_wait: LONG, ..CallLimits::default() };
        let guard = Guard { budget: Budget::new(1 << 20), redactor: Redactor::default() };
        let upstream = Upstream::new(Arc::new(server), guard);
        let resolver = Resolver::new(upstream.catalogues().clone(), limits, 1 << 20);
        Self { folder, upstream, resolver }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A new journal, and nothing left so far.
    pub(super) fn journal(&self, fault: Fault) -> Memory {
        fs::write(self.path("left"), "").unwrap();
        Memory::new(self.path("journal"), fault)
    }

    /// From its request to its answer.
    pub(super) async fn call(&self, audit: &Audit, tag: &str) -> Result<RawResult, Failure> {
        self.run(audit, request("s", "note", tag)).await
    }

    /// As [`Self::call`], for a tool that need not be there.
    pub(super) async fn call_tool(&self, audit: &Audit, tool: &str, tag: &str) -> Result<RawResult, Failure> {
        self.run(audit, request("s", tool, tag)).await
    }

    /// As [`Self::call_tool`], on a server that need not be there.
    pub(super) async fn call_on(&self, audit: &Audit, server: &str, tool: &str) -> Result<RawResult, Failure> {
        self.run(audit, request(server, tool, "x")).await
    }

    async fn run(&self, audit: &Audit, request: CallRequest) -> Result<RawResult, Failure> {
        let stages = self.stages(audit);
        stages.call(principal(), request, &Watcher::silent(), &CancellationToken::new()).await.into_answer()
    }

    pub(super) fn stages(&self, audit: &Audit) -> Stages {
        let (resolver, upstream) = (self.resolver.clone(), self.upstream.clone());
        let approvals = Approvals::new(Vec::new(), audit.clone());
        Stages { resolver, approvals, audit: audit.clone(), upstream }
    }

    /// A session of its own, whose policy asks about every call.
    pub(super) fn asks(&self, audit: &Audit) -> Asks {
        let (stages, principal) = (self.stages(audit), principal_under(Policy::ask()));
        stages.approvals.people_answer();
        Asks { stages, principal }
    }

    /// What comes after the admission.
    pub(super) async fn execute(&self, admitted: Admitted) -> Executed {
        self.upstream.execute(admitted, &CancellationToken::new(), &Watcher::silent()).await
    }

    /// As far as the gate.
    pub(super) async fn verdict(&self, tag: &str) -> Cleared {
        let resolved = self.resolver.resolve(principal(), request("s", "note", tag)).await;
        match Clear::of(decide::decide(resolved.unwrap())) {
            Clear::Cleared(cleared) => *cleared,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn principal() -> Principal {
        principal()
    }

    /// The calls that reached the server.
    pub(super) fn left(&self) -> Vec<Left> {
        let text = fs::read_to_string(self.path("left")).unwrap_or_default();
        let read = |line: &str| {
            let (recorded, message) = line.split_once(' ').unwrap();
            let message: Value = serde_json::from_str(message).unwrap();
            let tag = message["tag"].as_str().unwrap().to_owned();
            Left { tag, recorded: recorded.parse().unwrap() }
        };
        text.lines().map(read).collect()
    }

    pub(super) fn left_tags(&self) -> Vec<String> {
        self.left().into_iter().map(|left| left.tag).collect()
    }

    pub(super) async fn end(self) {
        self.upstream.shutdown().await;
    }
}

/// A session whose calls wait for a person.
pub(super) struct Asks {
    stages: Stages,
    principal: Principal,
}

impl Asks {
    /// From its request to its answer; whoever is asked allows it at once.
    pub(super) async fn call_allowed(&self, tag: &str) -> Result<RawResult, Failure> {
        let silent = Watcher::silent();
        tokio::select! {
            answer = self.call(tag, &silent) => answer,
            never = self.allow_all() => match never {},
        }
    }

    /// From its request to its answer, which it does not wait for anybody to allow.
    pub(super) async fn call_unanswered(&self, tag: &str) -> Result<RawResult, Failure> {
        self.call(tag, &Watcher::silent().waiting_for_person(false)).await
    }

    async fn call(&self, tag: &str, watcher: &Watcher) -> Result<RawResult, Failure> {
        let (principal, request) = (self.principal.clone(), request("s", "note", tag));
        self.stages.call(principal, request, watcher, &CancellationToken::new()).await.into_answer()
    }

    async fn allow_all(&self) -> Infallible {
        let approvals = &self.stages.approvals;
        let mut changed = approvals.watch();
        loop {
            changed.borrow_and_update();
            for asked in approvals.list().into_iter().filter(|asked| asked.state == ApprovalStatus::Pending) {
                let person = Operator::ThisProcess { uid: 7 };
                approvals
                    .answer(asked.id.parse().unwrap(), Answer::Allow { remember: false }, &person, "a test")
                    .unwrap();
            }
            changed.changed().await.unwrap();
        }
    }

    /// Nobody is asked any more.
    pub(super) async fn end(self) {
        self.stages.approvals.stop().await;
    }
}

/// Why a call was refused, if it was.
pub(super) fn reason(answer: &Result<RawResult, Failure>) -> Option<Reason> {
    answer.as_ref().err().map(|refusal| refusal.cause.reason())
}

/// The arguments of a call, in their canonical text.
pub(super) fn arguments(tag: &str) -> String {
    format!(r#"{{"tag":"{tag}"}}"#)
}

fn request(server: &str, tool: &str, tag: &str) -> CallRequest {
    let arguments = RawValue::from_string(arguments(tag)).unwrap();
    CallRequest {
        server: server.to_owned(),
        target: Target::Tool(tool.to_owned()),
        arguments: Some(arguments),
        meta: None,
        held: None,
    }
}
