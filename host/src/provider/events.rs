//! What happens between sending a call and its answer, for whoever watches that call.

use tokio::sync::mpsc;

use crate::redact::Redactor;

/// A sign of life of a running call. Texts are the server's own, less the values of configured secrets.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEvent {
    /// `notifications/progress`; it only ever grows.
    Progress {
        /// How far it is.
        progress: f64,
        /// How far it will go, if the server knows.
        total: Option<f64>,
        /// What it does now.
        message: Option<String>,
    },
}

/// Where a provider tells what happens. Clones tell the same watcher.
#[derive(Debug, Clone, Default)]
pub struct Events {
    watcher: Option<mpsc::Sender<CallEvent>>,
    redactor: Redactor,
}

impl Events {
    pub(super) fn new(watcher: Option<mpsc::Sender<CallEvent>>, redactor: Redactor) -> Self {
        Self { watcher, redactor }
    }

    /// Whether anybody watches.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.watcher.is_some()
    }

    /// Tells how far the call is. A watcher that does not keep up misses some: progress is worth nothing later.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(watcher) = &self.watcher else { return };
        let message = message.map(|text| self.redactor.scrub(text).into_owned());
        let _missed = watcher.try_send(CallEvent::Progress { progress, total, message });
    }

    /// The watcher itself, for a provider that has taken the values of secrets out already.
    pub(crate) fn into_watcher(self) -> Option<mpsc::Sender<CallEvent>> {
        self.watcher
    }
}
