//! One line on standard error that shows how far a call is, for a person who looks.
//!
//! Nothing is written unless standard error is a terminal that can redraw a line, and the line is gone before anything
//! else is printed. What a server wrote is escaped, and a line that is too long is cut by the terminal, which is told
//! not to wrap it.

use std::{
    io::{self, IsTerminal, Write},
    time::{Duration, Instant},
};

use footbridge_guest::{
    Event,
    events::{Approval, Progress},
};
use footbridge_proto::text::Escaped;

/// Redrawing more often shows nobody more.
const PAUSE: Duration = Duration::from_millis(50);
/// No terminal shows more in one line.
const MOST: usize = 500;

/// To the first column, without wrapping from here on.
const BEGIN: &str = "\r\x1b[?7l";
/// Takes away what the line showed before, and wraps again.
const END: &str = "\x1b[K\x1b[?7h";

/// The line. Dropping it takes it off the screen.
#[derive(Debug)]
pub(crate) struct Line {
    enabled: bool,
    drawn: Option<Instant>,
}

impl Line {
    /// A line that is shown where a person can see it.
    pub(crate) fn new(quiet: bool) -> Self {
        let redraws = std::env::var_os("TERM").is_some_and(|name| !name.is_empty() && name != "dumb");
        Self { enabled: !quiet && redraws && io::stderr().is_terminal(), drawn: None }
    }

    /// Shows an event.
    pub(crate) fn tell(&mut self, event: &Event) {
        let now = Instant::now();
        let soon = self.drawn.is_some_and(|before| now - before < PAUSE);
        if !self.enabled || (soon && !matches!(event, Event::Approval(_))) {
            return;
        }
        if let Some(text) = text_of(event) {
            let shown: String = Escaped(&text).to_string().chars().take(MOST).collect();
            write(&format!("{BEGIN}{shown}{END}"));
            self.drawn = Some(now);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.drawn.is_some() {
            write("\r\x1b[K");
        }
    }
}

/// Where that fails there is nobody to tell.
fn write(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

fn text_of(event: &Event) -> Option<String> {
    match event {
        Event::Progress(Progress { progress, total, message }) => {
            let far = match total {
                Some(total) if *total > 0.0 => format!("{:.0}%", (progress / total * 100.0).clamp(0.0, 100.0)),
                _ => progress.to_string(),
            };
            Some(message.as_ref().map_or_else(|| far.clone(), |message| format!("{far} {message}")))
        }
        Event::Log(line) => Some(format!("{}: {}", line.level, line.message)),
        Event::Approval(Approval { id, state, expires_at, summary }) => {
            let until = expires_at.as_ref().map_or_else(String::new, |time| format!(" until {time}"));
            let what = summary.as_ref().map_or_else(String::new, |text| format!(": {text}"));
            Some(match state.as_str() {
                "pending" => format!("waiting for a person, approval {id}{until}{what}"),
                _ => format!("approval {id} is {state}{until}{what}"),
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(progress: f64, total: Option<f64>, message: Option<&str>) -> String {
        text_of(&Event::Progress(Progress { progress, total, message: message.map(str::to_owned) })).unwrap()
    }

    #[test]
    fn how_far_it_is_is_said_in_a_few_characters() {
        assert_eq!(progress(3.0, Some(4.0), Some("three")), "75% three");
        assert_eq!(progress(9.0, Some(4.0), None), "100%");
        assert_eq!(progress(2.5, None, None), "2.5");
        assert_eq!(progress(2.0, Some(0.0), None), "2");
        assert_eq!(progress(-1.0, Some(f64::MAX), None), "0%");
    }

    #[test]
    fn who_is_waited_for_is_said_with_the_time() {
        let asked = |state: &str| {
            let event = Approval {
                id: "a1".into(),
                state: state.into(),
                expires_at: Some("2026-11-22T13:43:52Z".into()),
                summary: Some("demo/delete".into()),
            };
            text_of(&Event::Approval(event)).unwrap()
        };
        assert_eq!(asked("pending"), "waiting for a person, approval a1 until 2026-11-22T13:43:52Z: demo/delete");
        assert_eq!(asked("granted"), "approval a1 is granted until 2026-11-22T13:43:52Z: demo/delete");
    }
}
