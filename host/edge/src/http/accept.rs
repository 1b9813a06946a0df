//! How a client wants its answer: the `Accept` header, and ours about waiting for a person.
//!
//! Wildcards never mean a stream of events: every client of HTTP sends them.

use http::{HeaderMap, header};

/// `0` in it: an approval is not waited for.
pub(crate) const WAIT: &str = "footbridge-wait";

/// What a client takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accepts {
    /// A stream of events.
    pub(crate) events: bool,
    /// One JSON body; only asked where a stream is wanted too.
    pub(crate) json: bool,
    /// Whether it waits for a person.
    pub(crate) waits: bool,
}

impl Accepts {
    /// Reads a head. What cannot be read counts as not there: then the answer is JSON, as ever.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut accepts = Self { events: false, json: false, waits: true };
        let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        for range in values.flat_map(|text| text.split(',')).filter(|range| !is_refused(range)) {
            let media_type = range.split(';').next().unwrap_or_default().trim();
            let is = |name: &str| media_type.eq_ignore_ascii_case(name);
            accepts.events |= is("text/event-stream");
            accepts.json |= is("application/json") || is("application/*") || is("*/*");
        }
        accepts.waits = !headers.get_all(WAIT).iter().any(|value| value == "0");
        accepts
    }
}

/// Whether a media range has the weight 0, which means "not this".
fn is_refused(range: &str) -> bool {
    range.split(';').skip(1).any(|parameter| {
        let weight = parameter.split_once('=').filter(|(name, _)| name.trim().eq_ignore_ascii_case("q"));
        weight.and_then(|(_, text)| text.trim().parse::<f32>().ok()).is_some_and(|q| q <= 0.0)
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(values: &[&[u8]]) -> (bool, bool) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::ACCEPT, HeaderValue::from_bytes(value).unwrap());
        }
        let accepts = Accepts::of(&headers);
        (accepts.events, accepts.json)
    }

    #[test]
    fn a_stream_is_for_whoever_names_it() {
        for (values, expected) in [
            (&[] as &[&[u8]], (false, false)),
            (&[b"*/*".as_slice()], (false, true)),
            (&[b"text/*;q=1, application/json".as_slice()], (false, true)),
            (&[b"text/event-stream".as_slice()], (true, false)),
            (&[b"application/json, Text/Event-Stream;q=0.5".as_slice()], (true, true)),
            (&[b"application/json".as_slice(), b"text/event-stream ; x=y".as_slice()], (true, true)),
            (&[b"text/event-stream;q=0".as_slice()], (false, false)),
            (&[b"text/event-stream; Q = 0.000, */*;q=0".as_slice()], (false, false)),
            (&[b"text/event-streams, xtext/event-stream".as_slice()], (false, false)),
            (&[b"text/event-stream;q=nan".as_slice()], (true, false)),
            (&[b",,;;,=;q=;,\ttext/event-stream".as_slice()], (true, false)),
            (&[b"\xff text/event-stream".as_slice(), b"application/json".as_slice()], (false, true)),
        ] {
            assert_eq!(of(values), expected, "{values:?}");
        }
        let long = "a/b,".repeat(4000) + "text/event-stream";
        assert_eq!(of(&[long.as_bytes()]), (true, false));
    }

    #[test]
    fn waiting_is_ended_by_one_header_only() {
        for (value, waits) in [("0", false), ("1", true), ("", true), ("00", true)] {
            let headers = HeaderMap::from_iter([(WAIT.parse().unwrap(), HeaderValue::from_static(value))]);
            assert_eq!(Accepts::of(&headers).waits, waits, "{value}");
        }
    }
}
