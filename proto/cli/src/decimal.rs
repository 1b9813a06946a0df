//! Numbers as they are typed, by their value: `7.0` is 7 and `1e2` is 100, as JSON Schema has it. Nothing is rounded.

/// Most digits of a number that is written out.
const MOST_DIGITS: usize = 400;

/// A number: its digits without zeros at either end, and of which power of ten the last of them is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    is_negative: bool,
    digits: String,
    power: i64,
}

impl Decimal {
    /// Of the text of a JSON number; none of one that is beyond all measure.
    pub(crate) fn of(typed: &str) -> Option<Self> {
        let (is_negative, rest) = typed.strip_prefix('-').map_or((false, typed), |rest| (true, rest));
        let (mantissa, power) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{part}");
        let digits = all.trim_end_matches('0');
        let power = power.parse::<i64>().ok()?;
        let power = power.checked_sub(part.len().try_into().ok()?)?;
        let power = power.checked_add((all.len() - digits.len()).try_into().ok()?)?;
        let digits = digits.trim_start_matches('0').to_owned();
        let is_zero = digits.is_empty();
        Some(Self { is_negative: is_negative && !is_zero, digits, power: if is_zero { 0 } else { power } })
    }

    /// Written as a whole number, if it is one.
    pub(crate) fn whole(&self) -> Option<String> {
        let zeros = usize::try_from(self.power).ok().filter(|zeros| *zeros <= MOST_DIGITS)?;
        let digits = if self.digits.is_empty() { "0" } else { &self.digits };
        Some(format!("{}{digits}{}", if self.is_negative { "-" } else { "" }, "0".repeat(zeros)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_its_value_in_whatever_form() {
        for (one, other) in [("7.0", "7"), ("1e2", "100"), ("-1.50E+1", "-15"), ("0.10", "1e-1"), ("-0.0", "0")] {
            assert_eq!(Decimal::of(one), Decimal::of(other), "{one}");
        }
        for (one, other) in [("7.1", "7"), ("-7", "7"), ("1e2", "1e3"), ("9007199254740993", "9007199254740992")] {
            assert_ne!(Decimal::of(one), Decimal::of(other), "{one}");
        }
    }

    #[test]
    fn a_whole_number_is_written_out_and_no_other() {
        for (typed, whole) in [
            ("7.0", Some("7")),
            ("1e2", Some("100")),
            ("-1.5e1", Some("-15")),
            ("12345678901234567890.0", Some("12345678901234567890")),
            ("-0.0", Some("0")),
            ("2.5", None),
            ("1e-1", None),
            ("1e999999999", None),
            ("1e99999999999999999999", None),
        ] {
            assert_eq!(Decimal::of(typed).and_then(|number| number.whole()).as_deref(), whole, "{typed}");
        }
    }
}
