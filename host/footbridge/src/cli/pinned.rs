//! What pins say to a call of a tool, for commands that ask what would become of one. Nothing is pinned by that.

use std::{collections::BTreeSet, path::Path};

use crate::store::{StoreError, StoreKind, StoredPin};
use footbridge_core::{catalogue::Offered, names::ServerName};

/// The pins of a store, if there is one.
#[derive(Debug, Default)]
pub(super) struct KnownPins(Vec<StoredPin>);

impl KnownPins {
    /// Reads those of one server, or of all.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub(super) async fn read(kind: StoreKind, state: &Path, server: Option<&str>) -> Result<Self, StoreError> {
        let Some(store) = kind.open_if_there(state).await? else { return Ok(Self::default()) };
        let pins = store.pins(server).await;
        store.close().await;
        pins.map(Self)
    }

    /// The tools of a server that are not what was pinned: whatever a policy says, calls of them are refused.
    pub(super) fn changed(&self, server: &ServerName, offered: &Offered) -> BTreeSet<String> {
        let origin = offered.origin();
        let of_it: Vec<&StoredPin> =
            self.0.iter().filter(|pin| pin.server == server.as_str() && pin.origin == origin).collect();
        let tools = offered.entries().tools();
        let is_other = |name: &str, digest| of_it.iter().any(|pin| pin.tool == name && pin.pinned.digest != digest);
        tools.filter(|tool| is_other(tool.name(), tool.digest())).map(|tool| tool.name().to_owned()).collect()
    }
}
