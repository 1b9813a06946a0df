//! What the log says of a service's failures: once a minute each, with how many there were, since whoever asks sets their
//! pace. The record has every one.

use std::{
    fmt,
    sync::{Mutex, PoisonError},
    time::Instant,
};

use footbridge_core::sparingly::Sparingly;

use crate::no_connection::NoConnection;

/// Which failures of one service were told, and when.
#[derive(Debug, Default)]
pub(crate) struct Told {
    no_credential: Mutex<Sparingly>,
    no_connection: Mutex<Sparingly>,
    not_taken: Mutex<Sparingly>,
}

impl Told {
    /// Nothing was sent, since there is no credential to send it with.
    pub(crate) fn no_credential(&self, service: &str, why: &dyn fmt::Display) {
        if let Some(requests) = counted(&self.no_credential) {
            tracing::warn!(service, %why, requests, "requests to a service without its credential are refused");
        }
    }

    /// Nothing was sent, since there is no connection to an origin, or to the host of a tunnel.
    pub(crate) fn no_connection(&self, service: &str, origin: &dyn fmt::Display, why: NoConnection) {
        if let Some(requests) = counted(&self.no_connection) {
            tracing::warn!(service, last = %origin, %why, requests, "no connection");
        }
    }

    /// An answer that the guest can do nothing about.
    pub(crate) fn not_taken(&self, service: &str) {
        if let Some(answers) = counted(&self.not_taken) {
            tracing::warn!(
                service,
                answers,
                "the origin answers 401 to the credential that is put in here: replace it if it is wrong or was taken back; \
                 a daemon reads it again at \"footbridge config reload\", a run at its start"
            );
        }
    }
}

/// Counts one more; gives how many there were since it was said last, where it is time.
fn counted(sparingly: &Mutex<Sparingly>) -> Option<u64> {
    sparingly.lock().unwrap_or_else(PoisonError::into_inner).may_say(1, Instant::now())
}
