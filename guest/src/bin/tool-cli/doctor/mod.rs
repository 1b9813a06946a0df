//! `tool-cli doctor`: every hop from here to a tool, in order, each with what was found, what it means and what mends it.
//!
//! A hop that fails leaves those behind it unasked. Nothing is called on a server and nothing is changed; the token is
//! shown to nobody whom a call would not show it to.

mod around;
mod way;

use footbridge_cli::{
    findings::{Finding, are_well, json, text},
    output,
};
use footbridge_guest::{
    BridgeAddress, Client, ClientError, ClientSettings, SettingsError,
    answers::{ListedServers, ListedTools},
};
use footbridge_proto::{exit::ExitCode, text::Escaped, vars, wire::method};
use serde_json::{Value, json};

use crate::{args::Style, failure::Failure, words::Options};
use around::Around;

/// Looks at all hops and says what it found.
pub(crate) fn run(options: &Options, style: Style) -> Result<(), Failure> {
    let settings = ClientSettings::from_env().map(|mut settings| {
        settings.timeout = options.timeout.unwrap_or(settings.timeout);
        settings
    });
    let all = look(settings, &Around::here());
    output::print(&if style.json { json(&all) } else { text(&all) })?;
    if are_well(&all) { Ok(()) } else { Err(Failure::Told(ExitCode::Unreachable)) }
}

fn look(settings: Result<ClientSettings, SettingsError>, around: &Around) -> Vec<Finding> {
    let settings = match settings {
        Ok(settings) => settings,
        Err(error) => return vec![not_set(&error)],
    };
    let mut all = vec![environment(&settings, around), token(&settings)];
    all.extend(way::relay(around));
    all.extend(match &settings.target {
        BridgeAddress::Unix(path) => vec![way::socket("socket", path.as_path(), around)],
        BridgeAddress::Tcp { host, port } => way::port(host, *port, settings.listener_uid, around),
    });
    if are_well(&all) {
        all.extend(bridge(&settings));
        all.extend(services(&settings, around));
    } else {
        all.push(Finding::skipped("bridge", "not asked, because of what is wrong above"));
    }
    all
}

/// What is wrong with the variables that say where the bridge is and what it is shown.
fn not_set(error: &SettingsError) -> Finding {
    let (check, means, mend) = match error {
        SettingsError::TokenFile { .. } => (
            "token",
            "the session was revoked, has expired or its run is over, which removes the file; or it is not mounted here; or \
             this user may not read it",
            "on the host: footbridge session list, then footbridge session create NAME; start this sandbox again with the \
             folder of the session",
        ),
        SettingsError::Token { .. } => (
            "token",
            "what is set is no token, so nothing is sent",
            "set it as footbridge session create NAME --env prints it",
        ),
        _ => (
            "environment",
            "where the bridge is, or how to ask it, is not known",
            "correct that variable, or unset it and set all as footbridge session create NAME --env prints them",
        ),
    };
    Finding::problem(check, error.to_string()).means(means).mend(mend)
}

fn environment(settings: &ClientSettings, around: &Around) -> Finding {
    if let Some(why) = ClientSettings::ignored_port(around.var(vars::PORT)) {
        return Finding::problem("environment", why)
            .means("whatever listens on that port gets each request, and the token")
            .mend("correct it, or unset it and set all as footbridge session create NAME --env prints them");
    }
    let names = [vars::PORT, vars::HOST, vars::SOCKET];
    if names.into_iter().any(|name| around.var(name).is_some()) {
        return Finding::ok("environment", format!("the bridge is at {}", settings.target));
    }
    Finding::note("environment", format!("no address is set, so it is {}", settings.target)).mend(format!(
        "set {} or {}, as \"footbridge session create NAME --env\" prints them",
        vars::PORT,
        vars::SOCKET
    ))
}

fn token(settings: &ClientSettings) -> Finding {
    match &settings.token {
        Some(_) => Finding::ok("token", "there is one"),
        None => Finding::problem("token", format!("neither {} nor {} is set", vars::TOKEN, vars::TOKEN_FILE))
            .means("without one every request is refused; some agents do not pass their environment on to commands")
            .mend(format!(
                "put it into a file and set {}, or have the agent pass {} on",
                vars::TOKEN_FILE,
                vars::TOKEN
            )),
    }
}

/// Asks the bridge what it is, which servers there are, and one of them for its tools.
fn bridge(settings: &ClientSettings) -> Vec<Finding> {
    let mut client = Client::new(settings.clone());
    let mut all = match client.request_as::<Value>(method::GET_BRIDGE_INFO, &json!({})) {
        Ok(info) => {
            let of = |name: &str| info["serverImplementation"][name].as_str().unwrap_or("?").to_owned();
            vec![Finding::ok("bridge", format!("{} {} takes the token", of("name"), of("version")))]
        }
        Err(error) => return vec![refused(&error)],
    };
    let servers = match client.request_as::<ListedServers>(method::LIST_SERVERS, &json!({})) {
        Ok(list) => list.servers,
        Err(error) => return vec![Finding::problem("servers", error.to_string())],
    };
    if servers.is_empty() && std::env::vars_os().any(|(_, value)| leads_to_a_service(&value.to_string_lossy())) {
        all.push(Finding::note("servers", "there is none: this session has services alone"));
    } else if servers.is_empty() {
        let none =
            Finding::problem("servers", "there is none").means("the configuration has none, or the policy hides all");
        all.push(none.mend("on the host: footbridge config check"));
    }
    for server in &servers {
        let check = format!("server {}", server.name);
        all.push(match server.status.as_deref() {
            None => Finding::ok(&check, format!("{} tools", server.tool_count)),
            Some("starting") => Finding::note(&check, "it is still starting"),
            Some(status) => {
                Finding::problem(&check, server.reason.clone().unwrap_or_else(|| format!("it is {status}")))
                    .mend(format!("on the host: footbridge servers logs {}", server.name))
            }
        });
    }
    if let Some(server) = servers.iter().find(|server| server.status.is_none()) {
        let asked = client.request_as::<ListedTools>(method::LIST_TOOLS, &json!({"server": server.name}));
        all.push(match asked {
            Ok(list) => {
                Finding::ok("request", format!("{} was asked for its tools: {}", server.name, list.tools.len()))
            }
            Err(error) => Finding::problem("request", error.to_string()),
        });
    }
    all
}

/// Whether the value of a variable is the address of a service behind this port.
fn leads_to_a_service(value: &str) -> bool {
    value.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.split_once('/')).is_some_and(|(port, path)| {
        port.bytes().all(|byte| byte.is_ascii_digit()) && path.strip_prefix("s/").is_some_and(|name| !name.is_empty())
    })
}

/// Why a bridge that is there gives nothing.
fn refused(error: &ClientError) -> Finding {
    match error {
        ClientError::Unauthorized => Finding::problem("token", "the bridge refuses it")
            .means("it was rotated, its session has ended, or it belongs to the port of another session")
            .mend("on the host: footbridge session list, then footbridge session rotate NAME; or start the run again"),
        ClientError::Status { status: 502, .. } => {
            Finding::problem("harness", "the relay answers, and cannot reach the harness")
                .means("the harness has ended, or its socket is not where the relay looks for it")
                .mend("on the host: footbridge doctor NAME; then start the relay with the right --to")
        }
        ClientError::Cut { has_begun: false, .. } => {
            Finding::problem("bridge", "the connection was closed before anything of an answer came")
                .means("the session may let only some users connect (--allow-uid), or it has just ended")
                .mend("on the host: footbridge doctor NAME, which says who may connect; then footbridge session list")
        }
        ClientError::Status { status: 403, says, error: Some(_), .. } => Finding::problem("bridge", says)
            .means("the session lets only some users connect, and this one is none of them")
            .mend("on the host: footbridge session create NAME --allow-uid UID, or be another user here"),
        ClientError::NotBridge(what) => Finding::problem("bridge", format!("what answers is none: {what}"))
            .means("another program has this port")
            .mend(format!("set {} to the port of the relay", vars::PORT)),
        other => Finding::problem("bridge", other.to_string()),
    }
}

/// Variables that lead programs to services: they must lead to the port that is used here.
fn services(settings: &ClientSettings, around: &Around) -> Vec<Finding> {
    let here = format!("http://{}/", settings.target);
    let leads = around.vars().filter_map(|(name, value)| {
        let (start, service) = value.split_once("/s/")?;
        let service =
            service.split('/').next().filter(|service| start.starts_with("http://") && !service.is_empty())?;
        let check = format!("service {service}");
        Some(if here.starts_with(&format!("{start}/")) {
            Finding::ok(&check, format!("{name} leads there"))
        } else {
            Finding::note(&check, format!("{name} leads to {start}, and the bridge is at {}", settings.target))
                .means("programs that use it reach another port than tool-cli")
        })
    });
    leads.chain(tunnels(settings, around)).collect()
}

/// Variables by which programs find the way out of the sandbox, where it leads through a bridge: the password is a token.
fn tunnels(settings: &ClientSettings, around: &Around) -> Vec<Finding> {
    let here = settings.target.to_string();
    let one = |name: &str| {
        let (user, place) = around.var(name)?.strip_prefix("http://")?.rsplit_once('@')?;
        let place = place.trim_end_matches('/');
        user.starts_with("session:").then(|| {
            let check = format!("tunnels: {name}");
            if place == here {
                Finding::ok(&check, "it leads to the bridge")
            } else {
                Finding::note(&check, format!("it leads to {}, and the bridge is at {here}", Escaped(place)))
                    .means("programs that use it reach another port than tool-cli")
            }
        })
    };
    ["https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY"].into_iter().filter_map(one).collect()
}

#[cfg(test)]
mod tests;
