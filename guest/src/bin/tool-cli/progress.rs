//! One line on standard error that shows how far a call is, for a person who looks.
//!
//! It is drawn where standard error is a terminal that can redraw a line, and is gone before anything else is printed.
//! That a person is asked stays there, on a line of its own: it says what to type once this is left.
//! Anywhere else all that is written is that a person is waited for, once for each approval: an agent would take the
//! silence for a tool that hangs. With `--progress` how far it is is there on lines that stay, one a second at most; with
//! `-v` the server's log is, wherever it is read.

use std::time::{Duration, Instant};

use footbridge_cli::drawn_line::{DrawnLine, escaped, how_far, write};
use footbridge_guest::{
    Event,
    events::{Approval, Progress},
};
use footbridge_proto::{approval::ApprovalStatus, text::SafeJson};
use serde_json::{Value, json};

/// Redrawing more often shows nobody more.
const PAUSE: Duration = Duration::from_millis(50);
/// The same of lines that stay.
const LINE_PAUSE: Duration = Duration::from_secs(1);
/// Lines that stay have no more characters.
const MOST: usize = 1000;

/// The line. Dropping it takes it off the screen.
#[derive(Debug)]
pub(crate) struct Line {
    way: Way,
    told_too: ToldToo,
    drawn: DrawnLine,
    /// When something was shown last.
    shown: Option<Instant>,
    /// The approval that was told of.
    told: Option<String>,
}

/// What is told on lines that stay, besides who is waited for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ToldToo {
    /// How far it is.
    pub(crate) progress: bool,
    /// What the server writes into its log.
    pub(crate) log: bool,
}

/// How it is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// A line that is redrawn.
    Drawn,
    /// Lines that stay.
    Text,
    /// The same as JSON.
    Json,
}

impl Line {
    /// A line for a person where one can see it; otherwise, what is waited for as text or as JSON.
    pub(crate) fn new(json: bool, told_too: ToldToo) -> Self {
        let way = if json {
            Way::Json
        } else if DrawnLine::can_be_drawn() {
            Way::Drawn
        } else {
            Way::Text
        };
        Self { way, told_too, drawn: DrawnLine::default(), shown: None, told: None }
    }

    /// Shows an event.
    pub(crate) fn tell(&mut self, event: &Event) {
        if let (Event::Log(line), true) = (event, self.told_too.log) {
            return self.stay(
                &format!("{}: {}", line.level, line.message),
                &json!({"log": {"level": line.level, "message": line.message}}),
            );
        }
        if self.way != Way::Drawn {
            return self.tell_once(event);
        }
        let now = Instant::now();
        if let Event::Approval(approval) = event
            && approval.state == ApprovalStatus::Pending
        {
            return self.tell_asked(approval);
        }
        let soon = self.shown.is_some_and(|before| now - before < PAUSE);
        if soon && !matches!(event, Event::Approval(_)) {
            return;
        }
        if let Some(text) = text_of(event) {
            self.drawn.draw(&text);
            self.shown = Some(now);
        }
    }

    /// Says that a person is asked, once for each approval.
    fn tell_asked(&mut self, approval: &Approval) {
        if self.told.as_ref() != Some(&approval.id) {
            self.drawn.leave(&asked(approval));
            self.told = Some(approval.id.clone());
            self.shown = None;
        }
    }

    /// Writes a line that stays, below none that is drawn.
    fn stay(&mut self, text: &str, json: &Value) {
        match self.way {
            Way::Json => write(&json_line(json)),
            Way::Drawn | Way::Text => {
                self.drawn.take_away();
                write(&format!("{}\n", escaped(text, MOST)));
            }
        }
    }

    fn tell_once(&mut self, event: &Event) {
        if let (Event::Progress(far), true) = (event, self.told_too.progress) {
            let now = Instant::now();
            if self.shown.is_none_or(|before| now - before >= LINE_PAUSE) {
                let told = json!({"progress": far.progress, "total": far.total, "message": far.message});
                self.stay(&format!("Progress: {}", text_of(event).unwrap_or_default()), &json!({ "progress": told }));
                self.shown = Some(now);
            }
            return;
        }
        let Event::Approval(approval) = event else { return };
        if approval.state != ApprovalStatus::Pending || self.told.as_ref() == Some(&approval.id) {
            return;
        }
        self.told = Some(approval.id.clone());
        write(&held(approval, self.way == Way::Json));
    }
}

/// A line of JSON, as plain to read as all else: a terminal may be where it goes.
fn json_line(json: &Value) -> String {
    format!("{}\n", SafeJson(&json.to_string()))
}

/// That a person is asked, with what to type first: a terminal cuts what does not fit, and half a name is none.
fn asked(approval: &Approval) -> String {
    let Approval { id, expires_at, expires_in_ms, summary, .. } = approval;
    // Whole minutes: it is said once, and the time by the clock tells the rest.
    let whole = |ms: u64| if ms > 60_000 { ms.div_ceil(60_000) * 60_000 } else { ms };
    let clock = |time: &str| time.split_once('T').map_or(time, |(_, clock)| clock).to_owned();
    let time = match (expires_in_ms, expires_at) {
        (Some(ms), Some(at)) => format!(" ({} left, until {})", left(whole(*ms)), clock(at)),
        (Some(ms), None) => format!(" ({} left)", left(whole(*ms))),
        (None, Some(at)) => format!(" (until {})", clock(at)),
        (None, None) => String::new(),
    };
    let what = summary.as_ref().map_or_else(String::new, |text| format!(": {text}"));
    format!("Asking a person; later: tool-cli wait {id}{time}{what}")
}

/// That a call is held, on a line of its own.
fn held(approval: &Approval, json: bool) -> String {
    let Approval { id, state, expires_at, expires_in_ms, summary } = approval;
    if json {
        let told = json!({"id": id, "state": state, "expiresAt": expires_at, "expiresInMs": expires_in_ms, "summary": summary});
        return json_line(&json!({ "approval": told }));
    }
    let left = expires_in_ms.map_or_else(String::new, |ms| format!(", {} left", left(ms)));
    let until = expires_at.as_ref().map_or_else(String::new, |time| format!(", until {time}"));
    let what = summary.as_ref().map_or_else(String::new, |text| format!(": {text}"));
    let told = format!(
        "Held: a person has to allow this call, approval {id}{left}{until}{what}. Leaving withdraws nothing: \"tool-cli \
         wait {id}\" waits on, and what is allowed is the same call, made again"
    );
    format!("{}\n", escaped(&told, MOST))
}

/// A time as a person says it: what has begun counts, so that one that begins is said whole.
fn left(ms: u64) -> String {
    let seconds = ms.div_ceil(1000);
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds} s"),
        (minutes, 0) => format!("{minutes} min"),
        (minutes, seconds) => format!("{minutes} min {seconds} s"),
    }
}

fn text_of(event: &Event) -> Option<String> {
    match event {
        Event::Progress(Progress { progress, total, message }) => Some(how_far(*progress, *total, message.as_deref())),
        Event::Log(line) => Some(format!("{}: {}", line.level, line.message)),
        Event::Approval(Approval { id, state, expires_at, summary, .. }) => {
            let until = expires_at.as_ref().map_or_else(String::new, |time| format!(" until {time}"));
            let what = summary.as_ref().map_or_else(String::new, |text| format!(": {text}"));
            Some(format!("approval {id} is {state}{until}{what}"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_call_is_told_on_one_line_with_the_time_left() {
        let approval = Approval {
            id: "a1".into(),
            state: ApprovalStatus::Pending,
            expires_at: Some("2026-11-22T13:43:52Z".into()),
            expires_in_ms: Some(298_400),
            summary: Some("demo/delete\u{1b}[2J\nx\u{9b}\u{202e}".into()),
        };
        let text = held(&approval, false);
        assert!(text.starts_with("Held: a person has to allow this call, approval a1, 4 min 59 s left, until 2026-"));
        assert!(
            text.contains(r"demo/delete\u{1b}[2J\nx\u{9b}\u{202e}. Leaving withdraws nothing")
                && text.lines().count() == 1,
            "{text}"
        );
        let line = held(&approval, true);
        assert!(line.is_ascii() && line.contains(r"\u009b\u202e"), "{line}");
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&told["approval"]["id"], &told["approval"]["expiresInMs"]), (&json!("a1"), &json!(298_400)));
        assert_eq!([left(3_999), left(59_000), left(60_000), left(300_000)], ["4 s", "59 s", "1 min", "5 min"]);
    }

    #[test]
    fn who_is_waited_for_is_said_with_what_to_type_and_the_time() {
        let event = |state: &str, expires_in_ms| Approval {
            id: "ap-0123456789abcdef".into(),
            state: state.to_owned().into(),
            expires_at: Some("2026-11-22T13:43:52Z".into()),
            expires_in_ms,
            summary: Some("demo/delete".into()),
        };
        for (ms, left) in [(7_200_000, "120 min"), (298_400, "5 min"), (59_000, "59 s"), (60_000, "1 min")] {
            let said = asked(&event("pending", Some(ms)));
            let waits = "Asking a person; later: tool-cli wait ap-0123456789abcdef";
            assert_eq!(said, format!("{waits} ({left} left, until 13:43:52Z): demo/delete"));
            assert!(waits.len() < 60, "{} columns", waits.len());
        }
        let granted = text_of(&Event::Approval(event("granted", None))).unwrap();
        assert_eq!(granted, "approval ap-0123456789abcdef is granted until 2026-11-22T13:43:52Z: demo/delete");
    }
}
