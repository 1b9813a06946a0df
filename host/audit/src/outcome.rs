//! What records say became of something: the words of the field `outcome`, which whoever reads records takes as text, since
//! another version may know other ones.

use serde::Serialize;

/// What became of something whose intent was recorded, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedOutcome {
    /// It was answered.
    Ok,
    /// A tool's result says that the tool failed.
    ToolError,
    /// The server answered with an error.
    ServerError,
    /// The answer of a service has a status of 400 or more.
    HttpError,
    /// The answer was over a limit.
    TooLarge,
    /// A budget of its session ended it.
    BudgetSpent,
    /// What came first on a tunnel was not what has to.
    Refused,
    /// Nothing left.
    NotSent,
    /// It left, and what became of it nobody here knows.
    Unknown,
}

impl RecordedOutcome {
    /// Whether an answer came to its end, whatever it says.
    #[must_use]
    pub fn is_whole_answer(self) -> bool {
        match self {
            Self::Ok | Self::ToolError | Self::ServerError | Self::HttpError => true,
            Self::TooLarge | Self::BudgetSpent | Self::Refused | Self::NotSent | Self::Unknown => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_what_they_were_and_the_documentation_says_each() {
        let all = [
            (RecordedOutcome::Ok, "ok"),
            (RecordedOutcome::ToolError, "tool_error"),
            (RecordedOutcome::ServerError, "server_error"),
            (RecordedOutcome::HttpError, "http_error"),
            (RecordedOutcome::TooLarge, "too_large"),
            (RecordedOutcome::BudgetSpent, "budget_spent"),
            (RecordedOutcome::Refused, "refused"),
            (RecordedOutcome::NotSent, "not_sent"),
            (RecordedOutcome::Unknown, "unknown"),
        ];
        let page = include_str!("../../../docs/record.md");
        let row = page.lines().find(|line| line.starts_with("| `outcome` | `ok`")).unwrap();
        for (outcome, word) in all {
            assert_eq!(serde_json::to_value(outcome).unwrap(), word);
            assert!(row.contains(&format!("`{word}`")), "docs/record.md does not say {word}");
        }
    }
}
