//! What a look at one hop after the other found: for people, a line each with what it means and what mends it, and for
//! programs as JSON. What is quoted from others is escaped here.

use footbridge_proto::text::Escaped;
use serde::Serialize;

/// How a hop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Health {
    /// As it should be.
    Ok,
    /// Odd, and nothing fails because of it.
    Note,
    /// Something fails because of it.
    Problem,
    /// Not looked at, because of what came before or since there is no such thing here.
    Skipped,
}

/// What was found at one hop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The hop.
    pub check: String,
    /// How it is.
    pub status: Health,
    /// What was found.
    pub found: String,
    /// What that means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub means: Option<String>,
    /// What mends it: mostly a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

impl Finding {
    fn of(status: Health, check: &str, found: impl Into<String>) -> Self {
        Self { check: check.to_owned(), status, found: found.into(), means: None, mend: None }
    }

    /// A hop that is as it should be.
    #[must_use]
    pub fn ok(check: &str, found: impl Into<String>) -> Self {
        Self::of(Health::Ok, check, found)
    }

    /// Something odd.
    #[must_use]
    pub fn note(check: &str, found: impl Into<String>) -> Self {
        Self::of(Health::Note, check, found)
    }

    /// A hop at which something fails.
    #[must_use]
    pub fn problem(check: &str, found: impl Into<String>) -> Self {
        Self::of(Health::Problem, check, found)
    }

    /// A hop that was not looked at.
    #[must_use]
    pub fn skipped(check: &str, why: impl Into<String>) -> Self {
        Self::of(Health::Skipped, check, why)
    }

    /// The same, where something else was asked about: a problem is something odd then.
    #[must_use]
    pub fn beside(self) -> Self {
        let status = if self.status == Health::Problem { Health::Note } else { self.status };
        Self { status, ..self }
    }

    /// The same, with what it means.
    #[must_use]
    pub fn means(self, what: impl Into<String>) -> Self {
        Self { means: Some(what.into()), ..self }
    }

    /// The same, with what mends it.
    #[must_use]
    pub fn mend(self, how: impl Into<String>) -> Self {
        Self { mend: Some(how.into()), ..self }
    }
}

/// Characters of the longest name of a hop that others are aligned with.
const WIDEST: usize = 32;

/// Whether nothing fails.
#[must_use]
pub fn are_well(all: &[Finding]) -> bool {
    all.iter().all(|one| one.status != Health::Problem)
}

/// For people.
#[must_use]
pub fn text(all: &[Finding]) -> String {
    // One long name, as a socket's path is, moves nothing but itself.
    let width = all.iter().map(|one| one.check.chars().count()).filter(|width| *width <= WIDEST).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { check, status, found, means, mend } in all {
        let word = match status {
            Health::Ok => "ok",
            Health::Note => "note",
            Health::Problem => "PROBLEM",
            Health::Skipped => "-",
        };
        text.push_str(&format!("{word:<7}  {:<width$}  {}\n", Escaped(check).to_string(), Escaped(found)));
        let more = [("means", means), ("mend", mend)];
        for (name, what) in more.into_iter().filter_map(|(name, what)| Some((name, what.as_ref()?))) {
            text.push_str(&format!("         {name:<5}  {}\n", Escaped(what)));
        }
    }
    let problems = all.iter().filter(|one| one.status == Health::Problem).count();
    text.push_str(&match problems {
        0 => "all is well\n".to_owned(),
        1 => "1 problem\n".to_owned(),
        many => format!("{many} problems, the first of them first\n"),
    });
    text
}

/// For programs: one object.
#[must_use]
pub fn json(all: &[Finding]) -> String {
    format!("{}\n", serde_json::json!({"ok": are_well(all), "checks": all}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_see_what_it_means_and_what_mends_it_and_programs_the_same() {
        let all = [
            Finding::ok("port", "127.0.0.1:7179"),
            Finding::problem("token", "refused\u{1b}").means("it was rotated").mend("set the new one"),
            Finding::skipped("servers", "not asked"),
        ];
        assert_eq!(
            text(&all),
            "ok       port     127.0.0.1:7179\nPROBLEM  token    refused\\u{1b}\n         means  it was rotated\n         mend   \
             set the new one\n-        servers  not asked\n1 problem\n"
        );
        let value: serde_json::Value = serde_json::from_str(&json(&all)).unwrap();
        assert_eq!((&value["ok"], &value["checks"][1]["mend"]), (&false.into(), &"set the new one".into()));
        assert_eq!(value["checks"][0], serde_json::json!({"check": "port", "status": "ok", "found": "127.0.0.1:7179"}));
        assert!(are_well(&all[..1]) && text(&all[..1]).ends_with("all is well\n"));
    }
}
