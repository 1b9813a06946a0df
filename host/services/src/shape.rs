//! In which shape a client expects errors: the body that it prints to its user.

use http::{Method, StatusCode};
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
    /// Plain text, as pip prints it.
    Text,
    /// The same, as git prints it; of a fetch or a push git prints what its own protocol says alone.
    Git,
    /// What a fetch of git prints: an error in an answer of its protocol (gitprotocol-pack, gitprotocol-v2).
    #[serde(skip)]
    GitFetch,
    /// What a push of git prints: the same on the band for errors (gitprotocol-pack).
    #[serde(skip)]
    GitPush,
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
    /// The shape that the client of this request expects, where this is that of its service.
    #[must_use]
    pub fn of_request(self, method: &Method, path: &str) -> Self {
        match path.rsplit('/').next() {
            Some("git-upload-pack") if self == Self::Git && *method == Method::POST => Self::GitFetch,
            Some("git-receive-pack") if self == Self::Git && *method == Method::POST => Self::GitPush,
            _ => self,
        }
    }

    /// The status by which the client hears of an error that has this one. Git shows no body of what is no answer, but asks for
    /// another credential where it is told to.
    #[must_use]
    pub fn status(self, status: StatusCode) -> StatusCode {
        let is_told_in_answers = matches!(self, Self::GitFetch | Self::GitPush) && status != StatusCode::UNAUTHORIZED;
        if is_told_in_answers { StatusCode::OK } else { status }
    }

    /// The status of what is refused for good. Clients of models take 403 for a wrong key: they say that in place of the
    /// reason, or ask again and again.
    #[must_use]
    pub fn refusal(self) -> StatusCode {
        match self {
            Self::Anthropic | Self::OpenAi | Self::Gemini => StatusCode::BAD_REQUEST,
            _ => StatusCode::FORBIDDEN,
        }
    }

    /// The media type and the body of an error.
    #[must_use]
    pub fn write(self, said: Said<'_>) -> (&'static str, String) {
        let is_of_lines = matches!(self, Self::GitFetch | Self::GitPush);
        let most = if is_of_lines { LINE_BYTES } else { said.message.len() };
        let message = &said.message[..said.message.floor_char_boundary(most)];
        let message = match said.record {
            Some(record) => format!("{message} (record {record})"),
            None => message.to_owned(),
        };
        match (self, self.json(said, &message)) {
            (_, Some(value)) => ("application/json", value.to_string()),
            (Self::GitFetch, None) => ("application/x-git-upload-pack-result", packet_line(&format!("ERR {message}"))),
            (Self::GitPush, None) => {
                let error = packet_line(&format!("\u{3}{message}\n"));
                ("application/x-git-receive-pack-result", format!("{error}0000"))
            }
            (_, None) => ("text/plain; charset=utf-8", format!("{message}\n")),
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
            Self::Text | Self::Git | Self::GitFetch | Self::GitPush => return None,
        })
    }
}

/// A line of git's protocol: its length in four hexadecimal digits, and what it says.
fn packet_line(text: &str) -> String {
    format!("{:04x}{text}", text.len() + 4)
}

/// The longest that is said in a line of git's protocol, bytes, but for the record: clients may take lines of 1000 bytes.
const LINE_BYTES: usize = 900;

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
        let git = |path| ErrorShape::Git.of_request(&Method::POST, path);
        assert_eq!(git("/a/git-upload-pack").write(said).1, format!("001bERR {whole}"));
        assert_eq!(git("/a/git-receive-pack").write(said).1, format!("0019\u{3}{whole}\n0000"));
        assert_eq!(git("/a/info/refs").write(said), ErrorShape::Text.write(said));
        let statuses = [403, 401].map(|status| StatusCode::from_u16(status).unwrap());
        assert_eq!(statuses.map(|status| git("/a/git-receive-pack").status(status).as_u16()), [200, 401]);
        assert_eq!(statuses.map(|status| git("/a/info/refs").status(status)), statuses);
        let event = ErrorShape::Anthropic.event(said);
        let data = event.strip_prefix("event: error\ndata: ").unwrap().strip_suffix("\n\n").unwrap();
        assert_eq!(data, ErrorShape::Anthropic.write(said).1);
        assert!(ErrorShape::Gemini.event(said).starts_with("data: {\"error\":{"));
        let of_open_ai = ErrorShape::OpenAi.event(said);
        assert!(of_open_ai.contains("\"type\":\"error\"") && of_open_ai.contains("\"code\":\"denied_by_policy\""));
        assert_eq!(ErrorShape::Anthropic.json(said, "m").unwrap()["error"]["type"], "permission_error");
    }
}
