//! Compiled schemas that are kept, of all servers together no more than so many bytes.
//!
//! Beyond that the server with the most loses the one that was used longest ago: a server with many large schemas puts
//! out its own. What is gone is compiled again when it is needed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::{BadSchema, InputSchema};
use crate::{digest::Digest, names::ServerName};

/// Bytes that are kept of all servers, as [`InputSchema::bytes`] counts them.
const MAX_BYTES: usize = 24 * 1024 * 1024;
/// What one that cannot be used takes, and the place of each.
const PLACE: usize = 512;

/// What compiling a schema came to.
pub type Compiled = Result<Arc<InputSchema>, BadSchema>;

/// Compiled schemas by server and definition.
#[derive(Debug, Default)]
pub struct KeptSchemas(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    servers: HashMap<ServerName, OfServer>,
    bytes: usize,
    /// Counts uses.
    uses: u64,
}

#[derive(Debug, Default)]
struct OfServer {
    schemas: HashMap<Digest, Kept>,
    bytes: usize,
}

#[derive(Debug)]
struct Kept {
    compiled: Compiled,
    bytes: usize,
    used: u64,
}

impl KeptSchemas {
    /// The compiled schema of a definition, if it is kept.
    #[must_use]
    pub fn get(&self, server: &ServerName, definition: Digest) -> Option<Compiled> {
        let mut inner = self.lock();
        inner.uses += 1;
        let now = inner.uses;
        let kept = inner.servers.get_mut(server)?.schemas.get_mut(&definition)?;
        kept.used = now;
        Some(kept.compiled.clone())
    }

    /// As [`Self::get`]; what is not kept is compiled now, which may take long, and kept unless it says nothing for
    /// good.
    ///
    /// # Errors
    /// What `compile` says.
    pub fn get_or_compile(
        &self,
        server: &ServerName,
        definition: Digest,
        compile: impl FnOnce() -> Result<InputSchema, BadSchema>,
    ) -> Compiled {
        if let Some(kept) = self.get(server, definition) {
            return kept;
        }
        let compiled = compile().map(Arc::new);
        if compiled.as_ref().err() != Some(&BadSchema::NotNow) {
            self.lock().keep(server, definition, compiled.clone());
        }
        compiled
    }

    /// How many there are, and their bytes.
    #[must_use]
    pub fn total(&self) -> (usize, usize) {
        let inner = self.lock();
        (inner.servers.values().map(|of| of.schemas.len()).sum(), inner.bytes)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn keep(&mut self, server: &ServerName, definition: Digest, compiled: Compiled) {
        self.uses += 1;
        let bytes = PLACE + compiled.as_ref().map_or(0, |schema| schema.bytes());
        let kept = Kept { compiled, bytes, used: self.uses };
        let of = self.servers.entry(server.clone()).or_default();
        let before = of.schemas.insert(definition, kept).map_or(0, |before| before.bytes);
        of.bytes = of.bytes + bytes - before;
        self.bytes = self.bytes + bytes - before;
        while self.bytes > MAX_BYTES && self.put_one_out() {}
    }

    /// Puts the one out that the server with the most used longest ago.
    fn put_one_out(&mut self) -> bool {
        let Some(most) = self.servers.values_mut().max_by_key(|of| of.bytes) else { return false };
        let Some((oldest, _)) = most.schemas.iter().min_by_key(|(_, kept)| kept.used) else { return false };
        let oldest = *oldest;
        let Some(gone) = most.schemas.remove(&oldest) else { return false };
        most.bytes -= gone.bytes;
        self.bytes -= gone.bytes;
        self.servers.retain(|_, of| !of.schemas.is_empty());
        true
    }
}
