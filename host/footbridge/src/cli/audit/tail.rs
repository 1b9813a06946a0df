//! `footbridge audit tail`.

use std::{
    collections::{HashSet, VecDeque},
    io,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use chrono::{DateTime, Utc};
use clap::{Args, builder::PossibleValuesParser};
use footbridge_proto::text::Escaped;

use super::{BAD, Place, Printer, Which, is_unread, safe_line};
use crate::report;
use footbridge_audit::read::{Calls, ChainFolder, Lines, ReadRecord, TYPES, folders};

/// How often new records are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How much of a chain's end is read first, bytes, and how many times more if that does not do.
const END: u64 = 256 * 1024;
const MORE: u64 = 8;

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
    let Last { shown: last, is_unread: is_bad } = last(args, &chains, &mut readers);
    let is_nothing = last.is_empty() && args.lines > 0;
    if is_nothing {
        let kind = args.kind.as_deref().map(|kind| format!(" of type {kind}")).unwrap_or_default();
        args.which.found_nothing(&format!("record{kind}"), &chains, place);
    }
    last.iter().try_for_each(|shown| printer.line(&shown.text))?;
    printer.flush()?;
    let mut known: HashSet<String> = chains.into_iter().map(|chain| chain.name).collect();
    while args.follow && !printer.is_left() && report::stays_read(LOOK_EVERY) {
        if args.which.chain.is_none() {
            for chain in folders(&place.audit)? {
                if known.insert(chain.name.clone()) {
                    readers.push(Reader::new(chain));
                }
            }
        }
        let mut new = Vec::new();
        for reader in &mut readers {
            if let Err(error) = reader.read(args, &mut |shown| new.push(shown)) {
                reader.is_over = true;
                let _it_was_said = is_unread(&reader.chain, error);
            }
        }
        // A chain that its harness ended grows no more; one that processes share is never over.
        readers.retain(|reader| !reader.is_over);
        new.sort_by(|a, b| a.time.cmp(&b.time));
        new.iter().try_for_each(|shown| printer.line(&shown.text))?;
        printer.flush()?;
    }
    Ok(if is_bad || is_nothing && !args.follow { BAD } else { 0 })
}

/// The last lines of all these chains, in the order of their time.
struct Last {
    shown: Vec<Shown>,
    /// Whether there are chains that could not be read, which was said.
    is_unread: bool,
}

/// The last lines, and the readers that go on from there.
fn last(args: &TailArgs, chains: &[ChainFolder], readers: &mut Vec<Reader>) -> Last {
    // What cannot be looked at is said when it is read.
    let mut by_change: Vec<_> = chains.iter().map(|chain| (changed(chain).ok().flatten(), chain)).collect();
    // The one that was written to last comes first, so that most of an old record need not be read.
    by_change.sort_by(|(a, _), (b, _)| b.cmp(a));
    let (mut all, mut bad): (Vec<Shown>, bool) = (Vec::new(), false);
    for (changed, chain) in by_change {
        let is_older = |shown: &Shown| changed.is_some_and(|changed| changed < shown.time);
        if !args.follow && all.len() >= args.lines && all.first().is_none_or(is_older) {
            continue;
        }
        let (own, read) = last_of(args, chain);
        all.extend(own);
        match read {
            Ok(reader) => readers.push(reader),
            Err(error) => bad |= is_unread(chain, error),
        }
        all.sort_by(|a, b| a.time.cmp(&b.time));
        all.drain(..all.len().saturating_sub(args.lines));
    }
    Last { shown: all, is_unread: bad }
}

/// The last lines of one chain, as far as it can be read, and the reader that goes on behind them. As little of its end
/// is read as says enough.
fn last_of(args: &TailArgs, chain: &ChainFolder) -> (VecDeque<Shown>, io::Result<Reader>) {
    let mut bytes = END;
    loop {
        let mut reader = Reader::new(chain.clone());
        // Who follows has to know which calls are open.
        let begun = if args.follow { Ok(true) } else { reader.skip_to_last(bytes) };
        let mut own = VecDeque::new();
        let read = reader.read(args, &mut |shown| {
            own.push_back(shown);
            if own.len() > args.lines {
                own.pop_front();
            }
        });
        match begun.and_then(|is_whole| read.map(|()| is_whole)) {
            Err(error) => return (own, Err(error)),
            Ok(is_whole) if is_whole || reader.given - reader.strange >= args.lines => return (own, Ok(reader)),
            Ok(_) => bytes *= MORE,
        }
    }
}

/// A time, as records write times, after which nothing was written to a chain; none of one without files.
fn changed(chain: &ChainFolder) -> io::Result<Option<String>> {
    let Some((_, path)) = chain.files()?.pop() else { return Ok(None) };
    let changed: SystemTime = path.metadata()?.modified()?;
    // The clock of files is coarser than that of records, and may be behind it by some milliseconds.
    let changed = DateTime::<Utc>::from(changed) + chrono::Duration::seconds(1);
    Ok(Some(changed.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)))
}

/// Whether a file has more than so many bytes. Of what is no file that is for its opening to say.
fn has_more(path: &Path, at: u64) -> io::Result<bool> {
    let there = path.symlink_metadata()?;
    Ok(!there.is_file() || there.len() > at)
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
    /// How many lines were given.
    given: usize,
    /// How many of them were given up to the last outcome whose intent was not read.
    strange: usize,
}

impl Reader {
    fn new(chain: ChainFolder) -> Self {
        let (calls, time) = (Calls::default(), String::new());
        Self { chain, file: None, at: 0, calls, time, is_ended: false, is_over: false, strange: 0, given: 0 }
    }

    /// Begins so many bytes before the end, or with the line behind that. Whether that is the whole chain.
    fn skip_to_last(&mut self, bytes: u64) -> io::Result<bool> {
        let mut left = bytes;
        for (number, path) in self.chain.files()?.into_iter().rev() {
            let length = path.symlink_metadata()?.len();
            if let Some(at) = length.checked_sub(left).filter(|at| *at > 0) {
                let mut lines = Lines::open(&path, at - 1)?;
                lines.next_line()?;
                (self.at, self.file) = (lines.at(), Some((number, path)));
                return Ok(false);
            }
            left -= length;
        }
        Ok(true)
    }

    /// Gives every line that was written since, and that was asked for.
    fn read(&mut self, args: &TailArgs, give: &mut impl FnMut(Shown)) -> io::Result<()> {
        loop {
            // Most chains have nothing new, most of the time.
            if let Some((_, path)) = &self.file
                && has_more(path, self.at)?
            {
                let mut lines = Lines::open(path, self.at)?;
                while let Some(line) = lines.next_line()?.filter(|line| line.is_whole) {
                    self.at = lines.at();
                    if let Some(text) = self.line(args, &line.bytes) {
                        self.given += 1;
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

    /// Takes a line; gives it as it is to be printed, if it was asked for.
    fn line(&mut self, args: &TailArgs, line: &[u8]) -> Option<String> {
        let Some(record) = ReadRecord::parse(line) else {
            let text = String::from_utf8_lossy(line);
            return Some(format!("(no record) {}", Escaped(text.get(..200).unwrap_or(&text))));
        };
        self.time = record.text("time").max(std::mem::take(&mut self.time));
        let (kind, call) = (record.text("type"), self.calls.of(&record));
        // The head behind its end is the last line that it gets.
        self.is_over |= self.is_ended && !self.chain.is_shared() && kind == "head";
        self.is_ended |= kind == "ended";
        let is_strange = kind == "outcome" && call[0].is_empty();
        let text = shown(args, &record, call);
        if is_strange {
            self.strange = self.given + usize::from(text.is_some());
        }
        text
    }
}

/// A record as it is to be printed, if it was asked for, with what is known of its call.
fn shown(args: &TailArgs, record: &ReadRecord, call: [String; 4]) -> Option<String> {
    let ([session, server, name, _], kind) = (call, record.text("type"));
    if !args.which.is_asked_for(&session, &server) || args.kind.as_ref().is_some_and(|asked| *asked != kind) {
        return None;
    }
    if args.json {
        return Some(safe_line(record));
    }
    let target = if server.is_empty() { String::new() } else { format!("{server}/{name}") };
    let time: String = record.text("time").replace('T', " ").chars().take(23).collect();
    let columns = [(time, 23), (kind.clone(), 9), (session, 12), (target, 24)];
    let mut out = String::new();
    for (text, width) in columns {
        out.push_str(&format!("{:<width$}  ", Escaped(&text).to_string()));
    }
    out.push_str(&Escaped(&what(&kind, record)).to_string());
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
            let status = Some(text("status")).filter(|status| !status.is_empty());
            let status = status.map(|status| format!(" {status}")).unwrap_or_default();
            let model = labelled(&["model", "tokens_in", "tokens_out", "tokens_estimated"]);
            let model = if model.is_empty() { model } else { format!(", {model}") };
            let (word, ms, bytes) = (text("outcome"), text("duration_ms"), text("bytes"));
            format!("{word}{status}{detail}, {ms} ms, {bytes} B{model}, id {}", text("id"))
        }
        "refused" => {
            let detail = Some(text("detail")).filter(|detail| !detail.is_empty());
            let detail = detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
            format!("{}{detail}, id {}", text("reason"), text("id"))
        }
        "approval" => {
            let by = Some(text("approver")).filter(|by| !by.is_empty());
            let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
            let what = if text("kind") == "elicitation" { "question " } else { "" };
            format!("{what}{}{by}, id {}", text("state"), text("id"))
        }
        "pin_accepted" => format!("{} by {}", text("definition"), text("approver")),
        "limited" => format!("{}: {}", counted(&text("count"), "time"), text("reason")),
        "started" => labelled(&["version", "pid"]),
        "session" => labelled(&["policy", "services", "listeners", "labels", "limits"]),
        "session_listens" => labelled(&["listener"]),
        "session_rotated" => String::new(),
        "session_limited" => format!("{} by {}", labelled(&["limits"]), text("approver")),
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
    fn an_accepted_pin_says_which_definition_and_who_accepted_it() {
        let line = br#"{"type":"pin_accepted","definition":"sha256:ab","approver":"servers pins accept (uid 0)"}"#;
        let said = what("pin_accepted", &ReadRecord::parse(line).unwrap());
        assert_eq!(said, "sha256:ab by servers pins accept (uid 0)");
    }

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

    #[test]
    fn the_end_of_a_chain_is_read_and_more_where_a_call_began_earlier() {
        let folder = tempfile::tempdir().unwrap();
        let filler = |id: u64| {
            let outcome = format!("{{\"type\":\"outcome\",\"id\":\"{id}\"}}");
            format!("{{\"type\":\"intent\",\"id\":\"{id}\",\"session\":\"other\"}}\n{outcome}\n")
        };
        let early = "{\"type\":\"intent\",\"id\":\"early\",\"session\":\"mine\",\"server\":\"demo\",\"name\":\"x\"}\n";
        let late = "{\"type\":\"outcome\",\"id\":\"early\"}\n{\"type\":\"outcome\",\"id\":\"ne";
        let [first, second]: [String; 2] = [0, 10_000].map(|from| (from..from + 8_000).map(filler).collect());
        assert!(second.len() as u64 > END);
        let write = |first: &str, second: &str| {
            std::fs::write(folder.path().join("000001.jsonl"), first).unwrap();
            std::fs::write(folder.path().join("000002.jsonl"), second).unwrap();
        };
        let chain = ChainFolder { name: "c".to_owned(), path: folder.path().to_owned() };
        let which = Which { chain: None, session: None, server: None };
        let args = TailArgs { follow: false, lines: 3, which, kind: None, json: false };
        let last = || {
            let (own, reader) = last_of(&args, &chain);
            (reader.unwrap().given, own.into_iter().map(|shown| shown.text).collect::<Vec<_>>())
        };
        write(&format!("{early}{first}"), &second);
        let (read, shown) = last();
        assert!(read < 8_000 && shown.len() == 3 && shown[2].ends_with("id 17999"), "{read}: {shown:?}");
        write(&format!("{early}{first}"), &format!("{second}{late}"));
        let (read, shown) = last();
        assert_eq!(read, 2 + 4 * 8_000, "all of it");
        assert!(shown[2].contains("mine") && shown[2].contains("demo/x"), "{shown:?}");
        std::fs::create_dir(folder.path().join("000003.jsonl")).unwrap();
        let (own, reader) = last_of(&args, &chain);
        assert!(own.len() == 3 && reader.is_err(), "what is before it is shown");
    }
}
