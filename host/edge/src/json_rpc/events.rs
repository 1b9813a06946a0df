//! Events of a call, as the bridge writes them, and MCP those about an approval for clients that ask for them.

use std::fmt::Write as _;

use bytes::Bytes;
use serde_json::{Value, json};

use super::number;
use footbridge_calls::events::CallEvent;

/// An event as it goes out. JSON has no raw line breaks, so its data is one line.
pub(crate) fn text_of_event(event: &CallEvent) -> Bytes {
    let (name, data) = match event {
        CallEvent::Progress { progress, total, message } => (
            "progress",
            members([
                ("progress", Some(number(*progress))),
                ("total", total.map(number)),
                ("message", message.as_deref().map(Value::from)),
            ]),
        ),
        CallEvent::Log(line) => ("log", json!({"level": line.level.as_str(), "message": line.message})),
        CallEvent::Approval(event) => {
            let data = [
                ("id", Some(Value::from(event.id.as_str()))),
                ("state", Some(event.state.as_str().into())),
                ("expiresAt", event.expires_at.as_deref().map(Value::from)),
                (
                    "expiresInMs",
                    event.expires_in.map(|left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX).into()),
                ),
                ("summary", Some(event.summary.as_str().into())),
            ];
            ("approval", members(data))
        }
    };
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(text, "event: {name}\ndata: {data}\n\n");
    text.into()
}

fn members<const N: usize>(all: [(&str, Option<Value>); N]) -> Value {
    all.into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use footbridge_proto::approval::ApprovalStatus;

    use footbridge_calls::events::{ApprovalEvent, LogLevel, LoggedLine};

    #[test]
    fn events_are_one_line_of_json_whatever_is_in_them() {
        let text = |event| String::from_utf8(text_of_event(&event).to_vec()).unwrap();
        assert_eq!(
            text(CallEvent::Progress {
                progress: 1.0,
                total: Some(2.5),
                message: Some("a\r\n\ndata: x\u{2028}".into())
            }),
            "event: progress\ndata: {\"progress\":1,\"total\":2.5,\"message\":\"a\\r\\n\\ndata: x\u{2028}\"}\n\n"
        );
        assert_eq!(text(CallEvent::progress(1e300, None, None)), "event: progress\ndata: {\"progress\":1e+300}\n\n");
        assert_eq!(
            text(CallEvent::Log(LoggedLine {
                level: LogLevel::Warning,
                logger: None,
                message: "odd".into(),
                is_json: false
            })),
            "event: log\ndata: {\"level\":\"warning\",\"message\":\"odd\"}\n\n"
        );
        let event = ApprovalEvent {
            id: "a1".into(),
            state: ApprovalStatus::Pending,
            expires_at: Some("2026-11-22T13:43:52Z".into()),
            expires_in: Some(std::time::Duration::from_millis(298_400)),
            summary: "s/t".into(),
        };
        assert_eq!(
            text(CallEvent::Approval(event)),
            "event: approval\ndata: {\"id\":\"a1\",\"state\":\"pending\",\"expiresAt\":\"2026-11-22T13:43:52Z\",\"expiresInMs\":298400,\"summary\":\"s/t\"}\n\n"
        );
    }
}
