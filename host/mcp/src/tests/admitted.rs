//! Calls as they come to this crate: nothing but the stages makes one, so each goes through all of them, up to a
//! provider that keeps it for the test.

use std::sync::Mutex;

use footbridge_audit::VolatileJournal;
use footbridge_calls::{
    approval::Approvals,
    auth::{Peer, authenticate},
    call::Stages,
    provider::{CallContext, ToolProvider},
    record::Audit,
    request::{CallRequest, Target},
    resolve::Resolver,
    session::SessionSpec,
    sessions::Sessions,
    upstream::{Guard, Upstream},
    watcher::Watcher,
};
use footbridge_core::{gate::Policy, limits::ServerLimits, random::new_token};
use futures::future::BoxFuture;
use serde_json::{json, value::RawValue};
use tokio::sync::oneshot;

use super::*;

/// Offers a catalogue, and keeps the one call that comes.
struct Keeps {
    server: ServerName,
    catalogue: Arc<Offered>,
    kept: Mutex<Option<oneshot::Sender<Outgoing>>>,
}

impl ToolProvider for Keeps {
    fn servers(&self) -> Arc<[ServerName]> {
        [self.server.clone()].into()
    }

    fn catalogue<'a>(&'a self, _: &'a ServerName, _: Duration) -> BoxFuture<'a, Result<Arc<Offered>, Unavailable>> {
        Box::pin(async { Ok(Arc::clone(&self.catalogue)) })
    }

    fn call(&self, outgoing: Outgoing, _: CallContext) -> BoxFuture<'_, Outcome> {
        let kept = self.kept.lock().unwrap().take().unwrap();
        kept.send(outgoing).unwrap();
        Box::pin(std::future::pending())
    }
}

/// A call of a session with the limits of these servers, decided about by this catalogue.
pub(super) async fn admitted(
    servers: &Servers,
    server: &str,
    target: Target,
    arguments: &Value,
    by: Arc<Offered>,
) -> Outgoing {
    let limits = servers.inner.context.limits.clone();
    let budget = Budget::new(1 << 30);
    let (sender, receiver) = oneshot::channel();
    let keeps = Keeps { server: server.parse().unwrap(), catalogue: by, kept: Mutex::new(Some(sender)) };
    let guard = Guard { budget: budget.clone(), redactor: Redactor::default() };
    let upstream = Upstream::new(Arc::new(keeps), guard);
    let audit = Audit::start(VolatileJournal::new(), Redactor::default(), limits.audit.clone()).unwrap();
    let resolver = Resolver::new(upstream.catalogues().clone(), limits.calls.clone(), 1 << 30);
    let approvals = Approvals::new(Vec::new(), audit.clone());
    let sessions = Sessions::new(approvals.clone(), limits, budget);
    let stages = Stages { resolver, approvals, audit, upstream };
    let token = new_token().unwrap();
    let spec = SessionSpec::new("test".parse().unwrap(), &token, Policy::open());
    let open = sessions.open(spec, Vec::new(), ()).unwrap();
    let principal =
        authenticate(open.session(), &Peer::Unix { uid: 0, pid: None }.to_string().into(), token.expose().as_bytes())
            .unwrap();
    let request = CallRequest {
        server: server.to_owned(),
        target,
        arguments: Some(RawValue::from_string(arguments.to_string()).unwrap()),
        meta: None,
        held: None,
    };
    let (watcher, cancel) = (Watcher::silent(), CancellationToken::new());
    tokio::select! {
        outgoing = receiver => outgoing.unwrap(),
        reply = stages.call(principal, request, &watcher, &cancel) => panic!("{:?}", reply.into_answer()),
    }
}

/// A call decided about what the server offers now.
pub(super) async fn outgoing(servers: &Servers, tool: &str, arguments: Value) -> Outgoing {
    outgoing_to("x", servers, tool, arguments).await
}

/// The same on any server; on one that offers nothing now, of a tool that no server has like this.
pub(super) async fn outgoing_to(server: &str, servers: &Servers, tool: &str, arguments: Value) -> Outgoing {
    let by = match servers.state(server) {
        Some(ServerState::Ready(catalogue)) => catalogue,
        _ => unlike(tool),
    };
    admitted(servers, server, Target::Tool(tool.to_owned()), &arguments, by).await
}

/// A catalogue in which a tool is another than any server's.
pub(super) fn unlike(tool: &str) -> Arc<Offered> {
    let tool = json!({"name": tool, "description": "another", "inputSchema": {"type": "object"}});
    Arc::new(about(|catalogue, limits| catalogue.add_tool(&entry(&tool), limits)))
}

/// A catalogue of what is added.
pub(super) fn about<E: std::fmt::Debug>(add: impl FnOnce(&mut Offered, &ServerLimits) -> Result<(), E>) -> Offered {
    let mut catalogue = Offered::default();
    add(&mut catalogue, &ServerLimits::default()).unwrap();
    catalogue
}

/// An entry of a listing.
pub(super) fn entry(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}
