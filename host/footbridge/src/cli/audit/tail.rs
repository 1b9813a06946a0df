//! `footbridge audit tail`.

use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    thread,
    time::{Duration, SystemTime},
};

use chrono::{DateTime, Utc};
use clap::{Args, builder::PossibleValuesParser};
use footbridge_proto::text::Escaped;

use super::{Place, Printer, Which};
use crate::report;
use footbridge_audit::read::{Calls, ChainFolder, Lines, ReadRecord, TYPES};

/// How often new records are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[command(after_help = "Records of all runs are shown, in the order of their time.

Examples:
  footbridge audit tail --follow
  footbridge audit tail --session run-4711 --type refused
  footbridge audit tail --lines 1000 --json
  footbridge audit tail --chain 20261122T025808Z-Ab12Cd34")]
pub(in crate::cli) struct TailArgs {
    /// Go on showing records as they are written, of new runs too
    #[arg(long, short)]
    follow: bool,
    /// Show this many records at most to begin with
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    lines: usize,
    #[command(flatten)]
    which: Which,
    /// Show records of this type alone
    #[arg(long = "type", value_name = "TYPE", value_parser = PossibleValuesParser::new(TYPES))]
    kind: Option<String>,
    /// Print the lines as they stand in the record: JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn main(args: &TailArgs, place: &Place) -> anyhow::Result<i32> {
    let chains = place.named(args.which.chain.as_deref())?;
    if chains.is_empty() && !args.follow {
        return place.nothing();
    }
    let mut printer = Printer::default();
    let mut readers = Vec::new();
    let last = last(args, &chains, &mut readers)?;
    if last.is_empty() && args.lines > 0 {
        let kind = args.kind.as_deref().map(|kind| format!(" of type {kind}")).unwrap_or_default();
        args.which.found_nothing(&format!("record{kind}"), &chains, place);
    }
    last.iter().try_for_each(|shown| printer.line(&shown.text))?;
    printer.flush()?;
    let mut known: Vec<String> = chains.into_iter().map(|chain| chain.name).collect();
    while args.follow && !printer.is_left() {
        thread::sleep(LOOK_EVERY);
        if args.which.chain.is_none() {
            for chain in place.chains()?.into_iter().filter(|chain| !known.contains(&chain.name)).collect::<Vec<_>>() {
                known.push(chain.name.clone());
                readers.push(Reader::new(chain));
            }
        }
        let mut new = Vec::new();
        for reader in &mut readers {
            reader.read(args, &mut |shown| new.push(shown))?;
        }
        // A chain that its harness ended grows no more; one that processes share is never over.
        readers.retain(|reader| !reader.is_over);
        new.sort_by(|a, b| a.time.cmp(&b.time));
        new.iter().try_for_each(|shown| printer.line(&shown.text))?;
        printer.flush()?;
    }
    Ok(0)
}

/// The last lines of all these chains, in the order of their time, and the readers that go on from there.
fn last(args: &TailArgs, chains: &[ChainFolder], readers: &mut Vec<Reader>) -> io::Result<Vec<Shown>> {
    let mut by_change = Vec::new();
    for chain in chains {
        by_change.push((changed(chain)?, chain));
    }
    // The one that was written to last comes first, so that most of an old record need not be read.
    by_change.sort_by(|(a, _), (b, _)| b.cmp(a));
    let mut all: Vec<Shown> = Vec::new();
    for (changed, chain) in by_change {
        let is_older = |shown: &Shown| changed.is_some_and(|changed| changed < shown.time);
        // Who follows has to know which calls are open in each chain.
        if !args.follow && all.len() >= args.lines && all.first().is_none_or(is_older) {
            continue;
        }
        let mut reader = Reader::new(chain.clone());
        let mut own = VecDeque::new();
        reader.read(args, &mut |shown| {
            own.push_back(shown);
            if own.len() > args.lines {
                own.pop_front();
            }
        })?;
        readers.push(reader);
        all.extend(own);
        all.sort_by(|a, b| a.time.cmp(&b.time));
        all.drain(..all.len().saturating_sub(args.lines));
    }
    Ok(all)
}

/// A time, as records write times, after which nothing was written to a chain; none of one without files.
fn changed(chain: &ChainFolder) -> io::Result<Option<String>> {
    let Some((_, path)) = chain.files()?.pop() else { return Ok(None) };
    let changed: SystemTime = path.metadata()?.modified()?;
    // The clock of files is coarser than that of records, and may be behind it by some milliseconds.
    let changed = DateTime::<Utc>::from(changed) + chrono::Duration::seconds(1);
    Ok(Some(changed.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)))
}

/// A line to print.
struct Shown {
    /// When it was written, as records write times; no earlier than the line before it in its chain.
    time: String,
    text: String,
}

/// Reads one chain on, through its files.
struct Reader {
    chain: ChainFolder,
    file: Option<(u32, PathBuf)>,
    at: u64,
    calls: Calls,
    time: String,
    is_ended: bool,
    is_over: bool,
}

impl Reader {
    fn new(chain: ChainFolder) -> Self {
        Self { chain, file: None, at: 0, calls: Calls::default(), time: String::new(), is_ended: false, is_over: false }
    }

    /// Gives every line that was written since, and that was asked for.
    fn read(&mut self, args: &TailArgs, give: &mut impl FnMut(Shown)) -> io::Result<()> {
        loop {
            if let Some((_, path)) = &self.file {
                let mut lines = Lines::open(path, self.at)?;
                while let Some(line) = lines.next_line()?.filter(|line| line.is_whole) {
                    self.at = lines.at();
                    let record = ReadRecord::parse(&line.bytes);
                    self.time = record.iter().map(|record| record.text("time")).fold(self.time.clone(), String::max);
                    let kind = record.as_ref().map(|record| record.text("type"));
                    // The head behind its end is the last line that it gets.
                    self.is_over |= self.is_ended && !self.chain.is_shared() && kind.as_deref() == Some("head");
                    self.is_ended |= kind.as_deref() == Some("ended");
                    if let Some(text) = shown(args, &line.bytes, &mut self.calls) {
                        give(Shown { time: self.time.clone(), text });
                    }
                }
            }
            let number = self.file.as_ref().map_or(0, |(number, _)| *number);
            // A file of the chain is never written to again once there is a next one.
            match self.chain.files()?.into_iter().find(|(next, _)| *next > number) {
                None => return Ok(()),
                Some(next) => (self.file, self.at) = (Some(next), 0),
            }
        }
    }
}

/// A line as it is to be printed, if it was asked for.
fn shown(args: &TailArgs, line: &[u8], calls: &mut Calls) -> Option<String> {
    let Some(record) = ReadRecord::parse(line) else {
        let text = String::from_utf8_lossy(line);
        return Some(format!("(no record) {}", Escaped(text.get(..200).unwrap_or(&text))));
    };
    let [session, server, name, _] = calls.of(&record);
    let kind = record.text("type");
    if !args.which.is_asked_for(&session, &server) || args.kind.as_ref().is_some_and(|asked| *asked != kind) {
        return None;
    }
    if args.json {
        return Some(Escaped(&record.line).to_string());
    }
    let target = if server.is_empty() { String::new() } else { format!("{server}/{name}") };
    let time: String = record.text("time").replace('T', " ").chars().take(23).collect();
    let columns = [(time, 23), (kind.clone(), 9), (session, 12), (target, 24)];
    let mut out = String::new();
    for (text, width) in columns {
        out.push_str(&format!("{:<width$}  ", Escaped(&text).to_string()));
    }
    out.push_str(&Escaped(&what(&kind, &record)).to_string());
    Some(out.trim_end().to_owned())
}

/// What a record says, in a few words.
fn what(kind: &str, record: &ReadRecord) -> String {
    let text = |name| record.text(name);
    let labelled = |parts: &[&str]| -> String {
        let known = parts.iter().map(|name| (*name, record.text(name))).filter(|(_, value)| !value.is_empty());
        known.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
    };
    match kind {
        "intent" => {
            // A request to a service has a body in the place of arguments, of a length that it may not say.
            let sent = match (text("kind").as_str(), text("length")) {
                ("http" | "tunnel", length) if length.is_empty() => String::new(),
                ("http" | "tunnel", length) => format!(", {length} B"),
                _ => format!(", {} B", text("arguments.bytes")),
            };
            format!("{} by {}{sent}, id {}", text("decision"), text("policy"), text("id"))
        }
        "outcome" => {
            let detail = Some(text("detail")).filter(|detail| !detail.is_empty());
            let detail = detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
            format!("{}{detail}, {} ms, {} B, id {}", text("outcome"), text("duration_ms"), text("bytes"), text("id"))
        }
        "refused" => format!("{}, id {}", text("reason"), text("id")),
        "approval" => {
            let by = Some(text("approver")).filter(|by| !by.is_empty());
            let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
            let what = if text("kind") == "elicitation" { "question " } else { "" };
            format!("{what}{}{by}, id {}", text("state"), text("id"))
        }
        "limited" => format!("{}: {}", counted(&text("count"), "time"), text("reason")),
        "started" => labelled(&["version", "pid"]),
        "session" => labelled(&["policy", "listeners", "labels", "limits"]),
        "session_ended" => text("why"),
        "rotated" => text("file"),
        "head" => format!("signed up to record {}", text("head.seq")),
        "ended" => match text("open").as_str() {
            "0" => String::new(),
            open => format!("{} without an outcome", counted(open, "call")),
        },
        _ => record.line.clone(),
    }
}

/// A number as it stands in a record, with what it counts.
fn counted(number: &str, what: &str) -> String {
    number.parse().map_or_else(|_| format!("{number} {what}s"), |number| report::counted(number, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_intent_says_how_much_is_sent_as_far_as_that_is_known() {
        let said = |more: &str| {
            let line = format!(
                "{{\"type\":\"intent\",\"id\":\"i\",\"decision\":\"allow\",\"policy\":\"ask\",\"arguments\":{{\"bytes\":0}},{more}}}"
            );
            what("intent", &ReadRecord::parse(line.as_bytes()).unwrap())
        };
        assert_eq!(said("\"kind\":\"tool\""), "allow by ask, 0 B, id i");
        assert_eq!(said("\"kind\":\"http\",\"length\":512"), "allow by ask, 512 B, id i");
        assert_eq!(said("\"kind\":\"http\""), "allow by ask, id i");
        assert_eq!(said("\"kind\":\"tunnel\""), "allow by ask, id i");
    }
}
