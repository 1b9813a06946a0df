//! The time of day in UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Tells the time. Tests bring their own.
pub(crate) trait Clock {
    /// Time since 1970-01-01T00:00:00Z.
    fn since_epoch(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn since_epoch(&self) -> Duration {
        // A clock before 1970 is broken; there is no better answer than the epoch.
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
}

/// The formats of the tool `now`.
pub(super) const FORMATS: [&str; 4] = ["rfc3339", "date", "time", "unix"];

/// The time in one of [`FORMATS`].
pub(super) fn format(since_epoch: Duration, format: &str) -> Option<String> {
    let seconds = since_epoch.as_secs();
    let date = || {
        let (year, month, day) = civil(seconds / 86_400);
        format!("{year:04}-{month:02}-{day:02}")
    };
    let time = || format!("{:02}:{:02}:{:02}", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    match format {
        "rfc3339" => Some(format!("{}T{}Z", date(), time())),
        "date" => Some(date()),
        "time" => Some(time()),
        "unix" => Some(seconds.to_string()),
        _ => None,
    }
}

/// Year, month and day of a count of days since 1970, in the Gregorian calendar. Years start in March here, so that
/// the leap day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // from 0000-03-01
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Option<String> {
        format(Duration::from_secs(seconds), "rfc3339")
    }

    #[test]
    fn days_are_right_around_leap_days_and_centuries() {
        assert_eq!(at(0).as_deref(), Some("1970-01-01T00:00:00Z"));
        assert_eq!(at(951_782_399).as_deref(), Some("2000-02-28T23:59:59Z"));
        assert_eq!(at(951_782_400).as_deref(), Some("2000-02-29T00:00:00Z"));
        assert_eq!(at(1_709_251_199).as_deref(), Some("2024-02-29T23:59:59Z"));
        assert_eq!(at(4_107_542_400).as_deref(), Some("2100-03-01T00:00:00Z"));
    }

    #[test]
    fn every_format_that_is_offered_works() {
        for name in FORMATS {
            assert!(format(Duration::from_secs(86_461), name).is_some());
        }
        assert_eq!(format(Duration::from_secs(86_461), "time").as_deref(), Some("00:01:01"));
        assert_eq!(format(Duration::from_secs(86_461), "stardate"), None);
    }
}
