//! A harness over servers that are whatever a test says, under policies that are written as the operator writes them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use footbridge::{
    config::{Config, ConfigError, Variables, folders::Folders, load},
    harness::Harness,
};
use footbridge_calls::{
    provider::{CallContext, Outcome, Outgoing, RawResult, ToolProvider, Unavailable},
    request::OutgoingRequest,
};
use footbridge_core::names::ServerName;
use footbridge_core::{
    catalogue::Offered,
    limits::{Limits, ServerLimits},
};
use futures::future::BoxFuture;
use serde_json::{Value, json, value::RawValue};
use tokio::runtime::{Builder, Runtime};

use crate::{
    bridge::{Door, Records, open_under},
    client::{Client, post},
};

/// Servers with their tools, each a name and annotations, and their resources.
pub(crate) type Has<'a> = &'a [(&'a str, &'a [(&'a str, &'a str)], &'a [&'a str])];

/// What a call to a tool answers.
pub(crate) const ANSWER: &str = r#"{"content":[{"type":"text","text":"done"}]}"#;

struct Fixed {
    names: Arc<[ServerName]>,
    all: BTreeMap<ServerName, Arc<Offered>>,
    called: Arc<AtomicUsize>,
}

fn raw(value: &Value) -> Box<RawValue> {
    RawValue::from_string(value.to_string()).unwrap()
}

fn catalogue(tools: &[(&str, &str)], resources: &[&str]) -> Arc<Offered> {
    let (limits, mut catalogue) = (ServerLimits::default(), Offered::default());
    for (name, annotations) in tools {
        let annotations: Value = serde_json::from_str(annotations).unwrap();
        let tool = json!({"name": name, "inputSchema": {"type": "object"}, "annotations": annotations});
        catalogue.add_tool(&raw(&tool), &limits).unwrap();
    }
    for uri in resources {
        catalogue.add_resource(raw(&json!({"uri": uri, "name": "r"})), &limits).unwrap();
    }
    if !resources.is_empty() {
        catalogue.add_template(raw(&json!({"uriTemplate": "file:///{path}", "name": "t"})), &limits).unwrap();
    }
    Arc::new(catalogue)
}

impl ToolProvider for Fixed {
    fn servers(&self) -> Arc<[ServerName]> {
        Arc::clone(&self.names)
    }

    fn catalogue<'a>(
        &'a self,
        server: &'a ServerName,
        _: Duration,
    ) -> BoxFuture<'a, Result<Arc<Offered>, Unavailable>> {
        Box::pin(async { Ok(Arc::clone(&self.all[server])) })
    }

    fn call(&self, outgoing: Outgoing, _: CallContext) -> BoxFuture<'_, Outcome> {
        self.called.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match outgoing.request() {
                OutgoingRequest::ReadResource { uri } if uri.ends_with("none") => {
                    Outcome::ServerError { code: -32002, message: "not found".to_owned() }
                }
                _ => Outcome::Result(RawResult { text: RawValue::from_string(ANSWER.to_owned()).unwrap(), held: None }),
            }
        })
    }
}

/// What a settings file says.
pub(crate) fn config(settings: &str) -> Result<Config, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("footbridge.toml");
    std::fs::write(&file, settings).unwrap();
    let folders = Folders { config: folder.path().to_owned(), ..Folders::find(0, |_| None).unwrap() };
    load(&[file], &folders, &Variables::of_this_process())
}

/// A harness with one session. Dropping it ends it.
pub(crate) struct World {
    runtime: Runtime,
    harness: Option<Harness>,
    records: Records,
    called: Arc<AtomicUsize>,
    door: Door,
}

impl World {
    /// With the policy `test` of these settings, or one that is built in.
    pub(crate) fn with(has: Has<'_>, settings: &str, policy: &str) -> Self {
        let all: BTreeMap<ServerName, Arc<Offered>> = has
            .iter()
            .map(|(server, tools, resources)| (server.parse().unwrap(), catalogue(tools, resources)))
            .collect();
        Self::over(all, settings, policy)
    }

    /// Over servers that offer this.
    pub(crate) fn over(all: BTreeMap<ServerName, Arc<Offered>>, settings: &str, policy: &str) -> Self {
        let called = Arc::new(AtomicUsize::new(0));
        let provider = Fixed { names: all.keys().cloned().collect(), all, called: Arc::clone(&called) };
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let inside = runtime.enter();
        let records = Records::default();
        let mut limits = Limits::default();
        (limits.calls.burst, limits.calls.listing_burst) = (10_000, 10_000);
        let harness = Harness::over(Arc::new(provider), limits, &[], records.clone(), None).unwrap();
        let policy = config(settings).unwrap().policies.get(policy).unwrap();
        let door = open_under(&harness, "test", policy);
        drop(inside);
        Self { runtime, harness: Some(harness), records, called, door }
    }

    /// The whole answer to a request, as text.
    pub(crate) fn answer(&self, method: &str, params: &Value) -> String {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut client = Client::connect(self.door.address);
        client.send(post(&[&self.door.authorization(), "Content-Type: application/json"], &body));
        let answer = client.answer();
        assert_eq!(answer.status, 200);
        answer.body
    }

    /// The whole answer to a request whose client takes events alone: its head and its text.
    pub(crate) fn events(&self, method: &str, params: &Value) -> (String, String) {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut client = Client::connect(self.door.address);
        let headers = [&*self.door.authorization(), "Content-Type: application/json", "Accept: text/event-stream"];
        client.send(post(&headers, &body));
        let head = client.head().expect("a head").to_ascii_lowercase();
        let is_stream = head.contains("\r\ntransfer-encoding: chunked\r\n");
        let text = if is_stream { std::iter::from_fn(|| client.chunk()).collect() } else { String::new() };
        (head, text)
    }

    pub(crate) fn asks(&self, method: &str, params: &Value) -> Value {
        serde_json::from_str(&self.answer(method, params)).unwrap()
    }

    /// Calls a tool.
    pub(crate) fn call(&self, server: &str, tool: &str, arguments: &Value) -> Value {
        self.asks("callTool", &json!({"server": server, "tool": tool, "arguments": arguments}))
    }

    pub(crate) fn harness(&self) -> &Harness {
        self.harness.as_ref().unwrap()
    }

    /// How many calls reached a server.
    pub(crate) fn called(&self) -> usize {
        self.called.load(Ordering::SeqCst)
    }

    /// The record, line by line.
    pub(crate) fn records(&self) -> Vec<Value> {
        self.records.lines()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if let Some(harness) = self.harness.take() {
            // A record that a test breaks is its own to look at.
            let _recorded = self.runtime.block_on(harness.stop());
        }
    }
}
