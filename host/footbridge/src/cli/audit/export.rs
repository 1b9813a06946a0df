//! `footbridge audit export`.

use chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use clap::{Args, ValueEnum};
use csv::Terminator;
use footbridge_proto::text::{Escaped, needs_escape};

use super::{BAD, Place, Printer};
use crate::report;
use footbridge_audit::read::{Lines, ReadRecord};
use footbridge_core::human::parse_duration;

/// The columns of CSV: fields of records, `a.b` for `b` of `a`.
const COLUMNS: [&str; 46] = [
    "chain",
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
    "count",
    "why",
    "labels",
    "prev",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The lines as they stand
    Jsonl,
    /// One row a record, for spreadsheets
    Csv,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  footbridge audit export > record.jsonl
  footbridge audit export --format csv --since 2026-11-01 --until 2026-12-01 > november.csv
  footbridge audit export --since 2h

JSON lines are the whole record, as it can be verified. CSV leaves out what only verifies it or seldom matters: heads,
keys, listeners, limits, versions and the like.")]
pub(in crate::cli) struct ExportArgs {
    /// One run: a folder of the audit folder, by its name or path. Default: all
    chain: Option<String>,
    /// How to write it
    #[arg(long, value_enum, default_value = "jsonl")]
    format: Format,
    /// JSON lines, which is the default
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Leave out what is older: a time such as 2026-11-22 or 2026-11-22T10:00:00Z, or 2h for two hours ago
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<DateTime<Utc>>,
    /// Leave out what is as old as this or newer
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<DateTime<Utc>>,
}

/// Lines that are no records.
#[derive(Debug, thiserror::Error)]
#[error("left out what is no record, {}: `footbridge audit verify` says where", report::counted(*.0, "line"))]
struct LeftOut(u64);

pub(super) fn main(args: &ExportArgs, place: &Place) -> anyhow::Result<i32> {
    let chains = place.named(args.chain.as_deref())?;
    if chains.is_empty() {
        return place.nothing();
    }
    let mut printer = Printer::default();
    if args.format == Format::Csv {
        printer.line(&row(COLUMNS.map(str::to_owned))?)?;
    }
    let mut left_out = 0;
    for chain in &chains {
        for (_, path) in chain.files()? {
            let mut lines = Lines::open(&path, 0)?;
            while let Some(line) = lines.next_line()? {
                let Some(record) = ReadRecord::parse(&line.bytes).filter(|_| line.is_whole) else {
                    left_out += 1;
                    continue;
                };
                if is_within(args, &record) {
                    printer.line(&written(args.format, &chain.name, &record)?)?;
                }
                if printer.is_left() {
                    return Ok(0);
                }
            }
        }
    }
    printer.flush()?;
    if left_out > 0 {
        report::error(&LeftOut(left_out).into());
        return Ok(BAD);
    }
    Ok(0)
}

/// A record without a time that can be read is never left out.
fn is_within(args: &ExportArgs, record: &ReadRecord) -> bool {
    let Ok(time) = record.text("time").parse::<DateTime<Utc>>() else { return true };
    args.since.is_none_or(|since| time >= since) && args.until.is_none_or(|until| time < until)
}

fn written(format: Format, chain: &str, record: &ReadRecord) -> anyhow::Result<String> {
    Ok(match format {
        Format::Jsonl if record.line.chars().any(needs_escape) => Escaped(&record.line).to_string(),
        Format::Jsonl => record.line.clone(),
        Format::Csv => row(COLUMNS.map(|name| if name == "chain" { chain.to_owned() } else { record.text(name) }))?,
    })
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
    let is_formula =
        text.starts_with(['=', '+', '-', '@', '\t', '\r', '\'']) || text.trim_start().starts_with(['=', '@']);
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
            own.into_iter().chain(["head_key", "limits", "listener", "listeners", "open", "pid", "sync", "version"]);
        assert_eq!(missing, own.collect::<Vec<_>>());
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
