//! What the configured servers offer, for commands that ask what a policy makes of it, or whether they start.
//!
//! The servers are started, listed and ended again. One that cannot be looked at is given with the reason; it fails
//! nothing else. No policy and no pin is known here.

use std::sync::Arc;

use crate::{
    config::Config,
    report,
    server_logs::ServerLogs,
    waiting::{Left, WaitLine},
};
use footbridge_calls::provider::{ToolProvider as _, Unavailable};
use footbridge_core::{
    budget::Budget, catalogue::Offered, names::ServerName, redact::Redactor, settings_file::closest,
};
use footbridge_mcp::{ServerLog, ServerReport, ServerSpec, ServerState, Servers, ServersContext};
use footbridge_processes::launch::Launcher;

/// Starts servers and says what each offers, or why it is not known.
pub(crate) async fn catalogues(
    config: Config,
    wanted: impl Fn(&ServerSpec) -> bool,
) -> Vec<(ServerName, Result<Arc<Offered>, Unavailable>)> {
    looked_at(config, wanted, None).await.0
}

/// The same of all servers, and how each is, with what only the operator may know; what they write is kept in `logs`.
pub(crate) async fn with_reports(
    config: Config,
    logs: ServerLogs,
) -> (Vec<(ServerName, Result<Arc<Offered>, Unavailable>)>, Vec<ServerReport>) {
    looked_at(config, |_| true, Some(Arc::new(logs))).await
}

/// Starts all servers, and says how each is once it is ready, or why it is not. What they write is kept in `logs`, if
/// there are some.
pub(crate) async fn started(config: Config, logs: Option<ServerLogs>) -> Vec<ServerReport> {
    let logs = logs.map(|logs| Arc::new(logs) as _);
    looked_at(config, |_| true, logs).await.1
}

/// Says what of a listing cannot be used: whoever looks for a tool that is not there should know why.
pub(crate) fn say_what_is_left_out(report: &ServerReport) {
    if let Some(first) = report.left_out_reasons.first() {
        let (name, more) = (&report.name, report.left_out.saturating_sub(1));
        let more = if more == 0 { String::new() } else { format!(", and {more} more; see footbridge doctor") };
        report::note(&format!("left out of what server \"{name}\" lists: {first}{more}"));
    }
}

/// Names in `disabledTools` of a server that none of its tools has, in a sentence; nothing where there are none. A tool that
/// was meant can be called.
pub(crate) fn disabled_in_vain(report: &ServerReport) -> Option<String> {
    let ServerState::Ready(offered) = &report.state else { return None };
    let tools = offered.entries();
    let known: Vec<&str> = tools.tools().map(|tool| tool.name()).collect();
    let named = |name: &String| {
        let meant = closest(name, known.iter().copied());
        format!("{name:?}{}", meant.map_or(String::new(), |meant| format!(" (did you mean {meant:?}?)")))
    };
    let names: Vec<String> = report.disabled_in_vain.iter().map(named).collect();
    let text = || {
        format!(
            "\"disabledTools\" names {}, and the server has no such tool: nothing is disabled by that",
            names.join(", ")
        )
    };
    (!names.is_empty()).then(text)
}

async fn looked_at(
    config: Config,
    wanted: impl Fn(&ServerSpec) -> bool,
    log: Option<Arc<dyn ServerLog>>,
) -> (Vec<(ServerName, Result<Arc<Offered>, Unavailable>)>, Vec<ServerReport>) {
    // As a harness tells them: some offer tools to those alone whom they can ask.
    let elicitation = config.approval.asks_anybody();
    let Config { servers, limits, gathered, own_folders: folders, .. } = config;
    let budget = Budget::new(limits.edge.held_bytes);
    let wait = limits.servers.start_time + limits.servers.list_time;
    let redactor = Redactor::new(&gathered.secrets);
    let launcher = Launcher::Kept { helper: None, folders };
    let context = ServersContext { limits, redactor, budget, launcher, elicitation, log };
    let specs = servers.into_iter().filter(wanted).collect();
    let servers = Servers::start(specs, context);
    let names = servers.servers();
    let left = Left::of(names.iter().map(ToString::to_string));
    let shown = left.clone();
    let line = WaitLine::shown(move || format!("Starting and listing {}", shown.listed()));
    let looked = names.iter().map(|name| async {
        let offered = servers.catalogue(name, wait).await;
        left.is_done(name.as_str());
        (name.clone(), offered)
    });
    let all = futures::future::join_all(looked).await;
    drop(line);
    let reports = servers.report();
    servers.shutdown().await;
    (all, reports)
}
