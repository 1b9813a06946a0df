//! Where there is much to look through, it is done for a session one by one, and what is short does not wait for it.

use serde_json::json;

use super::*;

/// A server with more to say of its tools than is gone through at once.
fn talkative() -> InProcess {
    let tools = (0..10).map(|n| ToolDefinition::new(format!("t{n}")).description("x".repeat(10_000)));
    let says = |_: Value, _: ToolContext| async { ToolResult::text("") };
    tools.fold(InProcess::new("talks"), |server, tool| server.tool(tool, says)).build().unwrap()
}

#[tokio::test]
async fn what_goes_through_much_is_done_one_by_one_and_what_is_short_at_once() {
    let (sender, cancelled) = mpsc::channel(1);
    let world = World::over(Several::new().and(talkative()).and(tools(sender)), cancelled);
    let asked = |method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
    };
    let names = |server: &str| asked("listTools", json!({"server": server}));
    let mcp = |method: &str, mut params: Value| {
        params["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}});
        let name = params.get("name").map_or(String::new(), |name| format!("\r\nMcp-Name: {}", name.as_str().unwrap()));
        let accept = format!("application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}{name}");
        ("POST /mcp", accept, asked(method, params))
    };
    let json = "application/json".to_owned();
    let long = [
        ("POST /", json.clone(), names("talks")),
        ("POST /", json.clone(), asked("listTools", json!({"server": "talks", "full": true}))),
        ("POST /", json.clone(), asked("listPrompts", json!({"server": "talks"}))),
        ("POST /", json.clone(), asked("listServers", json!({}))),
        ("POST /", json.clone(), asked("searchTools", json!({"query": "t1"}))),
        mcp("tools/list", json!({})),
        mcp("tools/call", json!({"name": "talks__x_0123456789ab"})),
    ];
    let turn = world.session.turn().await;
    let mut waiting = Vec::new();
    for (line, accept, body) in &long {
        waiting.push(world.send(line, accept, body).await);
    }
    for _ in 0..20 {
        assert!(world.answer("POST /", &json, &names("maths")).await.contains("double"));
    }
    let early: Vec<_> = long.iter().zip(&waiting).filter(|(_, stream)| stream.try_read(&mut [0]).is_ok()).collect();
    assert!(early.is_empty(), "{early:?}");
    drop(turn);
    for mut stream in waiting {
        let mut text = String::new();
        timeout(LONG, stream.read_to_string(&mut text)).await.unwrap().unwrap();
        assert!(text.contains("t1") || text.contains("talks") || text.contains("not found"), "{text}");
    }
    world.end().await;
}
