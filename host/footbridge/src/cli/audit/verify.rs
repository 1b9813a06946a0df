//! `footbridge audit verify`.

use std::collections::BTreeMap;

use anyhow::Context as _;
use clap::Args;
use footbridge_proto::text::Escaped;
use serde_json::json;

use super::{BAD, Place, in_store, is_there};
use crate::{
    cli::USAGE,
    report,
    store::StoreKind,
    waiting::{Left, WaitLine},
};
use footbridge_audit::{
    parse_public_key,
    read::{ChainFolder, KnownHeads, ProblemKind, Report, parse_heads, verify},
};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  footbridge audit verify
  footbridge audit verify 20261122T025808Z-Ab12Cd34
  footbridge audit verify --head heads-of-another-machine.jsonl

A call without an outcome is no sign of a change: its harness was killed meanwhile, or runs; footbridge audit show ID
shows it. Exit status: 0 if all is as it was written, 1 if not; the first bad record is named. Whoever can write to the state
folder could put an older copy of all of it there: only a head that was kept elsewhere shows that; those in heads.jsonl and in state.db are compared. Give it with --head;
[audit] head_command hands heads to a program that keeps them.")]
pub(in crate::cli) struct VerifyArgs {
    /// One run: a folder of the audit folder, by its name or path. Default: all
    chain: Option<String>,
    /// All runs, which is the default
    #[arg(long, conflicts_with = "chain")]
    all: bool,
    /// Heads that were kept elsewhere: a file with one a line, or one as JSON
    #[arg(long = "head", value_name = "FILE|JSON")]
    heads: Vec<String>,
    /// The public key whose signatures count, as `ed25519:...`, and no other, whatever key the folder has
    #[arg(long = "key", value_name = "KEY", value_parser = parse_public_key)]
    keys: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// What was found of all that was looked at.
struct Findings {
    reports: Vec<Report>,
    /// What is wrong besides what is in a chain.
    others: Vec<String>,
    notes: Vec<String>,
}

impl Findings {
    fn is_good(&self) -> bool {
        self.others.is_empty() && self.reports.iter().all(Report::is_good)
    }
}

pub(super) fn main(args: VerifyArgs, place: &Place) -> anyhow::Result<i32> {
    let mut given = Vec::new();
    for text in &args.heads {
        match read_heads(text) {
            Ok(heads) => given.extend(heads),
            Err(error) => {
                report::error(&error);
                return Ok(USAGE);
            }
        }
    }
    let given_chains: Vec<String> = given.iter().map(|head| head.chain.clone()).collect();
    let mut known = KnownHeads::of(&place.audit, &args.keys, given);
    // Whose signatures count is known by now: what is in the store counts only with one of these.
    let stored = in_store(StoreKind::default().read_heads(&place.state))?;
    let stored_count = stored.as_ref().map(Vec::len).ok();
    match stored {
        Ok(heads) => known.add_stored(heads),
        Err(error) => known.notes.push(format!("the heads in the store are not compared: {error}")),
    }
    // Looked for behind the heads: a chain is there before any head of it is, and runs may begin meanwhile.
    let chains = place.named(args.chain.as_deref())?;
    if chains.is_empty() && known.chains().next().is_none() {
        return place.nothing();
    }
    let mut findings =
        Findings { reports: reports(&chains, &known), others: known.bad.clone(), notes: known.notes.clone() };
    if args.chain.is_none() && findings.reports.iter().any(|found| found.heads > 0) {
        findings.notes.extend(lost(known.in_file, stored_count));
    }
    // Of a folder whose records are not of the chain that heads are of, that is said.
    let is_it = |found: &Report, name: &str| found.chain == name || (found.folder == name && !found.is_good());
    let is_found = |name: &str| findings.reports.iter().any(|found| is_it(found, name));
    let expected = known.chains().filter(|name| args.chain.is_none() || given_chains.iter().any(|given| given == name));
    let gone: Vec<String> = expected.filter(|name| !is_found(name)).map(str::to_owned).collect();
    findings
        .others
        .extend(gone.iter().map(|name| format!("there are signed heads of the chain {name}, and it is gone")));
    if !gone.is_empty() {
        let what = "of a chain that you removed yourself: run \"footbridge audit forget CHAIN\"";
        findings.notes.push(what.to_owned());
    }
    findings.others.extend(twice(&findings.reports));
    findings.others.sort();
    report::out(&if args.json { as_json(&findings) } else { as_text(&findings) })?;
    Ok(if findings.is_good() { 0 } else { BAD })
}

/// What is found of each chain.
fn reports(chains: &[ChainFolder], known: &KnownHeads) -> Vec<Report> {
    let left = Left::of(chains.iter().map(|chain| chain.name.clone()));
    let shown = left.clone();
    let _line = WaitLine::shown(move || format!("Verifying {}", shown.listed()));
    let found = chains.iter().filter_map(|chain| {
        let found = match verify(chain, known) {
            Ok(found) => Some(found),
            // Moved away meanwhile: whether it should be there is for its heads to say.
            Err(_) if !is_there(chain) => None,
            Err(error) => Some(Report::unreadable(chain, &error)),
        };
        left.is_done(&chain.name);
        found
    });
    found.collect()
}

/// What heads are not there, though there are chains with some: of the file and of the store, if they could be read.
fn lost(in_file: Option<usize>, in_store: Option<usize>) -> Vec<String> {
    let lost = [("heads.jsonl", in_file), ("the store, state.db,", in_store)];
    let lost = lost.into_iter().filter(|(_, found)| *found == Some(0));
    let what = "has no head, though there are signed chains: it was removed or emptied, or never copied here. That the \
                last records of a chain were cut shows only against heads outside of it: --head takes those kept elsewhere";
    lost.map(|(name, _)| format!("{name} {what}")).collect()
}

/// Chains that stand in more than one folder: what is read of all of them has their records twice.
fn twice(reports: &[Report]) -> Vec<String> {
    let mut folders = BTreeMap::<&str, Vec<&str>>::new();
    for found in reports.iter().filter(|found| !found.chain.is_empty()) {
        folders.entry(&found.chain).or_default().push(&found.folder);
    }
    let more = folders.into_iter().filter(|(_, folders)| folders.len() > 1);
    more.map(|(chain, folders)| format!("the chain {chain} stands in several folders: {}", folders.join(", ")))
        .collect()
}

fn read_heads(text: &str) -> anyhow::Result<Vec<footbridge_audit::SignedHead>> {
    if text.trim_start().starts_with('{') {
        return parse_heads(text).context("--head");
    }
    let read = std::fs::read_to_string(text).with_context(|| format!("cannot read the heads in {text}"))?;
    parse_heads(&read).with_context(|| format!("cannot use the heads in {text}"))
}

fn as_json(findings: &Findings) -> String {
    let Findings { reports, others, notes } = findings;
    format!("{}\n", json!({"ok": findings.is_good(), "chains": reports, "problems": others, "notes": notes}))
}

fn as_text(findings: &Findings) -> String {
    let mut out = String::new();
    for found in &findings.reports {
        let name = Escaped(&found.folder);
        match &found.problem {
            None => out.push_str(&format!("ok   {name}: {}\n", summary(found))),
            Some(problem) => {
                let kind = json!(problem.kind);
                let kind = kind.as_str().unwrap_or_default();
                let (file, line, seq) = (&problem.file, problem.line, problem.seq);
                let what = Escaped(&problem.what);
                if problem.kind == ProblemKind::Unreadable {
                    out.push_str(&format!("BAD  {name}: {kind}: {what}\n"));
                    continue;
                }
                out.push_str(&format!("BAD  {name}: {file} line {line}, record {seq}: {kind}: {what}\n"));
            }
        }
    }
    findings.others.iter().for_each(|what| out.push_str(&format!("BAD  {}\n", Escaped(what))));
    findings.notes.iter().for_each(|what| out.push_str(&format!("note {}\n", Escaped(what))));
    let bad = findings.reports.iter().filter(|found| !found.is_good()).count() + findings.others.len();
    out.push_str(&match bad {
        0 => format!("ok: {} verified\n", report::counted(findings.reports.len() as u64, "chain")),
        bad => format!(
            "{} found: keep the folder as it is, and compare it with a copy\n",
            report::counted(bad as u64, "problem")
        ),
    });
    out
}

fn summary(found: &Report) -> String {
    let mut parts = vec![report::counted(found.records, "record")];
    let behind = found.records.saturating_sub(found.covered);
    parts.push(match (found.heads, behind) {
        (0, _) => "no signed head".to_owned(),
        (_, 0) => "signed to the end".to_owned(),
        (_, behind) => format!("the last {behind} behind the last signed head"),
    });
    if found.heads > 0 && !found.key_known {
        parts.push("the key that signed is not known here".to_owned());
    }
    if !found.ended {
        parts.push("no end: the harness runs, or was killed".to_owned());
    }
    if found.unknown > 0 {
        let named = found.unknown_calls.iter().map(|id| Escaped(id).to_string()).collect::<Vec<_>>().join(", ");
        let more = if found.unknown > found.unknown_calls.len() { " and more" } else { "" };
        parts.push(format!(
            "{} without an outcome, which may have happened or runs still: {named}{more}",
            report::counted(found.unknown as u64, "call")
        ));
    }
    if found.torn > 0 {
        parts.push(format!("half a line of {} bytes at the end, torn by a crash or just being written", found.torn));
    }
    parts.join("; ")
}
