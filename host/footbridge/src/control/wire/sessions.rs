//! What is asked and told about a session of any harness, the daemon or a run.

use std::collections::BTreeMap;

use footbridge_calls::session::{BudgetOf, BudgetUse};
use serde::{Deserialize, Serialize};

/// Other budgets of a session.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitSession {
    /// Its name.
    pub(crate) session: String,
    /// The limits that it is to have, by name.
    pub(crate) limits: BTreeMap<String, String>,
}

/// The session as it is then.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LimitedSession {
    /// Its name.
    pub(crate) name: String,
    /// What it has spent of its budgets; nothing of one that is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) budgets: Option<BTreeMap<String, BudgetInfo>>,
}

/// How a budget is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BudgetInfo {
    /// What was spent since the session was created.
    pub(crate) spent: u64,
    /// How much that may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) limit: Option<u64>,
}

impl BudgetInfo {
    /// Those that there are, or that something was spent of, by name.
    pub(crate) fn all(all: &[(BudgetOf, BudgetUse)]) -> BTreeMap<String, Self> {
        let told = all.iter().filter(|(_, of)| of.spent > 0 || of.limit.is_some());
        told.map(|(name, of)| (name.word().to_owned(), Self { spent: of.spent, limit: of.limit })).collect()
    }
}
