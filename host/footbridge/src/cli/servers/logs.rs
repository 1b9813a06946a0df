//! `footbridge servers logs`: the end of what a server wrote to its standard error, with what harnesses noted of it.
//! What it wrote is escaped.

use std::{path::Path, time::Duration};

use clap::Args;
use footbridge_proto::text::Escaped;

use crate::{
    cli::approvals::show::json_lines,
    report,
    server_logs::{LogLine, LogReader},
};

/// How often it is looked for more.
const EVERY: Duration = Duration::from_millis(300);

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(in crate::cli) struct LogsArgs {
    /// The server's name
    name: String,
    /// How many of the last lines
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    lines: usize,
    /// Go on with what is written from now on
    #[arg(long, short)]
    follow: bool,
    /// Print JSON, one line each
    #[arg(long)]
    json: bool,
}

const HELP: &str = "Shows what the server wrote to its standard error, and, marked with \"footbridge:\", what became of it. \
The last 256 KiB \nand more are kept in the state folder, also when no harness runs any more; where lines are of servers of \
this name in \nseveral folders, each says the folder. Values of configured secrets are taken out.

Examples:
  footbridge servers logs demo
  footbridge servers logs demo -n 200
  footbridge servers logs demo --follow
  footbridge servers logs demo --json

Exit status: 0 done; 1 nothing is kept of such a server; 2 a wrong command line.";

pub(super) fn main(args: &LogsArgs, state: &Path) -> anyhow::Result<()> {
    let (mut reader, lines) = LogReader::open(state, &args.name)?;
    let from = lines.len().saturating_sub(args.lines);
    let mut is_read = show(&lines[from..], args.json)?;
    while args.follow && is_read && report::stays_read(EVERY) {
        is_read = show(&reader.more()?, args.json)?;
    }
    Ok(())
}

/// Whether there is still a reader.
fn show(lines: &[LogLine], json: bool) -> anyhow::Result<bool> {
    let several = lines.iter().any(|line| line.folder != lines[0].folder);
    let text = if json { json_lines(lines)? } else { lines.iter().map(|line| for_people(line, several)).collect() };
    Ok(report::piece(&text)?)
}

/// The folder is said where there are several.
fn for_people(line: &LogLine, several: bool) -> String {
    let LogLine { time, harness, pid, folder, source, text } = line;
    let place = if several { format!(" in {}", Escaped(folder)) } else { String::new() };
    let mark = if source == "server" { "" } else { "footbridge: " };
    format!("{} {}[{pid}{place}] {mark}{}\n", Escaped(time), Escaped(harness), Escaped(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_several_projects_say_whose_they_are() {
        let line = LogLine {
            time: "t".into(),
            harness: "run".into(),
            pid: 7,
            folder: "/a\u{1b}".into(),
            source: "server".into(),
            text: "x".into(),
        };
        assert_eq!(for_people(&line, true), "t run[7 in /a\\u{1b}] x\n");
    }

    #[test]
    fn nothing_that_a_server_wrote_steers_a_terminal_or_passes_for_the_harness() {
        let line = |source: &str, text: &str| LogLine {
            time: "2026-01-01T00:00:00.000Z".into(),
            harness: "run".into(),
            pid: 7,
            folder: "/work".into(),
            source: source.into(),
            text: text.into(),
        };
        let for_people = |line| for_people(&line, false);
        assert_eq!(for_people(line("server", "\u{1b}[2J")), "2026-01-01T00:00:00.000Z run[7] \\u{1b}[2J\n");
        assert_eq!(for_people(line("harness", "it ended")), "2026-01-01T00:00:00.000Z run[7] footbridge: it ended\n");
    }
}
