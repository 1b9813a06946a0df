//! What is pinned, what is refused, and who notices.

use serde_json::{Value, json, value::RawValue};

use std::{sync::Arc, time::Duration};

use footbridge_calls::{
    pins::{LOOK_AGAIN, PinStore as _, Pins},
    provider::{InProcess, ToolContext, ToolDefinition, ToolResult},
    upstream::{Guard, Upstream},
};
use footbridge_core::{
    budget::Budget,
    catalogue::{Offered, Origin},
    gate::{Policy, SessionRules},
    limits::ServerLimits,
    names::{Labels, ServerName},
    redact::Redactor,
};

use crate::store::{
    Acceptance, NotAccepted, PinReview as _, Problem,
    sqlite::{Store, open},
};

fn x() -> ServerName {
    "x".parse().unwrap()
}

fn offered(command: &str, tools: &[Value]) -> Arc<Offered> {
    let mut catalogue = Offered::of(Arc::new(Origin::new(json!({ "command": command }))));
    for tool in tools {
        let raw = RawValue::from_string(tool.to_string()).unwrap();
        catalogue.add_tool(&raw, &ServerLimits::default()).unwrap();
    }
    Arc::new(catalogue)
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

struct World {
    folder: tempfile::TempDir,
    store: Store,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).await.unwrap();
        Self { folder, store }
    }

    fn pins(&self) -> Pins {
        Pins::in_store(Arc::new(self.store.clone()))
    }

    /// Another harness on the same store.
    async fn another(&self) -> Pins {
        Pins::in_store(Arc::new(Store::open(self.folder.path()).await.unwrap()))
    }

    /// Accepts whatever is offered of this tool now, as a command does.
    async fn accepts(&self, tool: &str) {
        let pins = self.store.pins(Some("x")).await.unwrap();
        let pin = pins.into_iter().find(|pin| pin.tool == tool).unwrap();
        let digest = pin.changed.unwrap().digest;
        let accepted = Acceptance { server: "x".into(), tool: tool.into(), digest };
        Store::open(self.folder.path()).await.unwrap().accept_pins(&[accepted]).await.unwrap();
    }
}

fn open() -> SessionRules {
    SessionRules::new(Policy::open(), &Labels::default())
}

/// The tools that can be called, and those that changed.
async fn seen(pins: &Pins, offered: &Arc<Offered>) -> (Vec<String>, Vec<String>) {
    let seen = pins.vet(&x(), offered).await.unwrap().visible(&open());
    let tools = seen.entries().tools().map(|tool| tool.name().to_owned()).collect();
    (tools, seen.changed().map(|(name, _)| name.to_owned()).collect())
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn each_member_that_changes_makes_a_tool_another_until_it_is_accepted() {
    let before = json!({"name": "t", "title": "T", "description": "d", "inputSchema": {"type": "object"},
                        "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}});
    let changes = [
        ("title", json!("Other")),
        ("description", json!("d.")),
        ("inputSchema", json!({"type": "object", "properties": {"note": {"description": "to be filled in"}}})),
        ("outputSchema", json!({"type": "object", "title": "x"})),
        ("annotations", json!({"readOnlyHint": false})),
        ("_meta", json!({"note": "read the keys first"})),
        ("icons", json!([])),
    ];
    for (member, value) in changes {
        let world = World::new().await;
        let pins = world.pins();
        let first = offered("c", &[before.clone(), tool("same", "")]);
        assert_eq!(seen(&pins, &first).await, (names(&["same", "t"]), names(&[])));
        let mut after = before.clone();
        after[member] = value;
        let second = offered("c", &[after, tool("same", "")]);
        for pins in [&pins, &world.pins(), &world.another().await] {
            assert_eq!(seen(pins, &second).await, (names(&["same"]), names(&["t"])), "{member}");
        }
        world.accepts("t").await;
        assert_eq!(seen(&pins, &second).await, (names(&["same", "t"]), names(&[])), "{member}: noticed at once");
        assert_eq!(
            seen(&pins, &first).await,
            (names(&["same"]), names(&["t"])),
            "{member}: the old one is another now"
        );
    }
}

#[tokio::test]
async fn another_command_is_another_server_and_neither_changes_the_other() {
    let world = World::new().await;
    let (one, two) = (world.pins(), world.another().await);
    let tools = [tool("a", ""), tool("b", "")];
    assert_eq!(seen(&one, &offered("c", &tools)).await.0, ["a", "b"]);
    assert_eq!(seen(&two, &offered("d", &tools)).await.0, ["a", "b"]);
    assert_eq!(seen(&one, &offered("c", &tools)).await.0, ["a", "b"]);
    let changed = [tool("a", "2"), tool("b", "")];
    assert_eq!(seen(&two, &offered("d", &changed)).await.1, ["a"]);
    assert_eq!(seen(&one, &offered("c", &tools)).await.0, ["a", "b"]);
    let pins = world.store.pins(Some("x")).await.unwrap();
    let has: Vec<_> = pins.iter().map(|pin| (pin.origin.as_str(), pin.tool.as_str(), pin.changed.is_some())).collect();
    let [c, d] = [r#"{"command":"c"}"#, r#"{"command":"d"}"#];
    assert_eq!(has, [(c, "a", false), (c, "b", false), (d, "a", true), (d, "b", false)]);
    let digest = pins[2].changed.as_ref().unwrap().digest;
    let accepted = Acceptance { server: "x".into(), tool: "a".into(), digest };
    world.store.accept_pins(&[accepted]).await.unwrap();
    assert!(world.store.is_pinned("x", "a", digest).await.unwrap());
    assert_eq!(seen(&two, &offered("d", &changed)).await.0, ["a", "b"]);
    assert_eq!(seen(&one, &offered("c", &changed)).await.1, ["a"], "accepted of the other only");
    assert_eq!(world.store.forget_pins("x", d, &[]).await.unwrap(), 2);
    assert_eq!(seen(&one, &offered("c", &changed)).await.1, ["a"]);
}

#[tokio::test]
async fn pins_from_before_origins_keep_what_was_pinned() {
    let folder = tempfile::tempdir().unwrap();
    open::leave_older(&folder.path().join("state.db"), 4).await;
    let definition = |command: &str, text: &str| {
        let offered = offered(command, &[tool("a", text)]);
        let tool = offered.entries().tools().next().unwrap().clone();
        (tool.digest().as_bytes().to_vec(), tool.pinned().to_owned())
    };
    let odd = "say \"\u{e9}\"\\ 1.50";
    let pool = sqlx::SqlitePool::connect(folder.path().join("state.db").to_str().unwrap()).await.unwrap();
    for (server, pinned, changed) in
        [("same", definition(odd, "1"), definition(odd, "2")), ("other", definition("c", "1"), definition("d", "1"))]
    {
        let add = "INSERT INTO pins VALUES (?, 'a', ?, ?, 1, ?, ?, 2)";
        let add = sqlx::query(add).bind(server).bind(pinned.0).bind(pinned.1).bind(changed.0).bind(changed.1);
        add.execute(&pool).await.unwrap();
    }
    pool.close().await;
    let store = Store::open(folder.path()).await.unwrap();
    let kept: Vec<_> =
        store.pins(None).await.unwrap().into_iter().map(|pin| (pin.server, pin.changed.is_some())).collect();
    assert_eq!(kept, [("other".into(), false), ("same".into(), true)], "another origin is no change any more");
    let pins = Pins::in_store(Arc::new(store));
    let vets = async |server: &str, offered: Arc<Offered>| {
        pins.vet(&server.parse().unwrap(), &offered).await.unwrap().changed().len()
    };
    assert_eq!(vets("same", offered(odd, &[tool("a", "1")])).await, 0, "what was pinned is");
    assert_eq!(vets("same", offered(odd, &[tool("a", "3")])).await, 1, "and nothing else");
    assert_eq!(vets("other", offered("c", &[tool("a", "2")])).await, 1);
    assert_eq!(vets("other", offered("d", &[tool("a", "1")])).await, 0, "seen for the first time");
}

#[tokio::test]
async fn a_tool_that_vanishes_and_returns_as_it_was_is_fine_and_another_is_not() {
    let world = World::new().await;
    let pins = world.pins();
    assert_eq!(seen(&pins, &offered("c", &[tool("a", "1"), tool("b", "1")])).await.0, ["a", "b"]);
    assert_eq!(seen(&pins, &offered("c", &[tool("a", "1")])).await.0, ["a"]);
    assert_eq!(seen(&pins, &offered("c", &[tool("a", "1"), tool("b", "1")])).await.0, ["a", "b"]);
    assert_eq!(seen(&pins, &offered("c", &[])).await.0.len(), 0);
    assert_eq!(seen(&pins, &offered("c", &[tool("b", "2"), tool("new", "")])).await, (names(&["new"]), names(&["b"])));
}

#[tokio::test]
async fn what_is_accepted_is_what_was_seen_and_nothing_else() {
    let world = World::new().await;
    let pins = world.pins();
    let all = |text: &str| offered("c", &[tool("a", text), tool("b", text)]);
    seen(&pins, &all("1")).await;
    seen(&pins, &all("2")).await;
    let stored = world.store.pins(None).await.unwrap();
    let accept = |n: usize| {
        let changed = stored[n].changed.as_ref().unwrap();
        Acceptance { server: "x".into(), tool: stored[n].tool.clone(), digest: changed.digest }
    };
    seen(&pins, &offered("c", &[tool("a", "2"), tool("b", "3")])).await;
    let error = world.store.accept_pins(&[accept(0), accept(1)]).await.unwrap_err();
    assert!(matches!(&error, NotAccepted::Other(one) if one.tool == "b"), "{error}");
    let now = world.store.pins(None).await.unwrap();
    assert!(now.iter().all(|pin| pin.pinned == stored[0].pinned || pin.pinned == stored[1].pinned), "all or nothing");
    world.store.accept_pins(&[accept(0)]).await.unwrap();
    assert!(matches!(world.store.accept_pins(&[accept(0)]).await.unwrap_err(), NotAccepted::Other(_)), "once");
    assert_eq!(seen(&pins, &all("2")).await, (names(&["a"]), names(&["b"])));
}

#[tokio::test]
async fn a_change_that_was_taken_back_waits_for_nobody_unless_another_harness_still_has_it() {
    let world = World::new().await;
    let (one, two) = (world.pins(), world.another().await);
    let (old, new) = (offered("c", &[tool("a", "1")]), offered("c", &[tool("a", "2")]));
    let waiting = async || world.store.pins(None).await.unwrap()[0].changed.is_some();
    seen(&one, &old).await;
    assert_eq!(seen(&two, &new).await.1, ["a"]);
    assert!(waiting().await);
    // It was seen before that: it does not say that the other's change is gone.
    assert_eq!(seen(&one, &old).await.0, ["a"]);
    assert!(waiting().await);
    assert_eq!(seen(&one, &offered("c", &[tool("a", "1")])).await.0, ["a"]);
    assert!(!waiting().await);
    assert_eq!(seen(&two, &new).await.1, ["a"]);
    assert!(waiting().await, "it is still offered there");
}

#[tokio::test]
async fn what_another_harness_accepts_ends_what_was_good_here() {
    let world = World::new().await;
    let (one, two) = (world.pins(), world.another().await);
    let (old, new) = (offered("c", &[tool("a", "1")]), offered("c", &[tool("a", "2")]));
    seen(&one, &old).await;
    seen(&two, &new).await;
    world.accepts("a").await;
    assert_eq!(seen(&two, &new).await.0, ["a"]);
    // Until then what was good counts unlooked.
    tokio::time::sleep(LOOK_AGAIN).await;
    assert_eq!(seen(&one, &old).await.1, ["a"]);
}

#[tokio::test]
async fn what_was_good_waits_for_nobody_who_has_the_store_and_a_refusal_does() {
    let world = World::new().await;
    let (good, refused) = (world.pins(), world.pins());
    let (old, new) = (offered("c", &[tool("a", "1")]), offered("c", &[tool("a", "2")]));
    assert_eq!(seen(&good, &old).await.0, ["a"]);
    assert_eq!(seen(&refused, &new).await.1, ["a"]);
    tokio::time::sleep(LOOK_AGAIN).await;
    let (connection, turn) = world.store.lend().await.unwrap();
    assert_eq!(seen(&good, &old).await.0, ["a"], "as long as others may have it this would fail");
    let waits = tokio::spawn(async move { seen(&refused, &new).await });
    tokio::task::yield_now().await;
    assert!(!waits.is_finished());
    turn.over(connection, Ok(())).unwrap();
    assert_eq!(waits.await.unwrap().1, ["a"]);
}

#[tokio::test]
async fn what_is_forgotten_is_pinned_anew() {
    let world = World::new().await;
    let pins = world.pins();
    seen(&pins, &offered("c", &[tool("a", "1"), tool("b", "1")])).await;
    let new = offered("c", &[tool("a", "2"), tool("b", "2")]);
    assert_eq!(seen(&pins, &new).await.1, ["a", "b"]);
    let origin = r#"{"command":"c"}"#;
    assert_eq!(world.store.forget_pins("x", origin, &names(&["a"])).await.unwrap(), 1);
    assert_eq!(seen(&pins, &new).await, (names(&["a"]), names(&["b"])));
    assert_eq!(world.store.forget_pins("y", origin, &[]).await.unwrap(), 0);
    assert_eq!(world.store.forget_pins("x", "", &[]).await.unwrap(), 0);
    assert_eq!(world.store.forget_pins("x", origin, &[]).await.unwrap(), 2);
    assert_eq!(seen(&pins, &new).await.0, ["a", "b"]);
}

#[tokio::test]
async fn a_server_with_ever_other_tools_is_refused_before_it_fills_the_disk() {
    let world = World::new().await;
    let pins = world.pins();
    let many = |from: usize| (from..from + 2_000).map(|n| tool(&format!("t{n}"), "")).collect::<Vec<_>>();
    for listing in 0..4 {
        assert_eq!(seen(&pins, &offered("c", &many(listing * 2_000))).await.0.len(), 2_000);
    }
    let error = pins.vet(&x(), &offered("c", &many(8_000))).await.unwrap_err().to_string();
    assert!(error.contains("Server \"x\" is not available") && error.contains("ask the operator"), "{error}");
    assert_eq!(world.store.pins(None).await.unwrap().len(), 8_000, "nothing of it is there");
    assert_eq!(seen(&pins, &offered("c", &many(0))).await.0.len(), 2_000, "what was pinned is still good");
}

#[tokio::test]
async fn a_server_whose_definitions_grow_is_refused_before_they_fill_the_disk() {
    let world = World::new().await;
    let pins = world.pins();
    let long = |name: &str| tool(name, &"x".repeat(7 << 20));
    let small = ["a", "b", "c"].map(|name| tool(name, "1"));
    assert_eq!(seen(&pins, &offered("c", &small)).await.0.len(), 3);
    // Each listing is as long as it may be, and what it says of another tool is kept.
    for name in ["a", "b"] {
        assert_eq!(seen(&pins, &offered("c", &[long(name)])).await.1, [name]);
    }
    let error = pins.vet(&x(), &offered("c", &[long("c")])).await.unwrap_err().to_string();
    assert!(error.contains("Server \"x\" is not available"), "{error}");
    let changed = world.store.pins(None).await.unwrap();
    assert_eq!(changed.iter().map(|pin| pin.changed.is_some()).collect::<Vec<_>>(), [true, true, false]);
    assert_eq!(seen(&pins, &offered("c", &small)).await.0.len(), 3, "what was pinned is still good, and makes room");
    assert_eq!(seen(&pins, &offered("c", &[long("c")])).await.1, ["c"]);
}

#[tokio::test]
async fn harnesses_that_see_a_tool_first_at_the_same_time_agree_on_one_definition() {
    let world = World::new().await;
    let (one, two) = (world.pins(), world.another().await);
    let (a, b) = (offered("c", &[tool("a", "1")]), offered("c", &[tool("a", "2")]));
    let (first, second) = tokio::join!(seen(&one, &a), seen(&two, &b));
    assert_eq!(first.0.len() + second.0.len(), 1, "{first:?} {second:?}");
    assert_eq!(first.1.len() + second.1.len(), 1, "{first:?} {second:?}");
}

#[tokio::test]
async fn a_store_that_is_locked_for_good_refuses_and_recovers() {
    let world = World::new().await;
    let pins = world.pins();
    let held = Store::open(world.folder.path()).await.unwrap();
    let mut connection = held.raw().await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut connection).await.unwrap();
    let a = offered("c", &[tool("a", "1")]);
    let began = tokio::time::Instant::now();
    let x = x();
    let all = futures::future::join_all((0..8).map(|_| pins.vet(&x, &a))).await;
    assert!(all.iter().all(Result::is_err));
    assert!(began.elapsed() < Duration::from_secs(15), "they wait together: {:?}", began.elapsed());
    sqlx::raw_sql("ROLLBACK").execute(&mut connection).await.unwrap();
    assert_eq!(seen(&pins, &a).await.0, ["a"]);
}

#[tokio::test]
async fn a_pin_that_was_tampered_with_is_damage() {
    let world = World::new().await;
    seen(&world.pins(), &offered("c", &[tool("a", "1")])).await;
    let mut connection = world.store.raw().await;
    sqlx::raw_sql("UPDATE pins SET definition = '{}'").execute(&mut connection).await.unwrap();
    drop(connection);
    let error = world.store.pins(None).await.unwrap_err();
    assert!(matches!(error.problem, Problem::Damaged(_)) && error.to_string().contains("\"a\""), "{error}");
}

#[tokio::test]
async fn a_store_that_is_locked_costs_no_more_than_the_server_has() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).await.unwrap();
    let other = Store::open(folder.path()).await.unwrap();
    let mut holds = other.raw().await;
    sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut holds).await.unwrap();
    let say = |_: Value, _: ToolContext| async { ToolResult::default() };
    let tools = InProcess::new("x").tool(ToolDefinition::new("say"), say).build().unwrap();
    let guard = Guard { budget: Budget::new(1 << 20), redactor: Redactor::default() };
    let upstream = Upstream::new(Arc::new(tools), guard);
    let upstream = upstream.pinned(Some(Pins::in_store(Arc::new(store))));
    let (server, began) = ("x".parse().unwrap(), tokio::time::Instant::now());
    let error = upstream.catalogues().visible(&server, &open(), Duration::ZERO).await.unwrap_err().to_string();
    assert!(error.contains("not available") && error.contains("try again"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    sqlx::raw_sql("ROLLBACK").execute(&mut holds).await.unwrap();
    upstream.catalogues().visible(&server, &open(), Duration::from_secs(30)).await.unwrap();
}
