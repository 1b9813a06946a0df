//! What the configured servers offer, for commands that ask what a policy makes of it, or whether they start.
//!
//! The servers are started, listed and ended again. One that cannot be looked at is given with the reason; it fails
//! nothing else. No policy and no pin is known here.

use std::sync::Arc;

use crate::config::Config;
use footbridge_calls::provider::{ToolProvider as _, Unavailable};
use footbridge_core::{budget::Budget, catalogue::Offered, names::ServerName, redact::Redactor};
use footbridge_mcp::{ServerReport, ServerSpec, Servers, ServersContext};
use footbridge_processes::launch::Launcher;

/// Starts servers and says what each offers, or why it is not known.
pub(crate) async fn catalogues(
    config: Config,
    wanted: impl Fn(&ServerSpec) -> bool,
) -> Vec<(ServerName, Result<Arc<Offered>, Unavailable>)> {
    looked_at(config, wanted).await.0
}

/// The same of all servers, and how each is, with what only the operator may know.
pub(crate) async fn with_reports(
    config: Config,
) -> (Vec<(ServerName, Result<Arc<Offered>, Unavailable>)>, Vec<ServerReport>) {
    looked_at(config, |_| true).await
}

/// Starts all servers, and says how each is once it is ready, or why it is not.
pub(crate) async fn started(config: Config) -> Vec<ServerReport> {
    looked_at(config, |_| true).await.1
}

async fn looked_at(
    config: Config,
    wanted: impl Fn(&ServerSpec) -> bool,
) -> (Vec<(ServerName, Result<Arc<Offered>, Unavailable>)>, Vec<ServerReport>) {
    let Config { servers, limits, gathered, own_folders: folders, .. } = config;
    let budget = Budget::new(limits.edge.held_bytes);
    let wait = limits.servers.start_time + limits.servers.list_time;
    let redactor = Redactor::new(&gathered.secrets);
    let launcher = Launcher::Kept { helper: None, folders };
    let context = ServersContext { limits, redactor, budget, launcher, elicitation: false, log: None };
    let specs = servers.into_iter().filter(wanted).collect();
    let servers = Servers::start(specs, context);
    let names = servers.servers();
    let looked = names.iter().map(|name| async { (name.clone(), servers.catalogue(name, wait).await) });
    let all = futures::future::join_all(looked).await;
    let reports = servers.report();
    servers.shutdown().await;
    (all, reports)
}
