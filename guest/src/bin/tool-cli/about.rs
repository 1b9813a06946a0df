//! What the command says of itself for others to keep: a man page, and a skill for agents that says what this session
//! sees.

use std::fmt::Write as _;

use footbridge_guest::answers::ServerSummary;
use footbridge_proto::text::Escaped;
use serde_json::json;

/// Tools that a skill names of each server; it is to be short.
const MOST_NAMED: usize = 12;

/// The usage as a page for `man`.
pub(crate) fn man_page(usage: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut out = format!(".TH TOOL\\-CLI 1 \"\" \"tool\\-cli {version}\" \"User Commands\"\n.SH NAME\n");
    for (at, line) in usage.lines().enumerate() {
        let section = line.split_once(':').filter(|(name, _)| {
            let is_word = |c: char| c.is_ascii_alphabetic() || c == ' ';
            at > 0 && line.starts_with(|c: char| c.is_ascii_uppercase()) && name.len() < 16 && name.chars().all(is_word)
        });
        match section {
            _ if at == 0 => out.push_str(&format!("{}\n", roff(&line.replacen(": ", " - ", 1)))),
            Some((name, rest)) => {
                let end = if out.contains(".nf\n") { ".fi\n" } else { "" };
                let _ = writeln!(out, "{end}.SH {}\n.nf", name.to_uppercase());
                if !rest.trim().is_empty() {
                    let _ = writeln!(out, "{}", roff(rest.trim()));
                }
            }
            None => {
                let _ = writeln!(out, "{}", roff(line));
            }
        }
    }
    out + ".fi\n"
}

/// A line as text alone.
fn roff(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

/// A skill: how the command is used, and what there is.
pub(crate) fn skill(servers: &[(ServerSummary, Vec<String>)]) -> String {
    let names: Vec<&str> = servers.iter().map(|(server, _)| server.name.as_str()).collect();
    let description = format!(
        "Calls the tools of MCP servers from the shell with tool-cli. Servers: {}. Use it when a task needs one of them.",
        names.join(", ")
    );
    let mut out = format!("---\nname: tool-cli\ndescription: {}\n---\n\n", json!(Escaped(&description).to_string()));
    out.push_str(
        "# Tools by tool-cli\n\n\
         ```sh\n\
         tool-cli search read file                 # signatures of the tools that fit, behind their server\n\
         tool-cli SERVER                           # signatures of all tools of a server\n\
         tool-cli SERVER TOOL --flag value         # a call; --help has all flags and an example\n\
         tool-cli SERVER TOOL '{\"name\": \"value\"}'  # the same as JSON; @FILE and - read it\n\
         ```\n\n\
         - `--pick .items[].name` prints a part of a result, `--max-bytes 4000` keeps a large one in a file, `--out FILE`\n\
        \x20 writes an image.\n\
         - Many calls: `tool-cli batch`, a line `{\"server\":\"S\",\"tool\":\"T\",\"arguments\":{}}` each.\n\
         - A call marked `[asks]` waits for a person. Do not repeat a call whose outcome is unknown.\n\n\
         ## Servers\n\nNames are the servers' own words.\n\n",
    );
    for (server, tools) in servers {
        let shown: Vec<String> = tools.iter().take(MOST_NAMED).map(|name| format!("`{}`", Escaped(name))).collect();
        let more = if tools.len() > MOST_NAMED { ", ..." } else { "" };
        let state = server.status.as_deref().map_or_else(String::new, |status| format!(" ({})", Escaped(status)));
        let _ = writeln!(out, "- **{}**{state}: {}{more}", Escaped(&server.name), shown.join(", "));
    }
    out
}

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
}
