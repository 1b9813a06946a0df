//! What of a guest's text a record may show.
//!
//! Values of configured secrets and what looks like a token go from everything; from arguments also the values of
//! named fields. Arguments are read as the canonical text that they are, without making values of them.

use std::borrow::Cow;

use footbridge_proto::json::Tokens;
use tokio::sync::Semaphore;

use super::lines::short_name;
use crate::{low_threads::LowThreads, request::OutgoingRequest, resolve::QUICK};
use footbridge_audit::{ArgumentsRecorded, AuditSettings};
use footbridge_core::redact::{MARK, Redactor, shapes};

/// Of longer arguments this many bytes of the start are recorded, and of the end.
const HEAD: usize = 2048;
const TAIL: usize = 512;

/// Takes secrets out of what is recorded.
#[derive(Debug)]
pub(crate) struct Redaction {
    secrets: Redactor,
    shows_arguments: bool,
    fields: Vec<String>,
    /// Large arguments are read one at a time, there.
    large: Semaphore,
    threads: LowThreads,
}

impl Redaction {
    pub(super) fn new(secrets: Redactor, settings: &AuditSettings) -> Self {
        let shows_arguments = settings.arguments == ArgumentsRecorded::Redacted;
        let fields =
            settings.redact_fields.iter().map(|name| plain_name(name)).filter(|name| !name.is_empty()).collect();
        Self { secrets, shows_arguments, fields, large: Semaphore::new(1), threads: LowThreads::new() }
    }

    /// A text of a guest or the operator, without secrets and short enough for a record.
    pub(crate) fn text(&self, text: &str) -> String {
        short_name(&shapes::hide(&self.secrets.hide(text)))
    }

    /// The arguments of a call, where they are recorded.
    pub(crate) async fn arguments(self: &std::sync::Arc<Self>, request: &OutgoingRequest) -> Option<String> {
        let arguments = request.recorded()?;
        if !self.shows_arguments {
            return None;
        }
        if arguments.get().len() <= QUICK {
            return Some(self.shown(arguments.get()));
        }
        let _turn = self.large.acquire().await.ok()?;
        let (redaction, text) = (std::sync::Arc::clone(self), arguments.get().to_owned());
        self.threads.run(move || redaction.shown(&text)).await
    }

    /// What a server's question was answered with, where arguments are recorded. It is short: a person gave it.
    pub(super) fn content(&self, canonical: &str) -> Option<String> {
        self.shows_arguments.then(|| self.shown(canonical))
    }

    /// Canonical JSON without secrets, cut to head and tail.
    fn shown(&self, canonical: &str) -> String {
        let mut out = String::with_capacity(canonical.len());
        let mut at = 0;
        let mut tokens = Tokens::of(canonical);
        while let Some(found) = tokens.next_string() {
            out.push_str(&canonical[at..found.start]);
            at = found.end;
            let Ok(text) = serde_json::from_str::<Cow<'_, str>>(&canonical[found]) else { break };
            let clean = shapes::hide(&text);
            out.push_str(&serde_json::Value::from(clean.as_ref()).to_string());
            if canonical[at..].starts_with(':') && self.is_named(&text) {
                out.push_str(&format!(":\"{MARK}\""));
                let _colon = tokens.next();
                at = tokens.skip_value();
            }
        }
        out.push_str(&canonical[at..]);
        cut(&self.secrets.hide(&out))
    }

    fn is_named(&self, field: &str) -> bool {
        let field = plain_name(field);
        self.fields.iter().any(|name| field.ends_with(name.as_str()))
    }
}

/// A field's name without what people write differently.
fn plain_name(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Head and tail of a long text, and how much was left out between them.
fn cut(text: &str) -> String {
    if text.len() <= HEAD + TAIL {
        return text.to_owned();
    }
    let (head, tail) = (text.floor_char_boundary(HEAD), text.ceil_char_boundary(text.len() - TAIL));
    format!("{}...({} bytes)...{}", &text[..head], tail - head, &text[tail..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use footbridge_core::secret::Secret;

    fn redaction(fields: &[&str]) -> Redaction {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        let settings =
            AuditSettings { arguments: ArgumentsRecorded::Redacted, redact_fields: fields, ..AuditSettings::default() };
        Redaction::new(Redactor::new(&[Secret::new("configured\"1")]), &settings)
    }

    #[test]
    fn named_fields_lose_their_values_of_every_kind_and_at_every_depth() {
        let text = r#"{"Api-Key":"a\"b","a":[{"db_password":{"x":["]"],"y":1}},{"password":[1,"}"]}],"last_token":12,"tokens":3,"z":{"token":null}}"#;
        let expected = r#"{"Api-Key":"[redacted]","a":[{"db_password":"[redacted]"},{"password":"[redacted]"}],"last_token":"[redacted]","tokens":3,"z":{"token":"[redacted]"}}"#;
        assert_eq!(redaction(&["api_key", "password", "TOKEN"]).shown(text), expected);
        assert_eq!(redaction(&[]).shown(text), text);
    }

    #[test]
    fn values_of_secrets_and_token_shapes_go_from_keys_values_and_names() {
        let token = format!("fbt_{}", "x".repeat(43));
        let redaction = redaction(&[]);
        let text = format!(r#"{{"{token}":"a {token}\nb","c":"configured\"1","d":["xconfigured\"1y"]}}"#);
        let expected = r#"{"[redacted]":"a [redacted]\nb","c":"[redacted]","d":["x[redacted]y"]}"#;
        assert_eq!(redaction.shown(&text), expected);
        assert_eq!(redaction.text(&format!("note://{token}/configured\"1")), "note://[redacted]/[redacted]");
    }

    #[test]
    fn long_arguments_are_cut_after_secrets_were_taken_out() {
        let redaction = redaction(&[]);
        for at in HEAD - 30..HEAD + 30 {
            let text = format!(r#"{{"a":"{}configured\"1{}é"}}"#, "x".repeat(at), "é".repeat(9_000));
            let shown = redaction.shown(&text);
            assert!(shown.len() < HEAD + TAIL + 40 && !shown.contains("nfigured"), "{shown}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_names_no_secret_stays_as_it_is(value in proptest::collection::vec("\\PC{0,8}", 0..6), n in 0_i64..9) {
            let canonical = serde_json::json!({"list": value, "n": n, "o": {"k\"\\": true}}).to_string();
            proptest::prop_assert_eq!(redaction(&["password"]).shown(&canonical), canonical);
        }
    }
}
