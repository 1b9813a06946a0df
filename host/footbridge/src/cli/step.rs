//! `footbridge step`: its words, and its report on standard output, which is JSON whatever happens.

use std::{io::IsTerminal as _, path::PathBuf};

use anyhow::Context as _;
use clap::Args;
use footbridge_core::gate::UnknownPolicy;
use footbridge_processes::sys;
use nix::sys::signal::Signal;

use crate::{
    config::{Commands, ConfigError, Variables, WantedServices, Writable, folders::Folders, steps},
    report,
    run::HARNESS_FAILED,
    step::{StepReport, StepRunner},
};

use super::USAGE;

/// The command's name.
pub(super) const NAME: &str = "step";

/// Status of a step that failed.
const FAILED: i32 = 1;

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(super) struct StepArgs {
    /// The step file
    file: PathBuf,
    /// Run the steps of this routine of the file, one after the other
    #[arg(long, value_name = "NAME")]
    routine: Option<String>,
    /// What decides about the call: open, ask, readonly, or a policy of footbridge.toml
    #[arg(long, value_name = "NAME", default_value = "open")]
    policy: String,
    /// A settings file (.toml). Default: footbridge.toml of the configuration folder, if there is one
    #[arg(long = "config", value_name = "FILE")]
    config: Vec<PathBuf>,
}

const HELP: &str = "A step file says which program to run, and prints one JSON object of the shape mcp-client/1:

  name = \"issues\"                       # of the step; default: the file's name
  command = \"my-tracker-tool\"           # prints a CallToolResult of MCP as JSON
  args = [\"--open\"]
  timeout = \"30s\"                       # default: 60s
  env = { TRACKER_KEY = { file = \"~/.tracker/key\" } }
  # With a tool, the program is an MCP server on standard input and output that is asked once:
  # tool = \"list_issues\"
  # params = { state = \"open\" }

  [[routines.nightly.steps]]            # and lists of steps, run with --routine nightly
  name = \"sync\"
  command = \"./sync\"

Examples:
  footbridge step issues.toml
  footbridge step steps.toml --routine nightly
  footbridge step issues.toml | jq -r '.data.content[].text'

Exit status: 0 if it went well, 1 if a step failed, 2 for a wrong file or policy, 125 if the harness failed, \
129, 130 or 143 after SIGHUP, SIGINT or SIGTERM. What failed is
in \"error\" of the report, in each case.";

/// Reports words that cannot be meant: whoever reads reports gets one in this case, too.
pub(super) fn not_understood(error: &clap::Error) {
    let why = error.to_string();
    // Nowhere to print it: the status says it.
    let _ = report::out(&StepReport::failed(why.trim_end()).line());
}

pub(super) fn main(args: &StepArgs) -> anyhow::Result<i32> {
    let (report, status) = match run(args) {
        Ok((report, Some(signal))) => (report, 128 + signal as i32),
        Ok((report, None)) => {
            let status = if report.is_success() { 0 } else { FAILED };
            (report, status)
        }
        Err(error) => {
            let mistaken =
                error.is::<ConfigError>() || error.is::<UnknownPolicy>() || error.is::<crate::log::BadLogSetting>();
            (StepReport::failed(format!("{error:#}")), if mistaken { USAGE } else { HARNESS_FAILED })
        }
    };
    report::out(&report.line())?;
    Ok(status)
}

fn run(args: &StepArgs) -> anyhow::Result<(StepReport, Option<Signal>)> {
    crate::log::start("error,rmcp=off")?;
    // Before any secret is read.
    sys::harden().context("cannot protect this process from others of the same user")?;
    let folders = Folders::of_this_user()?;
    let writable = Writable::default();
    let commands = Commands::kept(folders.for_programs(&writable));
    let variables = Variables::of_this_process().commands(commands, writable);
    let variables = variables.services(WantedServices::Named(Vec::new()));
    let config = steps::settings(&args.config, &folders, &variables)?;
    let policy = config.policies.get(&args.policy)?;
    let steps = steps::read(&args.file, args.routine.as_deref(), &variables)?;
    let (many, watched) = (steps.steps.len(), std::io::stderr().is_terminal());
    let began = |index: usize, name: &str| {
        if watched {
            report::note(&format!("step {} of {many}: {name}", index + 1));
        }
    };
    let runner = StepRunner { config, state: &folders.state, policy };
    let runtime = super::runtime()?;
    let ran = runtime.block_on(runner.run(steps, began));
    // Whoever hurries it waits for nothing that is still being written.
    runtime.shutdown_background();
    let (reports, ended) = ran?;
    match (args.routine.is_some(), reports.as_slice()) {
        (false, [(_, report)]) => Ok((report.clone(), ended)),
        (_, all) => Ok((StepReport::of_all(all), ended)),
    }
}
