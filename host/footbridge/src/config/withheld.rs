//! Variables of this process that programs outside of sandboxes do not get as they are: they say where code and settings
//! are, and lead to where a guest writes. What leads elsewhere of a list of folders is kept.
//!
//! PATH has rules of its own, in [`Writable::search_path`]. HOME cannot be left out: a program that a guest could reach
//! through it is refused.

use std::collections::BTreeMap;

use super::{loading::is_loading, writable::Writable};

/// What is left of each; nothing of most.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Withheld(BTreeMap<String, Option<String>>);

impl Withheld {
    /// Of these variables, where guests write this.
    pub(super) fn of(variables: &[(String, String)], writable: &Writable) -> Self {
        let counts = |name: &str| is_loading(name) && !matches!(name, "PATH" | "HOME");
        let leading = variables.iter().filter(|(name, value)| counts(name) && writable.is_led_to_by(value));
        let kept = |value: &str| writable.search_path(value).kept.filter(|kept| !writable.is_led_to_by(kept));
        Self(leading.map(|(name, value)| (name.clone(), kept(value))).collect())
    }

    /// What a program gets of a variable of this process.
    pub(crate) fn handed_on<'a>(&'a self, name: &str, value: &'a str) -> Option<&'a str> {
        self.0.get(name).map_or(Some(value), Option::as_deref)
    }

    /// Their names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_to_a_guest_is_not_handed_on_and_the_rest_is() {
        let place = tempfile::tempdir().unwrap();
        let guest = place.path().canonicalize().unwrap().join("a guest");
        std::fs::create_dir(&guest).unwrap();
        let writable = Writable::folders([guest.clone()]);
        let guest = guest.display();
        let variables: Vec<(String, String)> = [
            ("PATH", format!("{guest}")),
            ("HOME", format!("{guest}")),
            ("PWD", format!("{guest}")),
            ("ROOT", format!("{guest}")),
            ("TMPDIR", format!("{guest}/tmp")),
            ("XDG_CONFIG_HOME", "/srv/config".to_owned()),
            ("XDG_DATA_HOME", format!("{guest}-2/data")),
            ("PYTHONPATH", format!("/srv/lib:{guest}/lib:/opt/lib")),
            ("PERL5OPT", format!("-I/srv/lib -I{guest}")),
            ("npm_config_cache", format!("{guest}")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        let withheld = Withheld::of(&variables, &writable);
        let names: Vec<&str> = withheld.names().collect();
        assert_eq!(names, ["PERL5OPT", "PYTHONPATH", "TMPDIR", "npm_config_cache"]);
        assert_eq!(withheld.handed_on("PYTHONPATH", "as it was"), Some("/srv/lib:/opt/lib"));
        assert_eq!(withheld.handed_on("TMPDIR", "as it was"), None);
        assert_eq!(withheld.handed_on("PWD", "as it was"), Some("as it was"));
        assert_eq!(Withheld::of(&variables, &Writable::default()), Withheld::default());
    }
}
