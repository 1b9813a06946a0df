//! What a server writes to its standard error: read as fast as it comes, up to what no program has to say, since one that
//! waits for its reader is late with what it was called for; kept in a ring, and handed to whoever keeps it for longer, less what is
//! too much for one second.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use footbridge_proto::text::Escaped;
use tokio::{io::AsyncReadExt, time::Instant};

use super::{LogSource, ServerLog};
use footbridge_core::names::ServerName;
use footbridge_core::redact::Redactor;
use footbridge_processes::launch::Reader;

/// Longest line that is shown or logged.
const LINE_BYTES: usize = 2_000;
/// How much of a line without an end is kept back for the log.
const PENDING: usize = 64 * 1024;
/// Lines that are logged a second, and how many bytes cost as much as one: a flood must neither fill the log nor keep
/// the disk busy.
const LOGGED_LINES: usize = 2_000;
const COSTS_A_LINE: usize = 1024;
const SECOND: Duration = Duration::from_secs(1);
/// Bytes that are read at a time: what a pipe holds.
const CHUNK: usize = 64 * 1024;
/// Bytes that are read a second. No program has so much to say, and a flood must not keep a processor busy.
const READ_BYTES: usize = 64 * 1024 * 1024;
/// What is shown where all that is kept is part of one line.
const TOO_LONG: &str = "[a line that is too long to show]";

/// The last bytes of standard error.
#[derive(Debug)]
pub(super) struct StderrRing {
    bytes: Mutex<VecDeque<u8>>,
    limit: usize,
}

impl StderrRing {
    /// An empty ring of this size.
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Mutex::default(), limit }
    }

    /// Adds bytes; the oldest go.
    pub(super) fn add(&self, more: &[u8]) {
        let more = &more[more.len().saturating_sub(self.limit)..];
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let over = (bytes.len() + more.len()).saturating_sub(self.limit);
        bytes.drain(..over);
        bytes.extend(more);
    }

    /// Forgets what was written until now.
    pub(super) fn clear(&self) {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The last lines, oldest first, escaped and without the values of configured secrets.
    pub(super) fn last_lines(&self, count: usize, redactor: &Redactor) -> Vec<String> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_cut = bytes.len() >= self.limit;
        let text = String::from_utf8_lossy(bytes.make_contiguous()).into_owned();
        drop(bytes);
        // The end of a value whose beginning is gone cannot be found: nothing is shown that may be part of one, nor of
        // a line whose beginning is gone.
        let from = if is_cut {
            let safe = text.ceil_char_boundary(redactor.longest());
            match text[safe..].find('\n') {
                Some(end) => safe + end,
                None => return vec![TOO_LONG.to_owned()],
            }
        } else {
            0
        };
        let (text, _) = redactor.scrub_part(&text, from..text.len());
        let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        lines[lines.len().saturating_sub(count)..].iter().map(|line| shown(line)).collect()
    }
}

/// Words of lines that say what went wrong, in lower case.
const TROUBLE: [&str; 15] = [
    "error",
    "exception",
    "fatal",
    "panic",
    "traceback",
    "not found",
    "no such",
    "cannot",
    "could not",
    "unable",
    "failed",
    "denied",
    "refused",
    "missing",
    "invalid",
];

/// Which of the last lines of a program that ended says why, as far as that can be told: the first that speaks of trouble
/// and is neither the frame of a stack nor a headline. Otherwise the last.
pub(super) fn cause(lines: &[String]) -> Option<String> {
    let speaks = |line: &&String| {
        // Package managers put this before each line, whatever it says.
        let said = ["npm error", "npm ERR!"].into_iter().find_map(|start| line.strip_prefix(start)).unwrap_or(line);
        let said = said.to_lowercase();
        let is_frame = line.starts_with([' ', '\t']) || said.starts_with("traceback");
        !is_frame && TROUBLE.iter().any(|word| said.contains(word))
    };
    lines.iter().find(speaks).or(lines.last()).cloned()
}

fn shown(line: &str) -> String {
    Escaped(&line[..line.floor_char_boundary(LINE_BYTES)]).to_string()
}

/// What was written and is not logged yet: a line without an end, and what may be the beginning of a value.
#[derive(Default)]
struct Unlogged {
    text: String,
    /// The first bytes of a character.
    split: Vec<u8>,
}

impl Unlogged {
    /// Takes what was read, and gives the lines that can be logged.
    fn take(&mut self, read: &[u8], redactor: &Redactor) -> String {
        self.split.extend_from_slice(read);
        let bytes = std::mem::take(&mut self.split);
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text.push_str(chunk.valid());
            match chunk.invalid() {
                [] => {}
                // A character whose rest may come with the next bytes.
                rest if chunks.peek().is_none() && rest.len() < 4 => self.split = rest.to_vec(),
                _ => self.text.push(char::REPLACEMENT_CHARACTER),
            }
        }
        let safe = self.text.floor_char_boundary(self.text.len().saturating_sub(redactor.longest()));
        match self.text[..safe].rfind('\n') {
            Some(end) => self.give(end + 1, redactor),
            None if safe > PENDING => self.give(safe, redactor),
            None => String::new(),
        }
    }

    /// What is left at the end.
    fn rest(&mut self, redactor: &Redactor) -> String {
        self.give(self.text.len(), redactor)
    }

    fn give(&mut self, end: usize, redactor: &Redactor) -> String {
        let (given, end) = redactor.scrub_part(&self.text, 0..end);
        self.text.drain(..end);
        given
    }
}

/// What was read in this second.
struct ReadPace {
    since: Instant,
    bytes: usize,
}

impl ReadPace {
    /// Counts what was read, and says until when to wait where that is all that may be in this second.
    fn wait(&mut self, read: usize, now: Instant) -> Option<Instant> {
        if now >= self.since + SECOND {
            (self.since, self.bytes) = (now, 0);
        }
        self.bytes += read;
        (self.bytes >= READ_BYTES).then(|| self.since + SECOND)
    }
}

/// What may still be logged in this second, and what was not since the last that was.
struct LogAllowance {
    since: Instant,
    left: usize,
    dropped_lines: usize,
    dropped_bytes: usize,
}

impl LogAllowance {
    fn new() -> Self {
        Self { since: Instant::now(), left: LOGGED_LINES, dropped_lines: 0, dropped_bytes: 0 }
    }

    /// How much of a text is logged. Once some is not, nothing is until the second is over: what is missing is in one
    /// place then.
    fn take(&mut self, text: &str) -> usize {
        if self.since.elapsed() >= SECOND {
            (self.since, self.left) = (Instant::now(), LOGGED_LINES);
        }
        if cost(text) <= self.left {
            self.left -= cost(text);
            return text.len();
        }
        let mut kept = 0;
        for line in text.split_inclusive('\n') {
            if cost(line) > self.left {
                self.left = 0;
                break;
            }
            self.left -= cost(line);
            kept += line.len();
        }
        self.dropped_lines += line_ends(&text[kept..]);
        self.dropped_bytes += text.len() - kept;
        kept
    }

    /// What to say of what was dropped, before anything else is logged, or at the end.
    fn dropped(&mut self) -> Option<String> {
        let (lines, bytes) = (std::mem::take(&mut self.dropped_lines), std::mem::take(&mut self.dropped_bytes));
        (bytes > 0).then(|| {
            format!(
                "{lines} lines of its standard error, {bytes} bytes, are not here: more than {LOGGED_LINES} lines or {} MiB \
                 came in a second",
                LOGGED_LINES * COSTS_A_LINE / (1024 * 1024)
            )
        })
    }
}

/// How many lines it costs to log a text: as many as there are, and one for each of [`COSTS_A_LINE`].
fn cost(text: &str) -> usize {
    line_ends(text).max(text.len() / COSTS_A_LINE).max(usize::from(!text.is_empty()))
}

fn line_ends(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// Reads standard error of a server, or of a program of its tools, to its end; the ring has the end of it.
pub(super) async fn drain(
    mut stderr: Reader,
    ring: &StderrRing,
    server: &ServerName,
    kept: Option<&Arc<dyn ServerLog>>,
    redactor: &Redactor,
) {
    let mut chunk = vec![0; CHUNK];
    let log = Log { server, kept };
    let (mut unlogged, mut allowance) = (Unlogged::default(), LogAllowance::new());
    let mut pace = ReadPace { since: Instant::now(), bytes: 0 };
    while let Ok(read @ 1..) = stderr.read(&mut chunk).await {
        ring.add(&chunk[..read]);
        // Values go before lines do, so that no part of one is left of a line that is dropped.
        log.add(unlogged.take(&chunk[..read], redactor), &mut allowance).await;
        match pace.wait(read, Instant::now()) {
            Some(until) => tokio::time::sleep_until(until).await,
            // A flood always has more to read.
            None => tokio::task::yield_now().await,
        }
    }
    log.add(unlogged.rest(redactor), &mut allowance).await;
    if let Some(dropped) = allowance.dropped() {
        log.keep(LogSource::Harness, dropped).await;
    }
}

/// Where what a server says goes.
struct Log<'a> {
    server: &'a ServerName,
    kept: Option<&'a Arc<dyn ServerLog>>,
}

impl Log<'_> {
    async fn add(&self, mut text: String, allowance: &mut LogAllowance) {
        text.truncate(allowance.take(&text));
        if text.is_empty() {
            return;
        }
        if let Some(dropped) = allowance.dropped() {
            self.keep(LogSource::Harness, dropped).await;
        }
        self.keep(LogSource::Server, text).await;
    }

    async fn keep(&self, source: LogSource, text: String) {
        log(&text, self.server);
        if let Some(log) = self.kept.cloned() {
            let server = self.server.clone();
            // It waits for the disk; where its runtime ends before, so does the harness.
            let _kept = tokio::task::spawn_blocking(move || log.keep(&server, source, &text)).await;
        }
    }
}

fn log(text: &str, server: &ServerName) {
    if tracing::enabled!(tracing::Level::DEBUG) {
        for line in text.lines() {
            tracing::debug!(server = %server, line = %shown(line), "standard error of an MCP server");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use footbridge_core::secret::Secret;

    /// What must not show, not even its end.
    const VALUE: &str = "key-0123456789\nabcdefghijé-end";

    fn redactor() -> Redactor {
        Redactor::new([&Secret::new(VALUE)])
    }

    fn has_part(text: &str) -> bool {
        ["key-", "0123", "789", "abc", "def", "hij", "\u{e9}", "end"].iter().any(|part| text.contains(part))
    }

    #[test]
    fn a_flood_is_read_at_a_pace_and_nothing_else_waits() {
        let start = Instant::now();
        let mut pace = ReadPace { since: start, bytes: 0 };
        assert_eq!(pace.wait(READ_BYTES - 1, start), None);
        assert_eq!(pace.wait(1, start + SECOND / 2), Some(start + SECOND));
        assert_eq!(pace.wait(CHUNK, start + SECOND), None, "in the next second");
    }

    #[test]
    fn short_lines_and_long_ones_cost_what_it_takes_to_keep_them() {
        assert_eq!(["", "a", "\n\n\n", &"x".repeat(4096)].map(cost), [0, 1, 3, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_flood_a_second_is_logged_so_far_and_what_is_not_is_counted() {
        let (mut allowance, line) = (LogAllowance::new(), "line\n");
        let trickle = line.repeat(LOGGED_LINES - 1);
        assert_eq!((allowance.take(&trickle), allowance.dropped()), (trickle.len(), None));
        assert_eq!(allowance.take("last\nmore\n"), "last\n".len(), "whole lines, as many as there is room for");
        assert_eq!(allowance.take(line), 0, "and nothing more in this second");
        tokio::time::advance(SECOND).await;
        assert_eq!(allowance.take(line), line.len());
        let said = allowance.dropped().unwrap();
        assert!(said.starts_with("2 lines of its standard error, 10 bytes, are not here"), "{said}");
        assert_eq!(allowance.dropped(), None, "it is said once");
        assert_eq!(allowance.take(&"x".repeat(10 * LOGGED_LINES * COSTS_A_LINE)), 0, "a long line is too much, too");
        assert!(allowance.dropped().unwrap().starts_with("0 lines of its standard error, 20480000 bytes"));
    }

    /// What was kept, by whom it was said.
    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<(LogSource, String)>>);

    impl ServerLog for Kept {
        fn keep(&self, _: &ServerName, source: LogSource, lines: &str) {
            self.0.lock().unwrap().push((source, lines.to_owned()));
        }
    }

    #[tokio::test]
    async fn a_flood_is_read_without_a_pause_and_its_log_says_how_much_is_missing() {
        use std::io::Write as _;
        const LINES: usize = 200_000;
        let (read, mut write) = std::io::pipe().unwrap();
        let read = tokio::net::unix::pipe::Receiver::from_owned_fd(read.into()).unwrap();
        let writing = std::thread::spawn(move || write.write_all(&b"some words\n".repeat(LINES)).unwrap());
        let (log, began) = (Arc::new(Kept::default()), Instant::now());
        let dynamic = Arc::clone(&log) as Arc<dyn ServerLog>;
        let ring = StderrRing::new(1024);
        drain(Box::new(read), &ring, &"x".parse().unwrap(), Some(&dynamic), &Redactor::default()).await;
        writing.join().unwrap();
        // At 2,000 lines a second it would have been 100 s.
        let took = began.elapsed();
        assert!(took < Duration::from_secs(30), "{took:?}");
        let kept = log.0.lock().unwrap();
        let lines = |of: LogSource| kept.iter().filter(move |(source, _)| *source == of).map(|(_, text)| text);
        let logged = lines(LogSource::Server).map(|text| line_ends(text)).sum::<usize>();
        let seconds = usize::try_from(took.as_secs()).unwrap() + 1;
        assert!(logged > 0 && logged <= seconds * LOGGED_LINES, "{logged} lines in {took:?}");
        let missing = lines(LogSource::Harness).map(|text| text.split(' ').next().unwrap().parse::<usize>().unwrap());
        assert_eq!(missing.sum::<usize>() + logged, LINES);
        assert_eq!(ring.last_lines(1, &Redactor::default()), ["some words"]);
    }

    #[test]
    fn no_part_of_a_value_shows_wherever_the_ring_is_cut() {
        let redactor = redactor();
        for after in 0..400 {
            let ring = StderrRing::new(200);
            ring.add(format!("{}\n{VALUE}", "x".repeat(300)).as_bytes());
            ring.add(format!(" {}", "y".repeat(after)).as_bytes());
            ring.add(b"\nlast\n");
            let lines = ring.last_lines(20, &redactor);
            assert!(lines.iter().all(|line| !has_part(line)), "{after}: {lines:?}");
            assert!(lines.last().is_some_and(|line| line == "last" || line == TOO_LONG), "{after}: {lines:?}");
        }
    }

    #[test]
    fn no_part_of_a_value_is_shown_of_a_line_that_is_cut() {
        for before in LINE_BYTES - 2 * VALUE.len()..LINE_BYTES + 2 {
            let ring = StderrRing::new(1 << 20);
            ring.add(format!("{}{VALUE} {}", "x".repeat(before), "y".repeat(5_000)).as_bytes());
            let lines = ring.last_lines(1, &redactor());
            assert!(lines.iter().all(|line| !has_part(line)), "{before}: {lines:?}");
            assert_eq!(lines.len(), 1);
        }
    }

    #[test]
    fn no_part_of_a_value_is_logged_wherever_the_reads_are_cut() {
        let text = format!("first\nsecond {VALUE}\nthird {VALUE}{VALUE} fourth\nlast");
        let expected = "first\nsecond [redacted]\nthird [redacted][redacted] fourth\nlast";
        for cut in 0..=text.len() {
            let mut unlogged = Unlogged::default();
            let (one, two) = text.as_bytes().split_at(cut);
            let logged = [unlogged.take(one, &redactor()), unlogged.take(two, &redactor()), unlogged.rest(&redactor())];
            assert_eq!(logged.concat(), expected, "{cut}");
        }
        let mut unlogged = Unlogged::default();
        let mut logged: String = text.bytes().map(|byte| unlogged.take(&[byte], &redactor())).collect();
        logged.push_str(&unlogged.rest(&redactor()));
        assert_eq!(logged, expected);
    }

    #[test]
    fn a_line_without_end_is_logged_in_parts_and_without_values() {
        let (mut unlogged, mut logged, redactor) = (Unlogged::default(), String::new(), redactor());
        let line = "key-0123456789\nabcdefghijé-endz".replace('\n', "\\n").repeat(50);
        for _ in 0..200 {
            logged.push_str(&unlogged.take(line.as_bytes(), &redactor));
            assert!(unlogged.text.len() <= PENDING + 10_000);
        }
        assert!(!logged.is_empty() && !has_part(&logged));
    }

    #[test]
    fn the_line_that_says_why_is_found_among_the_last() {
        for (text, why) in [
            (
                "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\nError: Cannot find module '/x.js'\n    at f (x:1)\n  \
                 code: 'MODULE_NOT_FOUND',\n}\nNode.js v22.1.0",
                "Error: Cannot find module '/x.js'",
            ),
            (
                "Traceback (most recent call last):\n  File \"<frozen>\", line 1, in error\nModuleNotFoundError: No module named 'x'",
                "ModuleNotFoundError: No module named 'x'",
            ),
            (
                "npm error code E404\nnpm error 404 Not Found - GET https://r.example/x - Not found\nnpm error A complete log of \
                 this run can be found in: /l",
                "npm error 404 Not Found - GET https://r.example/x - Not found",
            ),
            ("error: Failed to spawn: `x`\n  Caused by: No such file", "error: Failed to spawn: `x`"),
            ("one\ntwo", "two"),
        ] {
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            assert_eq!(cause(&lines).as_deref(), Some(why));
        }
        assert_eq!(cause(&[]), None);
    }

    #[test]
    fn the_ring_keeps_the_last_bytes_and_shows_them_escaped() {
        let ring = StderrRing::new(64);
        ring.add(&[b'x'; 1000]);
        ring.add(b"\nfirst\n\x1b[31mred\x1b[0m\nlast");
        let lines = ring.last_lines(2, &Redactor::default());
        assert_eq!(lines, ["\\u{1b}[31mred\\u{1b}[0m", "last"]);
        assert!(ring.bytes.lock().unwrap().len() <= 64);
    }
}
