//! Each server: its program, its start, what it lists and its pins; then each service.

use std::{collections::BTreeMap, path::Path};

use footbridge_cli::findings::{Finding, Health};
use footbridge_core::{catalogue::INSTRUCTIONS, names::ServerName};

use crate::{
    catalogues::{disabled_in_vain, started},
    config::{Config, program_of},
    report::counted,
    server_logs::ServerLogs,
    store::StoreKind,
    waiting::WaitLine,
};
use footbridge_mcp::{ServerReport, ServerSpec, ServerState, TransportSpec};
use footbridge_services::{HostCheck, Services, TUNNELS};

/// Looks at all servers and services of a configuration.
pub(super) async fn look(config: Config, state: &Path, start: bool) -> Vec<Finding> {
    let path = config.search_path.as_deref();
    let programs = config.servers.iter().filter_map(|spec| Some((spec.name.clone(), program(spec, path)?)));
    let programs: Vec<(ServerName, Finding)> = programs.collect();
    let missing = programs.iter().filter(|(_, found)| found.status == Health::Problem);
    let missing: Vec<ServerName> = missing.map(|(name, _)| name.clone()).collect();
    let mut all: Vec<Finding> = programs.into_iter().map(|(_, found)| found).collect();
    let (services, limits, kind) = (config.services.clone(), config.limits.services.clone(), config.store);
    let own: Vec<ServerName> = config.servers.iter().map(|spec| spec.name.clone()).collect();
    if start {
        let one = |report: ServerReport| {
            if missing.contains(&report.name) {
                Finding::skipped(&format!("{}: start", report.name), "its program is not there")
            } else {
                started_one(report)
            }
        };
        all.extend(started(config, Some(ServerLogs::new(state, "doctor"))).await.into_iter().map(one));
    } else {
        all.push(Finding::skipped("servers", "not started"));
    }
    all.extend(pins(kind, state, &own).await);
    let names: Vec<String> = services.iter().map(|service| service.name.to_string()).collect();
    let services = Services::new(services, &limits, 1);
    let _line = WaitLine::of("Connecting to services");
    for name in names {
        all.extend(services.check(&name).await.into_iter().map(|checked| service(&name, checked)));
    }
    all
}

/// Whether a service, or a host of tunnels, takes connections.
fn service(name: &str, checked: HostCheck) -> Finding {
    let is_host = name == TUNNELS;
    let check = if is_host { format!("tunnel {}", checked.what) } else { format!("service {name}") };
    match checked.found {
        Some(Ok(())) => Finding::ok(&check, "it takes connections"),
        Some(Err(why)) => {
            let place = if is_host { "[tunnels]" } else { "its url" };
            Finding::problem(&check, why.to_string())
                .mend(format!("look at {place} in footbridge.toml, then footbridge services check {name}"))
        }
        None => Finding::skipped(&check, "it stands for any host below"),
    }
}

/// Whether the program of a server is there.
fn program(spec: &ServerSpec, path: Option<&str>) -> Option<Finding> {
    let TransportSpec::Stdio(program) = &spec.transport else { return None };
    let check = format!("{}: program", spec.name);
    Some(match program_of(&program.command, program.cwd.as_deref(), path) {
        Ok(path) => Finding::ok(&check, path.display().to_string()),
        Err(why) if program.cwd.as_deref().is_some_and(|cwd| !cwd.is_dir()) => {
            Finding::problem(&check, why).mend("make it, or correct \"cwd\"")
        }
        Err(why) => Finding::problem(&check, why)
            .means("PATH is that of this command; a service manager's may be another")
            .mend("install it, or write the whole path as \"command\""),
    })
}

/// Whether a server started, shook hands and listed.
fn started_one(report: ServerReport) -> Finding {
    let check = format!("{}: start", report.name);
    let failed = |why: String| {
        let mend = format!("look at footbridge servers logs {}, and mend its entry", report.name);
        let finding = Finding::problem(&check, why).mend(mend);
        let last = report.stderr.last().map(|line| format!("it last wrote: {line}"));
        last.into_iter().fold(finding, Finding::means)
    };
    match &report.state {
        ServerState::Ready(offered) => {
            let tools = counted(offered.entries().tools().len() as u64, "tool");
            let revision = report.revision.as_ref().map(|revision| format!(", MCP {revision}")).unwrap_or_default();
            let found = format!("it starts and lists {tools}{revision}");
            let in_vain = disabled_in_vain(&report);
            let found = [Some(found), in_vain.clone()].into_iter().flatten().collect::<Vec<_>>().join("; ");
            match (report.left_out_reasons.first(), in_vain) {
                (None, None) => Finding::ok(&check, found),
                (Some(why), _) => {
                    Finding::note(&check, format!("{found}; {} left out", report.left_out)).means(why.clone())
                }
                (None, Some(_)) => Finding::note(&check, found).mend("write each name as footbridge tools has it"),
            }
        }
        ServerState::Starting => failed("it is still starting".to_owned()),
        ServerState::Unavailable(why) => failed(report.last_error.clone().unwrap_or_else(|| why.to_string())),
    }
}

/// What of a server changed since it was pinned.
#[derive(Default)]
struct Changed {
    tools: u64,
    says_other: bool,
}

/// Tools that changed since they were pinned.
async fn pins(kind: StoreKind, state: &Path, own: &[ServerName]) -> Vec<Finding> {
    let found = async {
        let Some(store) = kind.open_if_there(state).await? else { return Ok(Vec::new()) };
        let pins = store.pins(None).await;
        store.close().await;
        pins
    };
    let pins = match found.await {
        Ok(pins) => pins,
        Err(error) => {
            return vec![Finding::problem("pins", error.to_string()).means("nothing starts without the store")];
        }
    };
    let mut changed: BTreeMap<&str, Changed> = BTreeMap::new();
    for pin in pins.iter().filter(|pin| pin.changed.is_some()) {
        let of_server = changed.entry(&pin.server).or_default();
        of_server.says_other |= pin.tool == INSTRUCTIONS;
        of_server.tools += u64::from(pin.tool != INSTRUCTIONS);
    }
    if changed.is_empty() {
        return vec![Finding::ok("pins", format!("{}, none changed", counted(pins.len() as u64, "tool")))];
    }
    let one = |(server, changed): (&str, Changed)| {
        let said = changed.says_other.then(|| "the instructions".to_owned());
        let tools = (changed.tools > 0).then(|| counted(changed.tools, "tool"));
        let parts: Vec<String> = tools.into_iter().chain(said).collect();
        let what = format!("{} of {server} changed since pinned", parts.join(" and "));
        if own.iter().all(|name| name.as_str() != server) {
            return Finding::note("pins", what).means("this configuration has no such server: they are another one's");
        }
        Finding::problem("pins", what)
            .means("calls to such tools are refused, and nobody is told such instructions, until you looked at them")
            .mend(format!("footbridge servers pins diff {server}, then footbridge servers pins accept {server} --all"))
    };
    changed.into_iter().map(one).collect()
}
