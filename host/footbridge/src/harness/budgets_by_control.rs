//! Other budgets for a session that is open, the same for every harness.

use std::sync::Arc;

use super::{Harness, calls_by_control::no_session, sessions::Places};
use crate::control::wire::{BudgetInfo, LimitSession, LimitedSession, Refusal, RefusalKind};
use footbridge_calls::{
    operator::Operator,
    session::BudgetOf,
    sessions::{Open, Sessions},
};
use footbridge_core::{limits::overrides::Overrides, names::SessionName};

/// What changes the budgets of open sessions, apart from the harness: it goes to whoever lets operators in.
#[derive(Clone)]
pub(crate) struct OpenBudgets(Sessions<Places>);

/// What is asked for, made sense of.
#[derive(Debug)]
pub(crate) struct NewBudgets {
    pub(crate) session: SessionName,
    pub(crate) limits: Overrides,
}

impl NewBudgets {
    pub(crate) fn read(asked: &LimitSession) -> Result<Self, Refusal> {
        let invalid = |why: String| Refusal::new(RefusalKind::Invalid, why);
        let session = asked.session.parse().map_err(|_| no_session(&asked.session))?;
        let limits = Overrides::read(&asked.limits).map_err(|error| invalid(error.to_string()))?;
        match limits.lasting() {
            Some(name) => Err(invalid(format!(
                "{name} holds from the start of a session to its end: make the session anew; what can be changed is \
                 budget.requests, budget.tokens, budget.service_bytes and budget.tunnel_bytes"
            ))),
            None => Ok(Self { session, limits }),
        }
    }
}

impl Harness {
    /// For operators who come in elsewhere.
    pub(crate) fn open_budgets(&self) -> OpenBudgets {
        OpenBudgets(self.sessions.clone())
    }
}

impl OpenBudgets {
    /// Gives a session these budgets of its own; what it has spent stays so.
    pub(crate) fn set(&self, by: &Operator, asked: NewBudgets) -> Result<LimitedSession, Refusal> {
        let NewBudgets { session: name, limits } = asked;
        if !self.0.limit(by, &name, limits) {
            return Err(no_session(name.as_str()));
        }
        let spent = |open: Arc<Open<Places>>| BudgetOf::ALL.map(|of| (of, open.session().spent(of)));
        let budgets = self.0.find(&name).map(|open| BudgetInfo::all(&spent(open)));
        Ok(LimitedSession { name: name.to_string(), budgets })
    }
}
