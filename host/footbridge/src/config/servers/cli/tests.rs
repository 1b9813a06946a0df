//! Entries of type `cli`, from their text alone.

use std::{ffi::OsString, path::Path};

use serde_json::{Value, json};

use super::super::{Meaning, Reader, meant};
use crate::config::{Commands, Gathered, Withheld, Writable, written};
use footbridge_mcp::{TransportSpec, wrapped::CliSpec};

/// What an entry means, and how many secrets it has.
fn read_entry(entry: &Value) -> (Meaning, usize) {
    read_entry_beside(entry, Commands::default())
}

fn read_entry_beside(entry: &Value, commands: Commands) -> (Meaning, usize) {
    let file = json!({"mcpServers": {"w": entry}}).to_string();
    let vars = [("PATH", "/usr/bin:/bin"), ("HOME", "/home/x")].map(|(n, v)| (n.to_owned(), v.to_owned()));
    let var = |name: &str| match name {
        "KEY" => Some(OsString::from("s3cret-value")),
        "HOME" => Some(OsString::from("/home/x")),
        _ => None,
    };
    let servers = written::servers(Path::new("/etc/x/servers.json"), &file).unwrap();
    let mut reader = Reader { var: &var, base: Path::new("/"), commands: &commands, gathered: Gathered::default() };
    let meaning = meant(&servers[0], &mut reader, &vars);
    (meaning, reader.gathered.secrets.len())
}

fn spec(found: &Meaning) -> &CliSpec {
    assert!(found.mistakes.is_empty(), "{:?}", found.mistakes);
    match &found.spec.as_ref().unwrap().transport {
        TransportSpec::Cli(cli) => cli,
        other => panic!("{other:?}"),
    }
}

fn with_tool(tool: Value) -> Value {
    json!({"type": "cli", "allowedPrograms": ["cat", "env"], "command": "cat", "tools": [tool]})
}

fn mistakes(entry: &Value) -> String {
    let found = read_entry(entry).0;
    found.mistakes.iter().chain(&found.lacking).map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_tool_is_a_program_with_places_for_arguments() {
    let entry = json!({
        "type": "cli", "allowedPrograms": ["cat", "env"], "env": {"A": "1", "API_KEY": "${KEY}"}, "cwd": "sub",
        "tools": [
            {"name": "show", "command": "cat", "description": "Shows", "args": ["--", "{file}", ["-n", "{n}"]],
             "inputSchema": {"type": "object", "properties": {"file": {"type": "string"}, "n": {"type": "integer"}}},
             "annotations": {"readOnlyHint": true}, "timeout": "5s", "output": "json", "exitCodes": [0, 1]},
            {"name": "plain", "command": "env", "args": ["cat", "{a}", "{b}"], "stdin": "{*}", "env": {"A": "2"},
             "allowOptions": ["a"]},
        ],
    });
    let (found, secrets) = read_entry(&entry);
    let cli = spec(&found);
    let [show, plain] = &cli.tools[..] else { panic!("{cli:?}") };
    assert!(show.program.command.ends_with("/cat") && show.program.command.starts_with('/'));
    assert_eq!(show.program.cwd.as_deref(), Some(Path::new("/etc/x/sub")));
    assert_eq!((show.args.len(), show.args[2].len(), show.ends_well.as_slice()), (3, 2, &[0, 1][..]));
    assert_eq!(show.definition["annotations"], json!({"readOnlyHint": true}));
    let schema = &plain.definition["inputSchema"];
    let is_open = &json!(true);
    assert_eq!((&schema["required"], &schema["additionalProperties"]), (&json!(["a", "b"]), is_open), "by {{*}}");
    let (found, _) = read_entry(&with_tool(json!({"name": "a", "args": ["{x}"]})));
    assert_eq!(spec(&found).tools[0].definition["inputSchema"]["additionalProperties"], json!(false));
    assert_eq!([plain.args[1][0].may_be_option, plain.args[2][0].may_be_option], [true, false]);
    let value = |name: &str| plain.program.env.iter().find(|(n, _)| n == name).unwrap().1.expose().to_owned();
    assert_eq!([value("A"), value("API_KEY"), value("HOME")], ["2", "s3cret-value", "/home/x"]);
    assert!(secrets >= 1);
}

#[test]
fn what_is_wrong_is_said_all_at_once() {
    let said = mistakes(&json!({"type": "cli", "tools": [{"name": "a"}, {"name": "a", "args": ["{"]}]}));
    for part in ["no \"allowedPrograms\"", "tool \"a\": it names no program", "two tools are called \"a\""] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(mistakes(&json!({"type": "cli", "allowedPrograms": ["cat"]})).contains("no \"tools\""));
}

#[test]
fn a_place_in_a_variable_is_noted_since_none_is_filled_in_there() {
    let tool = json!({"name": "a", "args": ["{x}"], "env": {"Q": "{x}", "V": "${KEY}", "J": "{\"a\": 1}"}});
    let found = read_entry(&with_tool(tool)).0;
    let notes: Vec<String> = found.notes.iter().map(ToString::to_string).collect();
    assert!(matches!(notes.as_slice(), [one] if one.contains("\"Q\" in \"env\": {x} is no place there")), "{notes:?}");
}

#[test]
fn what_is_wrong_with_a_tool_is_said_with_what_to_write() {
    for (tool, part) in [
        (json!({"name": "a", "command": "rm"}), "it runs \"rm\", which is none of \"allowedPrograms\" (cat, env)"),
        (json!({"name": "a", "command": "/bin/rm"}), "none of \"allowedPrograms\""),
        (json!({"name": "a", "outputSchema": {"type": "object"}}), "an \"outputSchema\", and prints text"),
        (json!({"name": "a", "output": "json", "outputSchema": {"type": 1}}), "\"outputSchema\" cannot be used"),
        (json!({"name": "a", "args": ["{x"]}), "a brace by itself"),
        (json!({"name": "a", "args": ["{x}"], "inputSchema": {"type": "object"}}), "\"{x}\" is in its words"),
        (json!({"name": "a", "allowOptions": ["x"]}), "it allows options for \"x\""),
        (json!({"name": "a", "args": ["${NONE}"]}), "NONE is not set"),
        (json!({"name": "a", "env": {"X": {"file": "/no/such/file"}}}), "\"X\": cannot read the secret file"),
        (json!({"name": "a", "inputSchema": 5}), "inputSchema"),
        (json!({"name": "a", "inputSchema": {"type": 5}}), "\"inputSchema\" cannot be used"),
        // Nobody else checks it: `-` at its beginning would make an option of it.
        (
            json!({"name": "a", "args": ["{x}"], "inputSchema": {"properties": {"x": {"pattern": "^(?!-)"}}}}),
            "without look-around",
        ),
        (json!({"name": "a", "timeout": "soon"}), "\"soon\" is no duration"),
        (json!({"name": "a", "output": "xml"}), "output \"xml\" is not known"),
        (json!({"name": "a", "argz": []}), "key \"argz\" is not known; did you mean \"args\"?"),
        (json!({"name": ""}), "cannot be served"),
        (json!({}), "it has no \"name\""),
        (json!({"name": "a", "args": [5]}), "\"args\" holds a number"),
        (json!({"name": "a", "exitCodes": [300]}), "a number from 0 to 255"),
        (json!({"name": "a", "exitCodes": []}), "\"exitCodes\" is empty"),
        (json!({"name": "a", "inputSchema": {"type": "string"}}), "\"inputSchema\" is of no object"),
        (json!({"name": "a", "annotations": {"readOnlyHint": "yes"}}), "\"readOnlyHint\" is a text, and true or false"),
    ] {
        let said = mistakes(&with_tool(tool.clone()));
        assert!(said.contains(part), "{tool}: {said}");
    }
}

#[test]
fn a_mistake_in_a_word_makes_no_key_unknown() {
    let tool = json!({"name": "a", "title": "A", "description": "d", "args": ["{x"], "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object"}, "annotations": {}, "output": "json"});
    let found = read_entry(&with_tool(tool)).0;
    assert!(
        matches!(found.mistakes.as_slice(), [one] if one.what.contains("a brace by itself")),
        "{:#?}",
        found.mistakes
    );
}

#[test]
fn no_shell_is_a_program_of_a_tool() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("not-a-shell");
    std::os::unix::fs::symlink("/bin/sh", &link).unwrap();
    for program in ["sh", "/bin/bash", link.to_str().unwrap()] {
        let entry = json!({"type": "cli", "allowedPrograms": [program], "tools": [{"name": "a"}]});
        assert!(mistakes(&entry).contains("is a shell"), "{program}: {}", mistakes(&entry));
    }
}

#[test]
fn what_all_tools_share_is_refused_once() {
    let guests = tempfile::tempdir().unwrap();
    let tools: Vec<Value> = (0..5).map(|n| json!({"name": format!("t{n}")})).collect();
    let entry = json!({"type": "cli", "allowedPrograms": ["cat"], "cwd": guests.path(), "tools": tools});
    let writable = Writable::folders([guests.path().to_owned()]);
    let (found, _) = read_entry_beside(&entry, Commands::default().out_of_reach(writable, None, Withheld::default()));
    assert!(matches!(found.mistakes.as_slice(), [one] if one.what.contains("its folder")), "{:#?}", found.mistakes);
}

#[test]
fn what_a_caller_says_is_neither_code_nor_the_name_of_a_program() {
    let entry = |args: &Value| {
        let programs: Vec<&str> = args[0].as_str().into_iter().collect();
        let words = args.as_array().unwrap()[1..].to_vec();
        json!({"type": "cli", "allowedPrograms": programs, "tools": [{"name": "a", "args": words}]})
    };
    for (args, says) in [
        (json!(["env", "sh", "-c", "{a}"]), "it starts \"sh\", which is a shell"),
        (json!(["env", "-S", "bash -c {a}"]), "it starts \"bash\""),
        (json!(["timeout", "5", "/bin/dash", "-c", "{a}"]), "it starts \"/bin/dash\""),
        (json!(["env", "X=1", "{a}"]), "would be the program that"),
        (json!(["nice", "-n", "5", "{a}", "{b}"]), "would be the program that"),
        (json!(["python3", "-c", "{a}"]), "would be code behind \"-c\""),
        (json!(["perl", "-e{a}"]), "would be code behind \"-e\""),
        (json!(["env", "node", ["--eval", "{a}"]]), "would be code behind \"--eval\""),
        (json!(["env", "-S", "python3 -c", "{a}"]), "would be code behind \"-c\""),
        (json!(["env", "-u", "perl", "python3", "-c", "{a}"]), "would be code behind \"-c\""),
        (json!(["perl", "-ne", "{a}"]), "would be code behind \"-ne\""),
        (json!(["perl", "-lane", "{a}", "file"]), "would be code behind \"-lane\""),
        (json!(["perl", "-ne print if /{a}/"]), "would be code behind \"-ne print"),
        (json!(["perl", "-E", "{a}"]), "would be code behind \"-E\""),
        (json!(["perl", "-I", "lib", "-e", "{a}"]), "would be code behind \"-e\""),
        (json!(["python3", "-Ic", "{a}"]), "would be code behind \"-Ic\""),
        (json!(["python3", "-m", "pdb", "-c", "{a}"]), "would be code behind \"-c\""),
        (json!(["python3", "-W", "ignore", "-Ic{a}"]), "would be code behind \"-Ic\""),
        (json!(["python3", ["script.py", "{b}"], "-c", "{a}"]), "would be code behind \"-c\""),
        (json!(["node", "-p", "{a}"]), "would be code behind \"-p\""),
        (json!(["node", "-pe", "{a}"]), "would be code behind \"-pe\""),
        (json!(["node", "--print={a}"]), "would be code behind \"--print=\""),
        (json!(["node", "-r", "./hook.js", "--print", "{a}"]), "would be code behind \"--print\""),
        (json!(["php8.2", "-nr", "{a}"]), "would be code behind \"-nr\""),
        (json!(["deno", "eval", "{a}"]), "would be code behind \"eval\""),
        (json!(["deno", "eval", "-p", "{a}"]), "would be code behind \"-p\""),
        (json!(["python3", "-u", "{a}"]), "would be the script that"),
        (json!(["perl", "{a}", "script.pl"]), "would be the script that"),
        (json!(["deno", "run", "{a}"]), "would be the script that"),
        (json!(["python3", "-m", "{a}"]), "would be the script that"),
        (json!(["perl", "-M{a}", "-e", "1"]), "would be code behind \"-M\""),
        (json!(["node", "--import", "{a}", "server.js"]), "would be code behind \"--import\""),
        (json!(["node", "--require={a}", "server.js"]), "would be code behind \"--require=\""),
        (json!(["ruby", "--require={a}", "x.rb"]), "would be code behind \"--require=\""),
        (json!(["php", "-d", "{a}", "x.php"]), "would be code behind \"-d\""),
        (json!(["java", "-javaagent:{a}", "Main"]), "would be code behind \"-javaagent:\""),
        (json!(["java", "-jar", "{a}"]), "would be code behind \"-jar\""),
        (json!(["uv", "run", "{a}"]), "would be the program that"),
        (json!(["npm", "exec", "--", "{a}"]), "would be the program that"),
        (json!(["poetry", "run", "python", "-c", "{a}"]), "would be code behind \"-c\""),
        (json!(["docker", "run", "--rm", "img", "sh", "-c", "{a}"]), "it starts \"sh\""),
        (json!(["kubectl", "exec", "pod", "--", "bash", "-c", "{a}"]), "it starts \"bash\""),
        (json!(["toybox", "sh", "-c", "{a}"]), "it starts \"sh\""),
        (json!(["ltrace", "osh", "-c", "{a}"]), "it starts \"osh\""),
        (json!(["npm", "exec", "--call={a}"]), "would be code behind \"--call\""),
        (json!(["docker", "run", "--rm", "--entrypoint", "{a}", "img"]), "would be code behind \"--entrypoint\""),
        (json!(["uv", "run", "--with", "{a}", "script.py"]), "would be code behind \"--with\""),
        (json!(["java", "-cp", "{a}", "Main"]), "would be code behind \"-cp\""),
    ] {
        let said = mistakes(&entry(&args));
        assert!(said.contains(says), "{args}: {said}");
    }
    for args in [
        json!(["env", "X={a}", "cat", "{b}"]),
        json!(["timeout", "{seconds}", "cat", "{b}"]),
        json!(["python3", "-c", "import sys; print(sys.argv[1])", "{a}"]),
        json!(["python3", "script.py", "-c", "x", "{a}"]),
        json!(["python3", "script.py", "-c", "{a}"]),
        json!(["python3", "-E", "script.py", "-p", "{a}"]),
        json!(["node", "server.js", "-p", "{a}"]),
        json!(["env", "X=1", "node", "server.js", "--print", "{a}"]),
        json!(["ruby", "-E", "{a}", "script.rb"]),
        json!(["perl", "script.pl", "-ne", "{a}"]),
        json!(["perl", "-ne", "print if /x/", "{a}"]),
        json!(["python3", "-m", "json.tool", "{a}"]),
        json!(["python3", "-mjson.tool", "{a}"]),
        json!(["python3", "-Im", "json.tool", "{a}"]),
        json!(["python3-config", "{a}"]),
        json!(["php", "-l", "{a}"]),
        json!(["java", "-Xmx{a}m", "Main", "{b}"]),
        json!(["java", "-jar", "x.jar", "{a}"]),
        json!(["uv", "run", "script.py", "{a}"]),
        json!(["docker", "ps", "--filter", "{a}"]),
        json!(["docker", "exec", "db", "psql", "{a}"]),
        json!(["docker", "exec", "app", "sh", "-c", "rake db:status"]),
        json!(["kubectl", "exec", "{a}", "--", "sh", "/opt/report.sh"]),
        json!(["docker", "exec", "app", "report", "--from", "{a}"]),
        json!(["java", "-jar", "tool.jar", "-cp", "{a}"]),
        json!(["java", "-jar", "tool.jar", "--class-path={a}"]),
        json!(["kubectl", "logs", "{a}"]),
        json!(["npm", "view", "{a}"]),
        json!(["node", "--check", "{a}"]),
    ] {
        assert_eq!(mistakes(&entry(&args)), "", "{args}");
    }
}

#[test]
fn a_program_is_what_links_lead_to_whatever_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let link = |name: &str, to: &str| {
        let at = folder.path().join(name);
        std::os::unix::fs::symlink(to, &at).unwrap();
        at.to_str().unwrap().to_owned()
    };
    for name in ["perl", "awk", "env"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let perl = link("report", "perl");
    let twice = link("again", "report");
    let (awk, env) = (link("sums", "awk"), link("around", "env"));
    for (program, args, says) in [
        (&perl, json!(["-e", "{a}"]), "would be code behind \"-e\""),
        (&twice, json!(["-ne", "{a}"]), "would be code behind \"-ne\""),
        (&awk, json!(["{a}"]), "would be code behind"),
        (&env, json!(["X=1", "{a}"]), "would be the program that"),
        (&env, json!([perl, "-e", "{a}"]), "would be code behind \"-e\""),
        (&perl, json!(["script.pl", "{a}"]), ""),
    ] {
        let entry = json!({"type": "cli", "allowedPrograms": [program], "tools": [{"name": "a", "args": args}]});
        let said = mistakes(&entry);
        assert!(said.contains(says) && said.is_empty() == says.is_empty(), "{program} {args}: {said}");
    }
}

#[test]
fn what_a_caller_says_is_no_script_on_standard_input() {
    for (words, is_code) in [
        (&["python3"][..], true),
        (&["python3", "-u", "-"], true),
        (&["env", "X=1", "node", "--input-type=module"], true),
        (&["python3", "script.py"], false),
        (&["python3", "-m", "json.tool"], false),
        (&["python3", "-mjson.tool"], false),
        (&["node", "--no-warnings", "--jitless-m"], true),
        (&["perl", "-ne", "print if /x/"], false),
        (&["cat"], false),
    ] {
        let tool = json!({"name": "a", "args": words[1..], "stdin": "{a}"});
        let said = mistakes(&json!({"type": "cli", "allowedPrograms": [words[0]], "tools": [tool]}));
        assert_eq!(said.contains("on its standard input"), is_code, "{words:?}: {said}");
        assert!(is_code || said.is_empty(), "{words:?}: {said}");
    }
}

#[test]
fn what_a_caller_says_is_neither_a_command_nor_a_line_for_a_shell() {
    let entry = |words: &[&str]| json!({"type": "cli", "allowedPrograms": [words[0]], "tools": [{"name": "a", "args": words[1..].to_vec()}]});
    for (words, says) in [
        (&["find", ".", "-exec", "{a}", ";"][..], "would be the program that"),
        (&["find", ".", "-exec", "sh", "-c", "{a}", ";"], "it starts \"sh\""),
        (&["find", ".", "-name", "{b}", "-execdir", "env", "X=1", "{a}", ";"], "would be the program that"),
        (&["find", ".", "-ok", "perl", "-e", "{a}", ";"], "would be code behind \"-e\""),
        (&["find", ".", "-exec", "cat", "{b}", ";", "-okdir", "{a}", "+"], "would be the program that"),
        (&["fd", "-x", "{a}"], "would be the program that"),
        (&["script", "-qc", "{a}", "/dev/null"], "would be code behind \"-qc\""),
        (&["script", "--command={a}", "/dev/null"], "would be code behind \"--command="),
        (&["awk", "{a}"], "would be code behind"),
        (&["mawk", "-F", ":", "{{print {a}}}", "file"], "would be code behind"),
        (&["gawk", "-f", "lib.awk", "-e", "{a}"], "would be code behind \"-e\""),
        (&["awk", "-e", "User={a}"], "would be code behind \"-e\""),
        (&["gawk", "{a}", "file"], "add \"--sandbox\""),
        (&["timeout", "5", "awk", "{a}"], "would be code behind \"awk\""),
        (&["sed", "-n", "s/{a}/x/p", "file"], "add \"--sandbox\""),
        (&["sed", "-ne", "{a}"], "would be code behind \"-ne\""),
        (&["flock", "/run/x", "{a}"], "would be the program that"),
        (&["flock", "-w", "5", "/run/x", "-c", "{a}"], "would be code behind \"-c\""),
        (&["flock", "-c", "{a}"], "would be"),
        (&["nice", "{a}", "cat"], "would be the program that"),
        (&["env", "-u", "X", "{a}", "cat"], "would be the program that"),
        (&["env", "-S", "cat {a}"], "would be code behind \"-S"),
        (&["env", "-S", "nice -n 5", "awk", "{a}"], "would be code behind"),
        (&["sudo", "-u", "me", "{a}", "cat"], "would be the program that"),
        (&["stdbuf", "-oL", "{a}", "cat"], "would be the program that"),
        (&["chroot", "/x", "{a}", "cat"], "would be the program that"),
        (&["entr", "-s", "ls {a}"], "would be the program that"),
        (&["xargs", "-n", "1", "{a}", "cat"], "would be the program that"),
        (&["watch", "-n", "1", "ls", "{a}"], "hands to a shell"),
        (&["ssh", "-p", "22", "host", "ls", "{a}"], "hands to a shell"),
        (&["ssh", "-o", "{a}", "host"], "would be code behind \"-o\""),
        (&["parallel", "-j", "4", "gzip", "{a}", ":::", "b"], "hands to a shell"),
        (&["parallel", ":::", "{a}"], "hands to a shell"),
        (&["git", "-C", "/x", "-c", "core.pager={a}", "log"], "would be code behind \"-c\""),
        (&["tar", "-xf", "x.tar", "--to-command={a}"], "would be code behind \"--to-command="),
        (&["tar", "--checkpoint-action", "exec={a}", "-cf", "x", "."], "would be code behind \"--checkpoint-action"),
        (&["vim", "-es", "-c", "{a}", "file"], "would be code behind \"-c\""),
        (&["vim.basic", "-es", "-c", "{a}", "file"], "would be code behind \"-c\""),
        (&["rsync", "-ae", "{a}", "x", "y"], "would be code behind \"-ae\""),
        (&["git", "grep", "-O{a}", "x"], "would be code behind \"-O\""),
        (
            &["git", "-C", "/x", "grep", "--open-files-in-pager={a}", "x"],
            "would be code behind \"--open-files-in-pager\"",
        ),
        (&["git", "rebase", "--exec", "{a}", "main"], "would be code behind \"--exec\""),
        (&["git", "bisect", "run", "x", "{a}"], "would be code behind \"run\""),
        (&["git", "submodule", "foreach", "--recursive", "{a}"], "would be code behind \"foreach\""),
        (&["git", "fetch", "--upload-pack={a}", "origin"], "would be code behind \"--upload-pack\""),
        (&["sort", "--compress-program={a}", "x"], "would be code behind \"--compress-program="),
        (&["rg", "--pre", "{a}", "x"], "would be code behind \"--pre\""),
        (&["npx", "-y", "{a}"], "would be the program that"),
        (&["uvx", "{a}", "x"], "would be the program that"),
        (&["uvx", "--from", "{a}", "x"], "would be code behind \"--from\""),
        (&["npx", "-p", "{a}", "x"], "would be code behind \"-p\""),
        (&["git", "grep", "-nO{a}", "x"], "would be code behind \"-O\""),
        (&["git", "rebase", "--exec", "make", "--exec", "{a}"], "would be code behind \"--exec\""),
    ] {
        let said = mistakes(&entry(words));
        assert!(said.contains(says), "{words:?}: {said}");
    }
    // What the schema holds to numbers, or to values of the operator's, is nobody's code; a program it is not.
    let held = |words: &[&str]| {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "integer"}, "b": {"enum": ["prod", "test"]}, "c": {"type": "string"}}});
        json!({"type": "cli", "allowedPrograms": [words[0]],
            "tools": [{"name": "a", "args": words[1..].to_vec(), "inputSchema": schema}]})
    };
    for (words, says) in [
        (&["sed", "-n", "{a},{a}p", "{c}"][..], ""),
        (&["ssh", "host", "deploy", "{b}"], ""),
        (&["ssh", "host", "deploy", "{b}", "{c}"], "hands to a shell"),
        (&["env", "{b}", "{c}"], "would be the program that"),
    ] {
        let said = mistakes(&held(words)).replace("not found", "");
        assert!(said.contains(says) && said.is_empty() == says.is_empty(), "{words:?}: {said}");
    }
    for words in [
        &["find", "{a}", "-name", "{b}", "-print"][..],
        &["find", ".", "-exec", "cat", "{a}", ";"],
        &["find", "{a}", "-name", "{b}", "-exec", "sh", "-c", "gzip \"$1\"", "sh", "{{}}", ";"],
        &["script.sh", "run", "{a}", "{b}"],
        &["time.py", "{a}", "{b}"],
        &["script", "-qc", "date", "{a}"],
        &["awk", "-v", "x={a}", "-F", "{b}", "{{print x}}", "{c}"],
        &["awk", "-f", "x.awk", "{a}"],
        &["sed", "--sandbox", "-n", "{a},{b}p", "{c}"],
        &["sed", "-n", "-e", "1,5p", "{a}"],
        &["gawk", "--sandbox", "{a}"],
        &["flock", "-w", "{a}", "/run/x", "cat", "{b}"],
        &["sudo", "-u", "me", "cat", "{a}"],
        &["env", "-u", "X", "-S", "nice cat", "{a}"],
        &["watch", "-x", "ls", "{a}"],
        &["watch", "-xn", "1", "ls", "{a}"],
        &["gawk", "-S", "{a}", "file"],
        &["git", "-c", "safe.directory={a}", "-C", "{b}", "log"],
        &["ssh", "-o", "port={a}", "host", "uptime"],
        &["groovy", "-Dname={a}", "x.groovy"],
        &["ssh", "-xp", "{a}", "{b}", "uptime"],
        &["parallel", "gzip", ":::", "{a}"],
        &["git", "-C", "/x", "--no-pager", "switch", "-c", "{a}"],
        &["git", "-c", "user.name={a}", "commit", "-m", "{b}"],
        &["tar", "-xzf", "{a}", "-C", "{b}"],
        &["make", "-j", "{a}", "{b}"],
        &["git", "grep", "-n", "{a}"],
        &["git", "grep", "-O", "{a}"],
        &["git", "grep", "--open-files-in-pager", "{a}"],
        &["git", "rebase", "{a}"],
        &["git", "fetch", "origin", "{a}"],
        &["git", "submodule", "update", "{a}"],
        &["sort", "-k", "{a}", "{b}"],
        &["rg", "-n", "{a}", "{b}"],
        &["npx", "-y", "eslint", "{a}"],
    ] {
        assert_eq!(mistakes(&entry(words)).replace("not found", ""), "", "{words:?}");
    }
}

#[test]
fn a_program_that_is_not_there_is_noted() {
    let entry = json!({"type": "cli", "allowedPrograms": ["no-such-program"], "tools": [{"name": "a"}]});
    let (found, _) = read_entry(&entry);
    assert_eq!(spec(&found).missing.as_deref(), Some("no-such-program"));
    assert!(found.notes[0].what.contains("\"no-such-program\" is not found: install it"), "{:?}", found.notes);
}
