//! What the stage holds every provider to.

use crate::provider::Unavailable;
use footbridge_core::catalogue::Offered;
use footbridge_core::names::ServerName;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::*;
use crate::{
    events::{CallEvent, LogLevel, LoggedLine},
    provider::{InProcess, InProcessBuilder, Several, ToolContext, ToolDefinition, ToolResult},
    request::OutgoingRequest,
};
use footbridge_core::{digest::Digest, limits::Limits, secret::Secret};

const LONG: Duration = Duration::from_secs(30);

/// The stage, and the limits of the session that calls through it.
struct Stage {
    upstream: Upstream,
    limits: Arc<Limits>,
}

impl std::ops::Deref for Stage {
    type Target = Upstream;

    fn deref(&self) -> &Upstream {
        &self.upstream
    }
}

fn upstream(provider: impl ToolProvider, change: impl FnOnce(&mut CallLimits)) -> Stage {
    let mut calls = CallLimits { busy_after: Duration::from_millis(50), ..CallLimits::default() };
    change(&mut calls);
    let redactor = Redactor::new(&[Secret::new("very-secret-value"), Secret::new("1234567890")]);
    let upstream = Upstream::new(Arc::new(provider), Guard { budget: Budget::new(1 << 20), redactor });
    Stage { upstream, limits: Arc::new(Limits { calls, ..Limits::default() }) }
}

fn tools() -> InProcessBuilder {
    let calls = Arc::new(AtomicUsize::new(0));
    InProcess::new("x")
        .tool(ToolDefinition::new("count"), move |_: Value, _: ToolContext| {
            let calls = Arc::clone(&calls);
            async move { ToolResult::json(json!({"calls": calls.fetch_add(1, Ordering::Relaxed) + 1})) }
        })
        .tool(ToolDefinition::new("say"), |arguments: Value, _: ToolContext| async move {
            ToolResult::text(arguments["text"].as_str().unwrap_or_default())
        })
        .tool(ToolDefinition::new("panic"), |arguments: Value, _: ToolContext| async move {
            assert_ne!(arguments, json!({}), "as asked");
            ToolResult::default()
        })
        .tool(ToolDefinition::new("hang"), |_: Value, _: ToolContext| std::future::pending::<ToolResult>())
        .tool(ToolDefinition::new("typed"), |(a, b): (u8, u8), _: ToolContext| async move {
            a.checked_sub(b).map(|left| ToolResult::text(left.to_string())).ok_or("below zero")
        })
}

async fn outgoing(upstream: &Stage, tool: &str, arguments: &Value) -> Outgoing {
    let server: ServerName = "x".parse().unwrap();
    let definition = upstream.catalogues().vetted(&server, LONG).await.unwrap().tool(tool).unwrap().digest();
    let arguments = serde_json::value::to_raw_value(arguments).unwrap();
    let request =
        OutgoingRequest::CallTool { name: tool.to_owned(), definition, arguments, in_headers: false, as_task: false };
    Outgoing::new(server, request, Arc::clone(&upstream.limits))
}

async fn call(upstream: &Stage, tool: &str, arguments: Value) -> Outcome {
    let outgoing = outgoing(upstream, tool, &arguments).await;
    tokio::time::timeout(LONG, upstream.send(outgoing, &CancellationToken::new(), &Watcher::silent())).await.unwrap()
}

fn value(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Result(result) => serde_json::from_str(result.text.get()).unwrap(),
        other => panic!("no result: {other:?}"),
    }
}

#[tokio::test]
async fn a_tool_that_is_not_what_was_decided_about_is_not_called() {
    let upstream = upstream(tools().build().unwrap(), |_| {});
    let (server, mut request) = outgoing(&upstream, "count", &json!({})).await.into_parts();
    if let OutgoingRequest::CallTool { definition, .. } = &mut request {
        *definition = Digest::of("another");
    }
    let outcome = upstream
        .send(
            Outgoing::new(server, request, Arc::clone(&upstream.limits)),
            &CancellationToken::new(),
            &Watcher::silent(),
        )
        .await;
    assert!(matches!(outcome, Outcome::NotSent(NotSent::Changed)), "{outcome:?}");
    assert_eq!(value(call(&upstream, "count", json!({})).await)["structuredContent"], json!({"calls": 1}));
}

#[tokio::test]
async fn results_are_held_to_the_limit_and_take_from_the_budget() {
    let upstream = upstream(tools().build().unwrap(), |limits| limits.result_bytes = 800_000);
    let say = |length| call(&upstream, "say", json!({"text": "x".repeat(length)}));
    assert!(matches!(say(900_000).await, Outcome::TooLarge { limit: 800_000, setting: "calls.result_bytes" }));
    let first = say(700_000).await;
    assert!(matches!(&first, Outcome::Result(RawResult { held: Some(_), .. })), "{first:?}");
    assert!(matches!(say(700_000).await, Outcome::Unknown(NoAnswer::Busy)));
    drop(first);
    assert!(matches!(say(700_000).await, Outcome::Result(_)));
    assert!(matches!(say(10).await, Outcome::Result(RawResult { held: Some(_), .. })));
}

#[tokio::test]
async fn values_of_secrets_are_taken_out_of_what_any_provider_says() {
    let upstream = upstream(tools().build().unwrap(), |_| {});
    let tells = |text: &'static str| {
        let tell = move |_: Value, _: ToolContext| async move { ToolResult::text(text) };
        InProcess::new("x").tool(ToolDefinition::new("tell"), tell).build().unwrap()
    };
    for (text, expected) in [
        ("a very-secret-value", "a [redacted]"),
        ("dmVyeS1zZWNyZXQtdmFsdWU=", "[redacted]"),
        ("766572792d7365637265742d76616c7565", "[redacted]"),
    ] {
        let said = value(call(&self::upstream(tells(text), |_| {}), "tell", json!({})).await);
        assert_eq!(said["content"][0]["text"], expected, "{text}");
    }
    // Guesses: the answer to the right one is as the others'.
    for guess in ["very-secret-guess", "very-secret-value"] {
        let said = value(call(&upstream, "say", json!({ "text": guess })).await);
        assert_eq!(said["content"][0]["text"], guess);
    }
}

#[tokio::test]
async fn a_panic_ends_its_call_alone() {
    let upstream = upstream(tools().build().unwrap(), |_| {});
    let (failed, fine) = tokio::join!(call(&upstream, "panic", json!({})), call(&upstream, "count", json!({})));
    assert!(matches!(&failed, Outcome::ServerError { code: -32603, message } if message.contains("failed inside")));
    assert_eq!(value(fine)["structuredContent"]["calls"], 1);
    assert_eq!(value(call(&upstream, "panic", json!({"no": 1})).await), json!({"content": []}));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_does_not_end_is_ended_and_gives_its_place_back() {
    let upstream = upstream(tools().at_once(1).build().unwrap(), |limits| limits.total_time = Duration::from_secs(5));
    assert!(matches!(call(&upstream, "hang", json!({})).await, Outcome::Unknown(NoAnswer::Timeout)));
    let cancel = CancellationToken::new();
    let asked = outgoing(&upstream, "hang", &json!({})).await;
    let leaves = async {
        assert!(matches!(call(&upstream, "count", json!({})).await, Outcome::NotSent(NotSent::Busy)));
        cancel.cancel();
    };
    let silent = Watcher::silent();
    let (outcome, ()) = tokio::join!(upstream.send(asked, &cancel, &silent), leaves);
    assert!(matches!(outcome, Outcome::Unknown(NoAnswer::Cancelled)), "{outcome:?}");
    let asked = outgoing(&upstream, "count", &json!({})).await;
    assert!(matches!(upstream.send(asked, &cancel, &silent).await, Outcome::NotSent(NotSent::Cancelled)));
    assert_eq!(value(call(&upstream, "count", json!({})).await)["structuredContent"]["calls"], 1);
}

#[tokio::test]
async fn errors_of_handlers_and_arguments_of_another_type_are_errors_of_the_tool() {
    let upstream = upstream(tools().build().unwrap(), |_| {});
    assert_eq!(value(call(&upstream, "typed", json!([5, 3])).await)["content"][0]["text"], "2");
    let below = value(call(&upstream, "typed", json!([3, 5])).await);
    assert_eq!(below, json!({"content": [{"type": "text", "text": "below zero"}], "isError": true}));
    let wrong = value(call(&upstream, "typed", json!({})).await);
    assert_eq!(wrong["isError"], true, "{wrong}");
}

#[tokio::test]
async fn progress_reaches_whoever_watches_without_secrets() {
    let tell = |_: Value, context: ToolContext| async move {
        context.progress(1.0, Some(2.0), Some("half of very-secret-value"));
        context.progress(0.5, None, None);
        context.progress(f64::NAN, None, None);
        context.log(LogLevel::Error, "no very-secret-value either");
        ToolResult::default()
    };
    let tools = InProcess::new("x").tool(ToolDefinition::new("tell"), tell).build().unwrap();
    let upstream = upstream(tools, |_| {});
    let (watcher, mut events) = Watcher::listening();
    let asked = outgoing(&upstream, "tell", &json!({})).await;
    upstream.send(asked, &CancellationToken::new(), &watcher).await;
    drop(watcher);
    let message = Some("half of [redacted]".to_owned());
    assert_eq!(events.recv().await.as_deref(), Some(&CallEvent::Progress { progress: 1.0, total: Some(2.0), message }));
    let message = "no [redacted] either".to_owned();
    let next = events.recv().await;
    let line = LoggedLine { level: LogLevel::Error, logger: None, message, is_json: false };
    assert_eq!(next.as_deref(), Some(&CallEvent::Log(line)), "progress that goes back is none");
    assert_eq!(events.recv().await, None);
}

#[test]
fn tools_that_nobody_could_use_are_named_when_they_are_put_together() {
    let build = |name: &str, definition: ToolDefinition| {
        let built = InProcess::new(name).tool(definition, |_: Value, _: ToolContext| async { ToolResult::default() });
        built.build().map(drop).unwrap_err().to_string()
    };
    assert!(build("-x", ToolDefinition::new("a")).contains("\"-x\""));
    assert!(build("x", ToolDefinition::new("")).contains("tool \"\" cannot be served"));
    assert!(build("x", ToolDefinition::new("a").input_schema(json!(7))).contains("inputSchema"));
    assert!(build("x", ToolDefinition::new("a").input_schema(json!({"type": "no"}))).contains("input schema"));
}

#[tokio::test]
async fn several_providers_are_one_and_the_first_of_a_name_counts() {
    let saying = |server: &str, word: &'static str| {
        let say = move |_: Value, _: ToolContext| async move { ToolResult::text(word) };
        InProcess::new(server).tool(ToolDefinition::new("say"), say).build().unwrap()
    };
    let several = Several::new().and(saying("x", "first")).and(saying("b", "b")).and(saying("x", "second"));
    let upstream = upstream(several, |_| {});
    let names: Vec<String> = upstream.catalogues().servers().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["b", "x"]);
    assert_eq!(value(call(&upstream, "say", json!({})).await)["content"][0]["text"], "first");
    let unknown = upstream.catalogues().vetted(&"c".parse().unwrap(), LONG).await.unwrap_err();
    assert!(unknown.to_string().contains("\"c\""), "{unknown}");
}

/// A provider that misbehaves by itself.
struct Odd(&'static str);

impl ToolProvider for Odd {
    fn servers(&self) -> Arc<[ServerName]> {
        ["x".parse().unwrap()].into()
    }

    fn catalogue<'a>(&'a self, _: &'a ServerName, _: Duration) -> BoxFuture<'a, Result<Arc<Offered>, Unavailable>> {
        match self.0 {
            "panics" => panic!("as asked"),
            "hangs" => Box::pin(std::future::pending()),
            _ => Box::pin(std::future::ready(Ok(Arc::default()))),
        }
    }

    fn call(&self, outgoing: Outgoing, _: CallContext) -> BoxFuture<'_, Outcome> {
        let outcome = match self.0 {
            "unknown" => Outcome::not_offered(outgoing.server()),
            text => Outcome::Result(RawResult { text: RawValue::from_string(text.to_owned()).unwrap(), held: None }),
        };
        Box::pin(std::future::ready(outcome))
    }
}

async fn read(odd: &'static str) -> Outcome {
    let upstream = upstream(Odd(odd), |_| {});
    let request = OutgoingRequest::ReadResource { uri: "a:b".to_owned() };
    let outgoing = Outgoing::new("x".parse().unwrap(), request, Arc::clone(&upstream.limits));
    upstream.send(outgoing, &CancellationToken::new(), &Watcher::silent()).await
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_fails_or_hangs_before_the_call_is_unavailable() {
    for (odd, text) in [("panics", "it failed"), ("hangs", "does not say"), ("unknown", "does not offer this")] {
        let outcome = read(odd).await;
        assert!(
            matches!(&outcome, Outcome::NotSent(NotSent::Unavailable(why)) if why.contains(text)),
            "{odd}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn what_readers_take_differently_is_an_error_of_the_provider() {
    let deep: &'static str = Box::leak(format!("{{\"a\":{}{}}}", "[".repeat(20_000), "]".repeat(20_000)).into());
    let large: &'static str = Box::leak(format!(r#"{{"a":1,"b":"{}","a":2}}"#, "x".repeat(200_000)).into());
    for (odd, why) in [
        (r#"{"contents":[],"contents":[1]}"#, "twice"),
        (r#"{"contents":[{"text":"a","t\u0065xt":"b"}]}"#, "twice"),
        (deep, "deeper than 128"),
        (large, "twice"),
        (r#"{"content":{"type":"text","text":"a"}}"#, "\"content\" is no list"),
        (r#"{"content":["a"]}"#, "\"content\" is no list of objects"),
        (r#"{"content":[],"isError":"true"}"#, "\"isError\" is neither"),
    ] {
        let outcome = read(odd).await;
        let Outcome::ServerError { code: -32603, message } = &outcome else { panic!("{outcome:?}") };
        assert!(message.contains(why) && message.contains("\"x\""), "{message}");
    }
    for fine in [
        r#"{"contents":[{"text":"\ud800"}]}"#,
        r#"{"content":[{"type":"hologram"}],"isError":true}"#,
        r#"{"content":null,"isError":null}"#,
        r#"{"foo":1}"#,
    ] {
        assert!(matches!(read(fine).await, Outcome::Result(_)), "{fine}");
    }
}

#[tokio::test]
async fn half_a_surrogate_pair_stops_no_reader_of_a_result() {
    for (odd, whole) in [
        (r#"{"contents":[{"text":"a\ud800b"}]}"#, r#"{"contents":[{"text":"a\ufffdb"}]}"#),
        (r#"{"contents":[{"text":"\ud83d\ude00\n"}]}"#, r#"{"contents":[{"text":"\ud83d\ude00\n"}]}"#),
    ] {
        let Outcome::Result(result) = read(odd).await else { panic!("{odd}") };
        assert_eq!(result.text.get(), whole);
    }
}

#[tokio::test]
async fn what_is_no_result_is_not_handed_on() {
    assert!(matches!(read("{\"contents\":[]}").await, Outcome::Result(_)));
    let fine = r#"{"content":[],"task":{"taskId":"1"}}"#;
    assert!(matches!(read(fine).await, Outcome::Result(_)), "a member of the server's own");
    for odd in ["[]", "7", "null", "{\"n\":1234567890}", r#"{"task":{"taskId":"1"}}"#, r#"{"content":null,"task":{}}"#]
    {
        let outcome = read(odd).await;
        assert!(matches!(outcome, Outcome::Unknown(NoAnswer::Unusable)), "{odd}: {outcome:?}");
    }
}
