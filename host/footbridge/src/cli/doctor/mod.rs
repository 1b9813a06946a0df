//! `footbridge doctor`: every hop from this machine to each tool, in order, each with what was found, what it means and
//! what mends it. Nothing is changed but for a small file that is written and removed in the state and runtime folders, or a folder where they would be made, and
//! the logs of servers that are started; no tool is called.

mod machine;
mod servers;
mod session;

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use footbridge_cli::findings::{Finding, are_well, json, text};
use footbridge_processes::sys;

use crate::{
    cli::{Files, NoConfiguration, load_config, runtime, session::REFUSED},
    config::{
        Commands, Config, ConfigError, Variables, Writable,
        folders::{Folders, FoldersError},
        steps,
    },
    report,
};
use footbridge_core::{names::SessionName, settings_file::Mistake};

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(in crate::cli) struct DoctorArgs {
    /// Look at this session of the daemon, too
    session: Option<SessionName>,
    #[command(flatten)]
    files: Files,
    /// Look whether the programs of this step file are there, too; may be given several times
    #[arg(long = "step", value_name = "FILE")]
    steps: Vec<PathBuf>,
    /// Start no server
    #[arg(long)]
    no_start: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl DoctorArgs {
    /// Whether a session or a step is asked about, and no configuration by name: one that is found is the matter of
    /// neither, as long as nothing of the settings is wrong for a step.
    fn asks_of_others(&self) -> bool {
        self.files.config.is_empty() && (self.session.is_some() || !self.steps.is_empty())
    }
}

const HELP: &str = "Looks at the programs and folders of Footbridge, the configuration, the program, start, listing and pins of \
each server, each \nservice, what keeps sandboxes from working here, the daemon, and with SESSION at its listeners. Inside a \
sandbox the \nsame is \"tool-cli doctor\".

Examples:
  footbridge doctor
  footbridge doctor agent-1
  footbridge doctor --config servers.json --step issues.toml
  footbridge doctor --json | jq '.checks[] | select(.status == \"problem\")'

Exit status: 0 all is well; 1 there is a problem; 2 a wrong command line.";

pub(in crate::cli) fn main(args: &DoctorArgs) -> anyhow::Result<i32> {
    crate::log::start("off")?;
    let folders = match Folders::of_this_user() {
        Ok(folders) => folders,
        Err(error) => {
            let none = Finding::problem("folders", error.to_string());
            let none = none.means("there is no place for the configuration and the record, so nothing starts");
            let none = [match error {
                FoldersError::NoHome(_) => none.mend("set HOME to the whole path of your home folder"),
                // They say it.
                FoldersError::Relative { .. } | FoldersError::NoFolder { .. } | FoldersError::Untrusted { .. } => none,
            }];
            report::out(&if args.json { json(&none) } else { text(&none) })?;
            return Ok(REFUSED);
        }
    };
    // First: a daemon has to see which namespaces this process is in, before it is closed to others.
    let of_daemon = session::look(&folders, args.session.as_ref());
    sys::harden().context("cannot protect this process from others of the same user")?;
    let mut all = machine::programs();
    all.extend(machine::folders(&folders));
    match load_config(&args.files, Writable::here()) {
        Ok((config, _)) => {
            let found = configuration(&config, args.session.is_some());
            let of_servers = runtime()?.block_on(servers::look(config, &folders.state, !args.no_start));
            // Pins are those of every harness of this user.
            let shown = |one: Finding| if args.asks_of_others() && one.check != "pins" { one.beside() } else { one };
            all.extend(found.into_iter().chain(of_servers).map(shown));
        }
        Err(error) => all.extend(mistakes(error, args)),
    }
    args.steps.iter().for_each(|file| all.extend(programs_of_steps(file, &folders)));
    all.extend(machine::sandboxes());
    all.extend(of_daemon);
    report::out(&if args.json { json(&all) } else { text(&all) })?;
    Ok(if are_well(&all) { 0 } else { REFUSED })
}

/// With a session of the daemon, it is the daemon's configuration that counts.
fn configuration(config: &Config, of_daemon: bool) -> Vec<Finding> {
    const CHECK: &str = "configuration";
    let mut all = Vec::new();
    if let Err(nothing) = NoConfiguration::check(config) {
        if of_daemon {
            return vec![Finding::skipped(CHECK, "none for this command: the daemon has its own")];
        }
        let looked: Vec<String> = nothing.to_string().lines().map(|line| line.trim().to_owned()).collect();
        let none = Finding::problem(CHECK, "there is none").means(looked.join(" "));
        all.push(none.mend("footbridge config import PROGRAM, or write servers.json as docs/configuration.md shows"));
    } else {
        let files: Vec<String> = config.files_once().iter().map(|path| path.display().to_string()).collect();
        all.push(Finding::ok(CHECK, files.join(", ")));
    }
    let left_out = config.looked.left_out.iter().map(|one| Finding::note(CHECK, one.note().to_string()));
    all.extend(left_out.chain(config.notes.iter().map(|note| Finding::note(CHECK, note.to_string()))));
    all
}

/// Why the configuration cannot be used: each mistake by itself.
fn mistakes(error: anyhow::Error, args: &DoctorArgs) -> Vec<Finding> {
    let problem = |what| Finding::problem("configuration", what).mend("mend the file, then footbridge config check");
    let servers = Finding::skipped("servers", "not looked at, since the configuration cannot be used");
    let found = match error.downcast::<ConfigError>() {
        Ok(ConfigError(mistakes)) => mistakes,
        Err(error) => return vec![problem(format!("{error:#}")), servers],
    };
    let finding = |mistake: &Mistake| {
        let is_settings = mistake.file.extension().is_some_and(|extension| extension == "toml");
        let is_beside = args.asks_of_others() && (args.steps.is_empty() || !is_settings);
        let found = problem(mistake.to_string());
        if is_beside { found.beside() } else { found }
    };
    found.iter().map(finding).chain([servers]).collect()
}

fn programs_of_steps(file: &std::path::Path, folders: &Folders) -> Vec<Finding> {
    let writable = Writable::default();
    let commands = Commands::kept(folders.for_programs(&writable));
    let variables = Variables::of_this_process().commands(commands, writable);
    let steps = match steps::all(file, &variables) {
        Ok(steps) => steps.steps,
        Err(ConfigError(mistakes)) => {
            let problem = |mistake: &Mistake| {
                Finding::problem(&format!("step {}", file.display()), mistake.to_string())
                    .means("footbridge step would run nothing of it")
                    .mend("mend the file, or name another with --step")
            };
            return mistakes.iter().map(problem).collect();
        }
    };
    let one = |step: &steps::StepSpec| {
        let check = format!("step {}", step.server.name);
        match &step.missing {
            None => Finding::ok(&check, "its program is there"),
            Some(program) => Finding::problem(&check, format!("its program {program:?} is not found"))
                .mend("install it, or write the whole path"),
        }
    };
    steps.iter().map(one).collect()
}
