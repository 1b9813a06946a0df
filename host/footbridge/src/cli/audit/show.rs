//! `footbridge audit show`.

use clap::{Args, builder::NonEmptyStringValueParser};
use footbridge_proto::text::Escaped;
use serde_json::Value;

use super::{BAD, Place, is_unread, safe_line};
use crate::report;
use footbridge_audit::read::{ChainFolder, ReadRecord};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  footbridge audit show dZx5-Qb2c-Tw6yM3
  footbridge audit show --json dZx5-Qb2c-Tw6yM3

The id is the auditId of an answer, or the id that `footbridge audit tail` shows.")]
pub(in crate::cli) struct ShowArgs {
    /// The call's id
    #[arg(allow_hyphen_values = true, value_parser = NonEmptyStringValueParser::new())]
    id: String,
    /// Print JSON: a list of the call's records
    #[arg(long)]
    json: bool,
}

/// No such call.
#[derive(Debug, thiserror::Error)]
#[error("no call with the id {0:?} is recorded: `footbridge audit tail` shows ids")]
struct NoCall(String);

pub(super) fn main(args: &ShowArgs, place: &Place) -> anyhow::Result<i32> {
    // The newest first: whoever asks mostly asks about something that just happened.
    for chain in place.chains()?.iter().rev() {
        let (found, error) = records_of(chain, &args.id);
        if let Some(error) = error {
            let _it_was_said = is_unread(chain, error);
        }
        if !found.is_empty() {
            report::out(&if args.json { as_json(&found) } else { as_text(chain, &found) })?;
            return Ok(0);
        }
    }
    report::error(&NoCall(args.id.clone()).into());
    Ok(BAD)
}

/// The records of a call, as far as the chain can be read, and why not further.
fn records_of(chain: &ChainFolder, id: &str) -> (Vec<ReadRecord>, Option<std::io::Error>) {
    let (mut found, mut lines) = (Vec::new(), chain.lines());
    loop {
        match lines.next_line() {
            Ok(Some(line)) => {
                found.extend(ReadRecord::parse(&line.bytes).filter(|record| record.text("id") == id));
            }
            Ok(None) => return (found, None),
            Err(error) => return (found, Some(error)),
        }
    }
}

fn as_json(records: &[ReadRecord]) -> String {
    let lines: Vec<String> = records.iter().map(safe_line).collect();
    format!("[{}]\n", lines.join(","))
}

fn as_text(chain: &ChainFolder, records: &[ReadRecord]) -> String {
    let mut out = format!("{:<20}  {}\n", "chain", Escaped(&chain.name));
    for record in records {
        out.push('\n');
        for (name, value) in &record.fields {
            field(&mut out, name, value);
        }
    }
    if records.last().is_some_and(|last| last.text("type") == "intent") {
        out.push_str("\nThere is no outcome: the call is still running, or the harness was killed while it did.\n");
    }
    out
}

fn field(out: &mut String, name: &str, value: &Value) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(member, value)| field(out, &format!("{name}.{member}"), value))
        }
        Value::String(text) => out.push_str(&format!("{:<20}  {}\n", Escaped(name).to_string(), Escaped(text))),
        other => out.push_str(&format!("{:<20}  {}\n", Escaped(name).to_string(), Escaped(&other.to_string()))),
    }
}
