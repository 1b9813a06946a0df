//! From a call as it was typed to its arguments: JSON goes as it is; flags need the tool's schema, which is asked for.

use footbridge_cli::{
    arguments::merged, flags::ToolFlags, help, layout, output, shell_word::typed_name, suggest::instead, typed,
};
use footbridge_guest::{
    answers::{ListedPrompts, ListedServers, PromptArgumentSummary, PromptSummary, ToolDescription},
    client::CallParams,
};
use footbridge_proto::{
    exit::ExitCode,
    rpc::Reason,
    text::Escaped,
    wire::{CheckedCall, method},
};
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    args::{self, About, Step, TypedCall},
    asked::{Asked, described},
    failure::Failure,
    hints::{TypedNames, hinted},
    words::{self, ArgsError, BETWEEN, BehindTool, NotTyped, OPTIONS},
};

/// The arguments of a call.
pub(crate) fn arguments(asked: &mut Asked, call: TypedCall) -> Result<Box<RawValue>, Failure> {
    let (server, tool) = (call.server.clone(), call.tool.clone());
    let is_word = call.json.as_deref().is_some_and(|json| json.starts_with(|c: char| c.is_ascii_alphabetic()));
    let help = format!("tool-cli {} {} --help", typed_name(&server), typed_name(&tool));
    let read = typed_arguments(asked, call, help, |asked| Ok(flags(&described(asked, &server, &tool)?.1)));
    match read {
        // Who types a word there may mean something else by those before it: whether they are names says more.
        Err(bad @ Failure::Arguments(_)) if is_word => Err(no_names(asked, &server, &tool).unwrap_or(bad)),
        read => read,
    }
}

/// What is said of a server and a tool of these names, where there are none.
fn no_names(asked: &mut Asked, server: &str, tool: &str) -> Option<Failure> {
    let failure = described(asked, server, tool).err()?;
    let Failure::Client { source, .. } = &failure else { return None };
    let is_unknown = matches!(source.object()?.reason()?, Reason::UnknownServer | Reason::UnknownTool);
    is_unknown.then(|| hinted(asked, &TypedNames::of_tool(server, Some(tool)), failure))
}

/// What was typed; which flags there are is asked for where there is one. `help` is the command that says them.
fn typed_arguments(
    asked: &mut Asked,
    call: TypedCall,
    help: String,
    flags: impl FnOnce(&mut Asked) -> Result<ToolFlags, Failure>,
) -> Result<Box<RawValue>, Failure> {
    let TypedCall { mut json, behind: BehindTool { words, options }, .. } = call;
    let failed = |why: NotTyped| Failure::Typed { why, help: help.clone() };
    let as_options = |flags: &ToolFlags| options.iter().try_for_each(|option| flags.as_option(option));
    if words.is_empty() {
        let given = typed::arguments(json.unwrap_or_else(|| "{}".to_owned()))?;
        // Where nothing is known of the tool, the call says why.
        if options.iter().any(|option| words::may_be_argument(option))
            && let Ok(flags) = flags(asked)
        {
            as_options(&flags).map_err(|why| failed(why.into()))?;
        }
        return Ok(given);
    }
    let flags = flags(asked)?;
    as_options(&flags).map_err(|why| failed(why.into()))?;
    let (typed, plain) = flags.read(words).map_err(|why| failed(why.into()))?;
    for word in plain {
        if json.is_some() {
            return Err(failed(NotTyped::Word(word)));
        }
        json = Some(word);
    }
    let given = json.map(typed::arguments).transpose()?;
    let merged = merged(given.as_deref(), typed, &flags).map_err(|why| failed(why.into()))?;
    Ok(merged.json)
}

/// The arguments of a prompt, which are texts.
pub(crate) fn prompt_arguments(asked: &mut Asked, call: TypedCall) -> Result<Box<RawValue>, Failure> {
    let (server, prompt) = (call.server.clone(), call.tool.clone());
    let help = format!("tool-cli prompt list {}", typed_name(&server));
    typed_arguments(asked, call, help, |asked| {
        let (_, list) = asked.get::<ListedPrompts>(method::LIST_PROMPTS, &json!({ "server": server }))?;
        let known: Vec<String> = list.prompts.iter().map(|prompt| prompt.name.clone()).collect();
        flags_of_prompt(list.prompts, &prompt).ok_or_else(|| {
            let known: Vec<&str> = known.iter().map(String::as_str).collect();
            let instead = instead(&prompt, &known, "it has none");
            Failure::NoPrompt { server: server.clone(), prompt: prompt.clone(), instead }
        })
    })
}

/// The arguments of a prompt as flags, where there is a prompt of this name.
pub(crate) fn flags_of_prompt(prompts: Vec<PromptSummary>, name: &str) -> Option<ToolFlags> {
    let all = prompts.into_iter().find(|one| one.name == name)?.arguments.unwrap_or_default();
    let required: Vec<&str> = all.iter().filter(|one| one.required).map(|one| one.name.as_str()).collect();
    let text = |one: &PromptArgumentSummary| json!({"type": "string", "description": one.description});
    let properties: Map<String, Value> = all.iter().map(|one| (one.name.clone(), text(one))).collect();
    Some(ToolFlags::of(&json!({"properties": properties, "required": required}), &OPTIONS))
}

fn flags(tool: &ToolDescription) -> ToolFlags {
    ToolFlags::of(&tool.input_schema, &OPTIONS)
}

/// Says how to call a tool.
pub(crate) fn explain(asked: &mut Asked, server: &str, tool: &str) -> Result<(), Failure> {
    let (_, full) = described(asked, server, tool)?;
    let command = format!("tool-cli {} {}", typed_name(server), typed_name(tool));
    Ok(output::print(&help::explained(&full, &flags(&full), &command))?)
}

/// Says what would become of a call.
pub(crate) fn check(asked: &mut Asked, call: TypedCall) -> Result<(), Failure> {
    let (server, tool) = (call.server.clone(), call.tool.clone());
    let arguments = arguments(asked, call)?;
    let params = CallParams { server: &server, tool: &tool, arguments: &arguments };
    let (raw, checked) = asked.get::<CheckedCall>(method::CHECK_CALL, &params)?;
    if asked.json {
        output::print(&(layout::one_line(&raw) + "\n"))?;
    } else {
        let means = match checked.decision.as_str() {
            "allow" => "it would be made",
            "ask" => "a person would be asked first",
            _ => "it would be refused",
        };
        output::print(&format!("the arguments fit; {}: {means}\n", Escaped(&checked.decision)))?;
    }
    if checked.decision == "deny" { Err(Failure::Told(ExitCode::Denied)) } else { Ok(()) }
}

/// What a word means that may be a server's name and a tool's: the servers that there are say it, and where several
/// could have such a tool, what they have.
pub(crate) fn joined(
    asked: &mut Asked,
    mut words: Vec<String>,
    behind: BehindTool,
    about: About,
) -> Result<Step, Failure> {
    let word = words.remove(0);
    let (_, list) = asked.get::<ListedServers>(method::LIST_SERVERS, &json!({}))?;
    let servers: Vec<String> = list.servers.into_iter().map(|server| server.name).collect();
    let is_server = servers.contains(&word);
    if is_server {
        if words.is_empty() {
            return Ok(Step::Tools { server: word });
        }
        let tool = words.remove(0);
        return Ok(args::named_step(word, tool, words, behind, about)?);
    }
    let split =
        |server: &String| Some((server.clone(), word.strip_prefix(server.as_str())?.strip_prefix(BETWEEN)?.to_owned()));
    let mut possible: Vec<(String, String)> =
        servers.iter().filter_map(split).filter(|(_, tool)| !tool.is_empty()).collect();
    if possible.len() > 1 {
        possible.retain(|(server, tool)| described(asked, server, tool).is_ok());
    }
    // Where none is known the first sign stands between the two, and the bridge says what there is.
    let first = word.split_once(BETWEEN).map(|(server, tool)| (server.to_owned(), tool.to_owned()));
    match (possible.as_slice(), first) {
        ([(server, tool)], _) => Ok(args::named_step(server.clone(), tool.clone(), words, behind, about)?),
        ([], Some((_, tool))) if tool.is_empty() => Err(ArgsError::NoTool(word).into()),
        ([], Some((server, tool))) => Ok(args::named_step(server, tool, words, behind, about)?),
        (several, _) => {
            let ways: Vec<String> = several.iter().map(|(server, tool)| format!("tool-cli {server} {tool}")).collect();
            Err(Failure::WhichTool(word, ways.join(", or ")))
        }
    }
}
