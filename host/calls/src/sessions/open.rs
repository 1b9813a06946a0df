//! An open session in the table: what others may do with it. What changes it stays with the table.

use std::sync::Arc;

use footbridge_proto::endpoint::Endpoint;
use tokio_util::task::TaskTracker;

use crate::{
    auth::{self, Principal},
    operator::Operator,
    session::{Session, SessionControl},
};

/// An open session.
pub struct Open<F> {
    control: SessionControl,
    endpoints: Vec<Endpoint>,
    front: F,
    users: TaskTracker,
}

impl<F> Open<F> {
    pub(super) fn new(control: SessionControl, endpoints: Vec<Endpoint>, front: F) -> Self {
        let users = TaskTracker::new();
        // Waiting for them is over as soon as there are none; more may come all the same.
        users.close();
        Self { control, endpoints, front, users }
    }

    pub(super) fn control(&self) -> &SessionControl {
        &self.control
    }

    /// The session.
    #[must_use]
    pub fn session(&self) -> &Arc<Session> {
        self.control.session()
    }

    /// Where it listened when it was opened.
    #[must_use]
    pub fn endpoints(&self) -> &[Endpoint] {
        &self.endpoints
    }

    /// What its program keeps of it.
    #[must_use]
    pub fn front(&self) -> &F {
        &self.front
    }

    /// An operator who calls in this session, which was opened for that.
    #[must_use]
    pub fn principal(&self, operator: &Operator) -> Principal {
        auth::operator(&self.control, operator)
    }

    /// Tasks that serve it, its listeners: its name is taken until they have ended.
    #[must_use]
    pub fn users(&self) -> &TaskTracker {
        &self.users
    }
}
