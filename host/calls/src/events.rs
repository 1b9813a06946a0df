//! What happens between sending a call and its answer, for whoever watches that call.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

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
    Log {
        /// How much it matters.
        level: LogLevel,
        /// The line.
        message: String,
    },
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

/// How much a line of a log matters, in the words of MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Details.
    Debug,
    /// What goes on.
    Info,
    /// Something odd.
    Warning,
    /// Something that failed.
    Error,
}

impl LogLevel {
    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// The state of an approval, for the guest whose call it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalEvent {
    /// What to ask for it by.
    pub id: String,
    /// The state's word: `pending`, `granted` and so on.
    pub state: &'static str,
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
    watcher: mpsc::Sender<CallEvent>,
    redactor: Redactor,
    furthest: Mutex<f64>,
}

impl Events {
    /// To whoever watches, if anybody does. What this looks for is taken out of the texts.
    #[must_use]
    pub fn new(watcher: Option<mpsc::Sender<CallEvent>>, redactor: &Redactor) -> Self {
        let furthest = Mutex::new(f64::NEG_INFINITY);
        let watched = watcher.map(|watcher| Arc::new(Watched { watcher, redactor: redactor.clone(), furthest }));
        Self { watched }
    }

    /// Tells how far the call is; what goes back is not told. A watcher that does not keep up misses some: progress is
    /// worth nothing later.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(Watched { watcher, redactor, furthest }) = self.watched.as_deref() else { return };
        let mut furthest = furthest.lock().unwrap_or_else(PoisonError::into_inner);
        if !progress.is_finite() || progress <= *furthest {
            return;
        }
        *furthest = progress;
        let message = message.map(|text| redactor.scrub(text).into_owned());
        let _missed = watcher.try_send(CallEvent::progress(progress, total, message));
    }

    /// Tells a line about the call. A watcher that does not keep up misses some.
    pub fn log(&self, level: LogLevel, message: &str) {
        let Some(Watched { watcher, redactor, .. }) = self.watched.as_deref() else { return };
        let message = short(redactor.scrub(message).into_owned());
        let _missed = watcher.try_send(CallEvent::Log { level, message });
    }
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
    use super::*;

    #[test]
    fn progress_that_goes_back_is_not_passed_on() {
        let (sender, mut receiver) = mpsc::channel(8);
        let events = Events::new(Some(sender), &Redactor::default());
        for progress in [1.0, 3.0, 2.0, f64::NAN, 4.0] {
            events.progress(progress, None, None);
        }
        let mut seen = Vec::new();
        while let Ok(CallEvent::Progress { progress, .. }) = receiver.try_recv() {
            seen.push(progress);
        }
        assert_eq!(seen, [1.0, 3.0, 4.0]);
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
