//! The record of calls, sessions, approvals and pins: what is written of each, without what must not show.
//!
//! [`Audit`] is what the stages share. What a call must have recorded before it leaves, and what may be answered once
//! that is done, is in [`crate::admit`] and [`crate::close`].

mod approval_step;
mod events;
mod lines;
mod redaction;

use std::{io, sync::Arc};

use footbridge_audit::{RecordLost, Recorder, Trail};
use footbridge_core::{limits::AuditLimits, random::Ids, redact::Redactor};

pub(crate) use approval_step::ApprovalStep;
pub(crate) use lines::{Arguments, Called, DecidedLine, Intent, Line, Refused};
use redaction::Redaction;

use crate::auth::Principal;

/// The record, as the stages write it. Clones share one writer.
#[derive(Clone)]
pub struct Audit {
    pub(crate) trail: Trail,
    pub(crate) redaction: Arc<Redaction>,
    pub(crate) ids: Arc<Ids>,
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}

impl Audit {
    /// Starts a record, in which the values of `secrets` show nowhere.
    ///
    /// # Errors
    /// When not even the first line can be written.
    pub fn start(recorder: impl Into<Recorder>, secrets: Redactor, limits: AuditLimits) -> io::Result<Self> {
        let recorder = recorder.into();
        let redaction = Arc::new(Redaction::new(secrets, recorder.settings()));
        let ids = Arc::new(Ids::new().map_err(io::Error::other)?);
        Ok(Self { trail: Trail::start(recorder, limits)?, redaction, ids })
    }

    /// Writes what is queued and ends the record. Blocks while it does.
    ///
    /// # Errors
    /// [`RecordLost`].
    pub fn close(&self) -> Result<(), RecordLost> {
        self.trail.close()
    }
}

pub(crate) fn session_of(principal: &Principal) -> &str {
    principal.session().name().as_str()
}

#[cfg(test)]
mod tests;
