//! Doing one step: ask the bridge, check the answer's shape, print it.

use std::{
    hash::{BuildHasher as _, RandomState},
    thread,
    time::{Duration, Instant},
};

use footbridge_cli::{
    layout,
    output::{self, OutFile},
    render::Rendered,
    result, show, typed,
};
use footbridge_guest::{
    Client, ClientError, ClientSettings,
    answers::{
        CallResult, ListedResources, ListedServers, ListedTemplates, ListedTools, ResourceContents, ToolDescription,
    },
    client::{CallParams, parse_result},
};
use footbridge_proto::wire::method;
use serde::{
    Deserialize, Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::{json, value::RawValue};

use crate::{
    args::{Options, Step, Style},
    failure::Failure,
    pauses::Pauses,
    progress::Line,
};

/// How long `--help` waits for a bridge to name its servers.
const HELP_PATIENCE: Duration = Duration::from_millis(300);

/// What the next step is done with.
const COMMAND: &str = "tool-cli";

const USAGE: &str = "\
tool-cli: call the tools that this sandbox may use

Usage:
  tool-cli                                  list servers
  tool-cli SERVER                           list the tools of a server
  tool-cli SERVER TOOL                      describe a tool
  tool-cli SERVER TOOL ARGS                 call it; ARGS is a JSON object, or - for standard input
  tool-cli resource list SERVER             list resources
  tool-cli resource templates SERVER        list resource templates
  tool-cli resource read SERVER URI         read a resource
  tool-cli wait ID                          wait for a person to answer an approval, and for what comes of it
  tool-cli -- SERVER ...                    a server whose name is a subcommand

Options:
  --out FILE        write the result to FILE; a single image, audio or blob as its bytes
  --json            print the raw result on one line, and errors as JSON on stderr
  --timeout TIME    5s, 500ms or a number of seconds; 30s by default, at most 300s. A call may take longer as long
                    as the bridge says every 15s that it still runs: then only silence is measured. A bridge that
                    is busy or over its rate is asked again for as long
  --no-wait         if a person has to be asked first, fail at once and name the approval
  --exit-codes      tell failures apart by exit status (also TOOL_CLI_EXIT_CODES=1)
  -h, --help        show this, and the servers if a bridge answers
  -V, --version     show the version

Exit status: 0 done, 1 failed. With --exit-codes: 1 the tool reported an error, 2 usage, names or arguments,
3 cannot reach the bridge, 4 not authenticated, 5 denied, 6 approval pending or expired, 7 over a limit,
8 timed out, 9 outcome unknown. 130 interrupted.

Environment: TOOL_CLI_PORT, TOOL_CLI_HOST or TOOL_CLI_SOCKET, TOOL_CLI_TOKEN or TOOL_CLI_TOKEN_FILE,
TOOL_CLI_TIMEOUT_MS, TOOL_CLI_EXIT_CODES, TOOL_CLI_LISTENER_UID (a user besides root and you whose bridge gets the token)
";

/// Does a step.
pub(crate) fn run(step: Step, options: Options, style: Style) -> Result<(), Failure> {
    match step {
        Step::Help => return help(),
        Step::Version => return Ok(output::print(concat!("tool-cli ", env!("CARGO_PKG_VERSION"), "\n"))?),
        _ => {}
    }
    let mut settings = ClientSettings::from_env()?;
    settings.timeout = options.timeout.unwrap_or(settings.timeout);
    let deadline = Instant::now() + settings.timeout;
    let client = Client::new(settings);
    let client = if options.no_wait { client.without_waiting() } else { client };
    let mut asked = Asked { client, json: style.json, deadline };
    match step {
        Step::Help | Step::Version => Ok(()),
        Step::Servers => {
            asked.list(method::LIST_SERVERS, &json!({}), |list: &ListedServers| show::servers(list, COMMAND))
        }
        Step::Tools { server } => asked.list(method::LIST_TOOLS, &json!({ "server": server }), |list: &ListedTools| {
            show::tools(&server, list, COMMAND)
        }),
        Step::Describe { server, tool } => {
            let params = json!({ "server": server, "tool": tool });
            asked.list(method::DESCRIBE_TOOL, &params, |full: &ToolDescription| {
                show::tool(&server, &tool, full, COMMAND)
            })
        }
        Step::Resources { server } => {
            let show = |list: &ListedResources| show::resources(&server, "resource", &list.resources);
            asked.list(method::LIST_RESOURCES, &json!({ "server": server }), show)
        }
        Step::Templates { server } => {
            let show = |list: &ListedTemplates| show::resources(&server, "resource template", &list.templates);
            asked.list(method::LIST_RESOURCE_TEMPLATES, &json!({ "server": server }), show)
        }
        Step::Call { server, tool, arguments } => {
            let arguments = typed::arguments(arguments)?;
            let file = options.out.as_deref().map(OutFile::prepare).transpose()?;
            let params = CallParams { server: &server, tool: &tool, arguments: &arguments };
            let (raw, result) = asked.get::<CallResult>(method::CALL_TOOL, &params)?;
            asked.finish_call(&raw, result, file)
        }
        Step::Read { server, uri } => {
            let file = options.out.as_deref().map(OutFile::prepare).transpose()?;
            let params = json!({ "server": server, "uri": uri });
            let (raw, result) = asked.get::<ResourceContents>(method::READ_RESOURCE, &params)?;
            asked.finish(&raw, &Rendered::resource(result), file)
        }
        Step::Wait { id } => {
            let file = options.out.as_deref().map(OutFile::prepare).transpose()?;
            asked.wait(id, file)
        }
    }
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

/// Whether a method has effects, may take long, and tells what happens meanwhile.
fn is_call(method: &str) -> bool {
    matches!(method, method::CALL_TOOL | method::READ_RESOURCE | method::AWAIT_APPROVAL)
}

/// Bits that no other process has: the standard library takes its keys from the system.
fn at_random() -> u64 {
    RandomState::new().hash_one(())
}

/// The client, and how results are printed.
struct Asked {
    client: Client,
    json: bool,
    /// When asking again is over.
    deadline: Instant,
}

impl Asked {
    fn get<T: DeserializeOwned>(
        &mut self,
        method: &'static str,
        params: &impl Serialize,
    ) -> Result<(Box<RawValue>, T), Failure> {
        let raw = self.ask(method, params).map_err(|e| Failure::request(e, is_call(method)))?;
        let result = parse_result(method, &raw).map_err(|e| Failure::request(e, is_call(method)))?;
        Ok((raw, result))
    }

    /// Asks, and asks again where the bridge says that nothing was sent on and when to come back: a loop in a script, or
    /// many at once, need not know of rates and places. What may have happened is never asked again.
    fn ask(&mut self, method: &'static str, params: &impl Serialize) -> Result<Box<RawValue>, ClientError> {
        let mut pauses = Pauses::default();
        loop {
            let answer = if is_call(method) {
                let mut line = Line::new(self.json);
                self.client.request_watched(method, params, &mut |event| line.tell(&event))
            } else {
                self.client.request(method, params)
            };
            let error = match answer {
                Err(error) => error,
                Ok(raw) => return Ok(raw),
            };
            let left = self.deadline.saturating_duration_since(Instant::now());
            match error.come_back().and_then(|told| pauses.next(told, left, at_random())) {
                Some(pause) => thread::sleep(pause),
                None => return Err(error),
            }
        }
    }

    /// A grant may bring the result of the call that it is for; without one, its state is all there is.
    fn wait(&mut self, id: String, file: Option<OutFile>) -> Result<(), Failure> {
        #[derive(Deserialize)]
        struct Waited {
            state: Option<String>,
            content: Option<IgnoredAny>,
            contents: Option<IgnoredAny>,
        }
        let (raw, waited) = self.get::<Waited>(method::AWAIT_APPROVAL, &json!({ "id": id }))?;
        let shape = |e| Failure::request(e, true);
        match waited {
            Waited { contents: Some(_), .. } => {
                let result = parse_result(method::AWAIT_APPROVAL, &raw).map_err(shape)?;
                self.finish(&raw, &Rendered::resource(result), file)
            }
            Waited { state: Some(state), content: None, .. } => {
                let granted = matches!(state.as_str(), "granted" | "used");
                if self.json {
                    output::print(&(layout::one_line(&raw) + "\n"))?;
                } else if granted {
                    output::print(&format!("approval {id} is {state}\n"))?;
                }
                if granted { Ok(()) } else { Err(Failure::Approval { id, state }) }
            }
            _ => {
                let result = parse_result(method::AWAIT_APPROVAL, &raw).map_err(shape)?;
                self.finish_call(&raw, result, file)
            }
        }
    }

    fn list<T: DeserializeOwned>(
        &mut self,
        method: &'static str,
        params: &impl Serialize,
        show: impl FnOnce(&T) -> String,
    ) -> Result<(), Failure> {
        let (raw, result) = self.get(method, params)?;
        Ok(output::print(&if self.json { layout::one_line(&raw) + "\n" } else { show(&result) })?)
    }

    /// Prints what a tool answered.
    fn finish_call(&self, raw: &RawValue, answer: CallResult, file: Option<OutFile>) -> Result<(), Failure> {
        if result::print_call(raw, answer, self.json, file)? { Ok(()) } else { Err(Failure::Tool) }
    }

    fn finish(&self, raw: &RawValue, answer: &Rendered, file: Option<OutFile>) -> Result<(), Failure> {
        Ok(result::print(raw, answer, self.json, file)?)
    }
}
