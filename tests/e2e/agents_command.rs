//! What `footbridge run` hands an agent: a `tool-cli` that costs it little, and the bridge as an MCP server of its own.

use std::{ffi::OsStr, fs, os::unix::fs::PermissionsExt};

use footbridge_tests::{
    Host, Running, Servers, programs,
    tasks::{TASKS, TaskFolder},
};
use serde_json::{Value, json};

#[test]
fn an_agent_finds_a_tool_calls_it_and_reads_what_it_needs() {
    let host = Host::with(&Servers::demo()).default_policy();
    let lines = |script: &str| host.runs_script(script).well();
    let weather = "get_weather(city: str, units?: \"metric\"|\"imperial\" = \"metric\") - Current weather";
    assert!(lines("tool-cli demo").contains(&format!("\n{weather}")), "a signature each");
    let listed = lines("tool-cli demo");
    assert!(listed.contains("\nadd_note(text: str) [asks] - "), "the default policy asks before it writes: {listed}");
    assert!(lines("tool-cli search weather in town").starts_with(&format!("demo {weather}")));
    assert_eq!(lines("tool-cli demo get_weather --city Bern --pick .temperature"), "5.7\n");
    assert_eq!(lines("tool-cli demo__get_weather --city Bern --pick .temperatureUnit"), "°C\n");
    assert_eq!(
        lines("tool-cli check demo add_note --text x"),
        "the arguments fit; ask: a person would be asked first\n"
    );
    let recorded = lines("unset TOOL_CLI_STYLE; tool-cli demo");
    assert!(recorded.contains("\n  get_weather                    Current weather"), "{recorded}");
    let ran = host.runs_script("tool-cli demo get_wether '{}'");
    assert!(ran.stderr.contains("Hint: No tool has this name; did you mean \"get_weather\"?"), "{ran:?}");
    host.leaves_nothing_behind();
}

/// What the tasks of `docs/agents.md` may take in all.
const MOST_COMMANDS: usize = 24;
const MOST_BYTES: usize = 26_000;

#[test]
fn the_tasks_of_the_page_take_few_commands_and_little_to_read() {
    let folder = tempfile::tempdir().unwrap();
    let tasks = TaskFolder::in_folder(folder.path());
    let Some(servers) = tasks.servers("the_tasks_of_the_page_take_few_commands_and_little_to_read") else { return };
    let bridge = Host::with(&servers).opens();
    let env = tasks.environment(&bridge);
    let costs: Vec<_> = TASKS.iter().map(|task| (task.name, tasks.does(task, 0, &env))).collect();
    let commands: usize = costs.iter().map(|(_, cost)| cost.commands).sum();
    let bytes: usize = costs.iter().map(|(_, cost)| cost.read.len()).sum();
    let each: Vec<_> = costs.iter().map(|(name, cost)| (*name, cost.commands, cost.read.len())).collect();
    assert!(commands <= MOST_COMMANDS && bytes <= MOST_BYTES, "{commands} commands, {bytes} bytes: {each:?}");
    for (name, cost) in &costs {
        let read = String::from_utf8_lossy(&cost.read);
        assert!(!cost.has_trace() && !cost.has_picture(), "{name}: {read}");
    }
    let page = fs::read_to_string(programs::repository().join("docs/agents.md")).unwrap();
    for (name, commands, _) in &each {
        assert!(page.contains(&format!("\n| {name} | {commands}, ")), "docs/agents.md: {name} takes {commands}");
    }
}

#[test]
fn two_hundred_calls_go_through_one_process() {
    let host = Host::with(&Servers::demo()).policy("open");
    let script =
        "for i in $(seq 200); do echo '{\"server\":\"demo\",\"tool\":\"now\"}'; done | tool-cli batch --parallel 8";
    let lines = host.runs_script(script).well();
    let read: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(read.len() == 200 && read.iter().all(|line| line["ok"] == true), "{lines}");
    assert_eq!(host.record().iter().filter(|record| record["type"] == "intent").count(), 200);
    host.leaves_nothing_behind();
}

#[test]
fn each_agent_is_told_of_the_bridge_and_no_file_of_the_user_is_touched() {
    let host = Host::with(&Servers::demo());
    for (name, args) in [("claude", "-p hi"), ("codex", "exec hi"), ("copilot", "-p hi")] {
        let program = host.work().join(name);
        fs::write(&program, "#!/bin/sh\nfor word; do echo \"$word\"; done\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let before = fs::read_dir(host.work()).unwrap().count();
        let own = Host::with(&Servers::demo()).option("--agent").option(name).working_in(host.work());
        let words = [&[program.to_str().unwrap()][..], &args.split(' ').collect::<Vec<_>>()].concat();
        let told = own.runs(&words).well();
        assert!(told.contains("tool-cli") && told.contains("TOOL_CLI_TOKEN") && told.contains("hi"), "{told}");
        assert!(!told.contains("fbt_"), "the token's variable, not the token: {told}");
        assert_eq!(fs::read_dir(host.work()).unwrap().count(), before, "{name}");
        own.runs(&["sh", "-c", "true"]).fails(2, &["starts \"sh\"", "footbridge agent-config"]);
        own.leaves_nothing_behind();
    }
    let own = Host::with(&Servers::demo()).option("--agent").option("opencode");
    let told: Value = serde_json::from_str(&own.runs_script("echo \"$OPENCODE_CONFIG_CONTENT\"").well()).unwrap();
    assert_eq!(told["mcp"]["footbridge"]["command"], json!(["tool-cli", "mcp"]), "{told}");
    own.leaves_nothing_behind();
}

#[test]
fn what_an_agent_is_told_is_printed_with_its_place() {
    let host = Host::with(&Servers::demo());
    let codex = Running::start(&mut host.footbridge(&["agent-config".as_ref(), "codex".as_ref()])).ends();
    let provider = "model_provider = \"footbridge\"\nmodel_providers.footbridge = {";
    let server = "\n\n[mcp_servers.footbridge]\ncommand = \"tool-cli\"\nargs = [\"mcp\"]\nenv_vars = [\"TOOL_CLI_PORT\",\"TOOL_CLI_TOKEN\",\"TOOL_CLI_HOST\",\
                  \"TOOL_CLI_SOCKET\",\"TOOL_CLI_TOKEN_FILE\"]\n";
    assert!(codex.status == 0 && codex.stdout.starts_with(provider) && codex.stdout.ends_with(server), "{codex:?}");
    assert!(!codex.stdout.contains("fbt_"), "the token's variable, not the token: {codex:?}");
    assert!(codex.stderr.contains(".codex/config.toml"), "{codex:?}");
}

#[test]
fn an_agent_without_a_sandbox_is_told_the_port_that_its_run_has() {
    let settings = "[services.openai]\npreset = \"openai\"\ncredential = \"sk-x\"\n";
    let host = Host::with(&Servers::demo()).sandbox("none").settings(settings);
    let program = host.work().join("codex");
    fs::write(&program, "#!/bin/sh\necho $TOOL_CLI_PORT\nfor word; do echo \"$word\"; done\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let host = host.option("--agent").option("codex").option("--service").option("openai");
    let told = host.runs(&[program.to_str().unwrap()]).stdout;
    let port = told.lines().next().unwrap();
    assert!(told.contains(&format!("base_url=\"http://127.0.0.1:{port}/s/openai/v1\"")), "{told}");
    host.leaves_nothing_behind();
}

#[test]
fn services_of_other_names_are_printed_where_they_are_named() {
    let service =
        |name: &str, preset: &str| format!("[services.{name}]\npreset = \"{preset}\"\ncredential = \"${{UNSET}}\"\n");
    let settings = service("work", "openai") + &service("deep", "anthropic") + &service("forge", "github");
    let host = Host::with(&Servers::demo()).settings(&settings);
    let config = host.path().join("footbridge.toml");
    let prints = |agent: &str, services: &[&str]| {
        let mut words: Vec<&OsStr> = ["agent-config", agent, "--config"].map(OsStr::new).to_vec();
        words.push(config.as_os_str());
        words.extend(services.iter().flat_map(|name| ["--service", name]).map(OsStr::new));
        Running::start(&mut host.footbridge(&words)).ends()
    };
    let one = prints("opencode", &["work"]);
    let told: Value = serde_json::from_str(&one.stdout).unwrap();
    let address = json!({"openai": {"options": {"baseURL": "http://127.0.0.1:7179/s/work/v1", "apiKey": "{env:OPENAI_API_KEY}"}}});
    assert_eq!((one.status, &told["provider"]), (0, &address), "{one:?}");
    let aider = prints("aider", &["work", "deep"]).stdout;
    let expected = "openai-api-base: http://127.0.0.1:7179/s/work/v1\nset-env:\n  - ANTHROPIC_API_BASE=http://127.0.0.1:7179/s/deep\n";
    assert_eq!(aider, expected);
    let codex = prints("codex", &["work"]).stdout;
    assert!(codex.contains("http://127.0.0.1:7179/s/work/v1") && !codex.contains("s/openai"), "{codex}");
    assert!(!prints("continue", &["deep"]).stdout.contains("OpenAI"));
    let elsewhere = ["agent-config", "npm", "--port", "8080"].map(OsStr::new);
    let npmrc = Running::start(&mut host.footbridge(&elsewhere)).ends().stdout;
    assert!(npmrc.starts_with("registry=http://127.0.0.1:8080/s/npm/\n"), "{npmrc}");
    prints("codex", &["none"]).fails(2, &["there is no service \"none\"", "deep"]);
    prints("codex", &["forge"]).fails(2, &["no service of forge is a model"]);
}
