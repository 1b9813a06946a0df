//! What servers offer now: they are started, listed, compared with their pins, and ended. What comes of it is kept.

use std::{fmt, path::Path, sync::Arc};

use footbridge_proto::wire::ToolEntry;

use super::lists::ToolsList;
use crate::{
    catalogues::{say_what_is_left_out, with_reports},
    composition::open_store,
    config::Config,
    server_logs::ServerLogs,
};
use footbridge_calls::{pins::Pins, provider::Unavailable};
use footbridge_core::{catalogue::Offered, names::ServerName};

/// A server and what it offers, or why that is not known.
pub(crate) type Listed = (ServerName, Result<ToolsList, Unlisted>);

/// Why a server has no list.
#[derive(Debug)]
pub(crate) struct Unlisted {
    /// What anybody is told.
    pub(crate) why: String,
    /// What only the operator may know.
    pub(crate) because: Option<String>,
}

impl fmt::Display for Unlisted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)?;
        self.because.iter().try_for_each(|because| write!(f, " (because: {because})"))
    }
}

/// Starts all servers of a configuration side by side, and lists them.
///
/// # Errors
/// When the pins cannot be looked at.
pub(crate) async fn list(config: Config, state: &Path) -> anyhow::Result<Vec<Listed>> {
    let store = open_store(config.store, state).await?;
    let pins = Pins::in_store(Arc::clone(&store) as _);
    let mut all = Vec::new();
    let (offered, reports) = with_reports(config, ServerLogs::new(state, "tools")).await;
    reports.iter().for_each(say_what_is_left_out);
    for (name, offered) in offered {
        let list = match offered {
            Ok(offered) => compared(&pins, &name, &offered).await,
            Err(why) => Err(why),
        };
        let because = || reports.iter().find(|report| report.name == name)?.last_error.clone();
        let list = list.map_err(|why| Unlisted { why: why.to_string(), because: because() });
        all.push((name, list));
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
