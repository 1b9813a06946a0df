//! How much a session has used of its budgets: bytes of arguments and results of what its policy gives it; requests,
//! tokens and bytes of services of what its limits do.
//!
//! What is spent stays spent for the life of the session, also where the policy changes, and where the session goes on in
//! another process.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

/// One of the counts.
#[derive(Debug, Default)]
pub struct BytesUsed(AtomicU64);

/// Which budget of a session is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BudgetOf {
    /// Bytes of arguments.
    Arguments,
    /// Bytes of results.
    Results,
    /// Requests to services, and tunnels.
    Requests,
    /// Tokens of models.
    Tokens,
    /// Bytes to and from services.
    ServiceBytes,
    /// Bytes through tunnels.
    TunnelBytes,
}

impl BudgetOf {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Arguments, Self::Results, Self::Requests, Self::Tokens, Self::ServiceBytes, Self::TunnelBytes];

    /// As it is called where it is set: in the policy or, with a dot, in the limits.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Arguments => "argument_bytes",
            Self::Results => "result_bytes",
            Self::Requests => "budget.requests",
            Self::Tokens => "budget.tokens",
            Self::ServiceBytes => "budget.service_bytes",
            Self::TunnelBytes => "budget.tunnel_bytes",
        }
    }
}

/// What was spent of each budget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BudgetsSpent(BTreeMap<BudgetOf, u64>);

impl BudgetsSpent {
    /// What was spent of one.
    #[must_use]
    pub fn of(&self, of: BudgetOf) -> u64 {
        self.0.get(&of).copied().unwrap_or_default()
    }

    /// Of what something was spent, as the budgets are called.
    #[must_use]
    pub fn written(&self) -> BTreeMap<&'static str, u64> {
        self.0.iter().map(|(of, spent)| (of.word(), *spent)).collect()
    }

    /// Makes sense of what was written; nothing where there is no such budget.
    #[must_use]
    pub fn read(written: &BTreeMap<String, u64>) -> Option<Self> {
        let of = |word: &String| BudgetOf::ALL.into_iter().find(|of| of.word() == word);
        written.iter().map(|(word, spent)| Some((of(word)?, *spent))).collect()
    }
}

impl FromIterator<(BudgetOf, u64)> for BudgetsSpent {
    fn from_iter<I: IntoIterator<Item = (BudgetOf, u64)>>(all: I) -> Self {
        Self(all.into_iter().filter(|(_, spent)| *spent > 0).collect())
    }
}

/// How a budget is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetUse {
    /// What was spent since the session was created.
    pub spent: u64,
    /// How much that may be; none is no limit.
    pub limit: Option<u64>,
}

/// The budget has less left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded;

impl BytesUsed {
    /// So much was spent before.
    pub(crate) fn since(before: u64) -> Self {
        Self(AtomicU64::new(before))
    }

    /// Counts bytes, unless that would be more than the limit.
    ///
    /// # Errors
    /// [`Exceeded`]; then nothing was counted.
    pub(crate) fn spend(&self, bytes: usize, limit: Option<u64>) -> Result<(), Exceeded> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let limit = limit.unwrap_or(u64::MAX);
        let within = |spent: u64| spent.checked_add(bytes).filter(|all| *all <= limit);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).map(drop).map_err(|_| Exceeded)
    }

    /// Counts what passed already; false where that is more than the limit.
    pub(crate) fn add(&self, more: u64, limit: Option<u64>) -> bool {
        let add = |spent: u64| Some(spent.saturating_add(more));
        let before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        before.is_ok_and(|spent| spent.saturating_add(more) <= limit.unwrap_or(u64::MAX))
    }

    /// Whether so many bytes could be counted now.
    #[must_use]
    pub fn leaves(&self, bytes: usize, limit: Option<u64>) -> bool {
        let all = u64::try_from(bytes).ok().and_then(|bytes| self.bytes().checked_add(bytes));
        all.is_some_and(|all| all <= limit.unwrap_or(u64::MAX))
    }

    /// Takes back what was counted for a call that was not made.
    pub(crate) fn give_back(&self, bytes: usize) {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.0.fetch_sub(bytes.min(self.bytes()), Ordering::Relaxed);
    }

    /// Whether nothing is left.
    #[must_use]
    pub(crate) fn is_all_of(&self, limit: Option<u64>) -> bool {
        limit.is_some_and(|limit| self.bytes() >= limit)
    }

    /// What was spent.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_spent_is_read_as_it_was_written() {
        let spent: BudgetsSpent = BudgetOf::ALL.into_iter().zip([0, 1, u64::MAX]).collect();
        let written = spent.written();
        assert_eq!(written, [("budget.requests", u64::MAX), ("result_bytes", 1)].into());
        let mut written: BTreeMap<String, u64> =
            written.into_iter().map(|(word, spent)| (word.to_owned(), spent)).collect();
        assert_eq!(BudgetsSpent::read(&written), Some(spent));
        written.insert("budget.naps".to_owned(), 1);
        assert_eq!(BudgetsSpent::read(&written), None);
    }

    #[test]
    fn what_does_not_fit_is_not_counted() {
        let spent = BytesUsed::default();
        assert_eq!(spent.spend(6, Some(10)), Ok(()));
        assert!(spent.leaves(4, Some(10)) && !spent.leaves(5, Some(10)) && spent.leaves(5, None));
        assert_eq!(spent.spend(5, Some(10)), Err(Exceeded));
        assert_eq!((spent.spend(4, Some(10)), spent.bytes()), (Ok(()), 10));
        assert!(spent.is_all_of(Some(10)) && !spent.is_all_of(None) && !spent.is_all_of(Some(11)));
        spent.give_back(4);
        assert_eq!(spent.spend(4, Some(10)), Ok(()));
        assert_eq!(spent.spend(usize::MAX, None), Err(Exceeded));
        assert!(spent.add(1, Some(11)) && !spent.add(1, Some(11)) && spent.add(1, None));
        assert_eq!(spent.bytes(), 13);
        assert!(!spent.add(u64::MAX, Some(u64::MAX - 1)) && !spent.add(1, Some(20)));
        assert_eq!(spent.bytes(), u64::MAX, "it never begins anew");
    }
}
