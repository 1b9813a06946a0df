//! `footbridge audit replay`: which past decisions would be others under another policy, or under another configuration.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use footbridge_proto::text::Escaped;
use serde_json::{Value, json};

use super::{super::approvals, BAD, Place, Printer, Which, is_unread};
use crate::{
    cli::{WantedParts, load_config_of},
    config::Writable,
    report,
};
use footbridge_audit::read::{ChainFolder, ReadRecord};
use footbridge_calls::replay::{Again, Missing, PastCall};
use footbridge_core::{
    gate::{Policies, Policy},
    names::Labels,
};
use footbridge_processes::sys;

/// Which calls are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Show {
    /// Those whose decision would be another
    Changed,
    /// Those, and those of which it cannot be told
    Unknown,
    /// All that were decided about
    All,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  footbridge audit replay --policy readonly
  footbridge audit replay --config new.toml --exit-code
  footbridge audit replay --session run-4711 --policy strict --show all --json

What hangs on arguments that are not recorded, or on labels of a session whose record is gone, is unknown: nothing is
guessed. Effects are those that were recorded, unless the configuration says what a tool can do.

Exit status: 0; 1 with --exit-code if a decision would change, no call was found or not all of the record could be read, and
if there is no record, or none of a chain, session or server that is named; 2 for a wrong command line or configuration.")]
pub(in crate::cli) struct ReplayArgs {
    #[command(flatten)]
    files: super::super::Files,
    /// Decide by this policy. Default: by the policy of the same name as then
    #[arg(long, value_name = "NAME")]
    policy: Option<String>,
    /// Which calls to show
    #[arg(long, value_enum, default_value = "changed")]
    show: Show,
    /// End with 1 if a decision would change, no call was found, or not all of the record could be read
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    which: Which,
    /// Print JSON: a line for each call, and one with the totals
    #[arg(long)]
    json: bool,
}

pub(super) fn main(args: &ReplayArgs, place: &Place) -> anyhow::Result<i32> {
    crate::log::start("warn,rmcp=off")?;
    // Before any secret is read.
    sys::harden().context("cannot protect this process from others of the same user")?;
    let (config, _) = load_config_of(&args.files, Writable::here(), WantedParts::none())?;
    let policies = config.policies;
    let fixed = args.policy.as_deref().map(|name| policies.get(name)).transpose()?;
    let chains = place.named(args.which.chain.as_deref())?;
    if chains.is_empty() {
        return place.nothing();
    }
    let (totals, printer, is_there) = (Totals::default(), Printer::default(), !args.which.is_named());
    let mut replay = Replay { args, policies, fixed, totals, printer, is_there };
    for chain in &chains {
        replay.chain(chain)?;
    }
    let Replay { totals, mut printer, is_there, .. } = replay;
    let text = if args.json { json_line(&json!({ "totals": totals.json() }))? } else { totals.text() };
    printer.line(&text)?;
    printer.flush()?;
    if totals.no_records > 0 {
        report::note(&format!(
            "{} passed over that {} no record: \"footbridge audit verify\" says where",
            report::counted(totals.no_records, "line"),
            if totals.no_records == 1 { "is" } else { "are" }
        ));
    }
    let is_empty = totals.calls() + totals.undecided == 0;
    if is_empty {
        args.which.found_nothing("call", &chains, place);
    }
    let is_whole = totals.no_records == 0 && !totals.is_unread;
    let is_bad = args.exit_code && (is_empty || !is_whole || totals.changed() > 0);
    Ok(if is_bad || !is_there { BAD } else { 0 })
}

/// One line of JSON that steers no terminal.
fn json_line(value: &Value) -> serde_json::Result<String> {
    Ok(approvals::show::json_lines(std::slice::from_ref(value))?.trim_end().to_owned())
}

struct Replay<'a> {
    args: &'a ReplayArgs,
    policies: Policies,
    fixed: Option<Arc<Policy>>,
    totals: Totals,
    printer: Printer,
    /// Whether there is any record of the session and server that are named.
    is_there: bool,
}

/// What was found in all.
#[derive(Debug, Default)]
struct Totals {
    same: u64,
    unknown: u64,
    /// Calls by what was decided and what would be.
    changes: BTreeMap<(String, &'static str), u64>,
    /// Calls that were refused before any policy was asked.
    undecided: u64,
    no_records: u64,
    /// Whether a chain, or the rest of one, could not be read.
    is_unread: bool,
}

impl Replay<'_> {
    fn chain(&mut self, chain: &ChainFolder) -> anyhow::Result<()> {
        let mut labels: BTreeMap<String, Labels> = BTreeMap::new();
        let mut lines = chain.lines();
        while !self.printer.is_left() {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    self.totals.is_unread |= is_unread(chain, error);
                    break;
                }
            };
            match ReadRecord::parse(&line.bytes).filter(|_| line.is_whole) {
                Some(record) => self.record(&chain.name, &record, &mut labels)?,
                None => self.totals.no_records += 1,
            }
        }
        Ok(())
    }

    fn record(
        &mut self,
        chain: &str,
        record: &ReadRecord,
        labels: &mut BTreeMap<String, Labels>,
    ) -> anyhow::Result<()> {
        let (kind, session) = (record.text("type"), record.text("session"));
        let is_asked_for = self.args.which.is_asked_for(&session, &record.text("server"));
        self.is_there |= is_asked_for;
        if kind == "session" {
            let known = record.fields.get("labels").cloned().and_then(|labels| serde_json::from_value(labels).ok());
            match known {
                Some(known) => labels.insert(session, known),
                None => labels.remove(&session),
            };
            return Ok(());
        }
        if !is_asked_for || !matches!(kind.as_str(), "intent" | "refused") {
            return Ok(());
        }
        let Some(call) = PastCall::read(record) else {
            self.totals.undecided += 1;
            return Ok(());
        };
        let policy = match &self.fixed {
            Some(policy) => Ok(Arc::clone(policy)),
            None => self.policies.get(&call.policy),
        };
        let again = match &policy {
            Ok(policy) => call.again(policy, labels.get(&session)),
            Err(_) => Again::Unknown { why: Missing::Policy, possible: Vec::new() },
        };
        let change = self.totals.count(&call, &again);
        let is_shown = match self.args.show {
            Show::All => true,
            Show::Unknown => change != "same",
            Show::Changed => change == "changed",
        };
        if is_shown {
            let policy = policy.as_ref().map_or(call.policy.as_str(), |policy| policy.name());
            let compared = Compared { chain, record, call: &call, policy, again: &again, change };
            let line = if self.args.json { json_line(&compared.as_json())? } else { compared.as_text() };
            self.printer.line(&line)?;
        }
        Ok(())
    }
}

impl Totals {
    /// Counts a call, and says how it compares.
    fn count(&mut self, call: &PastCall, again: &Again) -> &'static str {
        match again {
            Again::Unknown { .. } => {
                self.unknown += 1;
                "unknown"
            }
            Again::Decided { decision, .. } if *decision == call.decision => {
                self.same += 1;
                "same"
            }
            Again::Decided { decision, .. } => {
                *self.changes.entry((call.decision.clone(), decision)).or_default() += 1;
                "changed"
            }
        }
    }

    fn changed(&self) -> u64 {
        self.changes.values().sum()
    }

    /// All that were decided about.
    fn calls(&self) -> u64 {
        self.changed() + self.same + self.unknown
    }

    fn text(&self) -> String {
        let changes = self.changes.iter().map(|((old, new), count)| format!("{count} {} -> {new}", Escaped(old)));
        let changes = changes.collect::<Vec<_>>().join(", ");
        let changes = if changes.is_empty() { changes } else { format!(" ({changes})") };
        let mut text = format!(
            "{}: {} would change{changes}, {} the same, {} unknown",
            report::counted(self.calls(), "call"),
            self.changed(),
            self.same,
            self.unknown
        );
        if self.undecided > 0 {
            text.push_str(&format!("; {} more refused before any policy was asked", self.undecided));
        }
        text
    }

    fn json(&self) -> Value {
        let changes = self.changes.iter().map(|((old, new), count)| json!({"old": old, "new": new, "calls": count}));
        json!({
            "calls": self.calls(),
            "changed": self.changed(),
            "same": self.same,
            "unknown": self.unknown,
            "undecided": self.undecided,
            "changes": changes.collect::<Vec<_>>(),
        })
    }
}

/// A recorded call, and what would be decided about it by this policy.
struct Compared<'a> {
    chain: &'a str,
    record: &'a ReadRecord,
    call: &'a PastCall,
    policy: &'a str,
    again: &'a Again,
    change: &'static str,
}

impl Compared<'_> {
    fn as_text(&self) -> String {
        let Self { record, call, again, .. } = self;
        let time: String = record.text("time").replace('T', " ").chars().take(23).collect();
        let old = match &call.rule {
            Some(rule) => format!("{} ({rule})", call.decision),
            None => call.decision.clone(),
        };
        let new = match again {
            Again::Decided { decision, rules } if rules.is_empty() => (*decision).to_owned(),
            Again::Decided { decision, rules } => format!("{decision} ({})", rules.join(" or ")),
            Again::Unknown { why, possible } if possible.is_empty() => format!("unknown: {why}"),
            Again::Unknown { why, possible } => format!("unknown: {why} ({})", possible.join(" or ")),
        };
        let columns = [(time, 23), (record.text("session"), 12), (format!("{}/{}", call.server, call.name), 24)];
        let mut out = String::new();
        for (text, width) in columns {
            out.push_str(&format!("{:<width$}  ", Escaped(&text).to_string()));
        }
        out.push_str(&Escaped(&format!("{old} -> {new}, id {}", record.text("id"))).to_string());
        out
    }

    fn as_json(&self) -> Value {
        let Self { chain, record, call, policy, again, change } = self;
        let new = match again {
            Again::Decided { decision, rules } => json!({"decision": decision, "policy": policy, "rules": rules}),
            Again::Unknown { why, possible } => {
                json!({"policy": policy, "unknown": why.to_string(), "possible": possible})
            }
        };
        json!({
            "chain": chain,
            "id": record.text("id"),
            "time": record.text("time"),
            "session": record.text("session"),
            "kind": call.kind,
            "server": call.server,
            "name": call.name,
            "change": change,
            "old": {"decision": call.decision, "policy": call.policy, "rule": call.rule},
            "new": new,
        })
    }
}
