//! What a server's result says of the protocol between it and its own client, which is the harness: to the client of a guest
//! it would be the bridge's word. One that asks for input would have that client put the server's question to its user,
//! past whoever is asked here.

use std::borrow::Cow;

use footbridge_proto::{json::Members, rpc::raw};
use serde_json::value::RawValue;

/// Members of a result that hold for one hop (MCP 2026-07-28, results and multi round-trip requests).
const OF_ONE_HOP: [&str; 3] = ["resultType", "inputRequests", "requestState"];

/// The member in which a result says what is around it.
const META: &str = "_meta";
/// How those members of it begin that are the bridge's to say.
const OURS: &str = "footbridge";

/// A server's result without what is not its to say to a guest.
pub(super) fn without(given: Box<RawValue>) -> Box<RawValue> {
    let text = given.get();
    // A name may be written with escapes; most texts have neither.
    let may_have_one = OF_ONE_HOP.iter().chain([&OURS]).any(|word| text.contains(word)) || text.contains("\\u");
    let members = may_have_one.then(|| serde_json::from_str::<Members<'_>>(text)).and_then(Result::ok);
    let Some(members) = members else { return given };
    let mut is_other = false;
    let kept = members.0.iter().filter_map(|(name, value)| {
        let value = value.get();
        let kept = match name.as_str() {
            name if OF_ONE_HOP.contains(&name) => None,
            META => meta(value),
            _ => Some(value.into()),
        };
        is_other |= !matches!(kept, Some(Cow::Borrowed(_)));
        kept.map(|value| member(name, &value))
    });
    let kept: Vec<String> = kept.collect();
    if !is_other {
        return given;
    }
    RawValue::from_string(object(&kept)).unwrap_or(given)
}

/// What is left of `_meta`, as it was written where that is all of it; none where nothing is.
pub(super) fn meta(given: &str) -> Option<Cow<'_, str>> {
    let members =
        serde_json::from_str::<Members<'_>>(given).ok().filter(|all| all.0.iter().any(|(name, _)| is_ours(name)));
    let Some(members) = members else { return Some(given.into()) };
    let kept = members.0.iter().filter(|(name, _)| !is_ours(name));
    let kept: Vec<String> = kept.map(|(name, value)| member(name, value.get())).collect();
    (!kept.is_empty()).then(|| object(&kept).into())
}

fn is_ours(name: &str) -> bool {
    name.starts_with(OURS)
}

fn member(name: &str, value: &str) -> String {
    format!("{}:{value}", raw(&name).get())
}

fn object(members: &[String]) -> String {
    format!("{{{}}}", members.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_of(given: &str) -> String {
        without(RawValue::from_string(given.to_owned()).unwrap()).get().to_owned()
    }

    #[test]
    fn what_asks_for_input_or_speaks_for_the_bridge_is_left_out_however_it_is_written() {
        for (given, left) in [
            (
                r#"{"resultType":"input_required","inputRequests":{"a":{}},"requestState":"s","n":1.50}"#,
                r#"{"n":1.50}"#,
            ),
            (r#"{"result\u0054ype":"input_required","content":[]}"#, r#"{"content":[]}"#),
            (r#"{"content":[],"_meta":{"footbridge/refusal":{}}}"#, r#"{"content":[]}"#),
            (r#"{"_meta":{"a/b":1e400,"footbridge/x":1}, "content":[ ]}"#, r#"{"_meta":{"a/b":1e400},"content":[ ]}"#),
        ] {
            assert_eq!(left_of(given), left, "{given}");
        }
    }

    #[test]
    fn all_else_is_as_it_was_written() {
        for same in [
            r#"{"content":[{"type":"text","text":"resultType footbridge \u00e9"}], "_meta": {"a":1}}"#,
            r#"{"content":[{"resultType":"input_required"}]}"#,
            r#"{ "a" : 1 }"#,
            r#"{"_meta":7,"text":"footbridge"}"#,
        ] {
            assert_eq!(left_of(same), same);
        }
    }
}
