//! The two crates as libraries: their examples against each other, and a server with tools of this process.

use std::{
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use footbridge::{
    Endpoint, InProcess, Limits, Served, Server, Store, ToolContext, ToolDefinition, ToolResult, VolatileJournal,
};
use footbridge_guest::{Client, ClientError, Reason, answers::Block};
use footbridge_tests::{PATIENCE, Ran, Running, programs};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

/// The in-process example, serving.
struct Example {
    running: Running,
    environment: Vec<(String, String)>,
}

impl Example {
    fn serves(folder: &Path, listen: &str) -> Self {
        let mut running =
            Running::start(Command::new(programs::example("in_process")).arg(folder.join("audit")).arg(listen));
        let mut environment = Vec::new();
        while environment.last().is_none_or(|(name, _)| name != "TOOL_CLI_TOKEN") {
            let line = running.stdout.line();
            let (name, value) = line.trim().split_once('=').unwrap();
            environment.push((name.to_owned(), value.to_owned()));
        }
        Self { running, environment }
    }

    fn asked(&self, arguments: &str) -> Ran {
        let mut command = Command::new(programs::example("four_steps"));
        command.arg(arguments).env_clear().envs(self.environment.iter().cloned());
        Running::start(&mut command).ends()
    }
}

fn record(folder: &Path) -> Vec<Value> {
    let run = std::fs::read_dir(folder.join("audit")).unwrap().next().unwrap().unwrap().path();
    let text = std::fs::read_to_string(run.join("000001.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_examples_understand_each_other_over_tcp_and_a_unix_socket() {
    for listens_on_a_socket in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let socket = format!("unix:{}", folder.path().join("s").display());
        let listen = if listens_on_a_socket { socket.as_str() } else { "tcp:127.0.0.1:0" };
        let mut example = Example::serves(folder.path(), listen);
        let said = example.asked(r#"{"city": "Bern"}"#).well();
        assert!(
            said.starts_with("server: weather (1 tools)\ntool: get_weather: The weather in a city, now\n"),
            "{said}"
        );
        assert!(said.ends_with("result: {\"city\":\"Bern\",\"celsius\":21}\n"), "{said}");
        let said = example.asked(r#"{"city": "Atlantis"}"#).well();
        assert!(said.ends_with("the tool failed: Atlantis has no weather any more: ask for another city\n"), "{said}");
        let said = example.asked(r#"{"town": "Bern"}"#).well();
        assert!(said.contains("refused: ") && said.contains("(invalid_arguments; record "), "{said}");
        assert!(said.ends_with("; nothing happened)\n"), "{said}");
        example.running.hears_no_more();
        let _rest = example.running.ends().well();
        let outcomes: Vec<_> =
            record(folder.path()).into_iter().filter_map(|line| Some(line.get("outcome")?.clone())).collect();
        assert_eq!(outcomes, ["ok", "tool_error"]);
    }
}

#[test]
fn the_in_process_example_calls_itself() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(programs::example("in_process"));
    let said = Running::start(command.arg("--once").arg(folder.path().join("audit"))).ends().well();
    let answer: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(answer["result"]["structuredContent"], json!({"city": "Bern", "celsius": 21}));
    let calls = |line: &Value| line["type"] == "intent" || line["type"] == "outcome";
    assert_eq!(record(folder.path()).iter().filter(|line| calls(line)).count(), 2);
}

/// A server in this process, with a session.
struct World {
    runtime: Runtime,
    server: Option<Server>,
    journal: VolatileJournal,
    served: Served,
}

impl World {
    fn with(limits: Limits) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let inside = runtime.enter();
        let tools = InProcess::new("x")
            .tool(ToolDefinition::new("picture"), |_: Value, _: ToolContext| async {
                ToolResult::text("look").and_image(b"png", "image/png")
            })
            .tool(ToolDefinition::new("fails"), |_: Value, context: ToolContext| async move {
                assert_eq!(context.tool(), "as asked");
                ToolResult::default()
            })
            .tool(ToolDefinition::new("hangs"), |_: Value, _: ToolContext| std::future::pending::<ToolResult>())
            .tool(ToolDefinition::new("waits"), |_: Value, context: ToolContext| async move {
                context.cancelled().await;
                ToolResult::text("left")
            });
        let journal = VolatileJournal::new();
        let server = Server::over(tools.build().unwrap()).limits(limits).start(journal.clone()).unwrap();
        let served = server.serve("test", &"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
        drop(inside);
        Self { runtime, server: Some(server), journal, served }
    }

    fn client(&self) -> Client {
        let Endpoint::Tcp(tcp) = &self.served.endpoint else { panic!("{}", self.served.endpoint) };
        Client::tcp("127.0.0.1", tcp.port, self.served.token.clone()).unwrap()
    }

    /// Waits until a line of the record holds this.
    fn until_recorded(&self, part: &str) {
        let deadline = Instant::now() + PATIENCE;
        while !self.journal.lines().iter().any(|line| line.contains(part)) {
            assert!(Instant::now() < deadline, "{part} is not in {:?}", self.journal.lines());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn recorded(&self, id: &str) -> Vec<Value> {
        let lines = self.journal.lines().into_iter().map(|line| serde_json::from_str::<Value>(&line).unwrap());
        lines.filter(|line| line["id"] == id).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            let _recorded = self.runtime.block_on(server.stop());
        }
    }
}

#[test]
fn a_handler_that_panics_fails_its_call_alone_and_is_recorded() {
    let world = World::with(Limits::default());
    let mut client = world.client();
    let failed = client.call("x", "fails", &json!({})).unwrap_err();
    assert_eq!((failed.code(), failed.reason()), (Some(-32603), Some(Reason::ProviderError)));
    assert!(failed.may_have_happened() && failed.to_string().contains("failed inside"), "{failed}");
    let recorded = world.recorded(failed.audit_id().unwrap());
    assert_eq!(recorded.iter().map(|line| &line["type"]).collect::<Vec<_>>(), ["intent", "outcome"]);
    assert_eq!(recorded[1]["outcome"], "server_error");
    let result = client.call("x", "picture", &json!({})).unwrap();
    let blocks: Vec<Block> = result.blocks().collect();
    assert!(matches!(&blocks[1], Block::Image(image) if image.bytes().unwrap() == b"png"), "{blocks:?}");
    assert_eq!(result.text(), "look");
}

#[test]
fn a_client_that_leaves_cancels_its_call() {
    let world = World::with(Limits::default());
    let mut client = world.client().with_timeout(Duration::from_millis(300));
    let left = client.call("x", "waits", &json!({})).unwrap_err();
    assert!(matches!(left, ClientError::TimedOut { sent: true, .. }) && left.may_have_happened(), "{left}");
    world.until_recorded("\"outcome\":\"ok\"");
}

#[test]
fn a_server_that_stops_ends_the_calls_that_are_left_and_records_them() {
    let mut world = World::with(Limits::default());
    let mut client = world.client();
    let asking = std::thread::spawn(move || client.call("x", "hangs", &json!({})));
    world.until_recorded("\"type\":\"intent\"");
    world.runtime.block_on(world.server.take().unwrap().stop()).unwrap();
    let error = asking.join().unwrap().unwrap_err();
    assert_eq!(error.reason(), Some(Reason::OutcomeUnknown), "{error}");
    assert_eq!(world.recorded(error.audit_id().unwrap())[1]["outcome"], "unknown");
}

#[test]
fn what_a_bridge_refuses_is_told_in_words_for_programs() {
    let mut limits = Limits::default();
    (limits.calls.burst, limits.calls.per_second) = (1, 1);
    let world = World::with(limits);
    let mut client = world.client();
    let unknown = client.call("x", "nothing", &json!({})).unwrap_err();
    assert_eq!(unknown.reason(), Some(Reason::UnknownTool));
    assert_eq!(world.recorded(unknown.audit_id().unwrap())[0]["type"], "refused");
    let limited = client.call("x", "picture", &json!({})).unwrap_err();
    assert_eq!(limited.reason(), Some(Reason::RateLimited));
    assert!(limited.retry_after().is_some_and(|pause| !pause.is_zero()) && !limited.may_have_happened());
    assert_eq!(client.resources("x").unwrap().len() + client.templates("x").unwrap().len(), 0);
}

/// What a call to a tool with this description ends with, where its definition is pinned in this folder, or nowhere.
fn called_as(description: &str, pinned_in: Option<&Path>) -> Result<String, Option<Reason>> {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let definition = ToolDefinition::new("t").description(description);
    let tools = InProcess::new("x").tool(definition, |_: Value, _: ToolContext| async { ToolResult::text("done") });
    let (server, served) = runtime.block_on(async {
        let mut server = Server::over(tools.build().unwrap());
        if let Some(folder) = pinned_in {
            server = server.pins(Store::open(folder).await.unwrap());
        }
        let server = server.start(VolatileJournal::new()).unwrap();
        let served = server.serve("test", &"tcp:127.0.0.1:0".parse().unwrap()).unwrap();
        (server, served)
    });
    let Endpoint::Tcp(tcp) = &served.endpoint else { panic!("{}", served.endpoint) };
    let mut client = Client::tcp("127.0.0.1", tcp.port, served.token.clone()).unwrap();
    let called = client.call("x", "t", &json!({}));
    runtime.block_on(server.stop()).unwrap();
    called.map(|result| result.text()).map_err(|error| error.reason())
}

#[test]
fn definitions_are_pinned_where_a_store_was_given_and_nowhere_else() {
    let folder = tempfile::tempdir().unwrap();
    for store in [Some(folder.path()), None] {
        assert_eq!(called_as("one", store).unwrap(), "done");
        let other = called_as("two", store);
        assert_eq!(other, store.map_or(Ok("done".to_owned()), |_| Err(Some(Reason::DefinitionChanged))));
        assert_eq!(called_as("one", store).unwrap(), "done");
    }
}

#[test]
fn a_token_is_in_no_error_and_no_debug_output() {
    let world = World::with(Limits::default());
    let token = world.served.token.expose().to_owned();
    let mut wrong = Client::tcp("127.0.0.1", 1, world.served.token.clone()).unwrap();
    let error = wrong.servers().unwrap_err();
    let shown = format!("{:?} {:?} {wrong:?} {error:?} {error}", world.served, world.client());
    assert!(!shown.contains(&token) && !shown.contains(&token[8..]), "{shown}");
}
