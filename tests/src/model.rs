//! A model that says what a test has written down: four wire formats, whole or as events, with uses of tools.
//!
//! It listens on loopback without TLS, as services may. Which step of its script comes next is told by how many uses of
//! tools the request holds already; what offers none of the tools that a step needs is answered with a word. So it needs
//! no state, and what an agent asks besides (a title, say) disturbs nothing.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use serde_json::{Value, json};

/// What the model does next.
#[derive(Debug, Clone)]
pub enum Step {
    /// It runs this in the agent's shell.
    Shell(String),
    /// It uses a tool whose name ends like this, with this input.
    Tool(String, Value),
    /// It says this, and is done.
    Say(String),
}

/// The model of a test. Its threads end with their connections.
#[derive(Debug)]
pub struct ScriptedModel {
    /// Where it listens.
    pub port: u16,
    heard: Arc<Mutex<Vec<Heard>>>,
}

/// A request to the model.
#[derive(Debug, Clone)]
pub struct Heard {
    /// Method and path.
    pub line: String,
    /// Its headers, in small letters.
    pub head: String,
    /// Its body; null where it is no JSON.
    pub body: Value,
}

/// The formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Messages,
    Responses,
    Chat,
    Generate,
}

/// What is answered: a use of a tool, or words.
enum Act {
    Use { tool: ToolName, input: Value, number: usize },
    Say(String),
}

/// A tool as a request offers it.
struct ToolName {
    name: String,
    /// Tools of some agents are in a group with a name of its own.
    namespace: Option<String>,
}

/// Names of tools that run a command, by agent.
const SHELLS: [&str; 6] = ["Bash", "exec_command", "shell_command", "shell", "bash", "run_shell_command"];

impl ScriptedModel {
    /// Starts it with this script.
    #[must_use]
    pub fn start(script: Vec<Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&heard);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (script, all) = (script.clone(), Arc::clone(&all));
                // A client that left needs no answer.
                thread::spawn(move || stream.map(|stream| serve(stream, &script, &all)));
            }
        });
        Self { port, heard }
    }

    /// What it was asked so far.
    #[must_use]
    pub fn heard(&self) -> Vec<Heard> {
        self.heard.lock().unwrap().clone()
    }
}

/// Answers all requests of a connection.
fn serve(stream: TcpStream, script: &[Step], all: &Mutex<Vec<Heard>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    while let Some(heard) = receive(&mut reader)? {
        all.lock().unwrap().push(heard.clone());
        answer(&mut writer, &heard, script)?;
    }
    Ok(())
}

/// The next request; none at the end.
fn receive(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Heard>> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(None);
        }
    }
    let line = head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
    let head = head.to_ascii_lowercase();
    let mut body = Vec::new();
    if let Some((_, rest)) = head.split_once("\r\ncontent-length: ") {
        body.resize(rest.lines().next().unwrap_or_default().trim().parse().unwrap_or_default(), 0);
        reader.read_exact(&mut body)?;
    } else if head.contains("\r\ntransfer-encoding: chunked") {
        loop {
            let mut size = String::new();
            reader.read_line(&mut size)?;
            let mut chunk = vec![0; usize::from_str_radix(size.trim(), 16).unwrap_or_default() + 2];
            reader.read_exact(&mut chunk)?;
            if chunk.len() == 2 {
                break;
            }
            body.extend_from_slice(&chunk[..chunk.len() - 2]);
        }
    }
    Ok(Some(Heard { line, head, body: serde_json::from_slice(&body).unwrap_or_default() }))
}

fn answer(to: &mut TcpStream, heard: &Heard, script: &[Step]) -> std::io::Result<()> {
    let path = heard.line.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let wire = match path {
        _ if path.ends_with("/messages/count_tokens") => return whole(to, 200, &json!({"input_tokens": 10})),
        _ if path.ends_with("/models") => {
            return whole(to, 200, &json!({"object": "list", "data": [], "models": [], "has_more": false}));
        }
        _ if path.ends_with(":countTokens") => return whole(to, 200, &json!({"totalTokens": 10})),
        _ if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") => Wire::Generate,
        _ if path.ends_with("/messages") => Wire::Messages,
        _ if path.ends_with("/responses") => Wire::Responses,
        _ if path.ends_with("/chat/completions") => Wire::Chat,
        _ => {
            let error = json!({"type": "not_found_error", "message": "the script has no such page"});
            return whole(to, 404, &json!({"type": "error", "error": error}));
        }
    };
    let act = shaped(&heard.body).map_or_else(|| act(wire, &heard.body, script), Act::Say);
    let model = heard.body["model"].as_str().unwrap_or("scripted").to_owned();
    if heard.body["stream"] == true || path.ends_with(":streamGenerateContent") {
        let events = match wire {
            Wire::Messages => messages_events(&act, &model),
            Wire::Responses => responses_events(&act, &model),
            Wire::Chat => chat_events(&act, &model),
            Wire::Generate => vec![format!("data: {}\r\n\r\n", generated(&act, &model))],
        };
        return streamed(to, &events);
    }
    let value = match wire {
        Wire::Messages => message(&act, &model),
        Wire::Responses => response(&act, &model),
        Wire::Chat => completion(&act, &model),
        Wire::Generate => generated(&act, &model),
    };
    whole(to, 200, &value)
}

fn whole(to: &mut TcpStream, status: u16, value: &Value) -> std::io::Result<()> {
    let text = value.to_string();
    let head =
        format!("HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", text.len());
    to.write_all(head.as_bytes())?;
    to.write_all(text.as_bytes())
}

/// Events, each in a write of its own.
fn streamed(to: &mut TcpStream, events: &[String]) -> std::io::Result<()> {
    to.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")?;
    for event in events {
        to.write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())?;
    }
    to.write_all(b"0\r\n\r\n")
}

/// What comes next in the script, by what the request holds.
fn act(wire: Wire, body: &Value, script: &[Step]) -> Act {
    let offered = offered(body);
    if offered.is_empty() && script.iter().any(|step| !matches!(step, Step::Say(_))) {
        return Act::Say("nothing to do".to_owned());
    }
    let find = |fits: &dyn Fn(&str) -> bool| offered.iter().find(|tool| fits(&tool.name));
    let named = |tool: &ToolName| ToolName { name: tool.name.clone(), namespace: tool.namespace.clone() };
    let number = uses(wire, body);
    match script.get(number) {
        Some(Step::Shell(command)) => match find(&|name| SHELLS.contains(&name)) {
            Some(tool) => Act::Use { input: shell_input(&tool.name, command), tool: named(tool), number },
            None => Act::Say("there is no shell".to_owned()),
        },
        Some(Step::Tool(end, input)) => match find(&|name| name.ends_with(end.as_str())) {
            Some(tool) => Act::Use { tool: named(tool), input: input.clone(), number },
            // What an agent loads when it is asked for is named in what it says, and in no list.
            None if body.to_string().contains(end.as_str()) => {
                Act::Use { tool: ToolName { name: end.clone(), namespace: None }, input: input.clone(), number }
            }
            None => Act::Say(format!("there is no tool {end}")),
        },
        Some(Step::Say(text)) => Act::Say(text.clone()),
        None => Act::Say("done".to_owned()),
    }
}

/// What fits the schema that an answer is to have: Gemini CLI lets a model choose the model.
fn shaped(body: &Value) -> Option<String> {
    let config = &body["generationConfig"];
    let schema = ["responseJsonSchema", "responseSchema"].into_iter().find_map(|name| config.get(name))?;
    Some(fitting(schema).to_string())
}

fn fitting(schema: &Value) -> Value {
    let kind = schema["type"].as_str().unwrap_or("object").to_ascii_lowercase();
    match (schema["enum"].get(0), kind.as_str()) {
        (Some(first), _) => first.clone(),
        (None, "object") => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            properties.map(|(name, of)| (name.clone(), fitting(of))).collect()
        }
        (None, "array") => json!([]),
        (None, "boolean") => json!(false),
        (None, "integer" | "number") => json!(1),
        (None, _) => json!("as the script says"),
    }
}

fn shell_input(name: &str, command: &str) -> Value {
    match name {
        "exec_command" => json!({"cmd": command}),
        "shell" => json!({"command": ["sh", "-c", command]}),
        _ => json!({"command": command, "description": "a step of the script"}),
    }
}

/// All tools that a request offers.
fn offered(body: &Value) -> Vec<ToolName> {
    let mut all = Vec::new();
    for tool in body["tools"].as_array().into_iter().flatten() {
        for inner in tool["functionDeclarations"].as_array().into_iter().flatten() {
            all.push(ToolName { name: inner["name"].as_str().unwrap_or_default().to_owned(), namespace: None });
        }
        let name = tool["name"].as_str().or_else(|| tool["function"]["name"].as_str()).unwrap_or_default();
        for inner in tool["tools"].as_array().into_iter().flatten() {
            let inner = inner["name"].as_str().unwrap_or_default().to_owned();
            all.push(ToolName { name: inner, namespace: Some(name.to_owned()) });
        }
        all.push(ToolName { name: name.to_owned(), namespace: None });
    }
    all
}

/// How many tools were used so far.
fn uses(wire: Wire, body: &Value) -> usize {
    let each = |list: &Value| list.as_array().cloned().unwrap_or_default();
    match wire {
        Wire::Messages => {
            let parts = each(&body["messages"]).into_iter().flat_map(|message| each(&message["content"]));
            parts.filter(|part| part["type"] == "tool_use").count()
        }
        Wire::Responses => each(&body["input"]).iter().filter(|item| item["type"] == "function_call").count(),
        Wire::Chat => each(&body["messages"]).iter().map(|message| each(&message["tool_calls"]).len()).sum(),
        Wire::Generate => {
            let parts = each(&body["contents"]).into_iter().flat_map(|content| each(&content["parts"]));
            parts.filter(|part| part["functionCall"].is_object()).count()
        }
    }
}

fn content(act: &Act) -> Value {
    match act {
        Act::Use { tool, input, number } => {
            json!({"type": "tool_use", "id": format!("toolu_{number}"), "name": tool.name, "input": input})
        }
        Act::Say(text) => json!({"type": "text", "text": text}),
    }
}

fn message(act: &Act, model: &str) -> Value {
    let reason = if matches!(act, Act::Use { .. }) { "tool_use" } else { "end_turn" };
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [content(act)],
        "stop_reason": reason, "stop_sequence": null, "usage": {"input_tokens": 11, "output_tokens": 5},
    })
}

fn messages_events(act: &Act, model: &str) -> Vec<String> {
    let mut start = message(act, model);
    start["content"] = json!([]);
    start["stop_reason"] = Value::Null;
    start["usage"]["output_tokens"] = json!(1);
    let (block, delta) = match act {
        Act::Use { input, .. } => {
            let mut block = content(act);
            block["input"] = json!({});
            (block, json!({"type": "input_json_delta", "partial_json": input.to_string()}))
        }
        Act::Say(text) => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text})),
    };
    let reason = message(act, model)["stop_reason"].clone();
    let end = json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
        "usage": {"output_tokens": 5}});
    let all = [
        json!({"type": "message_start", "message": start}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        end,
        json!({"type": "message_stop"}),
    ];
    all.iter().map(named_event).collect()
}

fn named_event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default())
}

fn item(act: &Act) -> Value {
    match act {
        Act::Use { tool, input, number } => {
            let (id, call) = (format!("fc_{number}"), format!("call_{number}"));
            let mut item = json!({"type": "function_call", "id": id, "call_id": call, "name": tool.name,
                "arguments": input.to_string(), "status": "completed"});
            if let Some(namespace) = &tool.namespace {
                item["namespace"] = json!(namespace);
            }
            item
        }
        Act::Say(text) => {
            let part = json!({"type": "output_text", "text": text, "annotations": []});
            json!({"type": "message", "id": "item_1", "role": "assistant", "status": "completed", "content": [part]})
        }
    }
}

fn response(act: &Act, model: &str) -> Value {
    let usage = json!({"input_tokens": 11, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 16});
    json!({
        "id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": model,
        "output": [item(act)], "usage": usage, "parallel_tool_calls": false, "tool_choice": "auto", "tools": [],
        "error": null, "incomplete_details": null, "instructions": null, "metadata": {}, "temperature": 1, "top_p": 1,
    })
}

fn responses_events(act: &Act, model: &str) -> Vec<String> {
    let mut begun = response(act, model);
    begun["status"] = json!("in_progress");
    begun["output"] = json!([]);
    begun["usage"] = Value::Null;
    let item = item(act);
    let mut all = vec![json!({"type": "response.created", "response": begun})];
    all.push(json!({"type": "response.output_item.added", "output_index": 0, "item": item}));
    if let Act::Say(text) = act {
        all.push(json!({"type": "response.content_part.added", "item_id": "item_1", "output_index": 0,
            "content_index": 0, "part": {"type": "output_text", "text": "", "annotations": []}}));
        all.push(json!({"type": "response.output_text.delta", "item_id": "item_1", "output_index": 0,
            "content_index": 0, "delta": text}));
        all.push(json!({"type": "response.output_text.done", "item_id": "item_1", "output_index": 0,
            "content_index": 0, "text": text}));
    }
    all.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    all.push(json!({"type": "response.completed", "response": response(act, model)}));
    for (number, event) in all.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    all.iter().map(named_event).collect()
}

fn tool_call(act: &Act) -> Option<Value> {
    let Act::Use { tool, input, number } = act else { return None };
    let function = json!({"name": tool.name, "arguments": input.to_string()});
    Some(json!({"id": format!("call_{number}"), "type": "function", "function": function}))
}

fn completion(act: &Act, model: &str) -> Value {
    let (words, reason) = match act {
        Act::Use { .. } => (Value::Null, "tool_calls"),
        Act::Say(text) => (json!(text), "stop"),
    };
    let mut message = json!({"role": "assistant", "content": words});
    if let Some(call) = tool_call(act) {
        message["tool_calls"] = json!([call]);
    }
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 5, "total_tokens": 16},
    })
}

fn chat_events(act: &Act, model: &str) -> Vec<String> {
    let chunk = |choices: Value, usage: Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model,
            "choices": choices, "usage": usage})
    };
    let mut delta = completion(act, model)["choices"][0]["message"].clone();
    if let Some(call) = delta["tool_calls"].get_mut(0) {
        call["index"] = json!(0);
    }
    let reason = completion(act, model)["choices"][0]["finish_reason"].clone();
    let all = [
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null),
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}]), Value::Null),
        chunk(json!([]), completion(act, model)["usage"].clone()),
    ];
    let mut events: Vec<String> = all.iter().map(|value| format!("data: {value}\n\n")).collect();
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// Google's format has no ids of calls, and its events are whole answers.
fn generated(act: &Act, model: &str) -> Value {
    let part = match act {
        Act::Use { tool, input, .. } => json!({"functionCall": {"name": tool.name, "args": input}}),
        Act::Say(text) => json!({"text": text}),
    };
    let content = json!({"role": "model", "parts": [part]});
    json!({"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "modelVersion": model,
        "usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 5, "totalTokenCount": 16}})
}
