//! What happens between sending a call and its answer, for whoever watches that call.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use footbridge_proto::approval::ApprovalStatus;
use serde::{Deserialize, de::IgnoredAny};
use tokio::sync::mpsc;

use footbridge_core::redact::Redactor;

/// Longest text of an event, bytes. Several wait for a slow reader, and a person reads one line.
const MAX_TEXT: usize = 2048;

/// A sign of life of a running call. Texts are the server's own, less the values of configured secrets, and cut where
/// they are long.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEvent {
    /// `notifications/progress`; it only ever grows.
    Progress {
        /// How far it is.
        progress: f64,
        /// How far it will go, if the server knows.
        total: Option<f64>,
        /// What it does now.
        message: Option<String>,
    },
    /// A line that a provider tells about this call.
    Log(LoggedLine),
    /// What became of asking a person.
    Approval(ApprovalEvent),
}

impl CallEvent {
    /// Progress from texts that hold no secret any more.
    #[must_use]
    pub fn progress(progress: f64, total: Option<f64>, message: Option<String>) -> Self {
        Self::Progress { progress, total: total.filter(|total| total.is_finite()), message: message.map(short) }
    }
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedLine {
    /// How much it matters.
    pub level: LogLevel,
    /// What of the server tells it, where it says so.
    pub logger: Option<String>,
    /// The line.
    pub message: String,
    /// Whether `message` is the text of a JSON value that is no text.
    pub is_json: bool,
}

/// How much a line of a log matters, in the words of MCP, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Details.
    Debug,
    /// What goes on.
    Info,
    /// What is worth knowing.
    Notice,
    /// Something odd.
    Warning,
    /// Something that failed.
    Error,
    /// A part that failed.
    Critical,
    /// What has to be mended at once.
    Alert,
    /// Nothing works any more.
    Emergency,
}

impl LogLevel {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
            Self::Alert => "alert",
            Self::Emergency => "emergency",
        }
    }
}

/// The state of an approval, for the guest whose call it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalEvent {
    /// What to ask for it by.
    pub id: String,
    /// How it is.
    pub state: ApprovalStatus,
    /// When that state ends by itself, RFC 3339 in UTC.
    pub expires_at: Option<String>,
    /// How long that is from now: a guest's clock may be another.
    pub expires_in: Option<Duration>,
    /// What is asked, for a person, in a line.
    pub summary: String,
}

/// Where a provider tells what happens. Clones tell the same watcher.
#[derive(Debug, Clone, Default)]
pub struct Events {
    watched: Option<Arc<Watched>>,
}

#[derive(Debug)]
struct Watched {
    watcher: mpsc::Sender<Box<CallEvent>>,
    redactor: Redactor,
    furthest: Mutex<f64>,
    logs: Option<LogLevel>,
}

impl Events {
    /// To whoever watches, if anybody does, and wants to hear this of logs at least, or nothing of them. What the redactor
    /// looks for is taken out of the texts.
    #[must_use]
    pub fn new(watcher: Option<mpsc::Sender<Box<CallEvent>>>, redactor: &Redactor, logs: Option<LogLevel>) -> Self {
        let furthest = Mutex::new(f64::NEG_INFINITY);
        let watched = watcher.map(|watcher| Arc::new(Watched { watcher, redactor: redactor.clone(), furthest, logs }));
        Self { watched }
    }

    /// The least that whoever watches wants to hear of logs, for a provider that has to be told.
    #[must_use]
    pub fn logs(&self) -> Option<LogLevel> {
        self.watched.as_ref()?.logs
    }

    /// Tells how far the call is; what goes back is not told. A watcher that does not keep up misses some: progress is
    /// worth nothing later.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(Watched { watcher, redactor, furthest, .. }) = self.watched.as_deref() else { return };
        let mut furthest = furthest.lock().unwrap_or_else(PoisonError::into_inner);
        if !progress.is_finite() || progress <= *furthest {
            return;
        }
        *furthest = progress;
        let message = message.map(|text| redactor.scrub(text).into_owned());
        let _missed = watcher.try_send(Box::new(CallEvent::progress(progress, total, message)));
    }

    /// Tells a line about the call. A watcher that does not keep up misses some.
    pub fn log(&self, level: LogLevel, message: &str) {
        self.line(LoggedLine { level, logger: None, message: message.to_owned(), is_json: false });
    }

    /// The same of a line that says where it is from, or is JSON.
    pub fn line(&self, line: LoggedLine) {
        let Some(Watched { watcher, redactor, .. }) = self.watched.as_deref() else { return };
        let message = redactor.scrub(&line.message).into_owned();
        let logger = line.logger.map(|logger| short(redactor.scrub(&logger).into_owned()));
        // What is cut or redacted may be no JSON any more, and an event is one line.
        let is_json = line.is_json && message.len() <= MAX_TEXT && is_one_line_of_json(&message);
        let _missed =
            watcher.try_send(Box::new(CallEvent::Log(LoggedLine { logger, message: short(message), is_json, ..line })));
    }
}

fn is_one_line_of_json(text: &str) -> bool {
    !text.contains(['\n', '\r']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Cuts a text to what an event may carry. Secrets are out of it before: half of one would not be found.
pub(crate) fn short(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text.shrink_to_fit();
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use footbridge_core::secret::Secret;

    use super::*;

    #[test]
    fn progress_that_goes_back_is_not_passed_on() {
        let (sender, mut receiver) = mpsc::channel(8);
        let events = Events::new(Some(sender), &Redactor::default(), None);
        for progress in [1.0, 3.0, 2.0, f64::NAN, 4.0] {
            events.progress(progress, None, None);
        }
        let mut seen = Vec::new();
        while let Ok(CallEvent::Progress { progress, .. }) = receiver.try_recv().as_deref() {
            seen.push(*progress);
        }
        assert_eq!(seen, [1.0, 3.0, 4.0]);
    }

    #[test]
    fn a_line_is_json_as_long_as_it_is_whole_and_one_line() {
        let (sender, mut receiver) = mpsc::channel(8);
        let redactor = Redactor::new(&[Secret::new("1234567890123")]);
        let events = Events::new(Some(sender), &redactor, None);
        let long = format!("[\"{}\"]", "x".repeat(MAX_TEXT));
        for text in ["{\"a\":1.50}", "[1,\n2]", "{\"pin\":1234567890123}", long.as_str()] {
            events.line(LoggedLine { level: LogLevel::Alert, logger: None, message: text.to_owned(), is_json: true });
        }
        let mut seen = Vec::new();
        while let Ok(CallEvent::Log(line)) = receiver.try_recv().as_deref() {
            assert!(!line.message.contains("1234567890123"));
            seen.push(line.is_json);
        }
        assert_eq!(seen, [true, false, false, false]);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let CallEvent::Progress { message: Some(message), .. } =
            CallEvent::progress(1.0, Some(f64::INFINITY), Some("é".repeat(MAX_TEXT)))
        else {
            panic!("no message")
        };
        assert_eq!(message, "é".repeat(MAX_TEXT / 2) + "...");
        assert_eq!(short("x".repeat(MAX_TEXT)).len(), MAX_TEXT);
    }
}
