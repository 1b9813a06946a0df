//! What the command says of itself for others to keep: a man page, and a skill for agents that says what this session
//! sees.

use std::fmt::Write as _;

use footbridge_cli::{man::ManPage, signature::signature};
use footbridge_guest::answers::{FullTools, ServerSummary, ToolDescription};
use footbridge_proto::text::Escaped;
use serde_json::json;

/// Tools that a skill names of a server whose signatures have no room, and the bytes that signatures may take in all: a
/// skill is to be short, and what it has nobody needs to ask for.
const MOST_NAMED: usize = 12;
const MOST_SIGNATURES: usize = 8_000;

/// The usage as a page for `man`.
pub(crate) fn man_page(usage: &str) -> String {
    let (first, rest) = usage.split_once('\n').unwrap_or((usage, ""));
    let mut page = ManPage::of("tool-cli", env!("CARGO_PKG_VERSION"), &first.replacen(": ", " - ", 1));
    for line in rest.lines() {
        let section = line.split_once(':').filter(|(name, _)| {
            let is_word = |c: char| c.is_ascii_alphabetic() || c == ' ';
            line.starts_with(|c: char| c.is_ascii_uppercase()) && name.len() < 16 && name.chars().all(is_word)
        });
        match section {
            Some((name, rest)) => {
                page.section(&name.to_uppercase());
                if !rest.trim().is_empty() {
                    page.line(rest.trim());
                }
            }
            None => page.line(line),
        }
    }
    page.finish()
}

/// A skill: how the command is used, and what there is.
pub(crate) fn skill(servers: &[(ServerSummary, FullTools)]) -> String {
    let names: Vec<&str> = servers.iter().map(|(server, _)| server.name.as_str()).collect();
    let description = format!(
        "Calls the tools of MCP servers from the shell with tool-cli. Servers: {}. Use it when a task needs one of them.",
        names.join(", ")
    );
    let mut out = format!("---\nname: tool-cli\ndescription: {}\n---\n\n", json!(Escaped(&description).to_string()));
    out.push_str(HOW);
    let mut room = MOST_SIGNATURES;
    for (server, list) in servers {
        let state = server.status.as_deref().map_or_else(String::new, |status| format!(" ({})", Escaped(status)));
        let of = |tool: &ToolDescription| signature(tool, list.decisions.get(&tool.name).map(String::as_str));
        let signatures: String = list.tools.iter().map(|tool| of(tool) + "\n").collect();
        let server = Escaped(&server.name);
        if list.tools.is_empty() {
            let _ = writeln!(out, "\n### {server}{state}");
            continue;
        }
        if let Some(rest) = room.checked_sub(signatures.len()) {
            room = rest;
            let _ = writeln!(out, "\n### {server}{state}\n\n```text\n{signatures}```");
            continue;
        }
        let named = list.tools.iter().take(MOST_NAMED).map(|tool| format!("`{}`", Escaped(&tool.name)));
        let more = if list.tools.len() > MOST_NAMED { ", ..." } else { "" };
        let named = named.collect::<Vec<_>>().join(", ");
        let _ = writeln!(out, "\n### {server}{state}\n\n{named}{more}: `tool-cli {server}` has the signatures.");
    }
    out
}

/// What holds for all servers.
const HOW: &str = "\
# Tools by tool-cli

```sh
tool-cli search read file                 # signatures of the tools that fit, behind their server
tool-cli SERVER TOOL --flag value         # a call; without arguments the tool in full, with --help an example
tool-cli SERVER TOOL '{\"name\": \"value\"}'  # the same as JSON; @FILE and - read it; '{}' calls without arguments
tool-cli prompt list                      # and prompt get SERVER PROMPT --flag value
tool-cli resource list                    # and resource read SERVER URI
```

- `--pick .items[].name` prints a part of a JSON result, `--out FILE` writes an image, `--timeout 10s` gives up.
- `--max-bytes 500` prints the beginning; all of it is in a file, and its name and lines are said.
- Many calls: `tool-cli batch --parallel 8`, a line `{\"server\":\"S\",\"tool\":\"T\",\"arguments\":{}}` of input each.
- A call marked `[asks]` waits for a person. Do not repeat a call whose outcome is unknown.

## Servers

Names and descriptions are the servers' own words.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_man_page_has_sections_and_no_line_that_is_a_request() {
        let page = man_page("x: does y\n\nUsage:\n  x -a\n.bad\n\nExit status: 0 done\n");
        assert!(page.contains("\nx \\- does y\n") || page.contains("\nx - does y\n"), "{page}");
        assert!(page.contains(".SH USAGE\n.nf\n  x \\-a\n\\&.bad\n"), "{page}");
        assert!(page.ends_with(".fi\n.SH EXIT STATUS\n.nf\n0 done\n.fi\n"), "{page}");
    }

    #[test]
    fn a_skill_has_signatures_while_there_is_room_and_names_behind() {
        let server = |name: &str| serde_json::from_value(json!({"name": name, "toolCount": 1})).unwrap();
        let tools = |count: usize, text: &str| -> FullTools {
            let tool = |n| json!({"name": format!("t{n}"), "description": text, "inputSchema": {}});
            serde_json::from_value(json!({"tools": (0..count).map(tool).collect::<Vec<_>>()})).unwrap()
        };
        let all = [
            (server("small"), tools(2, "Does it")),
            (server("large"), tools(300, "Says many words of what it does")),
            (server("last"), tools(1, "Has room\n```")),
        ];
        let text = skill(&all);
        assert!(text.contains("### small\n\n```text\nt0() - Does it\nt1() - Does it\n```\n"), "{text}");
        assert!(text.contains("`t10`, `t11`, ...: `tool-cli large` has the signatures."), "{text}");
        assert!(text.contains("\nt0() - Has room") && text.len() < 4_000, "{text}");
        assert_eq!(text.matches("\n```\n").count(), 3, "no tool ends a block: {text}");
    }
}
