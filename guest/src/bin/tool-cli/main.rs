//! `tool-cli`: four steps from nothing to a call, for people, scripts and agents inside a sandbox.
//!
//! What a pipe gets, what `--out` writes, the error texts and status 1 for every failure are those of the recorded
//! public command; the detailed exit codes are `footbridge_proto::exit`, on request. A reader that leaves early (a
//! closed pipe) ends the run quietly with status 0: the call was made, and nobody wants the rest. SIGINT ends it with
//! 130 and cancels the call, since the connection closes.

mod about;
mod args;
mod asked;
mod batch;
mod calls;
mod complete;
mod doctor;
mod failure;
mod hints;
mod pauses;
mod progress;
mod resources;
mod step;
mod stubs;
mod words;

use std::{ffi::OsString, process};

use footbridge_cli::{completion::COMPLETE, output, report::StepReport, result::NotPrinted};
use footbridge_guest::{ClientSettings, sys};
use footbridge_proto::{
    text::{EscapedLines, SafeJson},
    vars,
};

use crate::{args::Style, failure::Failure};

fn main() -> process::ExitCode {
    sys::wait_for_children();
    // Without it SIGINT still ends the process, only with another status.
    let _ = sys::exit_on_interrupt();
    let _ = sys::outlive_file_size_limit();
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|word| word == COMPLETE) {
        complete::complete(&args[1..]);
        return process::ExitCode::SUCCESS;
    }
    let style = Style::find(&args, |name| std::env::var_os(name));
    match args::parse(&args).map_err(Failure::from).and_then(|(step, options)| step::run(step, options, style)) {
        Ok(()) => process::ExitCode::SUCCESS,
        Err(Failure::Printed(NotPrinted::Written(error))) if error.is_left() => process::ExitCode::SUCCESS,
        Err(failure) => {
            report(&failure, style);
            process::ExitCode::from(if style.exit_codes { failure.exit_code() as u8 } else { 1 })
        }
    }
}

fn report(failure: &Failure, style: Style) {
    if matches!(failure, Failure::Tool | Failure::Told(_)) {
        return;
    }
    if style.report {
        // Where that fails there is nobody left to tell.
        let _ = output::print(&without_token(StepReport::failed(failure.to_string()).line()));
        return;
    }
    let text = if style.json {
        format!("{}\n", SafeJson(&failure.to_json().to_string()))
    } else {
        EscapedLines(&format!("Error: {}\n{}", failure.shown(), failure.details())).to_string()
    };
    output::print_error(&without_token(text));
}

/// Shorter ones are no secrets, and are in every other word: the host looks for no shorter values either.
const LEAST_TOKEN_BYTES: usize = 8;

/// Whatever an error quotes, it never shows the token, nor the token as JSON has it.
fn without_token(mut text: String) -> String {
    let known = ClientSettings::from_env().ok().and_then(|settings| settings.token);
    let known = known.map(|token| token.expose().to_owned());
    let token = known.or_else(|| std::env::var(vars::TOKEN).ok()).unwrap_or_default();
    let quoted = serde_json::Value::from(token.trim()).to_string();
    for form in [token.trim(), quoted.trim_matches('"')] {
        if token.trim().len() >= LEAST_TOKEN_BYTES {
            text = text.replace(form, "[token]");
        }
    }
    text
}
