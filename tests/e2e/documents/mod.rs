//! What the README and the pages below `docs` tell people to type, typed, and their configurations read.
//!
//! The fence of a block of shell says where it is for: `guest` is inside `footbridge run --sandbox net` with the demo
//! server, `host` is outside ([`host`] has what comes after it), `recipe=` and `recipe-before=` are run by
//! `tests/e2e/sandboxes.rs`, `tests/e2e/containers` and `tests/e2e/microvm`, and `elsewhere=` names why it is not run
//! here. There is no block of shell without one of them, and no command in a block of another language.

mod blocks;
mod configuration;
mod host;
mod links;

use std::{fs, path::Path, process::Command};

use blocks::Block;
use footbridge_tests::{Host, Ran, Servers, programs, skipped};

/// What is not run from its page, and why.
const ELSEWHERE: [(&str, &str); 4] = [
    ("daemon", "they need a session, a sandbox and a step file of the reader's; tests/e2e/doctor.rs types them"),
    ("scripts", "they run these tests, and install programs; tests/e2e/demo.rs runs the demonstration"),
    ("install", "it writes to the folders of the system; tests/e2e/mcp_tool.rs uses such a link"),
    ("services", "they need the key of somebody's model; host/footbridge/tests/edge/services has an origin of its own"),
];

/// Pages whose recipes have a test of their own.
const RUN_ELSEWHERE: [&str; 3] = ["docs/sandboxes.md", "docs/devcontainer.md", "docs/microvm.md"];

/// The languages of blocks that nobody types.
const SHOWN: [&str; 6] = ["text", "ini", "json", "toml", "decides", "rust,no_run"];

#[test]
fn every_block_of_shell_says_who_runs_it() {
    for block in blocks::all() {
        let mark = block.mark.as_str();
        let is_recipe = mark.starts_with("recipe") && RUN_ELSEWHERE.contains(&block.page.as_str());
        let is_known = match block.language.as_str() {
            "sh" if mark == "guest" || is_recipe => true,
            "sh" => match (mark.strip_prefix("host"), mark.strip_prefix("elsewhere=")) {
                (Some(situation), _) => host::SITUATIONS.contains(&situation.trim_start_matches('=')),
                (None, Some(why)) => ELSEWHERE.iter().any(|(name, _)| *name == why),
                (None, None) => false,
            },
            language => SHOWN.contains(&language) && !block.has_commands(),
        };
        assert!(
            is_known,
            "{}: nothing runs this block of {:?} {mark:?}:\n{}",
            block.place(),
            block.language,
            block.text
        );
    }
}

#[test]
fn what_pages_have_typed_on_the_host_does_what_it_says() {
    let mut run = 0;
    for block in blocks::all() {
        if let Some(situation) = block.mark.strip_prefix("host") {
            host::run(&block, situation.trim_start_matches('='));
            run += 1;
        }
    }
    assert!(run >= 10, "{run}");
}

/// Runs a script as an agent would, under the default policy, before somebody who allows everything.
fn inside(script: &str) -> Ran {
    let allows = r#"["sh", "-c", "cat >/dev/null; echo '{\"decision\":\"allow\"}'"]"#;
    let host = Host::with(&Servers::demo()).default_policy().settings(&format!("[approval]\ncommand = {allows}\n"));
    host.runs(&["bash", "-c", &format!("set -e\n{script}")])
}

fn has(program: &str) -> bool {
    Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .output()
        .is_ok_and(|output| output.status.success())
}

#[test]
fn what_pages_have_typed_inside_does_what_it_says() {
    let blocks: Vec<Block> = blocks::all().into_iter().filter(|block| block.mark == "guest").collect();
    let lines = blocks.iter().flat_map(|block| block.text.lines()).filter(|line| !line.trim().is_empty()).count();
    assert!(lines >= 10, "{lines} lines are for guests: {blocks:?}");
    for block in blocks {
        let ran = inside(&block.text);
        assert_eq!(ran.status, 0, "{}: {}\n{ran:?}", block.place(), block.text);
    }
    assert_ne!(inside("false\ntrue\n").status, 0, "a line that fails is noticed");
}

#[test]
fn the_policy_commands_of_the_help_work_with_the_files_of_the_pages() {
    let host = host::host(&Servers::demo());
    for which in ["test", "egress"] {
        let help = host::types(&host, &format!("footbridge policy {which} --help")).well();
        let lines: Vec<&str> =
            help.lines().map(str::trim).filter(|line| line.starts_with("footbridge policy ")).collect();
        assert!(!lines.is_empty(), "{help}");
        for line in lines {
            let ran = host::types(&host, line);
            assert!(matches!(ran.status, 0 | 1) && ran.stderr.is_empty(), "{line}: {ran:?}");
        }
    }
}

#[test]
fn without_a_configuration_commands_say_where_they_looked() {
    let host = Host::with(&Servers::demo());
    let home = host.path().join("nowhere");
    let place = home.join("footbridge").display().to_string();
    let host = host.env("XDG_CONFIG_HOME", &home).env("HOME", &home).env("PATH", programs::folder());
    for line in ["policy test --policy open demo now", "config check"] {
        let words: Vec<&std::ffi::OsStr> = line.split(' ').map(std::ffi::OsStr::new).collect();
        let ran = footbridge_tests::Running::start(&mut host.footbridge(&words)).ends();
        let said = format!("{}{}", ran.stdout, ran.stderr);
        let place = if nix::unistd::geteuid().is_root() { "/etc/footbridge" } else { place.as_str() };
        assert!(ran.status == 2 && said.contains("no configuration was found"), "{ran:?}");
        assert!(said.contains(&format!("  {place}/servers.json\n")), "{ran:?}");
    }
}

#[test]
fn the_first_page_fits_two_screens() {
    let readme = fs::read_to_string(programs::repository().join("README.md")).unwrap();
    let lines = readme.lines().count();
    assert!(lines <= 100, "README.md has {lines} lines: the rest belongs to pages below docs");
}

#[test]
fn all_rust_of_the_pages_is_compiled() {
    let compiled = fs::read_to_string(programs::repository().join("tests/src/lib.rs")).unwrap();
    for block in blocks::all().into_iter().filter(|block| block.language.starts_with("rust")) {
        assert!(compiled.contains(&format!("include_str!(\"../../{}\")", block.page)), "{}", block.place());
    }
}

/// What scripts do with a command, whatever the pages show of it.
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
        tool-cli demo get_weather '{"city":"Bern"}' | head -c 8; echo
        tool-cli resource templates demo | grep -c 'note:///'
        tool-cli resource read demo note:///1
        tool-cli nope nope '{}'
        echo never"#;
    let ran = inside(script);
    let expected = "Accra\n8\nBern\nBuenos Aires\nZürich\nWritten to: weather.json\nBern\n1\nno weather (1)\nstatus 2\nBern\n\
                    Accra\n{\"city\":\n1\nfrom a pipe\n";
    assert_eq!((ran.stdout.as_str(), ran.status), (expected, 1), "{ran:?}");
    let stderr: String = ran.stderr.split_inclusive('\n').filter(|line| !line.starts_with("Held: ")).collect();
    let told = "Error: Server \"nope\" not found. Connected: demo\nHint: No server has this name: there are demo\n";
    assert_eq!(stderr, told, "set -e ends it there");
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
