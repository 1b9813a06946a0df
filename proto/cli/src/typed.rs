//! Arguments and times as they are typed.

use std::{
    io::{self, Read},
    time::Duration,
};

use footbridge_proto::{vars::MAX_TIMEOUT_MS, wire::MAX_REQUEST_BYTES};
use serde_json::value::RawValue;

/// Why typed arguments are none.
#[derive(Debug, thiserror::Error)]
pub enum BadTypedArguments {
    /// They are no JSON object; the text is what was typed.
    #[error("invalid JSON arguments: {0}")]
    NotAnObject(String),
    /// They cannot be read.
    #[error("cannot read the arguments from standard input: {0}")]
    Stdin(io::Error),
    /// They are more than a call takes.
    #[error(
        "the arguments on standard input have more than {MAX_REQUEST_BYTES} bytes, which is more than a bridge takes: \
         make them smaller"
    )]
    StdinTooLarge,
}

/// A time that is none.
#[derive(Debug, thiserror::Error)]
pub enum BadTimeout {
    /// It is not written as a time.
    #[error("\"{0}\" is no timeout: write 5s, 500ms or a number of seconds, from 1ms to 300s")]
    Written(String),
    /// It is beyond the most.
    #[error("the timeout {0} is beyond the most, 300s; milliseconds are written with their unit, as in 60000ms")]
    TooLong(String),
}

/// The arguments' text, or that of standard input for `-`, checked to be a JSON object (or null, which counts as an
/// empty one) and otherwise untouched.
///
/// # Errors
/// [`BadTypedArguments`].
pub fn arguments(typed: String) -> Result<Box<RawValue>, BadTypedArguments> {
    let text = if typed == "-" { stdin()? } else { typed };
    match RawValue::from_string(text.trim().to_owned()) {
        Ok(raw) if raw.get().starts_with('{') || raw.get() == "null" => Ok(raw),
        _ => Err(BadTypedArguments::NotAnObject(text)),
    }
}

/// All of standard input, within the limit of a request.
///
/// # Errors
/// [`BadTypedArguments`].
pub fn stdin() -> Result<String, BadTypedArguments> {
    let limit = u64::try_from(MAX_REQUEST_BYTES).unwrap_or(u64::MAX);
    let mut text = Vec::new();
    io::stdin().lock().take(limit + 1).read_to_end(&mut text).map_err(BadTypedArguments::Stdin)?;
    if text.len() > MAX_REQUEST_BYTES {
        return Err(BadTypedArguments::StdinTooLarge);
    }
    String::from_utf8(text).map_err(|error| BadTypedArguments::Stdin(io::Error::other(error.utf8_error())))
}

/// A timeout: seconds unless it says otherwise.
///
/// # Errors
/// [`BadTimeout`].
pub fn timeout(text: &str) -> Result<Duration, BadTimeout> {
    let wrong = || BadTimeout::Written(text.to_owned());
    let (number, unit) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1.0),
        (None, Some(number)) => (number, 1000.0),
        (None, None) => (text, 1000.0),
    };
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(wrong());
    }
    let ms: f64 = number.parse::<f64>().map_err(|_| wrong())? * unit;
    if ms < 1.0 {
        return Err(wrong());
    }
    if ms > MAX_TIMEOUT_MS as f64 {
        return Err(BadTimeout::TooLong(text.to_owned()));
    }
    Ok(Duration::from_secs_f64(ms / 1000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_seconds_unless_it_says_otherwise() {
        for (text, ms) in [("5s", 5000), ("500ms", 500), ("2", 2000), ("0.5", 500), ("300", 300_000)] {
            assert_eq!(timeout(text).unwrap(), Duration::from_millis(ms), "{text}");
        }
        for text in ["0", "", "s", "-1", "1m", "1e3", "nan", "1.2.3"] {
            assert!(matches!(timeout(text), Err(BadTimeout::Written(_))), "{text}");
        }
        assert!(matches!(timeout("60000"), Err(BadTimeout::TooLong(_))));
    }

    #[test]
    fn arguments_are_one_object_or_null() {
        assert_eq!(arguments(" {\"a\": 1.50}\n".to_owned()).unwrap().get(), "{\"a\": 1.50}");
        assert_eq!(arguments("null".to_owned()).unwrap().get(), "null");
        for text in ["", "[]", "1", "{", "{} {}"] {
            assert!(matches!(arguments(text.to_owned()), Err(BadTypedArguments::NotAnObject(_))), "{text}");
        }
    }
}
