//! `footbridge call`: one call without a daemon, or through one that runs.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use serde_json::value::RawValue;

use super::{
    Files,
    one_shot::{OneShotPlace, ended},
};
use crate::{
    config::folders::Folders,
    oneshot::{
        call::OneCall,
        failure::OneShotFailure,
        lists::ToolsList,
        running::Chosen,
        via::{self, OfHarness},
    },
};
use footbridge_cli::{
    answers::CallResult,
    destination::Destination,
    render::{Format, Shape},
    result, typed,
};

const AFTER: &str = "The server is started for the call and ended after it. The call goes through policy, pins and record as those \
of a sandbox do, and is recorded in one chain with all calls of this kind.

Examples:
  footbridge call time get_current_time '{\"timezone\":\"Europe/Zurich\"}'
  echo '{\"path\":\"notes.txt\"}' | footbridge call files read_file -
  footbridge call --via agent-1 time get_current_time '{\"timezone\":\"Europe/Zurich\"}'
  footbridge call --policy readonly git git_log '{\"repo_path\":\".\"}' --json

Exit status, as of tool-cli --exit-codes: 0 done; 1 the tool reported an error; 2 usage, names or arguments; 3 no harness
to call through, or no call could be made; 5 denied; 6 approval pending or expired; 7 over a limit; 8 timed out; 9
outcome unknown; 125 the harness failed, or the result could not be written; 129, 130 and 143 interrupted.";

#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(super) struct CallArgs {
    #[command(flatten)]
    files: Files,
    /// The server
    server: String,
    /// The tool
    tool: String,
    /// A JSON object, or - for standard input. Default: no arguments
    arguments: Option<String>,
    #[command(flatten)]
    how: HowToCall,
    /// Print the raw result on one line, and errors as JSON on standard error
    #[arg(long)]
    json: bool,
}

/// How a call is made.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct HowToCall {
    /// What decides about the call: open (all), readonly, ask, or a policy of footbridge.toml. Default: open
    #[arg(long, value_name = "NAME")]
    pub(super) policy: Option<String>,
    /// Go through the harness that has this session: what it sees, called by its policy and recorded there
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["policy", "config"])]
    pub(super) via: Option<String>,
    /// How long it may take, with the start of the server: 5s, 500ms or a number of milliseconds. Default: as the limits
    /// say
    #[arg(long, value_name = "TIME")]
    pub(super) timeout: Option<String>,
    /// Write the result to this file; a single image, audio or blob as its bytes
    #[arg(long, value_name = "FILE", conflicts_with = "out_dir")]
    pub(super) out: Option<PathBuf>,
    /// Write each image, audio and blob of the result to a file of its own in this folder, and print the rest
    #[arg(long, value_name = "DIR")]
    pub(super) out_dir: Option<PathBuf>,
}

pub(super) fn main(args: CallArgs) -> i32 {
    let json = args.json;
    ended(call(args), json)
}

fn call(args: CallArgs) -> Result<(), OneShotFailure> {
    let CallArgs { files, server, tool, arguments, how, json } = args;
    let arguments = arguments.map(typed::arguments).transpose()?;
    let arguments = arguments.map(|raw| raw.get().to_owned());
    let chosen = Chosen { tool, arguments };
    let format = if json { Format::Json } else { Format::Recorded };
    if let Some(session) = how.via.as_deref() {
        let runtime = Folders::of_this_user().map_err(anyhow::Error::from)?.runtime;
        return how.through(OfHarness { runtime: &runtime, session }, &server, format, chosen);
    }
    let place = OneShotPlace::find(files)?;
    place.check(&server)?;
    how.make(&place, &server, format, |_| Ok(chosen))
}

impl HowToCall {
    /// Makes a call, and prints what came of it.
    pub(super) fn make(
        &self,
        place: &OneShotPlace,
        server: &str,
        format: Format,
        choose: impl FnOnce(&ToolsList) -> Result<Chosen, OneShotFailure>,
    ) -> Result<(), OneShotFailure> {
        let (timeout, print) = self.prepared(format)?;
        let config = place.config_of(&[server.to_owned()])?;
        let name = server.parse().map_err(|error| OneShotFailure::Usage(format!("\"{server}\": {error}")))?;
        let policy = self.policy.as_deref().unwrap_or("open");
        let (state, lists, entries) = (&*place.folders.state, &place.lists, &place.entries);
        let one = OneCall { config, state, server: name, policy, timeout, lists, entries };
        let runtime = super::runtime().map_err(anyhow::Error::from)?;
        let done = runtime.block_on(one.make(choose, print));
        runtime.shutdown_background();
        done
    }

    /// Makes a call through a harness that runs, and prints what came of it.
    pub(super) fn through(
        &self,
        of: OfHarness<'_>,
        server: &str,
        format: Format,
        chosen: Chosen,
    ) -> Result<(), OneShotFailure> {
        let (timeout, print) = self.prepared(format)?;
        print(&via::call(of, server, chosen, timeout, format == Format::Json)?)
    }

    /// How long an answer is waited for, and what prints it where it is to go.
    fn prepared(
        &self,
        format: Format,
    ) -> Result<(Option<Duration>, impl FnOnce(&RawValue) -> Printed), OneShotFailure> {
        let timeout = self.timeout.as_deref().map(typed::timeout).transpose()?;
        let out = self.out.clone().map(Destination::File);
        let to = out.or_else(|| self.out_dir.clone().map(Destination::Folder));
        let to = to.map(|to| to.prepare()).transpose()?;
        let print = move |raw: &RawValue| {
            let answer: CallResult = serde_json::from_str(raw.get())
                .map_err(|error| OneShotFailure::Harness(anyhow::anyhow!("the server's result is none: {error}")))?;
            if result::print_call(raw, answer, &Shape { format, ..Shape::default() }, to)? {
                Ok(())
            } else {
                Err(OneShotFailure::Tool)
            }
        };
        Ok((timeout, print))
    }
}

/// What comes of printing a result.
type Printed = Result<(), OneShotFailure>;
