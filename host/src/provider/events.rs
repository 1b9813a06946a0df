//! What happens between sending a call and its answer, for whoever watches that call.

use std::sync::{Arc, Mutex, PoisonError};

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
    watched: Option<Arc<Watched>>,
}

#[derive(Debug)]
struct Watched {
    watcher: mpsc::Sender<CallEvent>,
    redactor: Redactor,
    furthest: Mutex<f64>,
}

impl Events {
    pub(super) fn new(watcher: Option<mpsc::Sender<CallEvent>>, redactor: &Redactor) -> Self {
        let furthest = Mutex::new(f64::NEG_INFINITY);
        let watched = watcher.map(|watcher| Arc::new(Watched { watcher, redactor: redactor.clone(), furthest }));
        Self { watched }
    }

    /// Whether anybody watches.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.watched.is_some()
    }

    /// Tells how far the call is; what goes back is not told. A watcher that does not keep up misses some: progress is
    /// worth nothing later.
    pub fn progress(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        let Some(Watched { watcher, redactor, furthest }) = self.watched.as_deref() else { return };
        let mut furthest = furthest.lock().unwrap_or_else(PoisonError::into_inner);
        if !progress.is_finite() || progress <= *furthest {
            return;
        }
        *furthest = progress;
        let message = message.map(|text| redactor.scrub(text).into_owned());
        let total = total.filter(|total| total.is_finite());
        let _missed = watcher.try_send(CallEvent::Progress { progress, total, message });
    }

    /// The watcher itself, for a provider that has done all this already.
    pub(crate) fn into_watcher(self) -> Option<mpsc::Sender<CallEvent>> {
        self.watched.map(|watched| watched.watcher.clone())
    }
}
