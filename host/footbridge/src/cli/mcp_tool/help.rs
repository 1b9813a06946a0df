//! What `mcp-tool --help` shows: all tools, or all that one takes.

use footbridge_proto::{
    text::{Escaped, EscapedLines},
    wire::NO_DESCRIPTION,
};
use serde_json::{Value, json, value::RawValue};

use super::{
    NAME, Options, Typed, command,
    which::{BETWEEN, Named},
};
use crate::{
    cli::known_tools::{KnownTools, PATIENCE},
    oneshot::failure::OneShotFailure,
};
use clap::CommandFactory as _;
use footbridge_cli::{answers::ToolDescription, flags::ToolFlags, help, layout, output, shell_word::typed_name};

/// Column width of a tool's name.
const WIDTH: usize = 36;
/// Longest description in a list, and of a tool in full.
const SHORT: usize = 90;
const LONG: usize = 6_000;
/// Longest schema that is shown.
const MOST_SCHEMA: usize = 8_000;

/// All tools.
pub(super) fn all(options: Options) -> Result<(), OneShotFailure> {
    let json = options.is_json();
    let from = options.tools(PATIENCE)?;
    from.note_not_trusted();
    let known = from.names(options.refresh)?;
    from.note_problems();
    let (mut tools, mut unavailable) = (Vec::new(), Vec::new());
    for (server, names) in known {
        match names {
            Ok(names) => tools.extend(names.shown().into_iter().map(|tool| (server.clone(), tool))),
            Err(why) => unavailable.push((server, why)),
        }
    }
    if json {
        let entry = |(server, tool): &(String, footbridge_proto::wire::ToolEntry)| {
            let name = format!("{server}{BETWEEN}{}", tool.name);
            json!({"name": name, "server": server, "tool": tool.name, "description": tool.description})
        };
        let tools: Vec<Value> = tools.iter().map(entry).collect();
        let failed: Vec<Value> =
            unavailable.iter().map(|(server, why)| json!({"server": server, "why": why.to_string()})).collect();
        return Ok(output::print(&format!("{}\n", json!({"tools": tools, "unavailable": failed})))?);
    }
    let mut text = format!("{NAME}: call the tools of MCP servers, each as a command\n\n{}\n\n", usage());
    if tools.is_empty() && unavailable.is_empty() {
        text.push_str(&format!("There are no tools: {}\n", from.where_from()));
    } else {
        text.push_str("Tools:\n");
    }
    for (server, tool) in &tools {
        let name = Escaped(&format!("{server}{BETWEEN}{}", tool.name)).to_string();
        let missing = WIDTH.saturating_sub(name.chars().count());
        let first = tool.description.trim().lines().next().unwrap_or(NO_DESCRIPTION);
        text.push_str(&format!("  {name}{:missing$} {}\n", "", cut(&Escaped(first).to_string(), SHORT)));
    }
    for (server, why) in &unavailable {
        text.push_str(&format!("  {}{BETWEEN}... is not available: {}\n", Escaped(server), Escaped(&why.to_string())));
    }
    text.push_str(&format!("\n{}", options_text()));
    Ok(output::print(&text)?)
}

fn usage() -> String {
    format!(
        "Usage: {NAME} [OPTIONS] SERVER{BETWEEN}TOOL [ARGUMENTS]\n       {NAME} SERVER{BETWEEN}TOOL --help    what it takes\n       \
         {NAME} --completions bash|zsh|fish"
    )
}

/// The options, and how it ends.
fn options_text() -> String {
    let mut command = Typed::command().max_term_width(100).help_template("Options:\n{options}\n");
    let options = command.render_help().to_string();
    format!(
        "{}\n\nExamples:\n  {NAME} time__get_current_time --timezone Europe/Zurich\n  \
         {NAME} files__read_file --json '{{\"path\": \"notes.txt\"}}' --output json\n\n\
         Exit status: 0 done; 1 the tool reported an error; 2 usage, names or arguments; 3 no harness to call through, or\n\
         no call could be made; 5 denied; 6 approval pending or expired; 7 over a limit; 8 timed out; 9 outcome\n\
         unknown; 125 the harness failed, or the result could not be written; 129, 130 and 143 interrupted.\n",
        options.trim_end()
    )
}

/// All that one tool takes.
pub(super) fn tool(from: &KnownTools, named: &Named, refresh: bool, json: bool) -> Result<(), OneShotFailure> {
    let list = from.whole(&named.server, refresh)?;
    if list.is_changed(&named.tool) {
        return Err(named.changed());
    }
    let flags = named.flags(&list)?;
    let Some(definition) = list.definition(&named.tool) else { return Err(named.unknown(&list)) };
    if json {
        return Ok(output::print(&(layout::one_line(definition) + "\n"))?);
    }
    Ok(output::print(&text(from, named, definition, &flags, &list.names.listed))?)
}

fn text(from: &KnownTools, named: &Named, definition: &RawValue, flags: &ToolFlags, listed: &str) -> String {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Shown<'a> {
        description: Option<String>,
        #[serde(borrow)]
        input_schema: Option<&'a RawValue>,
    }
    let shown = serde_json::from_str::<Shown<'_>>(definition.get()).ok();
    let description = shown.as_ref().and_then(|shown| shown.description.as_deref()).unwrap_or(NO_DESCRIPTION);
    let name = Escaped(&named.name()).to_string();
    let mut out = format!("{name}\n\n{}\n\n", EscapedLines(cut(description.trim(), LONG).as_str()));
    let (via, typed) = (from.via(), typed_name(&named.name()));
    out.push_str(&format!("Usage: {NAME}{via} {typed} [ARGUMENTS] [OPTIONS]\n\n"));
    let mut command = command(&named.name(), flags).help_template("{all-args}");
    out.push_str(command.render_help().to_string().trim_end());
    if !flags.in_json.is_empty() {
        let names: Vec<String> =
            flags.in_json.iter().map(|name| format!("  {}\n", help::named_in_json(name))).collect();
        out.push_str(&format!(
            "\n\nArguments by JSON only (--json, --json-file or --json-stdin):\n{}",
            names.concat().trim_end()
        ));
    }
    let mut schema = String::new();
    if let Some(raw) = shown.and_then(|shown| shown.input_schema) {
        // Nothing fails in memory.
        let _ = layout::write_indented(raw, &mut schema);
    }
    out.push_str(&format!("\n\nInput schema:\n{}\n", EscapedLines(&cut(&schema, MOST_SCHEMA))));
    let example = format!("{NAME}{via} {typed} {}", flags.example(&["--json"]));
    out.push_str(&format!("\nExample:\n  {}\n", example.trim_end()));
    if let Ok(tool) = serde_json::from_str::<ToolDescription>(definition.get()) {
        out.push_str(&help::of_result(&tool));
    }
    out.push_str(&format!("\nAs listed at {}; --refresh asks again.\n", Escaped(listed)));
    out
}

/// A text that is not longer than so many characters.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}
