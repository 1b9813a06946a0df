//! What happens between sending a call and its answer, for whoever watches that call.

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
