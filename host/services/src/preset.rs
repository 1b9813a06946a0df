//! What is known of some services: data, one file each in `presets/`.

use std::{collections::BTreeMap, fmt};

use footbridge_core::service::RequestPattern;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::shape::ErrorShape;

macro_rules! presets {
    ($($name:literal),*) => {
        /// The presets: names, and what their files say.
        pub const PRESETS: &[(&str, &str)] = &[$(($name, include_str!(concat!("../presets/", $name, ".toml")))),*];
    };
}

presets!(
    "anthropic",
    "azure-openai",
    "cargo",
    "gemini",
    "git",
    "github",
    "gitlab",
    "npm",
    "openai",
    "openrouter",
    "pip"
);

/// What is known of a service.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Preset {
    /// Where it is, unless that is the operator's to name.
    pub url: Option<String>,
    /// The header that its credential goes into.
    pub header: Option<String>,
    /// What that header holds: `{credential}` is the credential, `{basic}` it with a user, for Basic authentication.
    pub value: Option<String>,
    /// The user that goes with the credential in Basic authentication.
    pub user: Option<String>,
    /// Whether nothing of it works without a credential.
    pub needs_credential: bool,
    /// What may be asked.
    #[serde(deserialize_with = "some_patterns")]
    pub requests: Option<Vec<RequestPattern>>,
    /// What changes nothing whatever its method.
    #[serde(deserialize_with = "patterns")]
    pub reads: Vec<RequestPattern>,
    /// The shape of errors.
    pub shape: ErrorShape,
    /// Whether answers say how much of a model was used.
    pub usage: bool,
    /// Variables that guests get.
    pub environment: BTreeMap<String, String>,
    /// Settings of git that guests get.
    pub git: BTreeMap<String, String>,
}

/// There is no preset of this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoPreset(pub String);

impl fmt::Display for NoPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
        write!(f, "there is no preset {:?}; there are {}", self.0, names.join(", "))
    }
}

impl std::error::Error for NoPreset {}

impl Preset {
    /// The preset of this name.
    ///
    /// # Errors
    /// [`NoPreset`].
    pub fn of(name: &str) -> Result<Self, NoPreset> {
        let text = PRESETS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        // A test reads all of them.
        text.and_then(|text| toml::from_str(text).ok()).ok_or_else(|| NoPreset(name.to_owned()))
    }
}

fn patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<RequestPattern>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}

fn some_patterns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<RequestPattern>>, D::Error> {
    patterns(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_reads() {
        for (name, text) in PRESETS {
            let preset: Preset = toml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(preset.header.is_some(), "{name}");
            assert!(!preset.environment.is_empty() || !preset.git.is_empty(), "{name}");
            let is_registry = matches!(*name, "npm" | "pip" | "cargo" | "git" | "azure-openai");
            assert_eq!(preset.url.is_none(), is_registry, "{name}");
            assert!(Preset::of(name).is_ok(), "{name}");
        }
        assert!(Preset::of("none").unwrap_err().to_string().contains("there are anthropic, "));
    }
    #[test]
    fn the_page_says_what_each_preset_lets_through() {
        let page = include_str!("../../../docs/services.md");
        for (name, _) in PRESETS {
            let is_row =
                |line: &&str| line.starts_with('|') && line.split('|').nth(1).unwrap().contains(&format!("`{name}`"));
            let row = page.lines().find(is_row).unwrap_or_else(|| panic!("{name} has no row"));
            let says = row.split('|').nth(4).unwrap().trim();
            let requests = Preset::of(name).unwrap().requests;
            let all = requests.map(|all| all.iter().map(|one| format!("`{one}`")).collect::<Vec<_>>().join(", "));
            assert_eq!(says, all.unwrap_or_else(|| "everything".to_owned()), "{name}");
        }
    }
}
