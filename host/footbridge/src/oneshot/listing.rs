//! What servers offer now: they are started, listed, compared with their pins, and ended. What comes of it is kept.

use std::{path::Path, sync::Arc};

use footbridge_proto::wire::ToolEntry;

use super::lists::ToolsList;
use crate::{catalogues::catalogues, composition::open_store, config::Config};
use footbridge_calls::{pins::Pins, provider::Unavailable};
use footbridge_core::{catalogue::Offered, names::ServerName};

/// A server and what it offers, or why that is not known.
pub(crate) type Listed = (ServerName, Result<ToolsList, String>);

/// Starts all servers of a configuration side by side, and lists them.
///
/// # Errors
/// When the pins cannot be looked at.
pub(crate) async fn list(config: Config, state: &Path) -> anyhow::Result<Vec<Listed>> {
    let store = open_store(state).await?;
    let pins = Pins::in_store(Arc::clone(&store) as _);
    let mut all = Vec::new();
    for (name, offered) in catalogues(config, |_| true).await {
        let list = match offered {
            Ok(offered) => compared(&pins, &name, &offered).await,
            Err(why) => Err(why),
        };
        all.push((name, list.map_err(|why| why.to_string())));
    }
    store.close().await;
    Ok(all)
}

/// What a server offers, as a list; what has no pin yet is pinned.
pub(crate) async fn compared(
    pins: &Pins,
    server: &ServerName,
    offered: &Arc<Offered>,
) -> Result<ToolsList, Unavailable> {
    let vetted = pins.vet(server, offered).await?;
    let tools = offered.entries().tools().map(|tool| {
        let entry = ToolEntry {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            has_structured_output: tool.is_structured(),
        };
        (entry, tool.definition().to_owned())
    });
    Ok(ToolsList::new(tools.collect(), vetted.changed().map(str::to_owned).collect()))
}
