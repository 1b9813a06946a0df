//! In which shape a client expects errors: the body that it prints to its user.

use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

/// A shape of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ErrorShape {
    /// `{"error": {"message": ..., "reason": ..., "record": ...}}`.
    #[default]
    Plain,
    /// Of Anthropic's API.
    Anthropic,
    /// Of OpenAI's API.
    OpenAi,
    /// Of Google's APIs.
    Gemini,
    /// `{"message": ...}`, as forges write it.
    Message,
    /// `{"error": "..."}`, as npm's registries write it.
    Error,
    /// `{"errors": [{"detail": ...}]}`, as cargo's registries write it.
    Errors,
    /// Plain text, as git and pip print it.
    Text,
}

/// What an error says.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    /// The status of HTTP.
    pub status: u16,
    /// For people.
    pub message: &'a str,
    /// For programs.
    pub reason: &'a str,
    /// The record of it.
    pub record: Option<&'a str>,
}

impl ErrorShape {
    /// The status of what is refused for good. Clients of models take 403 for a wrong key: they say that in place of the
    /// reason, or ask again and again.
    #[must_use]
    pub fn refusal(self) -> StatusCode {
        match self {
            Self::Anthropic | Self::OpenAi | Self::Gemini => StatusCode::BAD_REQUEST,
            Self::Plain | Self::Message | Self::Error | Self::Errors | Self::Text => StatusCode::FORBIDDEN,
        }
    }

    /// The media type and the body of an error.
    #[must_use]
    pub fn write(self, said: Said<'_>) -> (&'static str, String) {
        let message = match said.record {
            Some(record) => format!("{} (record {record})", said.message),
            None => said.message.to_owned(),
        };
        match self.json(said, &message) {
            Some(value) => ("application/json", value.to_string()),
            None => ("text/plain; charset=utf-8", format!("{message}\n")),
        }
    }

    /// An event that says an error in a stream of them.
    #[must_use]
    pub fn event(self, said: Said<'_>) -> String {
        let message = match said.record {
            Some(record) => format!("{} (record {record})", said.message),
            None => said.message.to_owned(),
        };
        let mut value = self.json(said, &message).unwrap_or_else(|| json!({"error": {"message": message}}));
        // A stream of responses has the members of an error in the event itself.
        if let (Self::OpenAi, Some(members)) = (self, value.as_object_mut()) {
            let own = [("type", "error"), ("code", said.reason), ("message", &message)];
            members.extend(own.map(|(name, text)| (name.to_owned(), text.into())));
        }
        let name = if self == Self::Gemini { "" } else { "event: error\n" };
        format!("{name}data: {value}\n\n")
    }

    /// Whether clients of it pass over the comments of a stream of events. Those of Google take them for events.
    #[must_use]
    pub fn takes_comments(self) -> bool {
        matches!(self, Self::Anthropic | Self::OpenAi)
    }

    fn json(self, said: Said<'_>, message: &str) -> Option<Value> {
        let Said { status, reason, record, .. } = said;
        Some(match self {
            Self::Plain => {
                json!({"error": {"message": message, "reason": reason, "record": record}})
            }
            Self::Anthropic => {
                json!({"type": "error", "error": {"type": anthropic(status), "message": message}, "request_id": record})
            }
            Self::OpenAi => {
                json!({"error": {"message": message, "type": open_ai(status), "param": null, "code": reason}})
            }
            Self::Gemini => json!({"error": {"code": status, "message": message, "status": google(status)}}),
            Self::Message => json!({"message": message, "status": status.to_string()}),
            Self::Error => json!({"error": message}),
            Self::Errors => json!({"errors": [{"detail": message}]}),
            Self::Text => return None,
        })
    }
}

fn anthropic(status: u16) -> &'static str {
    match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        _ => "api_error",
    }
}

fn open_ai(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}

fn google(status: u16) -> &'static str {
    match status {
        400 | 413 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        504 => "DEADLINE_EXCEEDED",
        502 | 503 => "UNAVAILABLE",
        _ => "INTERNAL",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shape_has_the_message_where_its_client_looks() {
        let said = Said { status: 403, message: "no \"x\"", reason: "denied_by_policy", record: Some("r-1") };
        let whole = "no \"x\" (record r-1)";
        for (shape, at) in [
            (ErrorShape::Plain, "/error/message"),
            (ErrorShape::Anthropic, "/error/message"),
            (ErrorShape::OpenAi, "/error/message"),
            (ErrorShape::Gemini, "/error/message"),
            (ErrorShape::Message, "/message"),
            (ErrorShape::Error, "/error"),
            (ErrorShape::Errors, "/errors/0/detail"),
        ] {
            let (media, body) = shape.write(said);
            let value: Value = serde_json::from_str(&body).unwrap();
            assert_eq!((media, value.pointer(at).unwrap().as_str()), ("application/json", Some(whole)), "{shape:?}");
        }
        assert_eq!(ErrorShape::Text.write(said).1, format!("{whole}\n"));
        let event = ErrorShape::Anthropic.event(said);
        let data = event.strip_prefix("event: error\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
        assert_eq!(data, ErrorShape::Anthropic.write(said).1);
        assert!(ErrorShape::Gemini.event(said).starts_with("data: {\"error\":{"));
        let of_open_ai = ErrorShape::OpenAi.event(said);
        assert!(of_open_ai.contains("\"type\":\"error\"") && of_open_ai.contains("\"code\":\"denied_by_policy\""));
        assert_eq!(ErrorShape::Anthropic.json(said, "m").unwrap()["error"]["type"], "permission_error");
    }
}
