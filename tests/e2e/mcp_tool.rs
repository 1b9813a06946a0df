//! `mcp-tool`: every tool is a command whose arguments are flags, and what is typed wrongly is said before a server runs.

use std::{fs, path::Path, process::Command};

use footbridge_tests::{Host, Person, Real, Running, Servers, programs};
use serde_json::{Value, json};

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A server that lists these tools, and echoes what it is called with.
fn listing(folder: &Path, name: &str, tools: &Value) -> Value {
    let file = folder.join(format!("{name}.json"));
    fs::write(&file, tools.to_string()).unwrap();
    json!({"command": programs::misbehaving_server(), "args": ["listing-of-a-file", file]})
}

fn tool(name: &str, schema: &Value) -> Value {
    json!({"name": name, "description": format!("About {name}\nand more"), "inputSchema": schema})
}

/// What schemas say in earnest: references, choices, lists, what no flag can say.
fn rich() -> Value {
    json!({
        "type": "object",
        "$defs": {"Unit": {"type": "string", "enum": ["metric", "imperial"]}},
        "properties": {
            "city": {"type": "string", "description": "Which one\u{1b}[2J"},
            "days": {"type": "integer"},
            "share": {"anyOf": [{"type": "number"}, {"type": "null"}]},
            "dry_run": {"type": "boolean"},
            "unit": {"$ref": "#/$defs/Unit"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "filter": {"type": "object"},
            "json": {"type": "string"},
            "json_file": {"type": "string"},
        },
        "required": ["city"],
    })
}

#[test]
fn help_lists_all_tools_by_untouched_names_and_one_in_full() {
    let folder = tempfile::tempdir().unwrap();
    let tools = json!([tool("Say-It.now_v2", &rich()), tool("plain", &json!({"type": "object"}))]);
    let host = Host::with(&Servers::demo().and("odd name", listing(folder.path(), "odd", &tools)));
    let all = host.mcp_tool(&["--help"]).well();
    for line in ["  demo__get_weather ", "  odd name__Say-It.now_v2 ", "  odd name__plain ", "Options:", "Exit status:"]
    {
        assert!(all.contains(line), "{line}: {all}");
    }
    assert_eq!(host.mcp_tool(&[]).well(), all);
    let listed = json_of(&host.mcp_tool(&["--help", "--output", "json"]).well());
    assert_eq!(listed["tools"].as_array().unwrap().len(), 9, "{listed}");
    let one = host.mcp_tool(&["odd name__Say-It.now_v2", "--help"]).well();
    for part in [
        "About Say-It.now_v2\nand more",
        "--city <TEXT>",
        "[required]",
        "[possible values: metric, imperial]",
        "--tags <TEXT>",
        "--filter <JSON>",
        "--arg.json <TEXT>",
        "--arg.json_file <TEXT>",
        "--json-file <FILE>",
        "Input schema:",
        "\"$defs\"",
        "Example:\n  mcp-tool 'odd name__Say-It.now_v2' --city text",
        "--refresh asks again",
    ] {
        assert!(one.contains(part), "{part}: {one}");
    }
    assert!(!one.contains('\u{1b}'), "{one}");
    assert!(one.find("--city") < one.find("--policy"), "the tool's own come first: {one}");
    let full = json_of(&host.mcp_tool(&["odd name__plain", "-h", "--output=json"]).well());
    assert_eq!(full["name"], "plain");
    host.leaves_nothing_behind();
}

#[test]
fn flags_and_json_become_the_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::with(&Servers::none().and("s", listing(folder.path(), "s", &json!([tool("t", &rich())]))));
    let called = |words: &[&str]| {
        let ran = host.mcp_tool(&[&["s__t"][..], words, &["--output", "json"]].concat());
        assert_eq!(ran.status, 0, "{words:?}: {ran:?}");
        let text = json_of(&ran.stdout)["content"][0]["text"].as_str().unwrap().to_owned();
        (json_of(&text), ran.stderr)
    };
    let words = [
        "--city",
        "Zürich",
        "--days",
        "-3",
        "--share=2.5",
        "--dry-run",
        "--unit",
        "metric",
        "--tags",
        "a",
        "--tags",
        "b c",
    ];
    let expected =
        json!({"city": "Zürich", "days": -3, "share": 2.5, "dry_run": true, "unit": "metric", "tags": ["a", "b c"]});
    assert_eq!(called(&words), (expected.clone(), String::new()), "the first time, when its flags are not known yet");
    assert_eq!(called(&words), (expected, String::new()), "and when they are");
    assert_eq!(called(&["--CITY", "x", "--no-Dry-Run"]).0, json!({"city": "x", "dry_run": false}), "capitals");
    let given = r#"{"city": "Bern", "filter": {"n": 1}, "json": "x"}"#;
    let (arguments, said) = called(&["--json", given, "--city", "Chur", "-v"]);
    assert_eq!(arguments, json!({"city": "Chur", "filter": {"n": 1}, "json": "x"}));
    assert_eq!(said, "--city beats \"city\" of the JSON\n");
    let file = folder.path().join("arguments.json");
    fs::write(&file, given).unwrap();
    // In front of the tool's name the option is the option, whatever an argument is called; behind it either may be meant.
    let file = file.to_str().unwrap();
    let own = ["s__t", "--json_file", "theirs", "--no-dry-run", "--output", "json"];
    let ran = host.mcp_tool(&[&["--json-file", file][..], &own].concat()).well();
    let arguments = json_of(json_of(&ran)["content"][0]["text"].as_str().unwrap());
    assert_eq!(arguments["city"], "Bern");
    host.mcp_tool(&["s__t", "--json-file", file]).fails(2, &["write --arg.json_file for the argument"]);
    assert_eq!((&arguments["json_file"], &arguments["dry_run"]), (&json!("theirs"), &json!(false)));
    let mut piped = Running::start(&mut host.mcp_tool_of(&["s__t", "--json-stdin", "--days", "2"]));
    piped.hears(given);
    assert_eq!(json_of(&piped.ends().well())["days"], 2);
    let mut silent = Running::start(&mut host.mcp_tool_of(&["s__t", "--json-stdin"]));
    silent.hears("");
    silent.ends().fails(2, &["nothing came in on standard input: --json-stdin takes a JSON object"]);
    // Options come before the name, too.
    assert_eq!(host.mcp_tool(&["--policy", "readonly", "s__t", "--city", "x"]).status, 5);
    host.leaves_nothing_behind();
}

#[test]
fn what_does_not_fit_is_said_and_nothing_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("heard");
    let odd = json!({"type": "object", "properties": {"x y": {"type": "string"}}, "required": ["x y"]});
    let boolean = json!({"type": "boolean"});
    let twice = json!({"type": "object", "properties": {"cache": boolean, "no_cache": boolean}});
    let other = json!({"type": "object"});
    let tools = json!([tool("t", &rich()), tool("other", &other), tool("odd", &odd), tool("twice", &twice)]);
    let mut entry = listing(folder.path(), "s", &tools);
    entry["env"]["MISBEHAVING_RECORD"] = json!(tape);
    let host = Host::with(&Servers::none().and("s", entry));
    let _known = host.mcp_tool(&["--help"]).well();
    let heard = || fs::read_to_string(&tape).unwrap().lines().count();
    let before = heard();
    for (words, says) in [
        (["s__t"].as_slice(), ["required and missing: --city", "s__t --help"]),
        (&["s__t", "--city", "x", "--unit", "metrik"], ["invalid value 'metrik'", "similar value exists: 'metric'"]),
        (&["s__t", "--citty", "x"], ["unexpected argument '--citty'", "'--city'"]),
        (&["s__t", "--city", "x", "--days", "two"], ["invalid value 'two'", "whole number"]),
        (&["s__t", "--city", "x", "--filter", "x"], ["a JSON object", ""]),
        (&["s__t", "--json", "[]"], ["invalid JSON arguments: an object is needed", "a list"]),
        (&["s__t", "--json", r#"{"city":1,"city":2}"#], ["twice", ""]),
        (&["s__t", "--json", "{}", "--json-stdin"], ["cannot be used with", "--json-stdin"]),
        (&["s__t", "--city", "x", "--dry_run", "true"], ["unexpected argument 'true'", "write --dry_run=true"]),
        (&["s__t", "--city", "-x"], ["--city", "write --city=-x"]),
        (&["s__t", "--days", "-.5", "--city", "x"], ["--days", "write --days=-.5"]),
        (&["s__t", "--city", "x", "--no-city"], ["unexpected argument '--no-city'", ""]),
        (&["s__twice", "--no-cache"], ["unexpected argument '--no-cache'", "it could be --no_cache or --cache=false"]),
        (
            &["--policy", "readonly", "s__t", "--city", "x", "--policy", "open"],
            ["two of --policy are given", "one alone can count"],
        ),
        (&["--via", "x", "s__t", "--city", "x", "--policy", "open"], ["--policy and --via are given", ""]),
        (&["s__odd", "--x y", "1"], ["unexpected argument '--x y'", "\"x y\" has no flag: give it by --json"]),
        (&["--json-file", "nowhere.json", "s__t"], ["from nowhere.json", "No such file"]),
        (&["s__tt"], ["no tool \"tt\"", "--refresh asks again"]),
        (&["s__othr"], ["no tool \"othr\"", "did you mean \"other\"?"]),
        (&["t"], ["there is no tool \"t\"", "there are s__odd, s__other, s__t"]),
        (&["x__t"], ["there is no tool \"x__t\"", "did you mean \"s__t\"?"]),
        (&["--nope"], ["unexpected argument '--nope'", ""]),
    ] {
        host.mcp_tool(words).fails(2, &says);
    }
    let help = host.mcp_tool(&["s__odd", "--help"]).well();
    assert!(help.contains("Example:\n  mcp-tool s__odd --json '{\"x y\":\"text\"}'\n"), "{help}");
    let said = host.mcp_tool(&["s__t", "--unit", "x", "--output", "json"]);
    assert_eq!(json_of(&said.stderr)["exitCode"], 2, "{said:?}");
    assert_eq!(heard(), before, "no server was asked anything");
    host.leaves_nothing_behind();
}

#[test]
fn names_that_hold_the_sign_between_them_are_told_apart_or_asked_back() {
    let folder = tempfile::tempdir().unwrap();
    let any = json!({"type": "object"});
    let one = listing(folder.path(), "one", &json!([tool("b__x", &any), tool("b__only", &any)]));
    let two = listing(folder.path(), "two", &json!([tool("x", &any), tool("__y", &any)]));
    let host = Host::with(&Servers::none().and("a", one).and("a__b", two));
    for name in ["a__b__only", "a__b____y"] {
        let ran = host.mcp_tool(&[name]);
        assert_eq!(ran.status, 0, "{name}: {ran:?}");
    }
    let with = host.servers_file().display().to_string();
    let ways = ["a b__x", "a__b x"].map(|names| format!("footbridge call --config {with} {names}"));
    let says = ["more than one tool", &ways[0], &ways[1]];
    host.mcp_tool(&["a__b__x"]).fails(2, &says);
    host.mcp_tool(&["a__b__nope"]).fails(2, &["no tool"]);
    host.leaves_nothing_behind();
}

#[test]
fn completion_offers_what_is_kept_and_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let tools = json!([tool("t", &rich()), tool("$(touch x)", &json!({"type": "object"}))]);
    let host = Host::with(&Servers::none().and("s", listing(folder.path(), "s", &tools)));
    let complete = |words: &[&str]| {
        let config = host.servers_file();
        let typed = [&["__complete", "--config", config.to_str().unwrap()][..], words].concat();
        let mut command = host.only_mcp_tool(&typed);
        Running::start(&mut command).ends().well()
    };
    assert_eq!(complete(&["s__"]), "", "nothing is kept yet, and nothing is started for it");
    assert!(host.recorded("started").is_empty());
    let _known = host.mcp_tool(&["--help"]).well();
    assert_eq!(complete(&["s_"]), "s__t\n", "and nothing that a shell could run");
    assert_eq!(complete(&["s__t", "--ci"]), "--city\n");
    assert_eq!(complete(&["s__t", "--unit", ""]), "metric\nimperial\n");
    assert_eq!(complete(&["s__t", "--unit", "me"]), "metric\n");
    assert_eq!(complete(&["s__t", "--unit=me"]), "--unit=metric\n");
    assert_eq!(complete(&["--ref"]), "--refresh\n");
    assert_eq!(complete(&["--output", "j"]), "json\n");
    for shell in ["bash", "zsh", "fish"] {
        let script = host.mcp_tool(&["--completions", shell]).well();
        assert!(script.contains("__complete"), "{script}");
    }
    // Bash itself, with the script.
    let mut bash = host.only_mcp_tool(&[]);
    let program = bash.get_program().to_owned();
    let script = format!(
        "cd {}; PATH=$PWD:$PATH; source <(mcp-tool --completions bash); \
         completed() {{ COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMP_POINT=${{#COMP_LINE}}; _mcp_tool; \
         echo \"${{COMPREPLY[@]}}\"; }}; file={}; COMP_LINE=\"mcp-tool --config $file s__t --un\"; \
         completed mcp-tool --config $file s__t --un; COMP_LINE+=it=me; completed mcp-tool --config $file s__t --unit = me",
        Path::new(&program).parent().unwrap().display(),
        host.servers_file().display()
    );
    let mut shell = Command::new("bash");
    shell
        .args(["-c", &script])
        .env_clear()
        .envs(bash.envs(Vec::<(String, String)>::new()).get_envs().filter_map(|(n, v)| Some((n, v?))));
    assert_eq!(Running::start(&mut shell).ends().well(), "--unit\nmetric\n", "also behind =, where it splits words");
    host.leaves_nothing_behind();
}

#[test]
fn by_way_of_a_session_it_knows_what_that_sees_and_reads_and_starts_nothing_here() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("heard");
    let mut entry = listing(folder.path(), "odd", &json!([tool("Say-It.now_v2", &rich())]));
    entry["env"]["MISBEHAVING_RECORD"] = json!(tape);
    let hides = "[[policies.narrow.rules]]\ntool = \"add_note\"\ndecision = \"hide\"\n\
                 [[policies.narrow.rules]]\ndecision = \"allow\"\n";
    let host = Host::with(&Servers::demo().and("odd name", entry)).config("policies.toml", hides);
    let daemon = host.serves();
    let _guest = daemon.opens("narrow", &["--policy", "narrow"]);
    // No configuration of this one is there, and none is read.
    let bare = |words: &[&str]| {
        let mut command = daemon.host.only_mcp_tool(words);
        Running::start(command.env("XDG_CONFIG_HOME", "/nonexistent").env("HOME", "/nonexistent")).ends()
    };
    let help = bare(&["--via", "narrow", "--help"]).well();
    assert!(help.contains("  demo__get_weather ") && help.contains("  odd name__Say-It.now_v2 "), "{help}");
    assert!(!help.contains("add_note"), "its policy hides it: {help}");
    let listed = json_of(&bare(&["--via", "narrow", "--refresh", "--output", "json"]).well());
    assert_eq!(listed["tools"].as_array().unwrap().len(), 7, "{listed}");
    let one = bare(&["odd name__Say-It.now_v2", "--help", "--via", "narrow"]).well();
    for part in
        ["About Say-It.now_v2\nand more", "[possible values: metric, imperial]", "mcp-tool --via narrow 'odd name__"]
    {
        assert!(one.contains(part), "{part}: {one}");
    }
    let complete = |words: &[&str]| bare(&[&["__complete", "--via", "narrow"][..], words].concat()).well();
    assert_eq!(complete(&["demo__get"]), "demo__get_weather\n");
    assert_eq!(complete(&["demo__get_weather", "--units", "me"]), "metric\n");
    let weather = ["--via", "narrow", "demo__get_weather"];
    assert_eq!(json_of(&bare(&[&weather[..], &["--city", "Bern"]].concat()).well())["city"], "Bern");
    for (words, status, says) in [
        ([&weather[..], &["--citty", "x"]].concat(), 2, ["unexpected argument '--citty'", "'--city'"]),
        ([&weather[..], &["--city", "Bern", "--units", "x"]].concat(), 2, ["invalid value 'x'", "metric, imperial"]),
        (vec!["--via", "narrow", "demo__add_note"], 2, ["has no tool \"add_note\"", "there are "]),
        (vec!["--via", "narrow", "nope__x"], 2, ["there is no tool \"nope__x\"", "there are demo__"]),
        (vec!["--via", "narrow", "--config", "x.json", "demo__now"], 2, ["'--via <SESSION>'", "cannot be used with"]),
        (vec!["--via", "narrow", "demo__now", "--config=x.json"], 2, ["--config and --via are given", "one alone"]),
        (vec!["--via", "narow", "demo__now"], 3, ["session \"narow\"; did you mean \"narrow\"?", "session list"]),
        (vec!["--via", "other", "--help"], 3, ["session \"other\": there are narrow.", "run- and its process id"]),
    ] {
        bare(&words).fails(status, &says);
    }
    let starts = fs::read_to_string(&tape).unwrap();
    let starts = starts.lines().filter(|line| line.starts_with("initialize ")).count();
    assert_eq!(starts, 1, "the daemon's alone");
    assert!(!daemon.host.cache().exists() && daemon.host.one_shot_chains().is_empty(), "nothing is kept of it");
}

#[test]
fn real_servers_take_flags() {
    let test = "mcp-tool with real servers";
    let (Some(time), Some(git), Some(everything)) = (
        Real::server(test, "mcp-server-time"),
        Real::server(test, "mcp-server-git"),
        Real::server(test, "mcp-server-everything"),
    ) else {
        return;
    };
    let repository = tempfile::tempdir().unwrap();
    let path = repository.path().to_str().unwrap();
    let script = "git init -q && git -c user.name=n -c user.email=e commit -q --allow-empty -m 'The first one'";
    assert!(Command::new("sh").args(["-c", script]).current_dir(path).status().unwrap().success());
    let servers = Servers::none()
        .and("time", json!({"command": time.program()}))
        .and("git", json!({"command": git.program()}))
        .and("everything", json!({"command": everything.program()}));
    let host = Host::with(&servers);
    let converted = host
        .mcp_tool(&[
            "time__convert_time",
            "--source-timezone",
            "Europe/Zurich",
            "--time=12:00",
            "--target_timezone",
            "Asia/Tokyo",
        ])
        .well();
    assert_eq!(json_of(&converted)["target"]["timezone"], "Asia/Tokyo");
    let log = host.mcp_tool(&["git__git_log", "--repo_path", path, "--max_count", "1"]).well();
    assert!(log.contains("The first one"), "{log}");
    host.mcp_tool(&["git__git_log", "--repo_path", "/nonexistent"]).fails(1, &["nonexistent"]);
    let sum = host.mcp_tool(&["everything__get-sum", "--a", "2", "--b", "40"]).well();
    assert_eq!(sum, "The sum of 2 and 40 is 42.\n");
    let listed = host.mcp_tool(&["--help"]).well();
    assert!(listed.contains("git__git_status") && listed.contains("time__get_current_time"), "{listed}");
    host.leaves_nothing_behind();
}

#[test]
fn a_policy_that_asks_has_the_person_asked() {
    let host = Host::with(&Servers::demo());
    let mut person = Person::new();
    let mut call = person.starts(&host.mcp_tool_of(&["demo__add_note", "--text", "from a flag", "--policy", "ask"]));
    person.sees("{\"text\":\"from a flag\"}");
    person.reads();
    person.types("allow\r");
    person.sees("note:///1");
    assert!(call.status().success(), "{person:?}");
    host.leaves_nothing_behind();
}

#[test]
fn without_files_that_are_named_it_works_in_a_folder_its_parent_and_an_empty_one_and_runs_no_stranger() {
    let host = Host::with(&Servers::none());
    let (home, project) = (host.path().join("home"), host.work().join("project"));
    let (empty, mark) = (host.work().join("empty"), host.path().join("mark"));
    for folder in [&home, &project, &empty] {
        fs::create_dir(folder).unwrap();
    }
    let host = host.env("HOME", &home);
    fs::write(home.join(".mcp.json"), Servers::demo().text(host.path())).unwrap();
    // What comes with a repository, and one that is broken, among the good one.
    let theirs = Servers::none().and("theirs", json!({"command": "touch", "args": [mark]}));
    fs::write(project.join(".mcp.json"), theirs.text(host.path())).unwrap();
    fs::write(project.join("mcp.json"), "{broken").unwrap();
    for folder in [&project, &host.work(), &empty] {
        let mut call = host.only_mcp_tool(&["demo__get_weather", "--city", "Bern"]);
        let ran = Running::start(call.current_dir(folder)).ends();
        assert_eq!(json_of(&ran.well())["city"], "Bern", "{}", folder.display());
    }
    let help = Running::start(host.only_mcp_tool(&["--help"]).current_dir(&project)).ends();
    assert!(help.status == 0 && help.stdout.contains("demo__now") && !help.stdout.contains("theirs"), "{help:?}");
    for says in ["/.mcp.json: it is not trusted", "/mcp.json: it is not trusted", "footbridge config trust "] {
        assert!(help.stderr.contains(says), "{says}: {help:?}");
    }
    // One that is trusted, and one of the home folder, with an entry that is wrong: the others work all the same.
    let wrong = json!({"command": "x", "env": {"KEY": "${SET_NOWHERE}"}});
    let trusted = Servers::none().and("half", json!({"command": 5})).and("wrong", wrong);
    fs::write(empty.join(".mcp.json"), trusted.text(host.path())).unwrap();
    let trust = ["config", "trust", "--yes"].map(std::ffi::OsStr::new);
    assert_eq!(Running::start(host.footbridge(&trust).current_dir(&empty)).ends().status, 0);
    let mut call = host.only_mcp_tool(&["demo__get_weather", "--city", "Bern"]);
    assert_eq!(json_of(&Running::start(call.current_dir(&empty)).ends().well())["city"], "Bern");
    let help = Running::start(host.only_mcp_tool(&["--help"]).current_dir(&empty)).ends();
    for says in ["  demo__now ", "  half__... is not available", "  wrong__... is not available", "SET_NOWHERE is not"]
    {
        assert!(help.status == 0 && help.stdout.contains(says), "{says}: {help:?}");
    }
    let stranger = Running::start(host.only_mcp_tool(&["theirs__x"]).current_dir(&project)).ends();
    stranger.fails(2, &["no tool \"theirs__x\"", "/.mcp.json: it is not trusted", "footbridge config trust "]);
    assert!(!mark.exists());
    host.leaves_nothing_behind();
}
