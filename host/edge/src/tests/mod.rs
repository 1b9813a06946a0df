//! Dialects on one port: each answers in its own way, and everything between is the same.

mod lookups;
mod mcp;
mod plain;

use footbridge_calls::sessions::Sessions;
use std::{net::SocketAddr, sync::Arc, time::Duration};

use footbridge_audit::VolatileJournal;
use footbridge_proto::{endpoint::Endpoint, token::Token};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::mpsc,
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Connections, Edge, ServedSession,
    bridge::Bridge,
    listener::{Listen, Listeners},
    mcp::Mcp,
};
use footbridge_calls::{
    approval::Approvals,
    call::Stages,
    events::LogLevel,
    provider::{InProcess, Several, ToolContext, ToolDefinition, ToolProvider, ToolResult},
    record::Audit,
    resolve::Resolver,
    session::{Session, SessionSpec},
    upstream::{Guard, Upstream},
};
use footbridge_core::{budget::Budget, gate::Policy, limits::Limits, random::new_token, redact::Redactor};
use footbridge_services::Services;
use plain::Plain;

/// Longer than anything takes here, on a busy machine.
const LONG: Duration = Duration::from_secs(30);

/// A session on a port, and who hears of calls that were cancelled.
struct World {
    edge: Edge,
    session: Arc<Session>,
    address: SocketAddr,
    token: Token,
    cancelled: mpsc::Receiver<()>,
    shutdown: CancellationToken,
    tasks: TaskTracker,
}

/// A server with a tool that answers, one that goes on until nobody waits for it, one that keeps for ever what it
/// could tell progress by, and one that logs.
fn tools(cancelled: mpsc::Sender<()>) -> InProcess {
    let double = |arguments: Value, context: ToolContext| async move {
        context.progress(1.0, None, None);
        ToolResult::json(json!({"twice": arguments["n"].as_i64().unwrap_or(0) * 2}))
    };
    let forever = move |_: Value, context: ToolContext| {
        let cancelled = cancelled.clone();
        async move {
            context.progress(1.0, None, None);
            context.cancelled().await;
            let _nobody_listens = cancelled.send(()).await;
            ToolResult::text("")
        }
    };
    let tools = InProcess::new("maths").tool(ToolDefinition::new("double"), double);
    let kept = std::sync::Mutex::new(Vec::new());
    let keeps = move |_: Value, context: ToolContext| {
        kept.lock().unwrap().push(context);
        async { ToolResult::text("kept") }
    };
    let logs = |_: Value, context: ToolContext| async move {
        context.log(LogLevel::Info, "by the way");
        context.log(LogLevel::Warning, "mind this");
        ToolResult::text("")
    };
    let tools = tools.tool(ToolDefinition::new("forever"), forever).tool(ToolDefinition::new("logs"), logs);
    tools.tool(ToolDefinition::new("keeps"), keeps).build().unwrap()
}

fn stages(limits: &Limits, budget: &Budget, tools: impl ToolProvider) -> Stages {
    let guard = Guard { budget: budget.clone(), redactor: Redactor::default() };
    let upstream = Upstream::new(Arc::new(tools), guard);
    let audit = Audit::start(VolatileJournal::default(), Redactor::default(), limits.audit.clone()).unwrap();
    let resolver = Resolver::new(upstream.catalogues().clone(), limits.calls.clone(), limits.edge.parsed_bytes);
    Stages { resolver, approvals: Approvals::new(Vec::new(), audit.clone()), audit, upstream }
}

impl World {
    fn start() -> Self {
        let (sender, cancelled) = mpsc::channel(1);
        Self::over(tools(sender), cancelled)
    }

    /// The same over a provider, and who hears of calls that were cancelled.
    fn over(tools: impl ToolProvider, cancelled: mpsc::Receiver<()>) -> Self {
        Self::within(Limits::default(), tools, cancelled)
    }

    /// The same within other limits.
    fn within(limits: Limits, tools: impl ToolProvider, cancelled: mpsc::Receiver<()>) -> Self {
        let (budget, token) = (Budget::new(limits.edge.held_bytes), new_token().unwrap());
        let stages = stages(&limits, &budget, tools);
        let bridge = Bridge { list_wait: limits.calls.list_wait };
        let edge = Edge::speaking(
            vec![Arc::new(bridge), Arc::new(Plain), Arc::new(Mcp::new(limits.calls.list_wait))],
            stages.clone(),
            &limits,
            Vec::new(),
            Services::new(Vec::new(), &limits.services, 0),
        );
        let spec = SessionSpec::new("test".parse().unwrap(), &token, Policy::open());
        let connections = Arc::new(Connections::new(&limits.edge, 1000).share(8, 1).unwrap());
        let sessions = Sessions::new(stages.approvals.clone(), limits.clone(), budget);
        let session = Arc::clone(sessions.open(spec, Vec::new(), ()).unwrap().session());
        let anywhere = Listen::at("tcp:127.0.0.1:0".parse().unwrap());
        let listener = Listeners::default().bind(&anywhere).unwrap();
        let Endpoint::Tcp(bound) = listener.endpoint().unwrap() else { panic!("another kind of endpoint") };
        let (shutdown, tasks) = (CancellationToken::new(), TaskTracker::new());
        let served = ServedSession { session: Arc::clone(&session), connections };
        let (runs, over) = (edge.clone(), shutdown.clone());
        tasks.spawn(async move { runs.run(listener, served, over).await });
        Self { edge, session, address: bound.primary(), token, cancelled, shutdown, tasks }
    }

    /// Sends a request.
    async fn send(&self, line: &str, accept: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
             Accept: {accept}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            self.token.expose(),
            body.len()
        );
        stream.write_all((head + body).as_bytes()).await.unwrap();
        stream
    }

    /// The whole answer.
    async fn answer(&self, line: &str, accept: &str, body: &str) -> String {
        let (mut stream, mut text) = (self.send(line, accept, body).await, String::new());
        timeout(LONG, stream.read_to_string(&mut text)).await.unwrap().unwrap();
        text
    }

    /// Ends, and waits until nothing runs.
    async fn end(self) {
        self.shutdown.cancel();
        self.tasks.close();
        timeout(LONG, self.tasks.wait()).await.unwrap();
        timeout(LONG, self.edge.drained()).await.unwrap();
    }
}

#[tokio::test]
async fn a_call_is_answered_in_the_way_of_its_dialect() {
    let world = World::start();
    let plain = world.answer("POST /plain/maths/double", "*/*", r#"{"n": 21}"#).await;
    let (head, result) = plain.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{plain}");
    assert_eq!(serde_json::from_str::<Value>(result).unwrap()["structuredContent"], json!({"twice": 42}));
    let params = json!({"server": "maths", "tool": "double", "arguments": {"n": 21}});
    let request = json!({"jsonrpc": "2.0", "id": 7, "method": "callTool", "params": params});
    let bridge = world.answer("POST /rpc", "*/*", &request.to_string()).await;
    assert!(bridge.ends_with(&format!("\r\n\r\n{{\"jsonrpc\":\"2.0\",\"result\":{result},\"id\":7}}")), "{bridge}");
    let stream = world.answer("POST /plain/maths/double", "text/event-stream", r#"{"n": 21}"#).await;
    assert!(stream.contains("data: progress 1\n\n") && stream.contains(&format!("data: {result}\n\n")), "{stream}");
    world.end().await;
}

#[tokio::test]
async fn what_is_refused_is_told_in_the_way_of_its_dialect() {
    let mut world = World::start();
    for (line, body, status, text) in [
        ("POST /plain/maths/no", "{}", "409 Conflict", "error: unknown_tool\n"),
        ("POST /plain/no/double", "{}", "409 Conflict", "error: unknown_server\n"),
        ("POST /plain/maths/double", "{", "400 Bad Request", "error: not /plain/SERVER/TOOL with a body of JSON\n"),
        ("GET /plain/maths/double", "", "405 Method Not Allowed", "error: Only POST accepted\n"),
        ("POST /plain", "{}", "404 Not Found", "{\"error\":\"Not found: services are below /s/NAME/\"}"),
        ("GET /rpc", "", "405 Method Not Allowed", "{\"jsonrpc\":\"2.0\",\"error\":"),
    ] {
        let answer = world.answer(line, "text/event-stream", body).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{line}: {answer}");
        assert!(answer.contains(&format!("\r\n\r\n{text}")), "{line}: {answer}");
    }
    let large = format!("\"{}\"", "x".repeat(1024 * 1024));
    let answer = world.answer("POST /plain/maths/double", "*/*", &large).await;
    assert!(answer.starts_with("HTTP/1.1 413 ") && answer.ends_with("error: Request too large\n"), "{answer}");
    world.token = new_token().unwrap();
    let answer = world.answer("POST /plain/maths/double", "*/*", "{}").await;
    assert!(answer.starts_with("HTTP/1.1 401 ") && answer.ends_with("error: Unauthorized\n"), "{answer}");
    world.end().await;
}

#[tokio::test]
async fn a_stream_ends_with_its_call_whoever_could_still_tell_of_it() {
    let world = World::start();
    let stream = world.answer("POST /plain/maths/keeps", "text/event-stream", "{}").await;
    assert!(stream.contains("kept"), "{stream}");
    world.end().await;
}

#[tokio::test]
async fn a_client_that_leaves_cancels_its_call_in_any_dialect() {
    let mut world = World::start();
    let mut stream = world.send("POST /plain/maths/forever", "text/event-stream", "{}").await;
    let mut heard = Vec::new();
    while !heard.ends_with(b"data: progress 1\n\n\r\n") {
        let read = timeout(LONG, stream.read_buf(&mut heard)).await.unwrap().unwrap();
        assert!(read > 0, "{}", String::from_utf8_lossy(&heard));
    }
    drop(stream);
    assert_eq!(timeout(LONG, world.cancelled.recv()).await.unwrap(), Some(()));
    world.end().await;
}
