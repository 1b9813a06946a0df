//! `footbridge tools`: what the configured servers offer, without a daemon.

use clap::Args;
use footbridge_proto::{
    rpc,
    text::Escaped,
    wire::{EXAMPLES, ServerEntry, ServerList, ServerStatus, ToolList},
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{
    Files,
    known_tools::{KnownTools, PATIENCE},
    one_shot::ended,
};
use crate::{
    oneshot::{failure::OneShotFailure, lists::CHANGED},
    report,
};
use footbridge_cli::{
    answers::ToolDescription,
    layout, output,
    schema::sample,
    shell_word::{quoted, typed_name},
    show,
    suggest::instead,
};

const AFTER: &str =
    "Servers are started, listed and ended; what they said is kept, and shown from then on without starting \
them. An entry that changed is another server. --refresh asks again.

Examples:
  footbridge tools                       which servers
  footbridge tools time                  which tools of a server
  footbridge tools time convert_time     one tool in full
  footbridge tools --refresh --json
  footbridge tools --via agent-1         what a session of yours sees, of the daemon or of a run

Exit status: 0 done; 2 a wrong command line or configuration; 3 the server cannot be listed; 125 the harness failed, or the
list could not be written.";

#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(super) struct ToolsArgs {
    #[command(flatten)]
    files: Files,
    /// The server. Default: all
    server: Option<String>,
    /// The tool, to see it in full
    tool: Option<String>,
    /// What this session of a harness that runs sees, in place of the configured servers
    #[arg(long, value_name = "SESSION", conflicts_with = "config")]
    via: Option<String>,
    /// Ask the servers again
    #[arg(long)]
    refresh: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What the next step is done with.
const COMMAND: &str = "footbridge tools";
pub(super) fn main(args: ToolsArgs) -> i32 {
    let json = args.json;
    ended(show_tools(args), json)
}

fn show_tools(args: ToolsArgs) -> Result<(), OneShotFailure> {
    let ToolsArgs { files, server, tool, via, refresh, json } = args;
    let known = KnownTools::find(files, via.as_deref(), PATIENCE)?;
    let command = format!("{COMMAND}{}", known.option());
    let Some(server) = server else { return all(&known, refresh, json) };
    let list = known.whole(&server, refresh)?;
    let Some(tool) = tool else {
        let tools = list.names.shown();
        let list = ToolList { server: server.clone(), tools, catalogue: None, partial: Vec::new() };
        return print(&list, json, |list| show::tools(&server, list, &command));
    };
    let Some(full) = list.definition(&tool) else {
        let known: Vec<&str> = list.names.tools.iter().map(|tool| tool.name.as_str()).collect();
        let what = format!("server \"{}\" has no tool \"{}\"", Escaped(&server), Escaped(&tool));
        return Err(OneShotFailure::Usage(format!("{what}{}", instead(&tool, &known, "it has none"))));
    };
    if list.is_changed(&tool) {
        report::note(CHANGED);
    }
    let (raw, call) = (rpc::raw(&full), format!("footbridge call{}", known.option()));
    print(&full, json, |full: &ToolDescription| {
        let arguments = quoted(&sample(&full.input_schema, &full.input_schema).to_string());
        let (server, tool) = (typed_name(&server), typed_name(&tool));
        format!("{}Call it: {call} {server} {tool} {arguments}\n", show::whole(full, &raw))
    })
}

fn all(from: &KnownTools, refresh: bool, json: bool) -> Result<(), OneShotFailure> {
    from.note_not_trusted();
    if from.servers().is_empty() {
        return Err(from.nothing());
    }
    let known = from.names(refresh)?;
    // What keeps all of it from being listed has been said by then.
    from.note_problems();
    let mut servers = Vec::new();
    for (name, names) in known {
        // Why one cannot be used is told beside the list.
        let name = name.clone();
        servers.push(match names {
            Ok(names) => {
                let examples = names.tools.iter().take(EXAMPLES).map(|tool| tool.name.clone()).collect();
                ServerEntry::new(name, names.tools.len(), examples)
            }
            Err(why) => {
                report::note(&why.to_string());
                ServerEntry { status: Some(ServerStatus::Unavailable), ..ServerEntry::new(name, 0, Vec::new()) }
            }
        });
    }
    print(&ServerList { servers }, json, |list| show::servers(list, &format!("{COMMAND}{}", from.option())))
}

/// Prints an answer as `tool-cli` would: its JSON, or as text.
fn print<T: serde::de::DeserializeOwned>(
    answer: &impl Serialize,
    json: bool,
    show: impl FnOnce(&T) -> String,
) -> Result<(), OneShotFailure> {
    let raw: Box<RawValue> = rpc::raw(answer);
    if json {
        return Ok(output::print(&(layout::one_line(&raw) + "\n"))?);
    }
    let read: T = serde_json::from_str(raw.get()).map_err(|error| OneShotFailure::Harness(error.into()))?;
    Ok(output::print(&show(&read))?)
}
