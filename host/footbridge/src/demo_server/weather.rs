//! Weather that is made up from a city's name: always the same, never true.

use serde_json::{Value, json};

/// The cities that `list_cities` shows. Any other name has weather too.
pub(super) const CITIES: [&str; 8] =
    ["Accra", "Bergen", "Buenos Aires", "Hanoi", "Nairobi", "Toronto", "Wellington", "Zürich"];

/// The city that fails, so that one can see what a failing tool looks like.
pub(super) const SUNKEN: &str = "Atlantis";

/// Units of the answer, the default first.
pub(super) const UNITS: [&str; 2] = ["metric", "imperial"];

const CONDITIONS: [&str; 6] = ["sunny", "partly cloudy", "overcast", "light rain", "thunderstorm", "snow"];

/// The one city has no weather.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("No weather for {SUNKEN}: it lies under water. Try one of: {}.", CITIES.join(", "))]
pub(super) struct NoWeatherThere;

/// The weather in a city.
///
/// # Errors
/// [`NoWeatherThere`].
pub(super) fn weather(city: &str, units: &str) -> Result<Value, NoWeatherThere> {
    let city = city.trim();
    if city.to_lowercase() == SUNKEN.to_lowercase() {
        return Err(NoWeatherThere);
    }
    let seed = seed(city);
    let snows = seed % 6 == 5;
    // Tenths of a degree: where it snows it is cold.
    let celsius = if snows { tenths(seed >> 8, -120, 20) } else { tenths(seed >> 8, 30, 360) };
    let metres_per_second = tenths(seed >> 24, 0, 180);
    let imperial = units == "imperial";
    Ok(json!({
        "city": city,
        "conditions": CONDITIONS.get(usize::try_from(seed % 6).unwrap_or_default()),
        "temperature": if imperial { rounded(celsius * 1.8 + 32.0) } else { celsius },
        "temperatureUnit": if imperial { "°F" } else { "°C" },
        "wind": if imperial { rounded(metres_per_second * 2.236_936) } else { metres_per_second },
        "windUnit": if imperial { "mph" } else { "m/s" },
        "humidityPercent": 30 + (seed >> 40) % 66,
    }))
}

/// FNV-1a of the name without regard to case, stirred once more since its high bits change little in short names.
fn seed(city: &str) -> u64 {
    let hash = city
        .to_lowercase()
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A number from `least` to `most` tenths.
fn tenths(seed: u64, least: i16, most: u16) -> f64 {
    let span = u64::from(most.saturating_add_signed(least.saturating_neg())) + 1;
    let steps = u16::try_from(seed % span).unwrap_or_default();
    (f64::from(steps) + f64::from(least)) / 10.0
}

fn rounded(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_city_always_has_the_same_weather_however_it_is_written() {
        assert_eq!(
            weather("Zürich", "metric").unwrap()["temperature"],
            weather(" ZÜRICH ", "metric").unwrap()["temperature"]
        );
        assert_ne!(weather("Zürich", "metric").unwrap(), weather("Bergen", "metric").unwrap());
    }

    #[test]
    fn values_stay_within_what_a_planet_allows() {
        for n in 0..2_000 {
            let report = weather(&format!("Town {n}"), "metric").unwrap();
            let degrees = report["temperature"].as_f64().unwrap();
            let snows = report["conditions"] == "snow";
            assert!(if snows { (-12.0..=2.0).contains(&degrees) } else { (3.0..=36.0).contains(&degrees) }, "{report}");
            assert!((0.0..=18.0).contains(&report["wind"].as_f64().unwrap()), "{report}");
            assert!((30..=95).contains(&report["humidityPercent"].as_u64().unwrap()), "{report}");
        }
    }

    #[test]
    fn imperial_is_the_same_weather_in_other_units() {
        let (metric, imperial) = (weather("Hanoi", "metric").unwrap(), weather("Hanoi", "imperial").unwrap());
        let fahrenheit = metric["temperature"].as_f64().unwrap() * 1.8 + 32.0;
        assert!((imperial["temperature"].as_f64().unwrap() - fahrenheit).abs() <= 0.05);
        assert_eq!(imperial["temperatureUnit"], "°F");
        assert_eq!(imperial["conditions"], metric["conditions"]);
    }

    #[test]
    fn atlantis_has_none() {
        assert!(weather("atlantis", "metric").unwrap_err().to_string().contains("under water"));
    }
}
