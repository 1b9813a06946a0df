//! How an approval is, in a word: in records, on the wire, and in what commands print.
//!
//! Whoever reads it may be older than whoever wrote it: a word that is not known here stays as it is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How an approval is, in a word.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ApprovalStatus {
    /// Somebody is asked.
    Pending,
    /// Allowed, and not used yet.
    Granted,
    /// Somebody said no.
    Denied,
    /// Nobody answered in time, or nobody used the grant in time.
    Expired,
    /// Whoever asked left.
    Withdrawn,
    /// Allowed and used: the call left, or was about to.
    Used,
    /// There is none of that id in the session that asks about it.
    Unknown,
    /// A word of a later version.
    Later(String),
}

impl ApprovalStatus {
    /// The words of this version.
    const ALL: [Self; 7] =
        [Self::Pending, Self::Granted, Self::Denied, Self::Expired, Self::Withdrawn, Self::Used, Self::Unknown];

    /// The word.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Pending => "pending",
            Self::Granted => "granted",
            Self::Denied => "denied",
            Self::Expired => "expired",
            Self::Withdrawn => "withdrawn",
            Self::Used => "used",
            Self::Unknown => "unknown",
            Self::Later(word) => word,
        }
    }

    /// Whether somebody said yes.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        match self {
            Self::Granted | Self::Used => true,
            Self::Pending | Self::Denied | Self::Expired | Self::Withdrawn | Self::Unknown | Self::Later(_) => false,
        }
    }
}

impl fmt::Display for ApprovalStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<String> for ApprovalStatus {
    fn from(word: String) -> Self {
        Self::ALL.into_iter().find(|one| one.as_str() == word).unwrap_or(Self::Later(word))
    }
}

impl From<ApprovalStatus> for String {
    fn from(status: ApprovalStatus) -> Self {
        status.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_as_they_are_written_and_those_of_a_later_version_stay() {
        for one in ApprovalStatus::ALL {
            let text = serde_json::to_string(&one).unwrap();
            assert_eq!(text, format!("\"{one}\""));
            assert_eq!(serde_json::from_str::<ApprovalStatus>(&text).unwrap(), one);
        }
        let later: ApprovalStatus = serde_json::from_str("\"later\"").unwrap();
        assert_eq!(later, ApprovalStatus::Later("later".into()));
        assert_eq!(serde_json::to_string(&later).unwrap(), "\"later\"");
    }

    #[test]
    fn the_words_are_those_that_the_protocol_names() {
        let words = ApprovalStatus::ALL.map(String::from);
        assert_eq!(words, ["pending", "granted", "denied", "expired", "withdrawn", "used", "unknown"]);
    }
}
