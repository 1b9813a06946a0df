//! What a guest says of a call besides what it asks (`_meta` of its parameters): `traceparent` and the like, for programs
//! that follow calls through several others. It goes to the server as it is, and nothing is decided by it.

use std::collections::BTreeMap;

use serde_json::value::{RawValue, to_raw_value};

/// Longest such text, bytes. A person who allows a call does not see it.
pub(crate) const MAX_META: usize = 8 * 1024;

/// Beginnings of what does not go on: it is ours, or the protocol's for one hop.
const KEPT_BACK: [&str; 3] = ["footbridge", "io.modelcontextprotocol/", "progressToken"];

/// What goes to a server with a call: a JSON object.
#[derive(Debug, Clone)]
pub struct CallMeta(Box<RawValue>);

/// Why a text is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("\"_meta\" has over {MAX_META} bytes, of which a server gets none then")]
pub struct MetaTooLarge;

impl CallMeta {
    /// What of `_meta` goes on, if anything does. What is no object is nothing.
    ///
    /// # Errors
    /// [`MetaTooLarge`].
    pub fn of(raw: Option<&RawValue>) -> Result<Option<Self>, MetaTooLarge> {
        let Some(raw) = raw.filter(|raw| raw.get().starts_with('{')) else { return Ok(None) };
        let Ok(mut members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(raw.get()) else { return Ok(None) };
        members.retain(|name, _| !KEPT_BACK.iter().any(|start| name.starts_with(start)));
        let goes_on = (!members.is_empty()).then(|| to_raw_value(&members).ok()).flatten();
        if goes_on.as_ref().is_some_and(|text| text.get().len() > MAX_META) {
            return Err(MetaTooLarge);
        }
        Ok(goes_on.map(Self))
    }

    /// Its text; members are in the order of their names.
    #[must_use]
    pub fn text(&self) -> &RawValue {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Option<String>, MetaTooLarge> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        CallMeta::of(Some(&raw)).map(|meta| meta.map(|meta| meta.text().get().to_owned()))
    }

    #[test]
    fn all_goes_on_but_what_is_of_one_hop() {
        let text = r#"{"traceparent":"00-1","a": 1.50,"progressToken":7,"footbridge/x":1,"footbridge":2,
            "io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        assert_eq!(of(text), Ok(Some(r#"{"a":1.50,"traceparent":"00-1"}"#.to_owned())));
        for nothing in [r#"{"progressToken":7}"#, "{}", "null", "[1]", "\"x\""] {
            assert_eq!(of(nothing), Ok(None), "{nothing}");
        }
        assert_eq!(of(&format!(r#"{{"a":"{}"}}"#, "x".repeat(MAX_META))), Err(MetaTooLarge));
        let ours = format!(r#"{{"footbridge":"{}"}}"#, "x".repeat(MAX_META));
        assert_eq!(of(&ours), Ok(None), "what does not go on is no matter");
    }
}
