//! Real clients of model APIs in a sandbox whose only way out is the bridge, against a model that follows a script: SDKs in
//! two languages, and three agents that carry out a task with their shell, `tool-cli` and the bridge as an MCP server.

use std::{collections::BTreeMap, ffi::OsStr, fs, path::PathBuf, thread, time::Duration};

use footbridge_tests::{Host, Ran, Real, Running, ScriptedModel, Servers, Step, programs, skipped};
use serde_json::{Value, json};

/// The key that only the model may see.
const KEY: &str = "sk-the-real-key";

/// A host whose services lead to a model.
fn beside(model: &ScriptedModel) -> Host {
    with_settings(model, "")
}

/// The same, where a person has to allow what changes something.
fn asking_beside(model: &ScriptedModel) -> Host {
    with_settings(model, "[approval]\nwatch = true\n").policy("ask")
}

fn with_settings(model: &ScriptedModel, more: &str) -> Host {
    let url = format!("http://127.0.0.1:{}", model.port);
    let service =
        |name: &str| format!("[services.{name}]\npreset = \"{name}\"\nurl = \"{url}\"\ncredential = \"{KEY}\"\n");
    let names = ["anthropic", "openai", "gemini"];
    let host = Host::with(&Servers::demo()).settings(&(names.map(service).concat() + more));
    names.iter().fold(host, |host, name| host.option("--service").option(name))
}

/// A program of `scripts/servers`, as it is without links, and a host that shows it.
fn showing(host: Host, program: &Real, levels: usize) -> (Host, PathBuf) {
    let program = fs::canonicalize(program.program()).unwrap();
    let folder = program.ancestors().nth(levels).unwrap().to_owned();
    (host.option("--show").option(folder), program)
}

/// What the record says of models, and that nobody but the model saw its key, nor the model the session's token.
fn is_recorded(host: &Host, model: &ScriptedModel, ran: &Ran) {
    let heard = model.heard();
    assert!(!heard.is_empty(), "{ran:?}");
    for one in &heard {
        assert!(one.head.contains(KEY) && !one.head.contains("fbt_"), "{}", one.head);
        assert!(!one.body.to_string().contains("fbt_"), "{}", one.line);
    }
    assert!(!ran.stdout.contains(KEY) && !ran.stderr.contains(KEY), "{ran:?}");
    let record = host.record();
    let used: Vec<&Value> = record.iter().filter(|line| line["tokens_in"] == 11).collect();
    let counts = |line: &str| line.contains("count_tokens") || line.contains(":countTokens");
    let asked = heard.iter().filter(|one| !one.line.contains("/v1/models") && !counts(&one.line)).count();
    assert_eq!(used.len(), asked, "{record:?}");
    // Codex leaves with the last event, before the end of the answer.
    let left = |line: &Value| line["detail"].as_str().is_some_and(|why| why.starts_with("its client left"));
    let went_well = |line: &&Value| line["tokens_out"] == 5 && (line["outcome"] == "ok" || left(line));
    assert!(used.iter().all(went_well), "{used:?}");
}

const PYTHON: &str = r#"
import anthropic, openai
said = [{"role": "user", "content": "hi"}]
a, o = anthropic.Anthropic(), openai.OpenAI()
print(a.messages.create(model="m", max_tokens=9, messages=said).content[0].text)
with a.messages.stream(model="m", max_tokens=9, messages=said) as stream:
    print("".join(stream.text_stream))
print(o.responses.create(model="m", input="hi").output_text)
print("".join(e.delta for e in o.responses.create(model="m", input="hi", stream=True) if e.type == "response.output_text.delta"))
print(o.chat.completions.create(model="m", messages=said).choices[0].message.content)
print("".join(c.choices[0].delta.content or "" for c in o.chat.completions.create(model="m", messages=said, stream=True) if c.choices))
try:
    o.files.list()
except openai.BadRequestError as error:
    print(error.message)
"#;

const SCRIPT: &str = r#"
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
const said = [{role: "user", content: "hi"}];
const a = new Anthropic(), o = new OpenAI();
console.log((await a.messages.create({model: "m", max_tokens: 9, messages: said})).content[0].text);
console.log(await a.messages.stream({model: "m", max_tokens: 9, messages: said}).finalText());
console.log((await o.responses.create({model: "m", input: "hi"})).output_text);
let text = "";
for await (const e of await o.responses.create({model: "m", input: "hi", stream: true}))
  if (e.type === "response.output_text.delta") text += e.delta;
console.log(text);
console.log((await o.chat.completions.create({model: "m", messages: said})).choices[0].message.content);
text = "";
for await (const c of await o.chat.completions.create({model: "m", messages: said, stream: true}))
  text += c.choices[0]?.delta?.content ?? "";
console.log(text);
try { await o.files.list(); } catch (error) { console.log(error.message); }
"#;

/// Each of the six ways gives the model's words, and what is refused says why.
fn said(ran: &Ran) {
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(ran.status, 0, "{ran:?}");
    assert_eq!(lines[..6], ["hello from the model"; 6], "{ran:?}");
    assert!(lines[6].contains("does not take \"GET /v1/files\"") && lines[6].contains("(record "), "{ran:?}");
}

#[test]
fn python_sdks_reach_their_models() {
    let Some(git) = Real::server("python_sdks_reach_their_models", "mcp-server-git") else { return };
    let model = ScriptedModel::start(vec![Step::Say("hello from the model".to_owned())]);
    let (host, server) = showing(beside(&model), &git, 2);
    let python = server.with_file_name("python");
    let ran = host.runs(&[python.to_str().unwrap(), "-c", PYTHON]);
    said(&ran);
    is_recorded(&host, &model, &ran);
    host.leaves_nothing_behind();
}

/// A client that waits no longer than this for the next byte, and asks once.
const PATIENT: &str = r#"
import anthropic
a = anthropic.Anthropic(timeout=2, max_retries=0)
with a.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]) as stream:
    print("".join(stream.text_stream))
"#;

#[test]
fn a_client_of_anthropic_waits_for_a_person_beyond_its_time() {
    let test = "a_client_of_anthropic_waits_for_a_person_beyond_its_time";
    let Some(git) = Real::server(test, "mcp-server-git") else { return };
    let model = ScriptedModel::start(vec![Step::Say("hello from the model".to_owned())]);
    let asks = "[approval]\nwatch = true\n[limits.edge]\nheartbeat_time = \"200ms\"\n\
                [policies.asks]\n[[policies.asks.rules]]\ndecision = \"ask\"\nkind = \"http\"\n";
    let (host, server) = showing(with_settings(&model, asks).policy("asks"), &git, 2);
    let running = host.starts(&[server.with_file_name("python").to_str().unwrap(), "-c", PATIENT]);
    let pending = host.pending(1);
    // Held back for longer than the client waits in silence.
    thread::sleep(Duration::from_secs(4));
    assert!(model.heard().is_empty());
    host.answers(&["allow", pending[0]["id"].as_str().unwrap()]);
    let ran = running.ends();
    assert_eq!((ran.status, &*ran.stdout), (0, "hello from the model\n"), "{ran:?}");
    is_recorded(&host, &model, &ran);
    host.leaves_nothing_behind();
}

#[test]
fn typescript_sdks_reach_their_models() {
    let test = "typescript_sdks_reach_their_models";
    let (Some(node), Some(verdaccio)) = (Real::server(test, "node"), Real::server(test, "verdaccio")) else { return };
    let model = ScriptedModel::start(vec![Step::Say("hello from the model".to_owned())]);
    let (host, node) = showing(beside(&model), &node, 1);
    let (host, verdaccio) = showing(host, &verdaccio, 3);
    let modules = verdaccio.ancestors().nth(3).unwrap();
    assert!(modules.ends_with("node_modules"), "{modules:?}");
    std::os::unix::fs::symlink(modules, host.work().join("node_modules")).unwrap();
    fs::write(host.work().join("ask.mjs"), SCRIPT).unwrap();
    let ran = host.runs(&[node.to_str().unwrap(), "ask.mjs"]);
    said(&ran);
    is_recorded(&host, &model, &ran);
    host.leaves_nothing_behind();
}

/// The calls of tools in the record, by the client that made them.
fn weather(host: &Host) -> usize {
    let is_weather = |line: &Value| line["type"] == "intent" && line["kind"] == "tool" && line["name"] == "get_weather";
    host.record().iter().filter(|line| is_weather(line)).count()
}

/// A step that calls a tool by the command.
fn command() -> Step {
    Step::Shell("tool-cli demo get_weather --city Bern --pick .temperature".to_owned())
}

/// What the model heard of this step's result.
fn results(model: &ScriptedModel) -> String {
    model.heard().last().unwrap().body.to_string()
}

const TASK: &str = "What is the weather in Bern and in Zurich?";

/// Claude Code with a task, in a run that tells it of the bridge.
fn claude_with(host: Host, claude: &Real, task: &str) -> (Host, Running) {
    let (host, claude) = showing(host.option("--agent").option("claude"), claude, 1);
    let running = host.starts(&[claude.to_str().unwrap(), "-p", task, "--allowedTools", "Bash", "mcp__footbridge"]);
    (host, running)
}

/// Codex, likewise; the run is a sandbox already.
fn codex_with(host: Host, codex: &Real, task: &str) -> (Host, Running) {
    let (host, codex) = showing(host.option("--agent").option("codex"), codex, 2);
    let words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "gpt-5", task];
    let running = host.starts(&[&[codex.to_str().unwrap()], &words[..]].concat());
    (host, running)
}

/// Gemini CLI, which takes its settings from a file, as its recipe has it.
fn gemini_with(host: Host, (gemini, node): (&Real, &Real), task: &str) -> (Host, Running) {
    let settings = host.footbridge(&["agent-config", "gemini"].map(OsStr::new)).output().unwrap();
    assert!(settings.status.success(), "{settings:?}");
    fs::write(host.work().join("gemini.json"), settings.stdout).unwrap();
    let (host, gemini) = showing(host, gemini, 4);
    let (host, node) = showing(host, node, 1);
    let prepare = "mkdir -p ~/.gemini && cp gemini.json ~/.gemini/settings.json && exec \"$@\"";
    let words = ["--skip-trust", "--yolo", "-p", task];
    let program = ["sh", "-c", prepare, "sh", node.to_str().unwrap(), gemini.to_str().unwrap()];
    let running = host.starts(&[&program, &words[..]].concat());
    (host, running)
}

/// A person allows the note that an agent wants to add, and the agent goes on with it.
fn is_allowed((host, mut running): (Host, Running), model: &ScriptedModel) {
    // Codex reads its standard input first.
    running.hears_no_more();
    let pending = host.pending(1);
    assert_eq!((&pending[0]["server"], &pending[0]["name"]), (&json!("demo"), &json!("add_note")));
    host.answers(&["allow", pending[0]["id"].as_str().unwrap()]);
    let ran = running.ends();
    assert!(ran.status == 0 && ran.stdout.contains("the task is done"), "{ran:?} {:?}", model.heard());
    assert!(results(model).contains("note:///1"), "{:?}", model.heard());
    let record = host.record();
    let of_note = |line: &&Value| line["name"] == "add_note";
    let states: Vec<&Value> =
        record.iter().filter(of_note).filter(|line| line["type"] == "approval").map(|line| &line["state"]).collect();
    assert_eq!(states, ["pending", "granted", "used"]);
    assert_eq!(record.iter().filter(of_note).filter(|line| line["type"] == "intent").count(), 1);
    is_recorded(&host, model, &ran);
}

#[test]
fn claude_code_waits_until_a_person_allows_its_call() {
    let Some(claude) = Real::server("claude_code_waits_until_a_person_allows_its_call", "claude") else { return };
    let select = json!({"query": "select:mcp__footbridge__demo__add_note", "max_results": 1});
    let model = ScriptedModel::start(vec![
        Step::Tool("ToolSearch".to_owned(), select),
        Step::Tool("mcp__footbridge__demo__add_note".to_owned(), json!({"text": "one"})),
        Step::Say("the task is done".to_owned()),
    ]);
    is_allowed(claude_with(asking_beside(&model), &claude, "Note: one"), &model);
}

#[test]
fn codex_waits_until_a_person_allows_its_call() {
    let Some(codex) = Real::server("codex_waits_until_a_person_allows_its_call", "codex") else { return };
    let model = ScriptedModel::start(vec![
        // Its servers have started by then.
        command(),
        Step::Tool("add_note".to_owned(), json!({"text": "one"})),
        Step::Say("the task is done".to_owned()),
    ]);
    is_allowed(codex_with(asking_beside(&model), &codex, "Note: one"), &model);
}

#[test]
fn claude_code_carries_out_a_task() {
    let Some(claude) = Real::server("claude_code_carries_out_a_task", "claude") else { return };
    // It loads the tools of MCP servers when it is asked to.
    let select = json!({"query": "select:mcp__footbridge__demo__get_weather", "max_results": 1});
    let model = ScriptedModel::start(vec![
        command(),
        Step::Tool("ToolSearch".to_owned(), select),
        Step::Tool("mcp__footbridge__demo__get_weather".to_owned(), json!({"city": "Zurich"})),
        Step::Say("the task is done".to_owned()),
    ]);
    let (host, running) = claude_with(beside(&model), &claude, TASK);
    let ran = running.ends();
    assert!(ran.status == 0 && ran.stdout.contains("the task is done"), "{ran:?} {:?}", model.heard());
    let results = results(&model);
    assert!(results.contains("5.7") && results.contains("Zurich") && weather(&host) == 2, "{results}");
    is_recorded(&host, &model, &ran);
}

#[test]
fn codex_carries_out_a_task() {
    let Some(codex) = Real::server("codex_carries_out_a_task", "codex") else { return };
    let model = ScriptedModel::start(vec![
        command(),
        Step::Tool("get_weather".to_owned(), json!({"city": "Zurich"})),
        Step::Say("the task is done".to_owned()),
    ]);
    let (host, running) = codex_with(beside(&model), &codex, TASK);
    let ran = running.ends();
    assert!(ran.status == 0 && ran.stdout.contains("the task is done"), "{ran:?} {:?}", model.heard());
    let results = results(&model);
    assert!(results.contains("5.7") && results.contains("Zurich") && weather(&host) == 2, "{results}");
    is_recorded(&host, &model, &ran);
}

/// Gemini CLI and the node that runs it.
fn gemini(test: &str) -> Option<(Real, Real)> {
    Some((Real::server(test, "gemini.js")?, Real::server(test, "node")?))
}

#[test]
fn gemini_cli_waits_until_a_person_allows_its_call() {
    let Some((gemini, node)) = gemini("gemini_cli_waits_until_a_person_allows_its_call") else { return };
    let model = ScriptedModel::start(vec![
        Step::Tool("add_note".to_owned(), json!({"text": "one"})),
        Step::Say("the task is done".to_owned()),
    ]);
    is_allowed(gemini_with(asking_beside(&model), (&gemini, &node), "Note: one"), &model);
}

#[test]
fn gemini_cli_carries_out_a_task() {
    let Some((gemini, node)) = gemini("gemini_cli_carries_out_a_task") else { return };
    let model = ScriptedModel::start(vec![
        command(),
        Step::Tool("get_weather".to_owned(), json!({"city": "Zurich"})),
        Step::Say("the task is done".to_owned()),
    ]);
    let (host, running) = gemini_with(beside(&model), (&gemini, &node), TASK);
    let ran = running.ends();
    assert!(ran.status == 0 && ran.stdout.contains("the task is done"), "{ran:?} {:?}", model.heard());
    let results = results(&model);
    assert!(results.contains("5.7") && results.contains("Zurich") && weather(&host) == 2, "{results}");
    is_recorded(&host, &model, &ran);
}

/// Asks two services for words of two models, whole and as events.
const ASK: &str = r#"
ask() { curl -sS -o answer -H "x-api-key: $TOOL_CLI_TOKEN" -d "$2" http://127.0.0.1:$TOOL_CLI_PORT/s/$1; }
ask anthropic/v1/messages '{"model":"m-1"}'
ask anthropic/v1/messages '{"model":"m-2","stream":true}'
ask openai/v1/chat/completions '{"model":"m-1"}'
"#;

/// What usage is summed by.
const BY: [&str; 5] = ["session", "label:team", "service", "model", "day"];
/// What is summed up besides the requests.
const SUMMED: [&str; 4] = ["tokens_in", "tokens_out", "sent", "received"];

/// Sums of usage by what they are summed by, requests first.
type Used = BTreeMap<[String; BY.len()], [u64; 1 + SUMMED.len()]>;

fn summed(of: &Value, requests: u64) -> [u64; 1 + SUMMED.len()] {
    let [tokens_in, tokens_out, sent, received] = SUMMED.map(|name| of[name].as_u64().unwrap());
    [requests, tokens_in, tokens_out, sent, received]
}

/// The sums, as the outcomes in the record have it.
fn used(record: &[Value], team: &str) -> Used {
    let mut used = Used::new();
    for outcome in record.iter().filter(|line| line["type"] == "outcome") {
        let intent = record.iter().find(|line| line["type"] == "intent" && line["id"] == outcome["id"]).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let day = text(&outcome["time"])[..10].to_owned();
        let by = [text(&intent["session"]), team.to_owned(), text(&intent["server"]), text(&outcome["model"]), day];
        let sums = used.entry(by).or_default();
        sums.iter_mut().zip(summed(outcome, 1)).for_each(|(sum, one)| *sum += one);
    }
    used
}

#[test]
fn the_usage_that_is_summed_up_is_that_of_the_outcomes() {
    if !programs::on_path("curl") {
        return skipped("the_usage_that_is_summed_up_is_that_of_the_outcomes", "curl is missing");
    }
    let model = ScriptedModel::start(vec![Step::Say("hello from the model".to_owned())]);
    let host = beside(&model).option("--label=team=search");
    for more in ["", "ask anthropic/v1/messages '{\"model\":\"m-1\",\"max_tokens\":9}'"] {
        let ran = host.runs_script(&format!("{ASK}{more}"));
        assert_eq!(ran.status, 0, "{ran:?}");
    }
    let by = BY.join(",");
    let words = ["audit", "usage", "--json", "--by", &by].map(OsStr::new);
    let printed = Running::start(&mut host.footbridge(&words)).ends().well();
    let lines = printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let sums = lines.map(|line| {
        assert_eq!(line["unknown"], 0, "{line}");
        (BY.map(|by| line[by].as_str().unwrap().to_owned()), summed(&line, line["requests"].as_u64().unwrap()))
    });
    let sums: Used = sums.collect();
    assert_eq!(sums, used(&host.record(), "search"), "{printed}");
    assert!(sums.len() >= 6 && printed.lines().count() == sums.len(), "{printed}");
    let total = |at: usize| sums.values().map(|sums| sums[at]).sum::<u64>();
    assert_eq!([total(0), total(1), total(2)], [7, 77, 35], "{printed}");
}
