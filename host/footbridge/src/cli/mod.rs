//! The command line of `footbridge`: arguments as typed, then arguments as meant, then one file a command.

mod about;
mod approvals;
mod audit;
mod call;
mod complete;
mod config;
mod confirm;
mod doctor;
mod egress;
mod known_tools;
mod mcp_tool;
mod one_shot;
mod pinned;
mod policy;
mod run;
mod serve;
mod servers;
mod services;
mod session;
mod shell_words;
mod sources;
mod step;
mod table;
mod tools;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use footbridge_cli::completion::{COMPLETE, Shell};

use crate::{
    config::{
        Commands, Config, ConfigError, NoService, Variables, WantedServices, Writable,
        folders::{Folders, FoldersError, LinkInReach},
        is_passed, known, load, of_names,
    },
    report,
    run::{Agent, Models},
};
use footbridge_core::{gate::UnknownPolicy, limits::overrides::LimitTwice, names::Labels};
use footbridge_processes::{
    priority::{let_others_go_first, take_short_turns},
    sandbox::EnvironmentError,
    sys::{self, keep_little_free_memory},
    threads::{can_open, can_start},
};

/// Status when the command line or the configuration is wrong.
const USAGE: i32 = 2;

/// One narrow crossing between a sandboxed agent and the tools it may use.
#[derive(Debug, Parser)]
#[command(name = "footbridge", version, max_term_width = 100, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  footbridge run --config servers.json -- bash
  footbridge run --config servers.json --env MODEL -- my-agent --task 'tidy up'
  footbridge config check --config servers.json
  footbridge config trust
  footbridge serve --config servers.json
  footbridge session create agent-1
  footbridge run --policy readonly --config servers.json -- bash
  footbridge policy egress --policy readonly --config servers.json
  footbridge audit tail --follow
  footbridge audit verify
  footbridge approvals watch
  footbridge servers pins diff
  footbridge step issues.toml
  footbridge doctor

Inside the sandbox:
  tool-cli                         which servers
  tool-cli demo                    which tools of a server
  tool-cli demo get_weather        one tool in full
  tool-cli demo get_weather '{\"city\":\"Bern\"}'";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run one command in a sandbox that reaches tools through one port
    Run(run::RunArgs),
    /// Serve many sessions until a signal says to end
    Serve(ServeArgs),
    /// Open, show and end sessions of the daemon
    #[command(subcommand)]
    Session(session::SessionCommand),
    /// Read and check the record of every call
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Show the calls that wait for a person, and answer them
    #[command(subcommand)]
    Approvals(approvals::ApprovalsCommand),
    /// Show what servers offer, without a daemon
    Tools(tools::ToolsArgs),
    /// Call a tool once, without a daemon
    Call(call::CallArgs),
    /// Show MCP servers, start them afresh, and accept what changed in them
    #[command(subcommand)]
    Servers(servers::ServersCommand),
    /// Show the services that sessions may use, and check that they can be reached
    #[command(subcommand)]
    Services(services::ServicesCommand),
    /// Check and show the configuration, and trust files of a working folder
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Try policies out, and see what they leave open
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Run one step of a file, or a routine of several, and report it as JSON
    Step(step::StepArgs),
    /// Look at every hop to the tools, say what is wrong and what mends it
    Doctor(doctor::DoctorArgs),
    /// Print what to set so that an agent in a sandbox uses the bridge as an MCP server
    #[command(after_help = "Examples:
  footbridge agent-config codex
  footbridge agent-config opencode --service my-model --config footbridge.toml")]
    AgentConfig {
        /// The agent
        #[arg(value_enum)]
        agent: Agent,
        /// A service of the configuration that it uses as its model, or npm as its registry; may be given several times.
        /// Default: those that are called as the presets openai, anthropic and npm
        #[arg(long = "service", value_name = "NAME")]
        services: Vec<String>,
        /// The port in the sandbox, where it is another than the relay's
        #[arg(long, value_name = "PORT", default_value_t = footbridge_proto::vars::DEFAULT_PORT)]
        #[arg(value_parser = clap::value_parser!(u16).range(1..))]
        port: u16,
        #[command(flatten)]
        files: Files,
    },
    /// Print what a shell is to read so that it completes commands and options
    Completions {
        /// The shell
        #[arg(value_parser = about::shells())]
        shell: Shell,
    },
    /// Print the help of all commands as a page for man
    Man,
    /// A small MCP server on standard input and output, to try things with
    DemoServer,
}

/// Which files to read.
#[derive(Debug, Clone, Default, Args)]
struct Files {
    /// A servers file (.json) or the harness's own (.toml); later ones win. Default: ~/.mcp.json, .claude/mcp.json,
    /// .mcp.json and mcp.json of the working folder once they are trusted, then servers.json and footbridge.toml of the
    /// configuration folder
    #[arg(long = "config", value_name = "FILE")]
    config: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "SIGTERM and SIGINT end it in order; SIGHUP reads the configuration again, and one with a mistake \
changes nothing.

Examples:
  footbridge serve --config servers.json
  footbridge session create agent-1

Exit status: 0 after a signal; 125 if it cannot start; 2 for a wrong command line or configuration."
)]
struct ServeArgs {
    #[command(flatten)]
    files: Files,
}

/// Runs the program and gives its exit status.
#[must_use]
pub fn main() -> i32 {
    keep_little_free_memory(workers());
    let mut words = std::env::args_os();
    let own = words.next().unwrap_or_default();
    let words: Vec<OsString> = words.collect();
    if Path::new(&own).file_name().is_some_and(|name| name == mcp_tool::NAME) {
        return mcp_tool::main(&words);
    }
    if words.first().is_some_and(|word| word == COMPLETE) {
        return complete::main(&words[1..]);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error, &words),
    };
    let done = match cli.command {
        Command::Run(args) => run::main(args),
        Command::Serve(args) => serve::main(args),
        Command::Session(command) => session::main(command),
        Command::Audit(command) => audit::main(command),
        Command::Approvals(command) => approvals::main(command),
        Command::Tools(args) => Ok(tools::main(args)),
        Command::Call(args) => Ok(call::main(args)),
        Command::Servers(command) => servers::main(command),
        Command::Services(command) => services::main(command),
        Command::Config(command) => config::main(command),
        Command::Policy(command) => policy::main(command),
        Command::Step(args) => step::main(&args),
        Command::Doctor(args) => doctor::main(&args),
        Command::AgentConfig { agent, services, port, files } => {
            models_of(&services, port, &files).and_then(|models| agent_config(agent, &models))
        }
        Command::Completions { shell } => about::completions(shell),
        Command::Man => about::man(),
        Command::DemoServer => demo_server(),
    };
    match done {
        Ok(status) => status,
        Err(error) => {
            report::error(&error);
            let mistaken = error.is::<ConfigError>()
                || error.is::<crate::log::BadLogSetting>()
                || error.is::<LinkInReach>()
                || error.is::<FoldersError>()
                || error.is::<EnvironmentError>()
                || error.is::<NoConfiguration>()
                || error.is::<NoModel>()
                || error.is::<LabelTwice>()
                || error.is::<LimitTwice>()
                || error.is::<UnknownPolicy>()
                || error.is::<NoService>()
                || error.is::<policy::NoSuchCall>()
                || error.is::<run::IdleFlags>()
                || error.is::<crate::run::GuestFilesError>()
                || error.is::<crate::run::NotTold>();
            if mistaken { USAGE } else { crate::run::HARNESS_FAILED }
        }
    }
}

/// What is logged by a command that prints all else itself: which command of a secret it waits for.
const SAYS_WHAT_IT_WAITS_FOR: &str = "off,footbridge::config::commands=warn";

/// Says what is wrong with words, or the help that they ask for.
fn not_understood(error: &clap::Error, words: &[OsString]) -> i32 {
    if error.use_stderr() && words.first().is_some_and(|word| word == step::NAME) {
        step::not_understood(error);
    }
    said(error)
}

/// Prints what clap says, and gives the status.
fn said(error: &clap::Error) -> i32 {
    match error.print() {
        // What was asked for is not there. Of a mistake the status says it.
        Err(why) if !error.use_stderr() && why.kind() != std::io::ErrorKind::BrokenPipe => crate::run::HARNESS_FAILED,
        _ => error.exit_code(),
    }
}

/// What of a configuration is wanted: no command of a secret of anything else is run.
#[derive(Debug, Default)]
struct WantedParts<'a> {
    /// The servers, if it is not all.
    servers: Option<&'a [String]>,
    /// The services.
    services: WantedServices,
}

impl WantedParts<'_> {
    /// Nothing but what is written.
    fn none() -> Self {
        Self { servers: Some(&[]), services: WantedServices::Named(Vec::new()) }
    }

    /// All servers, and what is written of services.
    fn servers() -> Self {
        Self { servers: None, services: WantedServices::Named(Vec::new()) }
    }
}

/// The folders and the configuration of this user, where guests write what this says. Says what is left out for that.
fn load_config(files: &Files, writable: Writable) -> anyhow::Result<(Config, Folders)> {
    let (config, folders) = load_config_of(files, writable, WantedParts::default())?;
    say_what_is_left_out(&config);
    Ok((config, folders))
}

/// As [`load_config`], and says nothing; of these parts alone.
fn load_config_of(files: &Files, writable: Writable, wanted: WantedParts<'_>) -> anyhow::Result<(Config, Folders)> {
    let (folders, variables) = folders_and_variables(writable)?;
    let variables = variables.only(wanted.servers).services(wanted.services);
    let config = load(&files.config, &folders, &variables)?;
    Ok((config, folders))
}

/// What programs outside of the sandbox do not get of what this process has.
fn say_what_is_left_out(config: &Config) {
    if !config.left_out_of_path.is_empty() {
        let folders = config.left_out_of_path.join(":");
        tracing::warn!(%folders, "left out of PATH for programs outside of the sandbox: a guest could write there");
    }
    let names: Vec<&str> = config.withheld.names().filter(|name| is_passed(name)).collect();
    if !names.is_empty() {
        let names = names.join(", ");
        tracing::warn!(
            %names,
            "left out of the variables of programs outside of the sandbox: they lead to where a guest could write"
        );
    }
}

/// The folders of this user, and what a configuration is read with, where guests write what this says.
fn folders_and_variables(writable: Writable) -> anyhow::Result<(Folders, Variables)> {
    let folders = Folders::of_this_user()?;
    folders.check_links(&writable)?;
    let commands = Commands::kept(folders.for_programs(&writable));
    Ok((folders, Variables::of_this_process().commands(commands, writable)))
}

/// No file was named, and none is where they are looked for.
#[derive(Debug, thiserror::Error)]
#[error("no configuration was found; {0}")]
struct NoConfiguration(String);

impl NoConfiguration {
    /// Whether there was anything to read.
    fn check(config: &Config) -> Result<(), Self> {
        if config.files.is_empty() { Err(Self(config.looked.help())) } else { Ok(()) }
    }
}

fn label(text: &str) -> Result<(String, String), NoLabel> {
    let (key, value) = text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or(NoLabel)?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Labels by their keys.
fn labels(given: Vec<(String, String)>) -> Result<Labels, LabelTwice> {
    let mut all = Labels::new();
    for (key, value) in given {
        if let Some(before) = all.get(&key).filter(|before| **before != value) {
            return Err(LabelTwice { values: [before.clone(), value], key });
        }
        all.insert(key, value);
    }
    Ok(all)
}

/// A label with two values.
#[derive(Debug, thiserror::Error)]
#[error("--label {key}={} and --label {key}={} exclude each other: a label has one value", values[0], values[1])]
struct LabelTwice {
    key: String,
    values: [String; 2],
}

/// A label without a key or a value.
#[derive(Debug, thiserror::Error)]
#[error("write KEY=VALUE, as in --label team=search")]
struct NoLabel;

/// A worker for each processor: what keeps one busy does not hold up the others. Beyond a few more they would take memory
/// and little else.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get).clamp(2, 16)
}

/// A runtime with its workers. They take short turns: whoever computes for long is interrupted for them. Before they sleep
/// they let others go first.
///
/// # Errors
/// When it has no threads, or no descriptors, which would panic, or wait for good.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    let workers = workers();
    can_start(workers + 1)?;
    can_open(OPENED)?;
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.worker_threads(workers).on_thread_start(take_short_turns).on_thread_park(let_others_go_first);
    let runtime = builder.enable_all().build()?;
    runtime.spawn(keep_one_beside());
    Ok(runtime)
}

/// Descriptors that a runtime has for itself, and a few.
const OPENED: usize = 12;

/// How often there is something to do for one of the threads beside the workers: those without work end after 10 s.
const BESIDE: std::time::Duration = std::time::Duration::from_secs(5);

/// Keeps one thread beside the workers: work for such a thread waits for it where no other is to be had, and panics where
/// there is none.
async fn keep_one_beside() {
    loop {
        let _done = tokio::task::spawn_blocking(|| ()).await;
        tokio::time::sleep(BESIDE).await;
    }
}

/// None of the services is of use to an agent.
#[derive(Debug, thiserror::Error)]
#[error(
    "no service of {0} is a model or a registry of npm: one is known by the variables that its preset sets, such as \
     OPENAI_BASE_URL; \"footbridge services list\" shows them"
)]
struct NoModel(String);

fn agent_config(agent: Agent, models: &Models) -> anyhow::Result<i32> {
    report::note(&format!("for {}:", agent.place()));
    report::out(&agent.configuration(models))?;
    Ok(0)
}

/// Where the services of these names are, which need no credential for that; without any, those that are called as
/// presets.
fn models_of(services: &[String], port: u16, files: &Files) -> anyhow::Result<Models> {
    if services.is_empty() {
        return Ok(Models::of_presets(port));
    }
    // Before any secret is read.
    sys::harden().context("cannot protect this process from others of the same user")?;
    let wanted = WantedParts { services: WantedServices::Named(Vec::new()), ..WantedParts::none() };
    let (config, _) = load_config_of(files, Writable::here(), wanted)?;
    let models = Models::of(&of_names(&config, &known(&config, services)?)?, port);
    if models.is_empty() {
        return Err(NoModel(services.join(", ")).into());
    }
    Ok(models)
}

fn demo_server() -> anyhow::Result<i32> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    let served = runtime.block_on(crate::demo_server::run(input, output, crate::demo_server::SystemClock));
    // Where nobody reads the output any more, a thread may wait for more input still.
    runtime.shutdown_background();
    served?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_documentation_lists_every_flag_of_run() {
        let page = include_str!("../../../../docs/run.md");
        let cli = Cli::command();
        let run = cli.find_subcommand("run").unwrap();
        for flag in run.get_arguments().filter_map(clap::Arg::get_long) {
            let listed = [format!("| `--{flag} "), format!("| `--{flag}`")];
            assert!(listed.iter().any(|start| page.contains(start)), "the table lacks --{flag}");
        }
    }

    #[test]
    fn the_documentation_lists_every_flag_of_session_create() {
        let page = include_str!("../../../../docs/serve.md");
        let cli = Cli::command();
        let create = cli.find_subcommand("session").unwrap().find_subcommand("create").unwrap();
        for flag in create.get_arguments().filter_map(clap::Arg::get_long) {
            let listed = [format!("| `--{flag} "), format!("| `--{flag}`")];
            assert!(listed.iter().any(|start| page.contains(start)), "the table lacks --{flag}");
        }
    }

    #[test]
    fn the_help_of_pins_names_the_server_before_its_tools() {
        for which in ["accept", "forget"] {
            let shown = Cli::try_parse_from(["footbridge", "servers", "pins", which, "--help"]).unwrap_err();
            let help = shown.render().to_string();
            assert!(
                help.contains(&format!("servers pins {which} ")) && help.contains("<SERVER> <TOOLS...|--all>"),
                "{help}"
            );
        }
    }

    #[test]
    fn the_help_of_a_timeout_says_what_a_number_is() {
        assert_eq!(footbridge_cli::typed::timeout("7").unwrap(), std::time::Duration::from_millis(7));
        let mut cli = Cli::command();
        let help = cli.find_subcommand_mut("call").unwrap().render_long_help().to_string();
        assert!(help.contains("5s, 500ms or a number of milliseconds"), "{help}");
    }

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }
}
