//! `footbridge config`: its words.

mod check;
mod import;
mod show;
mod trust;

use clap::Subcommand;

use super::{Files, session::or_refused};

#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Have the daemon read its files again; with a mistake it goes on as before, and the status says so
    #[command(after_help = "Example:
  footbridge config reload")]
    Reload {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Read the files and say all that is wrong or odd; no server is started
    #[command(after_help = "Examples:
  footbridge config check
  footbridge config check --start --config servers.json --config footbridge.toml")]
    Check {
        #[command(flatten)]
        files: Files,
        /// Start each server too, ask what it offers, end it, and say why where that fails
        #[arg(long)]
        start: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Take over the servers of another program, which are shown first
    Import(import::ImportArgs),
    /// Show what all files come to, and where each value is written
    Show(show::ShowArgs),
    /// Look at files of the working folder and trust them, until they say something else
    Trust(trust::TrustArgs),
}

pub(super) fn main(command: ConfigCommand) -> anyhow::Result<i32> {
    match command {
        ConfigCommand::Check { files, start, json } => check::check(&files, start, json),
        ConfigCommand::Reload { json } => Ok(or_refused(check::reload(json))),
        ConfigCommand::Import(args) => import::main(&args),
        ConfigCommand::Show(args) => show::main(&args),
        ConfigCommand::Trust(args) => trust::main(&args),
    }
}
