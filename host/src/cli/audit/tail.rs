//! `footbridge audit tail`.

use std::{collections::VecDeque, io, path::PathBuf, thread, time::Duration};

use clap::Args;
use footbridge_proto::text::Escaped;

use super::{Place, Printer, Which};
use crate::audit::read::{Calls, ChainFolder, Lines, ReadRecord};

/// How often new records are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  footbridge audit tail --follow
  footbridge audit tail --session run-4711 --type refused
  footbridge audit tail --all --lines 1000 --json")]
pub(in crate::cli) struct TailArgs {
    /// Go on showing records as they are written, of new runs too
    #[arg(long, short)]
    follow: bool,
    /// Show this many records at most to begin with
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    lines: usize,
    #[command(flatten)]
    which: Which,
    /// Show records of this type alone, such as intent, outcome or refused
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Print the lines as they stand in the record: JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn main(args: &TailArgs, place: &Place) -> anyhow::Result<i32> {
    let chains = place.named(args.which.chain.as_deref())?;
    let shown = if args.which.all || args.which.chain.is_some() { 0 } else { chains.len().saturating_sub(1) };
    if chains.is_empty() && !args.follow {
        return place.nothing();
    }
    let mut known: Vec<String> = chains.iter().map(|chain| chain.name.clone()).collect();
    let mut readers: Vec<Reader> = chains.into_iter().skip(shown).map(Reader::new).collect();
    let mut printer = Printer::default();
    let mut last = VecDeque::new();
    for reader in &mut readers {
        reader.read(args, &mut |line| {
            last.push_back(line);
            if last.len() > args.lines {
                last.pop_front();
            }
            Ok(())
        })?;
    }
    last.iter().try_for_each(|line| printer.line(line))?;
    printer.flush()?;
    while args.follow && !printer.is_left() {
        thread::sleep(LOOK_EVERY);
        if args.which.chain.is_none() {
            for chain in place.chains()?.into_iter().filter(|chain| !known.contains(&chain.name)).collect::<Vec<_>>() {
                known.push(chain.name.clone());
                readers.push(Reader::new(chain));
            }
        }
        for reader in &mut readers {
            reader.read(args, &mut |line| printer.line(&line))?;
        }
        printer.flush()?;
    }
    Ok(0)
}

/// Reads one chain on, through its files.
struct Reader {
    chain: ChainFolder,
    file: Option<(u32, PathBuf)>,
    at: u64,
    calls: Calls,
}

impl Reader {
    fn new(chain: ChainFolder) -> Self {
        Self { chain, file: None, at: 0, calls: Calls::default() }
    }

    /// Gives every line that was written since, and that was asked for.
    fn read(&mut self, args: &TailArgs, give: &mut impl FnMut(String) -> io::Result<()>) -> io::Result<()> {
        loop {
            if let Some((_, path)) = &self.file {
                let mut lines = Lines::open(path, self.at)?;
                while let Some(line) = lines.next_line()?.filter(|line| line.is_whole) {
                    self.at = lines.at();
                    if let Some(text) = shown(args, &line.bytes, &mut self.calls) {
                        give(text)?;
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
    let [session, server, name] = calls.of(&record);
    let is = |asked: &Option<String>, found: &str| asked.as_deref().is_none_or(|asked| asked == found);
    let kind = record.text("type");
    if !is(&args.which.session, &session) || !is(&args.which.server, &server) || !is(&args.kind, &kind) {
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
            format!("{} by {}, {} B, id {}", text("decision"), text("policy"), text("arguments.bytes"), text("id"))
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
        "limited" => format!("{} times: {}", text("count"), text("reason")),
        "started" => labelled(&["version", "pid"]),
        "session" => labelled(&["policy", "listeners", "labels"]),
        "session_ended" => text("why"),
        "rotated" => text("file"),
        "head" => format!("signed up to record {}", text("head.seq")),
        "ended" => match text("open").as_str() {
            "0" => String::new(),
            open => format!("{open} calls without an outcome"),
        },
        _ => record.line.clone(),
    }
}
