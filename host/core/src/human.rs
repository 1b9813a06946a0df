//! Durations and sizes as people write them (`250ms`, `10s`, `5m`, `16 KiB`, `1 MiB`), and times as they read them.

use std::{
    fmt,
    time::{Duration, SystemTime},
};

use bytesize::ByteSize;
use chrono::{DateTime, SecondsFormat, Utc};
use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

/// Reads a duration: numbers with units, of whole milliseconds, since limits count these.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    // The crate takes this one number without a unit.
    let has_unit = text != "0";
    if !has_unit || !fits_as_years(text) {
        return None;
    }
    let found = humantime::parse_duration(text).ok()?;
    found.subsec_nanos().is_multiple_of(1_000_000).then_some(found)
}

/// Seconds of the largest unit, a year.
const YEAR: u64 = 31_557_600;

/// Whether the numbers of a text fit into a duration even if all of them were years. The crate panics where their sum
/// is the largest duration but for its last carry.
fn fits_as_years(text: &str) -> bool {
    // The crate passes over spaces within a number.
    let number = |part: &str| part.chars().filter(char::is_ascii_digit).collect::<String>();
    let parts = text.split(|letter: char| !letter.is_ascii_digit() && !letter.is_whitespace());
    let mut numbers = parts.map(number).filter(|digits| !digits.is_empty());
    let sum = numbers.try_fold(0_u64, |sum, digits| sum.checked_add(digits.parse().ok()?));
    sum.is_some_and(|sum| sum < u64::MAX / YEAR)
}

/// A time by RFC 3339 in UTC, to the second. One beyond the years that it has, as a setting of no end comes to, is never.
#[must_use]
pub fn timestamp(at: SystemTime) -> String {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).ok().and_then(|seconds| DateTime::<Utc>::from_timestamp(seconds, 0));
    seconds.map_or_else(|| "never".to_owned(), |at| at.to_rfc3339_opts(SecondsFormat::Secs, true))
}

/// Reads a size: a number and a unit, or nothing for bytes. `KiB` is 1024, `KB` is 1000.
#[must_use]
pub(crate) fn parse_size(text: &str) -> Option<usize> {
    let found = text.trim().parse::<ByteSize>().ok()?;
    // What the crate cannot hold becomes the largest number.
    usize::try_from(found.as_u64()).ok().filter(|size| *size < usize::MAX)
}

/// For `#[serde(deserialize_with)]`: a duration as text.
pub fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(deserializer)?;
    let found = parse_duration(&text).filter(|duration| !duration.is_zero());
    found.ok_or_else(|| {
        D::Error::custom(format!("\"{text}\" is no duration: write \"250ms\", \"10s\", \"5m\" or \"1h\""))
    })
}

/// For `#[serde(deserialize_with)]`: a size as a number or text.
pub fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    struct Size;
    impl Visitor<'_> for Size {
        type Value = usize;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a size: a number of bytes, \"16 KiB\" or \"1 MiB\"")
        }
        fn visit_i64<E: Error>(self, number: i64) -> Result<usize, E> {
            usize::try_from(number).map_err(|_| E::custom("a size is not negative"))
        }
        fn visit_u64<E: Error>(self, number: u64) -> Result<usize, E> {
            usize::try_from(number).map_err(|_| E::custom("the size is too large"))
        }
        fn visit_str<E: Error>(self, text: &str) -> Result<usize, E> {
            parse_size(text)
                .ok_or_else(|| E::custom(format!("\"{text}\" is no size: write a number, \"16 KiB\" or \"1 MiB\"")))
        }
    }
    deserializer.deserialize_any(Size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_the_crate_panics_at_are_refused_before_it_sees_them() {
        assert_eq!(parse_duration("500000000000s"), Some(Duration::from_secs(500_000_000_000)));
        let five = "999999999999999h ".repeat(5);
        for bad in [
            "18446744073709551615s 1000ms",
            "1000ms 18446744073709551615s",
            "18446744073709 551615s 1000ms",
            "1000000000000000s",
            "99999999999999999999999s",
            &format!("{five} 124095576030431h 2415s 1000ms"),
        ] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn units_are_read_and_others_refused() {
        assert_eq!(parse_duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse_duration("5 m"), Some(Duration::from_secs(300)));
        assert_eq!((parse_size("16 KiB"), parse_size("7"), parse_size("1MiB")), (Some(16384), Some(7), Some(1 << 20)));
        assert_eq!(parse_duration("1h 30m"), Some(Duration::from_secs(5400)));
        assert_eq!((parse_size("7 "), parse_size("0 B"), parse_size("1 KB")), (Some(7), Some(0), Some(1000)));
        for bad in ["", "s", "5", "0", "5 parsecs", "-1s", "1500us"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
        for bad in ["", "KiB", "5 parsecs", "-1", "99999999999999 MiB", "99999999999999999999"] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }
}
