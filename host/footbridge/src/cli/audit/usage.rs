//! `footbridge audit usage`: what requests to services used, summed up.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    ops::ControlFlow,
    str::FromStr,
};

use chrono::{DateTime, Utc};
use clap::Args;
use footbridge_proto::text::Escaped;
use serde_json::{Map, Value, json};

use super::{
    BAD, Place, Printer, Which,
    export::{LeftOut, Origin, Period, each_record},
};
use crate::cli::table::aligned;
use footbridge_audit::read::ReadRecord;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  footbridge audit usage
  footbridge audit usage --by day,model --since 2026-11-01
  footbridge audit usage --by label:team --json

Tokens are what a model's answers say of themselves. A request whose answer broke off counts with what had come. What
became of a request is unknown while it runs, and where its harness was killed: those are counted apart.

Exit status: 0, also where nothing was used; 1 if there is no record or none of a chain, session or server that is named, or
not all of it could be read; 2 for a wrong command line.")]
pub(in crate::cli) struct UsageArgs {
    /// What to sum by: session, service, model, day (of UTC), or label:NAME
    #[arg(long, value_delimiter = ',', default_value = "service,model")]
    by: Vec<By>,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    period: Period,
    /// Print JSON, one sum a line
    #[arg(long)]
    json: bool,
}

/// What is summed by.
#[derive(Debug, Clone, PartialEq, Eq)]
enum By {
    Session,
    Service,
    Model,
    Day,
    Label(String),
}

/// A word that is none of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write session, service, model, day, or label:NAME")]
struct NoKey;

impl FromStr for By {
    type Err = NoKey;

    fn from_str(word: &str) -> Result<Self, NoKey> {
        match word {
            "session" => Ok(Self::Session),
            "service" => Ok(Self::Service),
            "model" => Ok(Self::Model),
            "day" => Ok(Self::Day),
            word => word.strip_prefix("label:").map(|name| Self::Label(name.to_owned())).ok_or(NoKey),
        }
    }
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session => f.write_str("session"),
            Self::Service => f.write_str("service"),
            Self::Model => f.write_str("model"),
            Self::Day => f.write_str("day"),
            Self::Label(name) => write!(f, "label:{name}"),
        }
    }
}

/// What is summed up of each outcome, by the names of its fields; requests come first.
const SUMMED: [&str; 6] = ["tokens_in", "tokens_out", "tokens_cached", "tokens_estimated", "sent", "received"];

/// The sums of one row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Sums {
    requests: u64,
    /// Requests without an outcome.
    unknown: u64,
    summed: [u64; SUMMED.len()],
}

/// All rows, by what they are summed by.
#[derive(Debug, Default)]
struct Usage {
    rows: BTreeMap<Vec<String>, Sums>,
    /// What requests without an outcome so far are summed by, by their ids.
    open: HashMap<String, Vec<String>>,
}

impl Usage {
    /// Takes a record of something that is asked for: the intent of a request to a service, or an outcome.
    fn take(&mut self, by: &[By], record: &ReadRecord, origin: &Origin) {
        match record.text("type").as_str() {
            "intent" if ["http", "tunnel"].contains(&record.text("kind").as_str()) => {
                self.open.insert(record.text("id"), keys(by, record, origin));
            }
            "outcome" if record.fields.contains_key("sent") => self.add(keys(by, record, origin), record),
            _ => {}
        }
    }

    /// Takes an outcome, whenever it was, as the end of what began in the period.
    fn end(&mut self, record: &ReadRecord) {
        if record.text("type") == "outcome" {
            self.open.remove(&record.text("id"));
        }
    }

    /// Counts what is still open.
    fn close(&mut self) {
        for keys in std::mem::take(&mut self.open).into_values() {
            self.rows.entry(keys).or_default().unknown += 1;
        }
    }

    /// Adds an outcome of a request to a service.
    fn add(&mut self, keys: Vec<String>, outcome: &ReadRecord) {
        let sums = self.rows.entry(keys).or_default();
        sums.requests += 1;
        for (sum, name) in sums.summed.iter_mut().zip(SUMMED) {
            *sum = sum.saturating_add(outcome.fields.get(name).and_then(Value::as_u64).unwrap_or(0));
        }
    }
}

pub(super) fn main(args: &UsageArgs, place: &Place) -> anyhow::Result<i32> {
    let chains = place.named(args.which.chain.as_deref())?;
    if chains.is_empty() {
        return place.nothing();
    }
    let (mut usage, mut is_there) = (Usage::default(), !args.which.is_named());
    let left_out = each_record(&chains, |origin, record| {
        usage.end(record);
        let is_asked_for = args.which.is_asked_for(&origin.session, &origin.server);
        is_there |= is_asked_for;
        if is_asked_for && args.period.holds(record) {
            usage.take(&args.by, record, origin);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    usage.close();
    if usage.rows.is_empty() {
        args.which.found_nothing("request to a service", &chains, place);
    } else {
        let mut printer = Printer::default();
        let text = if args.json { lines(&args.by, &usage)? } else { table(&args.by, &usage) };
        text.lines().try_for_each(|line| printer.line(line))?;
        printer.flush()?;
    }
    let status = left_out.map_or(Ok(0), LeftOut::status)?;
    Ok(if is_there { status } else { BAD })
}

/// What an outcome is summed by; `-` where it says nothing of that.
fn keys(by: &[By], outcome: &ReadRecord, origin: &Origin) -> Vec<String> {
    let day = || outcome.text("time").parse::<DateTime<Utc>>().map(|time| time.date_naive().to_string());
    let one = |by: &By| match by {
        By::Session => origin.session.clone(),
        By::Service => origin.server.clone(),
        By::Model => outcome.text("model"),
        By::Day => day().unwrap_or_default(),
        By::Label(name) => {
            let label = origin.fields.get("labels").and_then(|labels| labels.get(name)).and_then(Value::as_str);
            label.unwrap_or_default().to_owned()
        }
    };
    by.iter().map(one).map(|key| if key.is_empty() { "-".to_owned() } else { key }).collect()
}

fn lines(by: &[By], usage: &Usage) -> anyhow::Result<String> {
    let mut text = String::new();
    for (keys, sums) in &usage.rows {
        let mut line: Map<String, Value> =
            by.iter().zip(keys).map(|(by, key)| (by.to_string(), key.as_str().into())).collect();
        line.insert("requests".to_owned(), json!(sums.requests));
        line.insert("unknown".to_owned(), json!(sums.unknown));
        line.extend(SUMMED.iter().zip(sums.summed).map(|(name, sum)| ((*name).to_owned(), json!(sum))));
        text.push_str(&footbridge_proto::text::SafeJson(&serde_json::to_string(&line)?).to_string());
        text.push('\n');
    }
    Ok(text)
}

fn table(by: &[By], usage: &Usage) -> String {
    let head = by.iter().map(ToString::to_string).chain(["requests", "unknown"].map(str::to_owned));
    let head: Vec<String> = head.chain(SUMMED.map(str::to_owned)).map(|word| word.to_uppercase()).collect();
    let cells = |(keys, sums): (&Vec<String>, &Sums)| -> Vec<String> {
        let numbers = [sums.requests, sums.unknown].into_iter().chain(sums.summed).map(|sum| sum.to_string());
        keys.iter().map(|key| Escaped(key).to_string()).chain(numbers).collect()
    };
    let rows = usage.rows.iter().map(cells);
    aligned(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_outcome_is_counted_as_unknown() {
        let by: Vec<By> = vec![By::Session];
        let mut usage = Usage::default();
        for (session, line) in [
            ("killed", r#"{"type":"intent","id":"a","kind":"http"}"#),
            ("other", r#"{"type":"intent","id":"b","kind":"http"}"#),
            ("other", r#"{"type":"intent","id":"c","kind":"tunnel"}"#),
            ("other", r#"{"type":"intent","id":"d","kind":"tool"}"#),
            ("other", r#"{"type":"outcome","id":"b","sent":1,"received":2}"#),
            ("other", r#"{"type":"outcome","id":"c","outcome":"not_sent"}"#),
        ] {
            let origin = Origin { fields: Map::new(), session: session.into(), server: "svc".into() };
            usage.end(&record(line));
            usage.take(&by, &record(line), &origin);
        }
        usage.close();
        let counted = |session: &str| {
            let sums = &usage.rows[&vec![session.to_owned()]];
            (sums.requests, sums.unknown)
        };
        assert_eq!((usage.rows.len(), counted("killed"), counted("other")), (2, (0, 1), (1, 0)));
    }

    fn record(line: &str) -> ReadRecord {
        ReadRecord::parse(line.as_bytes()).unwrap()
    }

    #[test]
    fn requests_and_tokens_are_summed_by_whatever_is_asked() {
        let outcomes = [
            r#"{"type":"outcome","time":"2026-11-22T23:59:59Z","status":200,"sent":5,"received":7,"model":"m","tokens_in":10,"tokens_out":2}"#,
            r#"{"type":"outcome","time":"2026-11-23T00:00:00Z","status":200,"sent":1,"received":1,"model":"m","tokens_in":1,"tokens_estimated":9}"#,
            r#"{"type":"outcome","time":"2026-11-23T00:00:00Z","status":502,"sent":1,"received":0}"#,
        ]
        .map(record);
        let fields = serde_json::from_str(r#"{"labels":{"team":"a"}}"#).unwrap();
        let origin = Origin { fields, session: "s".into(), server: "svc".into() };
        let summed = |by: &[&str]| {
            let by: Vec<By> = by.iter().map(|word| word.parse().unwrap()).collect();
            let mut usage = Usage::default();
            outcomes.iter().for_each(|one| usage.add(keys(&by, one, &origin), one));
            (table(&by, &usage), lines(&by, &usage).unwrap())
        };
        let (table, lines) = summed(&["service", "model"]);
        assert_eq!(table.lines().count(), 3, "{table}");
        assert!(table.starts_with("SERVICE  MODEL  REQUESTS") && table.contains("svc      m      "), "{table}");
        let first: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        let expected = json!({"service": "svc", "model": "m", "requests": 2, "unknown": 0, "tokens_in": 11, "tokens_out": 2,
                              "tokens_cached": 0, "tokens_estimated": 9, "sent": 6, "received": 8});
        assert_eq!(first, expected);
        assert_eq!(summed(&["day"]).0.lines().count(), 3);
        let (table, _) = summed(&["label:team", "session", "label:none"]);
        assert!(table.contains("a           s        -           3 ") && table.lines().count() == 2, "{table}");
        assert_eq!("team".parse::<By>(), Err(NoKey));
    }
}
