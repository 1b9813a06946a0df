//! Everything that a record is started with: where it is written, what of a call it shows, who signs its heads.

use std::path::Path;

use super::{
    FileJournal, HeadSink, Journal, JournalError, SharedJournal,
    head::{HEADS, HeadKey},
    head_file::HeadFile,
    heads::{Heads, Schedule},
    settings::AuditSettings,
};
use crate::private_folder::make_private;

/// A journal and how it is written. Any [`Journal`] is one, with digests of arguments and no signed heads.
pub struct Recorder {
    pub(super) journal: Box<dyn Journal>,
    settings: AuditSettings,
    key: Option<HeadKey>,
    sinks: Vec<Box<dyn HeadSink>>,
    /// What the writing thread does first.
    pub(super) thread_start: fn(),
}

impl<J: Journal + 'static> From<J> for Recorder {
    fn from(journal: J) -> Self {
        Self {
            journal: Box::new(journal),
            settings: AuditSettings::default(),
            key: None,
            sinks: Vec::new(),
            thread_start: || {},
        }
    }
}

impl Recorder {
    /// A new chain in a folder of its own below `audit`, with heads signed by the key there, which is made where
    /// nothing was ever signed.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn open(audit: &Path, settings: &AuditSettings) -> Result<Self, JournalError> {
        Self::with_key(audit, settings, || {
            let journal = FileJournal::create(audit)?.with(settings);
            tracing::info!(record = %journal.path().display(), "calls are recorded");
            Ok(journal)
        })
    }

    /// As [`Self::open`], in the chain that all one-shot calls of a user share.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn one_shot(audit: &Path, settings: &AuditSettings) -> Result<Self, JournalError> {
        Self::with_key(audit, settings, || {
            let journal = SharedJournal::open(audit, settings)?;
            tracing::info!(record = %journal.folder().display(), "calls are recorded");
            Ok(journal)
        })
    }

    fn with_key<J: Journal + 'static>(
        audit: &Path,
        settings: &AuditSettings,
        journal: impl FnOnce() -> Result<J, JournalError>,
    ) -> Result<Self, JournalError> {
        make_private(audit)?;
        // Before the chain's folder: without a key nothing is begun.
        let key = HeadKey::open(audit)?;
        let journal = journal()?;
        if !settings.sync {
            tracing::warn!(
                "[audit] sync = false: a crash of the machine loses the last records of calls that were made"
            );
        }
        let heads = HeadFile { path: audit.join(HEADS) };
        let settings = settings.clone();
        Ok(Self { settings, key: Some(key), ..Self::from(journal) }.sink(heads))
    }

    /// Another place that keeps signed heads, as a store.
    #[must_use]
    pub fn sink(mut self, sink: impl HeadSink + 'static) -> Self {
        self.sinks.push(Box::new(sink));
        self
    }

    /// What the thread that writes does first.
    #[must_use]
    pub fn on_thread_start(self, thread_start: fn()) -> Self {
        Self { thread_start, ..self }
    }

    /// How it is written, and what it shows.
    #[must_use]
    pub fn settings(&self) -> &AuditSettings {
        &self.settings
    }

    /// Takes the heads out of it, and starts to hand them on.
    pub(super) fn take_heads(&mut self) -> std::io::Result<Option<Heads>> {
        let Some(key) = self.key.take() else { return Ok(None) };
        let settings = &self.settings;
        let schedule = Schedule { records: settings.head_records.max(1), time: settings.head_time };
        Heads::start(key, schedule, std::mem::take(&mut self.sinks)).map(Some)
    }
}
