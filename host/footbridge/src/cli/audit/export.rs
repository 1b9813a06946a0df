//! `footbridge audit export`: records for other programs. Each says where it is from, which its line alone does not:
//! the chain, the machine, and the labels of its session; and of an outcome whose call it was.

use std::{collections::HashMap, ops::ControlFlow};

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use clap::{Args, ValueEnum};
use csv::Terminator;
use footbridge_proto::text::{Escaped, SafeJson};
use serde_json::{Map, Value, json};

use super::{BAD, Place, Printer, Which, is_unread, safe_line};
use crate::report;
use footbridge_audit::read::{Calls, ChainFolder, ReadRecord};
use footbridge_core::human::parse_duration;

/// The columns of CSV: fields of records, `a.b` for `b` of `a`.
const COLUMNS: [&str; 50] = [
    "chain",
    "host",
    "seq",
    "time",
    "mono",
    "type",
    "id",
    "session",
    "peer",
    "kind",
    "server",
    "name",
    "arguments.digest",
    "arguments.bytes",
    "arguments.redacted",
    "content.digest",
    "content.bytes",
    "content.redacted",
    "meta.digest",
    "meta.bytes",
    "length",
    "definition",
    "decision",
    "policy",
    "rule",
    "effects",
    "approver",
    "state",
    "approval",
    "reason",
    "outcome",
    "detail",
    "duration_ms",
    "bytes",
    "status",
    "sent",
    "received",
    "sent_digest",
    "received_digest",
    "first_byte_ms",
    "redacted",
    "model",
    "tokens_in",
    "tokens_out",
    "tokens_cached",
    "tokens_estimated",
    "count",
    "why",
    "labels",
    "prev",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One object a line: the record, with chain, host and the labels of its session
    Jsonl,
    /// The lines as they stand, byte for byte
    Raw,
    /// One row a record, for spreadsheets
    Csv,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  footbridge audit export > record.jsonl
  footbridge audit export --format csv --since 2026-11-01 --until 2026-12-01 > november.csv
  footbridge audit export --since 2h

JSON lines are the whole record, each with the name of its chain, of its host, and the labels of its session; an outcome
also with the session, server, kind and name of its call. `raw` is the
record as it can be verified, without them. CSV leaves out what only verifies it or seldom matters: heads, keys,
listeners, limits, services, versions and the like.")]
pub(in crate::cli) struct ExportArgs {
    /// One run: a folder of the audit folder, by its name or path. Default: all
    chain: Option<String>,
    /// How to write it
    #[arg(long, value_enum, default_value = "jsonl")]
    format: Format,
    /// JSON lines, which is the default
    #[arg(long, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    period: Period,
}

/// Which time is looked at: all, where nothing else is asked for.
#[derive(Debug, Args)]
pub(super) struct Period {
    /// Leave out what is older: a time such as 2026-11-22 or 2026-11-22T10:00:00Z, or 2h for two hours ago
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<DateTime<Utc>>,
    /// Leave out what is as old as this or newer
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<DateTime<Utc>>,
}

/// What is in chains and in nothing that was made of them.
#[derive(Debug, Default, thiserror::Error)]
#[error("left out what is no record, {}: `footbridge audit verify` says where", report::counted(self.lines, "line"))]
pub(super) struct LeftOut {
    /// Lines that are no records.
    lines: u64,
    /// Whether there are chains that could not be read, which was said.
    is_unread: bool,
}

pub(super) fn main(args: &ExportArgs, place: &Place) -> anyhow::Result<i32> {
    let chains = place.named(args.chain.as_deref())?;
    if chains.is_empty() {
        return place.nothing();
    }
    let mut printer = Printer::default();
    if args.format == Format::Csv {
        printer.line(&row(COLUMNS.map(str::to_owned))?)?;
    }
    let mut is_empty = true;
    let left_out = each_record(&chains, |origin, record| {
        if args.period.holds(record) {
            is_empty = false;
            printer.line(&written(args.format, &origin.fields, record)?)?;
        }
        Ok(if printer.is_left() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    let Some(left_out) = left_out else { return Ok(0) };
    printer.flush()?;
    if is_empty {
        let which = Which { chain: args.chain.clone(), session: None, server: None };
        which.found_nothing(if args.period.is_all() { "record" } else { "record of that time" }, &chains, place);
    }
    left_out.status()
}

/// Goes through all records of these chains, each with where it is from, until it is told to stop. Lines that are no
/// records are counted, where it went to the end.
pub(super) fn each_record(
    chains: &[ChainFolder],
    mut each: impl FnMut(&Origin, &ReadRecord) -> anyhow::Result<ControlFlow<()>>,
) -> anyhow::Result<Option<LeftOut>> {
    let mut left_out = LeftOut::default();
    for chain in chains {
        let (mut origins, mut lines) = (Origins::of(&chain.name), chain.lines());
        loop {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Ok(None) => break,
                Err(error) => {
                    left_out.is_unread |= is_unread(chain, error);
                    break;
                }
            };
            let Some(record) = ReadRecord::parse(&line.bytes).filter(|_| line.is_whole) else {
                left_out.lines += 1;
                continue;
            };
            if each(&origins.next(&record), &record)?.is_break() {
                return Ok(None);
            }
        }
    }
    Ok(Some(left_out))
}

impl LeftOut {
    /// Says them, if there are any.
    pub(super) fn status(self) -> anyhow::Result<i32> {
        let is_whole = self.lines == 0 && !self.is_unread;
        if self.lines > 0 {
            report::error(&self.into());
        }
        Ok(if is_whole { 0 } else { BAD })
    }
}

impl Period {
    /// Whether nothing is left out.
    fn is_all(&self) -> bool {
        self.since.is_none() && self.until.is_none()
    }

    /// A record without a time that can be read is never left out.
    pub(super) fn holds(&self, record: &ReadRecord) -> bool {
        let Ok(time) = record.text("time").parse::<DateTime<Utc>>() else { return true };
        self.since.is_none_or(|since| time >= since) && self.until.is_none_or(|until| time < until)
    }
}

fn written(format: Format, origin: &Map<String, Value>, record: &ReadRecord) -> anyhow::Result<String> {
    Ok(match format {
        Format::Raw => record.line.clone(),
        Format::Jsonl => with_origin(origin, record),
        Format::Csv => {
            let from = ReadRecord { fields: origin.clone(), line: String::new() };
            row(COLUMNS.map(|name| if origin.contains_key(name) { from.text(name) } else { record.text(name) }))?
        }
    })
}

/// The line as it stands, and behind it what it does not say itself.
fn with_origin(origin: &Map<String, Value>, record: &ReadRecord) -> String {
    let more = origin.iter().filter(|(name, _)| !record.fields.contains_key(*name));
    let more: Map<String, Value> = more.map(|(name, value)| (name.clone(), value.clone())).collect();
    if more.is_empty() {
        return safe_line(record);
    }
    let (line, more) = (safe_line(record), json!(more).to_string());
    let line = line.trim_end();
    format!("{},{}", line.strip_suffix('}').unwrap_or(line), SafeJson(&more[1..]))
}

/// Where a record is from.
#[derive(Debug)]
pub(super) struct Origin {
    /// What its line does not say: the chain, the machine and the labels of its session; of an outcome also whose call
    /// it was.
    pub(super) fields: Map<String, Value>,
    /// The session and the server of its call, which an outcome has from its intent.
    pub(super) session: String,
    pub(super) server: String,
}

/// What the records of a chain so far say of those that follow.
struct Origins {
    chain: String,
    host: Option<Value>,
    calls: Calls,
    labels: HashMap<String, Value>,
}

impl Origins {
    fn of(chain: &str) -> Self {
        Self { chain: chain.to_owned(), host: None, calls: Calls::default(), labels: HashMap::new() }
    }

    /// Of the next record.
    fn next(&mut self, record: &ReadRecord) -> Origin {
        let [session, server, name, kind] = self.calls.of(record);
        match record.text("type").as_str() {
            "started" => self.host = record.fields.get("host").cloned(),
            "session" => {
                let labels = record.fields.get("labels").cloned().unwrap_or_else(|| json!({}));
                self.labels.insert(session.clone(), labels);
            }
            _ => {}
        }
        let host = self.host.clone().map(|host| ("host", host));
        let labels = self.labels.get(&session).cloned().map(|labels| ("labels", labels));
        let is_outcome = record.text("type") == "outcome";
        let call = [("session", &session), ("server", &server), ("kind", &kind), ("name", &name)];
        let call = call.into_iter().filter(|(_, text)| is_outcome && !text.is_empty());
        let call = call.map(|(name, text)| Some((name, Value::from(text.as_str()))));
        let all = [Some(("chain", self.chain.clone().into())), host, labels].into_iter().chain(call);
        let fields = all.flatten().map(|(name, value)| (name.to_owned(), value)).collect();
        Origin { fields, session, server }
    }
}

/// A row of CSV (RFC 4180), without the line feed at its end.
fn row(cells: [String; COLUMNS.len()]) -> anyhow::Result<String> {
    // Some spreadsheets divide at `;` too, and what follows it could be a formula: cells with that are quoted as well,
    // which the crate does for what may begin a comment.
    let mut rows = csv::WriterBuilder::new().comment(Some(b';')).terminator(Terminator::Any(b'\r')).from_writer(vec![]);
    rows.write_record(cells.map(|text| cell(&text)))?;
    Ok(String::from_utf8(rows.into_inner()?)?)
}

/// A cell that a spreadsheet takes for text: what would be a formula gets a quote before it.
fn cell(text: &str) -> String {
    let text = Escaped(text).to_string();
    // Blanks before it, and forms of another width, are the same to some.
    let is_formula =
        text.trim_start().starts_with(['=', '+', '-', '@', '＝', '＋', '－', '＠']) || text.starts_with('\'');
    if is_formula { format!("'{text}") } else { text }
}

/// Not a time.
#[derive(Debug, thiserror::Error)]
#[error("write a time such as 2026-11-22 or 2026-11-22T10:00:00Z, or 30m or 2h for so long ago")]
struct NoTime;

fn moment(text: &str) -> Result<DateTime<Utc>, NoTime> {
    if let Some(ago) = parse_duration(text) {
        let ago = chrono::Duration::from_std(ago).map_err(|_| NoTime)?;
        return Utc::now().checked_sub_signed(ago).ok_or(NoTime);
    }
    if let Ok(day) = text.parse::<NaiveDate>() {
        return Ok(day.and_time(NaiveTime::MIN).and_utc());
    }
    DateTime::parse_from_rfc3339(text).map(|time| time.to_utc()).map_err(|_| NoTime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_quoted_and_no_formula() {
        for (text, expected) in [
            ("plain", "plain"),
            ("a,b", "\"a,b\""),
            ("a;=b", "\"a;=b\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("=1+1", "'=1+1"),
            ("-2,3", "\"'-2,3\""),
            ("@x", "'@x"),
            (" =x", "' =x"),
            ("  +1", "'  +1"),
            ("\u{a0}-1", "'\u{a0}-1"),
            ("＝1+1", "'＝1+1"),
            ("'x", "''x"),
            ("\tx", "\\tx"),
            (" x", " x"),
            ("a\nb\u{1b}", "a\\nb\\u{1b}"),
        ] {
            let mut cells = [const { String::new() }; COLUMNS.len()];
            cells[1] = text.to_owned();
            let expected = format!(",{expected}{}\r", ",".repeat(COLUMNS.len() - 2));
            assert_eq!(row(cells).unwrap(), expected, "{text:?}");
        }
    }

    #[test]
    fn it_leaves_out_nothing_but_what_stands_for_itself() {
        // The names in the first column of the table, which a test of the stages holds to the records.
        let docs = include_str!("../../../../../docs/record.md");
        let section = docs.split("## Fields").nth(1).unwrap().split("\n## ").next().unwrap();
        let fields = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let mut missing: Vec<&str> = fields.filter(|field| !COLUMNS.contains(field)).collect();
        missing.sort_unstable();
        let own = ["file", "genesis", "head.chain", "head.hash", "head.key", "head.seq", "head.signature", "head.time"];
        let own =
            own.into_iter().chain(["head_key", "limits", "listener", "listeners", "open", "pid", "services", "sync"]);
        assert_eq!(missing, own.chain(["version"]).collect::<Vec<_>>());
    }

    #[test]
    fn an_outcome_says_whose_call_it_was() {
        let record = |line: &str| ReadRecord::parse(line.as_bytes()).unwrap();
        let mut origins = Origins::of("c");
        let intent =
            r#"{"type":"intent","id":"i","session":"s","kind":"http","server":"model","name":"POST /v1/messages"}"#;
        let outcome = record(r#"{"type":"outcome","id":"i","status":200,"tokens_in":7}"#);
        let of_intent = origins.next(&record(intent)).fields;
        assert_eq!(Value::from(of_intent), json!({"chain": "c"}));
        let origin = origins.next(&outcome).fields;
        let line: Value = serde_json::from_str(&with_origin(&origin, &outcome)).unwrap();
        let all = ["session", "server", "kind", "name"].map(|name| line[name].as_str().unwrap());
        assert_eq!(all, ["s", "model", "http", "POST /v1/messages"]);
        let row = written(Format::Csv, &origin, &outcome).unwrap();
        assert!(row.contains(",s,,http,model,POST /v1/messages,"), "{row}");
    }

    #[test]
    fn what_was_put_into_a_record_leaves_json_json_and_raw_lines_as_they_are() {
        for line in ["{\"type\":\"x\",\"name\":\"a\u{202e}b\"}", "{\"type\":\"x\",\t\"name\":\"a\u{202e}b\"}\r"] {
            let record = ReadRecord::parse(line.as_bytes()).unwrap();
            let origin = Origins::of("c").next(&record).fields;
            let exported = written(Format::Jsonl, &origin, &record).unwrap();
            assert!(!exported.chars().any(footbridge_proto::text::needs_escape), "{exported:?}");
            let read: Value = serde_json::from_str(&exported).unwrap();
            assert_eq!((&read["name"], &read["chain"]), (&json!("a\u{202e}b"), &json!("c")), "{exported:?}");
            assert_eq!(written(Format::Raw, &origin, &record).unwrap(), line);
        }
    }

    #[test]
    fn times_are_read_as_people_write_them() {
        assert_eq!(moment("2026-11-22").unwrap().to_rfc3339(), "2026-11-22T00:00:00+00:00");
        assert_eq!(moment("2026-11-22T10:00:00+01:00").unwrap().to_rfc3339(), "2026-11-22T09:00:00+00:00");
        let ago = (Utc::now() - moment("2h").unwrap()).num_seconds();
        assert!((7_199..7_300).contains(&ago), "{ago}");
        assert!(moment("yesterday").is_err());
    }
}
