//! What a session can reach through its tools and services, in plain words: a sandbox whose packets are blocked and whose tools are
//! open is not closed.

mod requests;

use std::{collections::BTreeSet, fmt::Write as _};

use footbridge_proto::text::Escaped;
use serde_json::{Value, json};

use super::pinned::KnownPins;
use crate::{
    catalogues::catalogues,
    config::{Config, folders::Folders},
    report,
};
use footbridge_core::{
    catalogue::Offered,
    gate::{Decision, Effect, Effects, SessionRules, Subject},
};
use footbridge_mcp::TransportSpec;
use requests::{LikeRequests, ServiceReach};

/// What can be reached under one policy.
pub(super) struct ReachReport {
    policy: String,
    servers: Vec<ServerReach>,
    services: Vec<ServiceReach>,
    hidden: Vec<String>,
    unknown: Vec<(String, String)>,
}

/// One server, as far as the session sees it.
struct ServerReach {
    name: String,
    /// Whether it is over the network itself, so that everything it is sent leaves this machine.
    remote: bool,
    tools: Vec<Tool>,
    hidden_tools: usize,
    /// What is decided about its resources, where it has any that are seen.
    resources: Option<Vec<Decision>>,
    /// The same about its prompts and the completions of their arguments.
    prompts: Option<Vec<Decision>>,
}

struct Tool {
    name: String,
    effects: Effects,
    outlook: Vec<Decision>,
    /// Whether it is not what was pinned.
    is_changed: bool,
}

/// Looks at all servers that the policy does not hide.
///
/// # Errors
/// When it cannot be known what was pinned.
pub(super) async fn look(config: Config, rules: SessionRules) -> anyhow::Result<ReachReport> {
    let pins = KnownPins::read(config.store, &Folders::of_this_user()?.state, None).await?;
    let remote =
        |spec: &footbridge_mcp::ServerSpec| matches!(spec.transport, TransportSpec::Http(_) | TransportSpec::Sse(_));
    let specs: Vec<(String, bool)> = config.servers.iter().map(|spec| (spec.name.to_string(), remote(spec))).collect();
    let mut seen = ReachReport {
        policy: rules.policy().name().to_owned(),
        servers: Vec::new(),
        services: config.services.iter().map(|service| ServiceReach::of(&rules, service)).collect(),
        hidden: specs.iter().map(|(name, _)| name).filter(|name| !rules.shows_server(name)).cloned().collect(),
        unknown: Vec::new(),
    };
    for (server, offered) in catalogues(config, |spec| rules.shows_server(spec.name.as_str())).await {
        let name = server.to_string();
        let remote = specs.iter().any(|(other, remote)| *other == name && *remote);
        match offered {
            Ok(offered) => {
                let mut reached = reached(&rules, name, remote, &offered);
                reached.refuse(&pins.changed(&server, &offered));
                seen.servers.push(reached);
            }
            Err(why) => seen.unknown.push((name, why.to_string())),
        }
    }
    Ok(seen)
}

fn reached(rules: &SessionRules, name: String, remote: bool, offered: &Offered) -> ServerReach {
    let view = offered.entries().seen_by(rules, &name);
    let tools = view.tools().map(|tool| {
        let subject = rules.tool(&name, tool.name(), tool.effects());
        let (name, outlook) = (tool.name().to_owned(), rules.outlook(&subject));
        Tool { name, effects: subject.effects(), outlook, is_changed: false }
    });
    let uris = view.resources().map(|(uri, _)| uri).chain(view.templates().map(|(uri, _)| uri));
    let resources = together(rules, uris.map(|uri| Subject::resource(&name, uri)));
    let prompts = view.prompts().map(|prompt| prompt.name());
    let prompts = prompts.flat_map(|prompt| [Subject::prompt(&name, prompt), Subject::completion(&name, prompt)]);
    let prompts = together(rules, prompts.filter(|subject| rules.shows(subject)));
    ServerReach {
        tools: tools.collect(),
        hidden_tools: offered.entries().tools().len() - view.tools().len(),
        resources,
        prompts,
        name,
        remote,
    }
}

/// All that may be decided about these; none where there are none.
fn together<'a>(rules: &SessionRules, subjects: impl Iterator<Item = Subject<'a>>) -> Option<Vec<Decision>> {
    let mut all: Vec<Decision> = Vec::new();
    for decision in subjects.flat_map(|subject| rules.outlook(&subject)) {
        if !all.contains(&decision) {
            all.push(decision);
        }
    }
    (!all.is_empty()).then_some(all)
}

/// What can become of a call, for the headings.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallOutlook {
    Free,
    Sometimes,
    Asked,
    Never,
}

fn way(outlook: &[Decision]) -> CallOutlook {
    let can = |decision| outlook.contains(&decision);
    match (can(Decision::Allow), can(Decision::Ask), can(Decision::Deny)) {
        (true, false, false) => CallOutlook::Free,
        (true, ..) => CallOutlook::Sometimes,
        (false, true, _) => CallOutlook::Asked,
        (false, false, _) => CallOutlook::Never,
    }
}

const HEADINGS: [(CallOutlook, &str); 4] = [
    (CallOutlook::Free, "Without asking anyone it can call"),
    (CallOutlook::Sometimes, "Depending on the arguments, without asking anyone, it can call"),
    (CallOutlook::Asked, "If a person agrees, it can call"),
    (CallOutlook::Never, "It can never call"),
];

/// The heading of requests to services of which the same holds as of [`CallOutlook::Sometimes`]: they have no arguments.
const BY_PATH: &str = "Depending on the path, without asking anyone, it can ask";

impl ReachReport {
    /// Whether every server could be looked at.
    pub(super) fn is_whole(&self) -> bool {
        self.unknown.is_empty()
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!(
            "What a session with policy \"{}\" can reach through its tools, and through the services that it is given\n",
            self.policy
        );
        for (which, heading) in HEADINGS {
            let of_servers: String = self.servers.iter().flat_map(|server| server.lines(which)).collect();
            let of_services: String = self.services.iter().flat_map(|service| service.lines(which)).collect();
            let parts = match which {
                CallOutlook::Sometimes => vec![(heading, of_servers), (BY_PATH, of_services)],
                _ => vec![(heading, of_servers + &of_services)],
            };
            for (heading, lines) in parts.into_iter().filter(|(_, lines)| !lines.is_empty()) {
                // Writing to a string does not fail.
                let _ = write!(text, "\n{heading}:\n{lines}");
            }
        }
        let hidden_tools: usize = self.servers.iter().map(|server| server.hidden_tools).sum();
        if !self.hidden.is_empty() || hidden_tools > 0 {
            let servers = if self.hidden.is_empty() { "none".to_owned() } else { self.hidden.join(", ") };
            let _ =
                write!(text, "\nHidden from it: tools of these servers: {hidden_tools}; whole servers: {servers}.\n");
        }
        for (server, why) in &self.unknown {
            let _ = write!(
                text,
                "\nServer {} could not be looked at, so this is not all: {}\n",
                Escaped(server),
                Escaped(why)
            );
        }
        let _ = write!(text, "\n{}\n", self.summary());
        text
    }

    /// The sentence that matters.
    fn summary(&self) -> String {
        let outside = |server: &ServerReach, tool: &Tool| server.remote || tool.effects.has(Effect::Egress);
        let count = |wanted: &dyn Fn(CallOutlook) -> bool| {
            let tools = self.servers.iter().flat_map(|server| server.tools.iter().map(move |tool| (server, tool)));
            tools.filter(|(server, tool)| outside(server, tool) && wanted(way(&tool.outlook))).count()
        };
        let free = count(&|way| matches!(way, CallOutlook::Free | CallOutlook::Sometimes));
        let asked = count(&|way| way == CallOutlook::Asked);
        let free_of = |outlook: &dyn Fn(&ServerReach) -> bool| self.servers.iter().any(outlook);
        let allows = |outlook: &Option<Vec<Decision>>| outlook.as_ref().is_some_and(|it| it.contains(&Decision::Allow));
        let reads = free_of(&|server| allows(&server.resources));
        let gets = free_of(&|server| allows(&server.prompts));
        let verdict = match (free, asked) {
            (0, 0) => "No tool that it can call is said to reach outside.".to_owned(),
            (0, asked) => {
                format!("No data leaves through tools unless a person agrees, then through {}.", tools(asked))
            }
            (free, 0) => {
                format!("This is no closed sandbox: without asking anyone data can leave through {}.", tools(free))
            }
            (free, asked) => format!(
                "This is no closed sandbox: without asking anyone data can leave through {}, and if a person agrees \
                 through {asked} more.",
                tools(free)
            ),
        };
        let resources =
            if reads { " Reading resources also sends names of the session's choosing to their servers." } else { "" };
        let prompts =
            if gets { " Getting prompts also sends text of the session's choosing to their servers." } else { "" };
        let services = self.of_services();
        format!(
            "{verdict}{resources}{prompts}{services}\nEffects are what servers say of their tools, or footbridge.toml in their place; nothing keeps \
             a server to them."
        )
    }

    /// What services add.
    fn of_services(&self) -> String {
        let named = |wanted: &dyn Fn(CallOutlook) -> bool| {
            let is_wanted = |one: &LikeRequests| one.outlook.as_ref().is_some_and(|outlook| wanted(way(outlook)));
            let names = self.services.iter().filter(|service| service.requests.iter().any(is_wanted));
            names.map(|service| Escaped(&service.name).to_string()).collect::<Vec<_>>()
        };
        let free = named(&|way| matches!(way, CallOutlook::Free | CallOutlook::Sometimes));
        let asked = named(&|way| way == CallOutlook::Asked);
        let asked: Vec<String> = asked.into_iter().filter(|name| !free.contains(name)).collect();
        let mut text = String::new();
        if !free.is_empty() {
            let _ = write!(
                text,
                "\nWhatever it reads it can send, without asking anyone, to these services, if --service or its policy gives it them: {}.",
                free.join(", ")
            );
        }
        if !asked.is_empty() {
            let _ = write!(text, "\nIf a person agrees, it can send to these services: {}.", asked.join(", "));
        }
        text
    }

    pub(super) fn json(&self) -> String {
        let services: Vec<Value> = self.services.iter().map(ServiceReach::json).collect();
        let servers: Vec<Value> = self.servers.iter().map(ServerReach::json).collect();
        let unknown: Vec<&String> = self.unknown.iter().map(|(name, _)| name).collect();
        let all = json!({
            "policy": self.policy, "servers": servers, "services": services, "hiddenServers": self.hidden, "notLookedAt": unknown,
        });
        format!("{all}\n")
    }
}

impl ServerReach {
    /// Calls of these tools are refused, whatever the policy says.
    fn refuse(&mut self, changed: &BTreeSet<String>) {
        for tool in self.tools.iter_mut().filter(|tool| changed.contains(&tool.name)) {
            (tool.outlook, tool.is_changed) = (vec![Decision::Deny], true);
        }
    }

    fn lines(&self, which: CallOutlook) -> Vec<String> {
        let tools: Vec<&Tool> = self.tools.iter().filter(|tool| way(&tool.outlook) == which).collect();
        let others = [(&self.resources, "its resources"), (&self.prompts, "its prompts and their completions")];
        let others: Vec<&str> = others
            .into_iter()
            .filter(|(outlook, _)| outlook.as_ref().is_some_and(|outlook| way(outlook) == which))
            .map(|(_, what)| what)
            .collect();
        if tools.is_empty() && others.is_empty() {
            return Vec::new();
        }
        let place = if self.remote { " (over the network: what it is sent leaves this machine)" } else { "" };
        let mut lines = vec![format!("  {}{place}\n", Escaped(&self.name))];
        lines.extend(tools.iter().map(|tool| {
            let changed =
                if tool.is_changed { "; not what was pinned, and refused until that is accepted" } else { "" };
            format!("    {}: {}{changed}\n", Escaped(&tool.name), in_words(tool.effects))
        }));
        lines.extend(others.iter().map(|what| format!("    {what}\n")));
        lines
    }

    fn json(&self) -> Value {
        let words = |outlook: &[Decision]| outlook.iter().map(|decision| decision.as_str()).collect::<Vec<_>>();
        let tools: Vec<Value> = self
            .tools
            .iter()
            .map(|tool| {
                json!({"name": tool.name, "effects": tool.effects.words(), "decisions": words(&tool.outlook),
                       "definitionChanged": tool.is_changed})
            })
            .collect();
        json!({
            "name": self.name, "remote": self.remote, "tools": tools, "hiddenTools": self.hidden_tools,
            "resources": self.resources.as_deref().map(words), "prompts": self.prompts.as_deref().map(words),
        })
    }
}

impl ServiceReach {
    fn lines(&self, which: CallOutlook) -> Vec<String> {
        let is_meant = |one: &&LikeRequests| one.outlook.as_ref().is_some_and(|outlook| way(outlook) == which);
        let line = |one: &LikeRequests| format!("    {}: {}\n", Escaped(&one.written), in_words(one.effects));
        let lines: Vec<String> = self.requests.iter().filter(is_meant).map(line).collect();
        if lines.is_empty() {
            return lines;
        }
        let head = format!("  service {} ({})\n", Escaped(&self.name), Escaped(&self.origin));
        std::iter::once(head).chain(lines).collect()
    }

    fn json(&self) -> Value {
        let words = |outlook: &Vec<Decision>| outlook.iter().map(|decision| decision.as_str()).collect::<Vec<_>>();
        let one = |one: &LikeRequests| {
            json!({
                "request": one.written, "methods": one.methods, "path": one.path, "effects": one.effects.words(),
                "decisions": one.outlook.as_ref().map(words),
            })
        };
        json!({
            "name": self.name, "url": self.origin, "requests": self.requests.iter().map(one).collect::<Vec<_>>(),
        })
    }
}

fn tools(count: usize) -> String {
    report::counted(count as u64, "tool")
}

fn in_words(effects: Effects) -> String {
    let what = match (effects.has(Effect::Write), effects.has(Effect::Destructive)) {
        (false, _) => "reads",
        (true, false) => "changes things",
        (true, true) => "changes and may destroy things",
    };
    format!("{what}{}", if effects.has(Effect::Egress) { ", reaches outside" } else { "" })
}
