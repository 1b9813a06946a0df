//! The table of exit statuses: each row is seen here, or names the test that sees it.

use std::{collections::BTreeSet, ffi::OsStr, fs, path::Path};

use footbridge_tests::{Host, Ran, Running, Servers};
use nix::sys::signal::Signal;

/// How a row of the table is known to hold.
enum Seen {
    /// By these words, with the files of a host whose server works.
    Works(&'static [&'static str]),
    /// The same with a server that does not start.
    Dead(&'static [&'static str]),
    /// The same with a file that does not parse.
    Broken(&'static [&'static str]),
    /// By these words alone, where a daemon runs.
    WithDaemon(&'static [&'static str]),
    /// By these words alone, where nothing runs.
    Alone(&'static [&'static str]),
    /// By another test, of this name.
    Elsewhere(&'static str),
}
use Seen::{Alone, Broken, Dead, Elsewhere, WithDaemon, Works};

const SIGNALLED: &str = "a_signal_cancels_the_call_and_leaves_nothing_behind";

const ROWS: [(&str, i32, Seen); 74] = [
    ("run", 125, Elsewhere("missing_guest_programs_are_named_with_where_they_should_be")),
    ("run", 126, Elsewhere("a_command_that_cannot_be_run_is_named_with_the_status_that_shells_give")),
    ("run", 127, Elsewhere("a_command_that_cannot_be_run_is_named_with_the_status_that_shells_give")),
    ("run", 2, Broken(&["run", "--sandbox", "none", "--", "true"])),
    ("call", 0, Works(&["call", "demo", "now"])),
    ("call", 1, Works(&["call", "demo", "get_weather", r#"{"city":"Atlantis"}"#])),
    ("call", 2, Works(&["call", "demo", "nope"])),
    ("call", 3, Dead(&["call", "dead", "x"])),
    ("call", 5, Works(&["call", "--policy", "readonly", "demo", "add_note", r#"{"text":"x"}"#])),
    ("call", 6, Elsewhere("a_call_as_a_session_whose_policy_asks_says_that_it_waits_and_what_became_of_it")),
    ("call", 7, Elsewhere("what_is_too_large_and_who_cannot_be_asked_is_said_as_there_is_no_session")),
    ("call", 8, Elsewhere("no_answer_in_time_is_said_and_the_call_is_cancelled")),
    ("call", 9, Elsewhere("a_call_whose_harness_ends_may_have_had_its_effect_and_keeps_it_from_nothing")),
    ("call", 125, Elsewhere("what_cannot_be_written_is_no_error_of_the_tool")),
    ("call", 129, Elsewhere(SIGNALLED)),
    ("call", 130, Elsewhere(SIGNALLED)),
    ("call", 143, Elsewhere(SIGNALLED)),
    ("tools", 0, Dead(&["tools"])),
    ("tools", 2, Works(&["tools", "nope"])),
    ("tools", 3, Dead(&["tools", "dead"])),
    ("tools", 125, Elsewhere("what_cannot_be_written_is_no_error_of_the_tool")),
    ("serve", 0, Elsewhere("it_ends_in_order_on_either_signal")),
    ("serve", 125, WithDaemon(&["serve"])),
    ("serve", 2, Broken(&["serve"])),
    ("audit", 0, WithDaemon(&["audit", "verify"])),
    ("audit", 1, Alone(&["audit", "show", "nope"])),
    ("audit", 2, Alone(&["audit", "tail", "--lines", "x"])),
    ("session", 0, WithDaemon(&["session", "list"])),
    ("session", 1, Alone(&["session", "list"])),
    ("session", 2, Alone(&["session", "create", "NO_NAME"])),
    ("servers", 0, WithDaemon(&["servers", "list"])),
    ("servers", 1, WithDaemon(&["servers", "restart", "nope"])),
    ("servers", 2, Alone(&["servers", "restart"])),
    ("approvals", 0, WithDaemon(&["approvals", "list"])),
    ("approvals", 1, WithDaemon(&["approvals", "allow", "ap-0000000000000001"])),
    ("approvals", 2, Alone(&["approvals", "allow"])),
    ("services", 0, Works(&["services", "list"])),
    ("services", 1, Elsewhere("a_credential_that_is_not_there_or_hangs_is_the_matter_of_its_service_alone")),
    ("services", 2, Works(&["services", "check", "nope"])),
    ("config check", 0, Works(&["config", "check"])),
    ("config check", 1, Dead(&["config", "check", "--start"])),
    ("config check", 2, Broken(&["config", "check"])),
    ("config reload", 0, WithDaemon(&["config", "reload"])),
    ("config reload", 1, Alone(&["config", "reload"])),
    ("config trust", 0, Alone(&["config", "trust"])),
    ("config trust", 1, Elsewhere("programs_say_yes_and_nobody_says_nothing")),
    ("config trust", 2, Alone(&["config", "trust", "nope.json"])),
    ("config show", 0, Works(&["config", "show"])),
    ("config show", 1, Alone(&["config", "show"])),
    ("config show", 2, Broken(&["config", "show"])),
    ("config import", 0, Elsewhere("what_a_client_has_is_shown_then_written_and_then_works")),
    ("config import", 1, Elsewhere("what_a_client_has_is_shown_then_written_and_then_works")),
    ("config import", 2, Alone(&["config", "import", "nope"])),
    ("policy test", 0, Works(&["policy", "test", "--policy", "ask", "demo", "now"])),
    ("policy test", 1, Works(&["policy", "test", "--policy", "ask", "demo", "add_note", r#"{"text":"x"}"#])),
    ("policy test", 2, Works(&["policy", "test", "--policy", "ask", "demo", "nope"])),
    ("policy test", 125, Dead(&["policy", "test", "--policy", "ask", "dead", "x"])),
    ("policy egress", 0, Works(&["policy", "egress", "--policy", "open"])),
    ("policy egress", 1, Dead(&["policy", "egress", "--policy", "open"])),
    ("policy egress", 2, Works(&["policy", "egress", "--policy", "nope"])),
    ("step", 0, Elsewhere("a_program_that_prints_a_result_is_reported_and_recorded")),
    ("step", 1, Elsewhere("each_failure_is_a_report_with_its_reason")),
    ("step", 2, Alone(&["step", "nope.toml"])),
    ("step", 143, Elsewhere("a_signal_ends_the_steps_that_are_left_and_their_report_says_so")),
    ("doctor", 0, Elsewhere("a_host_that_is_well_and_one_that_is_not")),
    ("doctor", 1, Elsewhere("a_host_that_is_well_and_one_that_is_not")),
    ("doctor", 2, Alone(&["doctor", "--nope"])),
    ("agent-config", 0, Alone(&["agent-config", "claude"])),
    ("agent-config", 2, Alone(&["agent-config", "nope"])),
    ("mcp-tool", 0, Works(&["demo__now"])),
    ("mcp-tool", 1, Works(&["demo__get_weather", "--city", "Atlantis"])),
    ("mcp-tool", 2, Works(&["demo__nope"])),
    ("mcp-tool", 3, Dead(&["dead__x"])),
    ("mcp-tool", 5, Works(&["--policy", "readonly", "demo__add_note", "--text", "x"])),
];

/// Rows of which the page says that they are as others.
fn is_as_another(command: &str) -> bool {
    command == "mcp-tool"
}

/// The commands and statuses of the page's table.
fn table() -> BTreeSet<(String, i32)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/exit-status.md");
    let page = fs::read_to_string(page).unwrap();
    let cells = |line: &str| -> Option<(String, i32)> {
        let mut cells = line.strip_prefix("| `")?.split(" | ");
        let command = cells.next()?.trim_end_matches('`').to_owned();
        Some((command, cells.next()?.parse().unwrap_or_else(|error| panic!("{line}: {error}"))))
    };
    let all: Vec<_> = page.lines().filter_map(cells).collect();
    let rows: BTreeSet<_> = all.iter().cloned().collect();
    assert_eq!(rows.len(), all.len(), "a row is there twice");
    rows
}

/// All that the end-to-end tests are written in.
fn sources(folder: &Path) -> String {
    let text_of = |path: &Path| {
        if path.is_dir() { sources(path) } else { fs::read_to_string(path).unwrap_or_default() }
    };
    fs::read_dir(folder).unwrap().map(|entry| text_of(&entry.unwrap().path())).collect()
}

/// Runs words of `footbridge` with the files of this host behind the command's own name, or of `mcp-tool`.
fn runs(host: &Host, command: &str, words: &[&str]) -> Ran {
    if is_as_another(command) {
        return host.mcp_tool(words);
    }
    // Files are an option of what is done with services, not of all of it.
    let names = if command == "services" { 2 } else { command.split(' ').count() };
    let file = host.servers_file();
    let files = [OsStr::new("--config"), file.as_os_str()];
    let (first, rest) = words.split_at(names);
    let all = first.iter().map(OsStr::new).chain(files).chain(rest.iter().map(OsStr::new));
    Running::start(&mut host.footbridge(&all.collect::<Vec<_>>())).ends()
}

fn alone(host: &Host, words: &[&str]) -> Ran {
    Running::start(&mut host.footbridge(&words.iter().map(OsStr::new).collect::<Vec<_>>())).ends()
}

#[test]
fn every_row_of_the_table_holds_and_there_are_no_others() {
    let rows = ROWS.iter().filter(|(command, ..)| !is_as_another(command));
    let known: BTreeSet<_> = rows.map(|(command, status, _)| ((*command).to_owned(), *status)).collect();
    assert_eq!(known, table());
    let tests = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e"));
    let (works, nothing) = (Host::with(&Servers::demo()), Host::with(&Servers::none()));
    let dead = Host::with(&Servers::none().misbehaving("dead", &["exits-at-start"]));
    let broken = Host::with(&Servers::none());
    fs::write(broken.servers_file(), "{\"mcpServers\":").unwrap();
    let mut daemon = Host::with(&Servers::demo()).serves();
    for (command, status, seen) in &ROWS {
        let ran = match seen {
            Works(words) => runs(&works, command, words),
            Dead(words) => runs(&dead, command, words),
            Broken(words) => runs(&broken, command, words),
            WithDaemon(words) if words[0] == "serve" => Running::start(&mut daemon.host.serve_of()).ends(),
            WithDaemon(words) => alone(&daemon.host, words),
            Alone(words) => alone(&nothing, words),
            Elsewhere(test) => {
                assert!(tests.contains(&format!("fn {test}(")), "{command} {status}: there is no test {test}");
                continue;
            }
        };
        assert_eq!(ran.status, *status, "{command}: {ran:?}");
    }
    daemon.process().signal(Signal::SIGTERM);
    assert_eq!(daemon.ends().status, 0);
}
