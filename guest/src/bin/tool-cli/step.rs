//! Doing one step: ask the bridge, check the answer's shape, print it.

use std::{
    io::{self, IsTerminal as _},
    os::fd::AsFd as _,
    path::Path,
    time::{Duration, Instant},
};

use footbridge_cli::{
    blocking::Blocking,
    destination::Destination,
    layout, output,
    render::{Format, Rendered, Shape},
    report::StepReport,
    result,
    shell_word::typed_name,
    show,
};
use footbridge_guest::{
    Client, ClientSettings,
    answers::{
        CallResult, FilledPrompt, FoundToolList, FullTools, ListedServers, ListedTools, ResourceContents,
        ToolDescription,
    },
    client::CallParams,
    stdio_mcp::StdioMcp,
};
use footbridge_proto::{text::Escaped, vars, wire::method};
use serde_json::{json, value::RawValue};

use crate::{
    about,
    args::{self, Step, Style, TypedCall},
    asked::Asked,
    batch, calls, doctor,
    failure::Failure,
    hints::{NamedThing, TypedNames, hinted},
    resources::{self, Listed},
    stubs::{self, Language},
    words::Options,
};

/// How long `--help` waits for a bridge to name its servers.
const HELP_PATIENCE: Duration = Duration::from_millis(300);

/// What the next step is done with.
const COMMAND: &str = "tool-cli";

/// Where an agent that knows no more than the command's name learns the rest.
const AGENTS_HINT: &str = "Use: tool-cli skill for how calls are made, and what the tools take\n";

const USAGE: &str = r#"tool-cli: call the tools that this sandbox may use

Usage:
  tool-cli                                  list servers
  tool-cli SERVER                           list the tools of a server
  tool-cli SERVER TOOL                      describe a tool
  tool-cli SERVER TOOL ARGS                 call it; ARGS is a JSON object, @FILE, or - for standard input
  tool-cli SERVER TOOL --NAME VALUE ...     the same with a flag an argument, which beats the JSON; --NAME and --no-NAME
                                            for yes and no, --a.b for members, --arg.NAME where an option has the name
  tool-cli SERVER__TOOL ...                 the same in one word
  tool-cli SERVER TOOL --help               how to call it, with an example
  tool-cli check SERVER TOOL ARGS           whether the arguments fit and what would be decided, without the call
  tool-cli search WORDS [--server SERVER]   find tools by words of their names and descriptions, the best first
  tool-cli batch [--parallel N]             calls from standard input, a line {"server":..., "tool":..., "arguments":{}}
                                            each; a result a line in the same order, over connections that are kept
  tool-cli prompt list [SERVER]             list prompts of a server, or of all
  tool-cli prompt get SERVER PROMPT ARGS    a prompt, filled in; ARGS as for a call
  tool-cli resource list [SERVER]           list resources of a server, or of all
  tool-cli resource templates [SERVER]      list resource templates
  tool-cli resource read [SERVER] URI       read a resource; SERVER may be left out where there is one
  tool-cli mcp [SERVER] [--search]          speak MCP over standard input and output, for clients that start a program
  tool-cli completion bash|zsh|fish         print what a shell reads to complete servers, tools, flags and values
  tool-cli skill                            print a SKILL.md for an agent: how this is used, and what there is
  tool-cli stubs --lang py|ts DIR           write typed functions for the tools of all servers
  tool-cli man                              print this as a page for man
  tool-cli wait ID                          wait for a person to answer an approval, and for what comes of it
  tool-cli doctor                           what is wrong between here and a tool, and what mends it
  tool-cli -- SERVER ...                    a server whose name is a subcommand

Options:
  --out FILE        write the result to FILE. If there is one image, audio or blob in it, FILE gets its bytes, and
                    the rest is printed
  --out-dir DIR     write each image, audio and blob to a file of its own in DIR, and print the rest. The names are
                    image-1.png, audio-2.wav and so on; what has such a name is replaced
  --output FORMAT   text (a tool's text rather than its structured copy, pictures as a line), json, raw (nothing added),
                    table or yaml
  --pick PATH       print a part of a JSON result, as jq would: .items[].name, .list[0]
  --max-bytes N     print the first N bytes; where there are more, all of it is in a file, which is named
  --progress        say how far a call is on lines that stay, off a terminal too; -v says what the server logs
  --report          print one JSON object of the shape mcp-client/1 for a call, whatever fails
  --json            print the raw result on one line, and errors as JSON on stderr
  --timeout TIME    30s, 2m, 500ms or a number of milliseconds; 30s by default, at most 300s. A call may take longer
                    as long as the bridge says every 15s that it still runs: then only silence is measured. A bridge
                    that is busy or over its rate is asked again for as long
  --no-wait         if a person has to be asked first, fail at once and name the approval
  --search          with mcp: three tools that find, describe and call all others
  --exit-codes      tell failures apart by exit status (also TOOL_CLI_EXIT_CODES=1)
  -h, --help        show this, and the servers if a bridge answers
  -V, --version     show the version

Examples:
  tool-cli demo get_weather '{"city": "Oslo"}' | jq .temperature
  tool-cli github list_issues --owner me --repo it --labels bug --labels docs
  tool-cli browser screenshot '{"url": "https://example.org"}' --out page.png
  jq -n --arg text "$TEXT" '{text: $text}' | tool-cli notes add_note - --timeout 2m

Exit status: 0 done, 1 failed. With --exit-codes: 1 the tool reported an error, 2 usage, names or arguments,
3 cannot reach the bridge, 4 not authenticated, 5 denied, 6 approval pending or expired, 7 over a limit,
8 timed out, 9 outcome unknown. 130 interrupted.

Environment: TOOL_CLI_PORT, TOOL_CLI_HOST or TOOL_CLI_SOCKET, TOOL_CLI_TOKEN or TOOL_CLI_TOKEN_FILE,
TOOL_CLI_TIMEOUT_MS, TOOL_CLI_EXIT_CODES, TOOL_CLI_STYLE=agent (listings in few words, a signature a tool),
TOOL_CLI_LISTENER_UID (a user besides root and you whose bridge gets the token)
"#;

/// Does a step.
pub(crate) fn run(step: Step, options: Options, style: Style) -> Result<(), Failure> {
    if !matches!(step, Step::Help | Step::Completion { .. } | Step::Man | Step::Doctor | Step::Version) {
        note_ignored_port(style);
    }
    match step {
        Step::Help => return help(),
        Step::Completion { shell } => return Ok(output::print(&shell.script("tool-cli", "tool-cli completion"))?),
        Step::Man => return Ok(output::print(&about::man_page(USAGE))?),
        Step::Batch { parallel } => {
            let mut settings = ClientSettings::from_env()?;
            settings.timeout = options.timeout.unwrap_or(settings.timeout);
            return batch::run(settings, parallel, options.told_too, io::stdin().as_fd());
        }
        Step::Doctor => return doctor::run(&options, style),
        Step::Mcp { server, search } => return mcp(server.as_deref(), search, &options),
        Step::Version => return Ok(output::print(concat!("tool-cli ", env!("CARGO_PKG_VERSION"), "\n"))?),
        _ => {}
    }
    let mut settings = ClientSettings::from_env()?;
    settings.timeout = options.timeout.unwrap_or(settings.timeout);
    let deadline = Instant::now() + settings.timeout;
    let client = Client::new(settings);
    let client = if options.no_wait { client.without_waiting() } else { client };
    let hints = style.agent || io::stderr().is_terminal();
    let format = match (style.json, options.format) {
        (true, _) => Format::Json,
        (false, Some(format)) => format,
        (false, None) if style.agent => Format::Text,
        (false, None) => Format::Recorded,
    };
    let shape = Shape { format, pick: options.pick.clone(), max_bytes: options.max_bytes };
    let mut asked = Asked { client, json: style.json, shape, told_too: options.told_too, hints, deadline };
    match step {
        Step::Joined { words, behind, about } => {
            let step = calls::joined(&mut asked, words, behind, about)?;
            args::fits(&step, &options)?;
            carry_out(asked, step, &options, style)
        }
        step => carry_out(asked, step, &options, style),
    }
}

/// Says that the port is another than what is set, on standard error where a person reads that: for programs it stays as the
/// public command has it.
fn note_ignored_port(style: Style) {
    // It decides nothing beside a socket.
    if std::env::var_os(vars::SOCKET).is_some_and(|socket| !socket.is_empty()) {
        return;
    }
    let set = std::env::var_os(vars::PORT).map(|value| value.to_string_lossy().into_owned());
    if let Some(why) = ClientSettings::ignored_port(set.as_deref()).filter(|_| !style.json && !style.report) {
        output::print_error(&format!("Note: {why}\n"));
    }
}

/// Does a step that asks the bridge; where a name is none, with what may have been meant.
fn carry_out(mut asked: Asked, step: Step, options: &Options, style: Style) -> Result<(), Failure> {
    let names = names_of(&step);
    let done = do_step(&mut asked, step, options, style);
    match names {
        Some(names) => done.map_err(|failure| hinted(&mut asked, &names, failure)),
        None => done,
    }
}

/// The names that a step was typed with, where it has a server's.
fn names_of(step: &Step) -> Option<TypedNames> {
    let behind = |server: &str, thing| Some(TypedNames::behind_subcommand(server, thing));
    match step {
        Step::Tools { server } => Some(TypedNames::of_tool(server, None)),
        Step::Describe { server, tool } | Step::Explain { server, tool } => {
            Some(TypedNames::of_tool(server, Some(tool)))
        }
        Step::Call(call) => Some(TypedNames::of_tool(&call.server, Some(&call.tool))),
        Step::Check(call) => behind(&call.server, NamedThing::Tool(call.tool.clone())),
        Step::Prompt(call) => behind(&call.server, NamedThing::Prompt(call.tool.clone())),
        Step::Resources { server }
        | Step::Templates { server }
        | Step::Prompts { server }
        | Step::Search { server, .. }
        | Step::Read { server, .. } => behind(server.as_deref()?, NamedThing::Nothing),
        _ => None,
    }
}

fn do_step(asked: &mut Asked, step: Step, options: &Options, style: Style) -> Result<(), Failure> {
    match step {
        Step::Help | Step::Version | Step::Mcp { .. } | Step::Batch { .. } | Step::Joined { .. } => Ok(()),
        Step::Completion { .. } | Step::Man | Step::Doctor => Ok(()),
        Step::Skill => skill(asked),
        Step::Stubs { language, folder } => write_stubs(asked, language, &folder),
        Step::Prompts { server } => resources::list(asked, Listed::Prompts, server),
        Step::Prompt(call) => prompt(asked, call, options),
        Step::Explain { server, tool } => calls::explain(asked, &server, &tool),
        Step::Check(call) => calls::check(asked, call),
        Step::Servers => asked.list(method::LIST_SERVERS, &json!({}), |list: &ListedServers| {
            let how = if style.agent && !list.servers.is_empty() { AGENTS_HINT } else { "" };
            show::servers(list, COMMAND) + how
        }),
        Step::Tools { server } => tools(asked, &server, style),
        Step::Search { query, server } => {
            let params = json!({ "query": query, "server": server, "full": true });
            asked.list(method::SEARCH_TOOLS, &params, |found: &FoundToolList| show::found(found, COMMAND))
        }
        Step::Describe { server, tool } => describe(asked, &server, &tool, style),
        Step::Resources { server } => resources::list(asked, Listed::Resources, server),
        Step::Templates { server } => resources::list(asked, Listed::Templates, server),
        Step::Call(call) => {
            let (server, tool) = (call.server.clone(), call.tool.clone());
            let arguments = calls::arguments(asked, call)?;
            let to = options.out.as_ref().map(Destination::prepare).transpose()?;
            let params = CallParams { server: &server, tool: &tool, arguments: &arguments };
            let (raw, result) = asked.get::<CallResult>(method::CALL_TOOL, &params)?;
            if style.report {
                return report(&raw);
            }
            asked.finish_call(&raw, result, to)
        }
        Step::Read { server, uri } => {
            let to = options.out.as_ref().map(Destination::prepare).transpose()?;
            let server = server.map_or_else(|| resources::only_server(asked), Ok)?;
            let params = json!({ "server": server, "uri": uri });
            let (raw, resource) = asked.get::<ResourceContents>(method::READ_RESOURCE, &params)?;
            Ok(result::print(&raw, Rendered::resource(resource), &asked.shape, to)?)
        }
        Step::Wait { id } => {
            let to = options.out.as_ref().map(Destination::prepare).transpose()?;
            asked.wait(id, to)
        }
    }
}

/// Prints the tools of a server.
fn tools(asked: &mut Asked, server: &str, style: Style) -> Result<(), Failure> {
    let partial = if style.agent && !style.json {
        let params = json!({ "server": server, "full": true });
        let (_, list) = asked.get::<FullTools>(method::LIST_TOOLS, &params)?;
        output::print(&show::signatures(server, &list, COMMAND))?;
        list.partial
    } else {
        let (raw, list) = asked.get::<ListedTools>(method::LIST_TOOLS, &json!({ "server": server }))?;
        if asked.json {
            return Ok(output::print(&(layout::one_line(&raw) + "\n"))?);
        }
        output::print(&show::tools(server, &list, COMMAND))?;
        list.partial
    };
    output::print_error(&show::partial(server, &partial));
    Ok(())
}

/// Prints what became of a call as one object.
fn report(raw: &RawValue) -> Result<(), Failure> {
    let report = StepReport::of(raw);
    output::print(&report.line())?;
    if report.is_success() { Ok(()) } else { Err(Failure::Tool) }
}

/// Prints a prompt, filled in.
fn prompt(asked: &mut Asked, call: TypedCall, options: &Options) -> Result<(), Failure> {
    let (server, prompt) = (call.server.clone(), call.tool.clone());
    let arguments = calls::prompt_arguments(asked, call)?;
    let to = options.out.as_ref().map(Destination::prepare).transpose()?;
    let params = json!({"server": server, "prompt": prompt, "arguments": arguments});
    let (raw, filled) = asked.get::<FilledPrompt>(method::GET_PROMPT, &params)?;
    Ok(result::print(&raw, Rendered::prompt(filled), &asked.shape, to)?)
}

/// Prints what an agent should know.
fn skill(asked: &mut Asked) -> Result<(), Failure> {
    let (_, list) = asked.get::<ListedServers>(method::LIST_SERVERS, &json!({}))?;
    let mut all = Vec::new();
    for server in list.servers {
        // One that is not ready is named all the same.
        let params = json!({ "server": server.name, "full": true });
        let tools = asked.get::<FullTools>(method::LIST_TOOLS, &params).map(|(_, list)| list);
        all.push((server, tools.unwrap_or_default()));
    }
    Ok(output::print(&about::skill(&all))?)
}

/// Writes a module for each server, and says what is missing.
fn write_stubs(asked: &mut Asked, language: Language, folder: &Path) -> Result<(), Failure> {
    let (_, list) = asked.get::<ListedServers>(method::LIST_SERVERS, &json!({}))?;
    let mut all = Vec::new();
    for server in list.servers {
        match asked.get::<FullTools>(method::LIST_TOOLS, &json!({"server": server.name, "full": true})) {
            Ok((_, list)) => all.push((server.name, list.tools)),
            Err(failure) => {
                output::print_error(&format!("Warning: {} is left out: {}\n", Escaped(&server.name), failure.shown()))
            }
        }
    }
    let written = stubs::write(language, folder, &all)?;
    let lines: String = written.iter().map(|path| format!("Written to: {path}\n")).collect();
    Ok(output::print(&lines)?)
}

/// Prints all that is known of a tool.
fn describe(asked: &mut Asked, server: &str, tool: &str, style: Style) -> Result<(), Failure> {
    let params = json!({ "server": server, "tool": tool });
    // Without a flag to give, nothing else shows that arguments make the call.
    let how = |full: &ToolDescription| {
        let is_needed = full.input_schema["required"].as_array().is_some_and(|names| !names.is_empty());
        if is_needed {
            String::new()
        } else {
            format!("Call it: {COMMAND} {} {} '{{}}'\n", typed_name(server), typed_name(tool))
        }
    };
    if style.agent && !style.json {
        let (raw, full) = asked.get::<ToolDescription>(method::DESCRIBE_TOOL, &params)?;
        return Ok(output::print(&(show::whole(&full, &raw) + &how(&full)))?);
    }
    asked.list(method::DESCRIBE_TOOL, &params, |full: &ToolDescription| {
        // In a pipe it is as recorded.
        let how = if output::on_terminal() { how(full) } else { String::new() };
        show::tool(server, tool, full, COMMAND) + &how
    })
}

/// Speaks MCP over standard input and output until the input ends.
fn mcp(server: Option<&str>, search: bool, options: &Options) -> Result<(), Failure> {
    let mut settings = ClientSettings::from_env()?;
    settings.timeout = options.timeout.unwrap_or(settings.timeout);
    let out = io::BufWriter::with_capacity(16 << 10, Blocking(io::stdout().lock()));
    StdioMcp::new(settings, server, search, out).run(io::stdin().as_fd(), &io::stdout()).map_err(Failure::Stdio)
}

/// Usage first, since it needs nobody; then the servers, if a bridge is quick to name them.
fn help() -> Result<(), Failure> {
    output::print(USAGE)?;
    let Ok(mut settings) = ClientSettings::from_env() else { return Ok(()) };
    settings.timeout = HELP_PATIENCE;
    match Client::new(settings).request_as::<ListedServers>(method::LIST_SERVERS, &json!({})) {
        Ok(list) => Ok(output::print(&format!("\n{}", show::servers(&list, COMMAND)))?),
        Err(_) => Ok(()),
    }
}
