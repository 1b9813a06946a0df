//! Durations and sizes as people write them: `250ms`, `10s`, `5m`, `16 KiB`, `1 MiB`.

use std::{fmt, time::Duration};

use serde::{
    Deserialize, Deserializer,
    de::{Error, Visitor},
};

/// Reads a duration: a number and `ms`, `s`, `m`, `h` or `d`.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = split(text)?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        "h" => Some(Duration::from_secs(number.checked_mul(3600)?)),
        "d" => Some(Duration::from_secs(number.checked_mul(24 * 3600)?)),
        _ => None,
    }
}

/// Reads a size: a number, and `KiB` or `MiB` or nothing for bytes.
#[must_use]
pub fn parse_size(text: &str) -> Option<usize> {
    let (number, unit) = split(text)?;
    let factor: u64 = match unit {
        "" | "B" => 1,
        "KiB" => 1024,
        "MiB" => 1024 * 1024,
        _ => return None,
    };
    usize::try_from(number.checked_mul(factor)?).ok()
}

fn split(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim_start()))
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
    fn units_are_read_and_others_refused() {
        assert_eq!(parse_duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(parse_duration("5 m"), Some(Duration::from_secs(300)));
        assert_eq!((parse_size("16 KiB"), parse_size("7"), parse_size("1MiB")), (Some(16384), Some(7), Some(1 << 20)));
        for bad in ["", "s", "5", "5 days", "-1s", "1.5s"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
        assert_eq!((parse_size("1 KB"), parse_size("99999999999999 MiB")), (None, None));
    }
}
