//! What the README tells people to type, typed. A block of shell is run if `<!-- run -->` stands on the line before
//! its fence: inside `footbridge run --sandbox net` with the demo server, with `set -e`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

use std::{fs, path::Path, process::Command};

use footbridge_tests::{Host, Ran, Running, Servers, programs, skipped};

const MARK: &str = "<!-- run -->";

/// A marked block, and the line that it starts on.
#[derive(Debug, PartialEq, Eq)]
struct Block {
    line: usize,
    text: String,
}

/// The marked blocks of a text.
fn blocks(text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let marked = lines.iter().enumerate().filter(|(_, line)| line.trim() == MARK);
    marked
        .map(|(at, _)| {
            assert_eq!(lines.get(at + 1), Some(&"```sh"), "line {}: a mark stands right before a fence of sh", at + 1);
            let block = lines[at + 2..].iter().take_while(|line| **line != "```");
            Block { line: at + 3, text: block.map(|line| format!("{line}\n")).collect() }
        })
        .collect()
}

/// Runs a block as an agent would, under the default policy, before somebody who allows everything.
fn run(block: &Block) -> Ran {
    let allows = r#"["sh", "-c", "cat >/dev/null; echo '{\"decision\":\"allow\"}'"]"#;
    let host = Host::with(&Servers::demo()).default_policy().settings(&format!("[approval]\ncommand = {allows}\n"));
    host.runs(&["bash", "-c", &format!("set -e\n{}", block.text)])
}

fn has(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|output| output.status.success())
}

#[test]
fn every_marked_line_of_the_readme_does_what_it_says() {
    let text = fs::read_to_string(programs::repository().join("README.md")).unwrap();
    let blocks = blocks(&text);
    let lines = blocks.iter().flat_map(|block| block.text.lines()).filter(|line| !line.trim().is_empty()).count();
    assert!(lines >= 5, "{lines} lines of the README are marked to be run: {blocks:?}");
    for block in blocks {
        if block.text.contains("jq ") && !has("jq") {
            skipped("a block of the README", "jq is missing");
            continue;
        }
        let ran = run(&block);
        assert_eq!(ran.status, 0, "README.md:{}: {}\n{ran:?}", block.line, block.text);
    }
}

/// The first block in this language.
fn first(text: &str, language: &str) -> String {
    let (_, rest) = text.split_once(&format!("\n```{language}\n")).unwrap();
    rest.split_once("\n```").unwrap().0.to_owned()
}

#[test]
fn the_policy_commands_of_the_readme_and_the_help_work_with_the_files_of_the_readme() {
    let host = Host::with(&Servers::demo());
    let readme = fs::read_to_string(programs::repository().join("README.md")).unwrap();
    fs::write(host.work().join("servers.json"), first(&readme, "json")).unwrap();
    fs::write(host.work().join("footbridge.toml"), first(&readme, "toml")).unwrap();
    let path = format!("{}:{}", programs::folder().display(), std::env::var("PATH").unwrap());
    let host = host.env("PATH", path);
    let shell = |line: &str| {
        let footbridge = host.footbridge(&[]);
        let mut command = Command::new("bash");
        command.args(["-c", line]).env_clear().current_dir(host.work());
        command.envs(footbridge.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Running::start(&mut command).ends()
    };
    let helps = ["test", "egress"].map(|which| shell(&format!("footbridge policy {which} --help")).well());
    let texts = std::iter::once(&readme).chain(&helps).flat_map(|text| text.lines().map(str::trim));
    let lines: Vec<&str> = texts.filter(|line| line.starts_with("footbridge policy ")).collect();
    assert_eq!(lines.len(), 6, "{lines:?}");
    for line in lines {
        let ran = shell(line);
        assert!(matches!(ran.status, 0 | 1) && ran.stderr.is_empty(), "{line}: {ran:?}");
    }
    fs::remove_file(host.work().join("servers.json")).unwrap();
    let home = host.path().join("nowhere");
    let place = home.join("footbridge").display().to_string();
    let host = host.env("XDG_CONFIG_HOME", &home).env("HOME", &home);
    for words in [&["policy", "test", "--policy", "open", "demo", "now"][..], &["config", "check"]] {
        let words: Vec<&std::ffi::OsStr> = words.iter().map(std::ffi::OsStr::new).collect();
        let ran = Running::start(&mut host.footbridge(&words)).ends();
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let place = if nix::unistd::geteuid().is_root() { "/etc/footbridge" } else { place.as_str() };
        assert!(ran.status == 2 && said.contains("no configuration was found"), "{ran:?}");
        assert!(said.contains(&format!("in {place};")), "{ran:?}");
    }
}

#[test]
fn only_marked_blocks_are_found_and_whole() {
    let text = "x\n```sh\nnot this\n```\n<!-- run -->\n```sh\na | b\nc\n```\n<!-- run -->\n```sh\nd\n```\n";
    let found = blocks(text);
    assert_eq!(found, [Block { line: 7, text: "a | b\nc\n".into() }, Block { line: 12, text: "d\n".into() }]);
    assert!(!run(&Block { line: 1, text: "false\ntrue\n".into() }).status.eq(&0), "a line that fails is noticed");
}

/// What scripts do with a command, whatever the README shows of it.
#[test]
fn pipes_loops_files_and_set_e_work_as_with_any_command() {
    if !has("jq") {
        return skipped("pipes_loops_files_and_set_e", "jq is missing");
    }
    let script = r#"
        tool-cli demo list_cities '{}' | jq -r '.cities[0]'
        tool-cli demo list_cities '{}' | jq -c '.cities[] | {city: .}' |
          xargs -d '\n' -n 1 tool-cli demo get_weather | jq -r .city | wc -l
        for city in Bern 'Buenos Aires' Zürich; do
          tool-cli demo get_weather "$(jq -cn --arg city "$city" '{$city}')" | jq -r .city
        done
        tool-cli demo get_weather '{"city":"Bern"}' --out weather.json
        jq -r .city weather.json
        jq -cn '{text: "from a pipe"}' | tool-cli demo add_note - | jq .id
        tool-cli demo get_weather '{"city":"Atlantis"}' 2>/dev/null || echo "no weather ($?)"
        if tool-cli --exit-codes demo get_weather '{"town":"Bern"}' 2>/dev/null; then echo never; else echo "status $?"; fi
        echo '{"city":"Bern"}
{"city":"Accra"}' | while read -r arguments; do tool-cli demo get_weather "$arguments" | jq -r .city; done
        tool-cli demo get_weather '{"city":"Bern"}' | head -n 1
        tool-cli resource templates demo | grep -c 'note:///'
        tool-cli resource read demo note:///1
        tool-cli nope nope '{}'
        echo never"#;
    let ran = run(&Block { line: 1, text: script.to_owned() });
    let expected = "Accra\n8\nBern\nBuenos Aires\nZürich\nWritten to: weather.json\nBern\n1\nno weather (1)\nstatus 2\nBern\n\
                    Accra\n{\n1\nfrom a pipe\n";
    assert_eq!((ran.stdout.as_str(), ran.status), (expected, 1), "{ran:?}");
    assert_eq!(ran.stderr, "Error: Server \"nope\" not found. Connected: demo\n", "set -e ends it there");
}

#[test]
fn ten_lines_of_python_need_nothing_but_the_standard_library() {
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/bridge.py");
    let text = fs::read_to_string(&client).unwrap();
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 10, "{lines} lines");
    if !has("python3") {
        return skipped("ten_lines_of_python", "python3 is missing");
    }
    // Where the repository is in /tmp, it shows only if it is named.
    let host = Host::with(&Servers::demo()).option("--show").option(&client);
    let client = client.to_str().unwrap();
    let told = host.runs(&["python3", "-I", client, "Zürich"]).well();
    assert!(told.contains("'city': 'Zürich'"), "{told}");
    host.runs(&["python3", "-I", client, ""]).fails(1, &["Arguments do not match the input schema"]);
}
