//! `footbridge policy`: what a policy decides, before any session has it.
//!
//! The servers that are asked about are started, listed and ended again; no tool is called and nothing is recorded.

use anyhow::Context as _;
use footbridge_proto::text::Escaped;
use serde_json::{Value, json};

use clap::{Args, Subcommand};

use super::{
    Files, NoConfiguration, WantedParts, egress, label, labels, load_config_of, pinned::KnownPins, say_what_is_left_out,
};
use crate::{
    catalogues::catalogues,
    config::{Config, Writable, folders::Folders, known, of_names},
    report,
};
use footbridge_calls::{resolve::tested, service::RequestName};
use footbridge_core::{
    gate::{Decision, Effects, SessionRules, Subject, Tested, rules::CONNECT},
    service::RequestPath,
};
use footbridge_edge::error_of;
use footbridge_processes::sys;

#[derive(Debug, Subcommand)]
pub(super) enum PolicyCommand {
    /// Say what a policy decides about one call, without making it
    #[command(after_help = TEST_HELP)]
    Test {
        #[command(flatten)]
        which: WhichPolicy,
        /// The server's name, or the service's
        server: String,
        /// The tool's name
        #[arg(required_unless_present = "http")]
        tool: Option<String>,
        /// A request to a service, or a tunnel, in place of a tool: a method and a path below the service
        #[arg(long, value_name = "METHOD PATH", conflicts_with_all = ["tool", "arguments"])]
        http: Option<String>,
        /// The call's arguments, a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
    },
    /// Say what a session can reach through its tools, services and tunnels
    #[command(after_help = EGRESS_HELP)]
    Egress {
        #[command(flatten)]
        which: WhichPolicy,
    },
}

/// Which policy, for which session.
#[derive(Debug, Args)]
pub(super) struct WhichPolicy {
    #[command(flatten)]
    files: Files,
    /// The policy's name: ask, readonly, open, or one of footbridge.toml
    #[arg(long, value_name = "NAME", default_value = "ask")]
    policy: String,
    /// A label of the session, for rules that ask for labels
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const TEST_HELP: &str = "Starts the server to see what it says of the tool; the tool is not called. With --http nothing is connected to.

Examples:
  footbridge policy test --config servers.json --policy readonly demo list_notes
  footbridge policy test --config servers.json --config footbridge.toml --policy project demo get_weather '{\"city\":\"Bern\"}'
  footbridge policy test --config footbridge.toml --policy ask --http 'POST /v1/messages' anthropic
  footbridge policy test --config footbridge.toml --policy ask --http 'CONNECT packages.example:443' tunnels

Exit status: 0 if the call is allowed, 1 if it is not, 2 for wrong names, arguments or configuration, 125 if the server
cannot be looked at.";

const EGRESS_HELP: &str = "Starts the servers to see which tools they have; no tool is called.

Examples:
  footbridge policy egress --config servers.json --policy readonly
  footbridge policy egress --config servers.json --config footbridge.toml --policy project --label team=search --json

Exit status: 0, or 1 if a server could not be looked at, and 2 for a wrong configuration.";

/// A call that could not be made, whatever the policy says.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct NoSuchCall(String);

/// Status of a call that is not allowed, and of a report that is not whole.
const NO: i32 = 1;

pub(super) fn main(command: PolicyCommand) -> anyhow::Result<i32> {
    crate::log::start("warn,rmcp=off")?;
    // Before any secret is read.
    sys::harden().context("cannot protect this process from others of the same user")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match command {
        PolicyCommand::Test { which, server, tool, http, arguments } => {
            let wanted = match &http {
                Some(_) => WantedParts::none(),
                None => WantedParts::servers(),
            };
            let (config, rules) = read(&which, wanted)?;
            let answer = match http {
                Some(request) => request_to_service(&config, &rules, &server, &request)?,
                None => {
                    let asked = Asked { server, tool: tool.unwrap_or_default(), arguments };
                    runtime.block_on(asked.decide(config, &rules))?
                }
            };
            report::out(&answer.shown(&rules, which.json))?;
            Ok(if answer.decision == Word::Decided(Decision::Allow) { 0 } else { NO })
        }
        PolicyCommand::Egress { which } => {
            let (config, rules) = read(&which, WantedParts::servers())?;
            let seen = runtime.block_on(egress::look(config, rules))?;
            report::out(&if which.json { seen.json() } else { seen.text() })?;
            Ok(if seen.is_whole() { 0 } else { NO })
        }
    }
}

fn read(which: &WhichPolicy, wanted: WantedParts<'_>) -> anyhow::Result<(Config, SessionRules)> {
    let (config, _) = load_config_of(&which.files, Writable::here(), wanted)?;
    say_what_is_left_out(&config);
    NoConfiguration::check(&config)?;
    let policy = config.policies.get(&which.policy)?;
    let labels = labels(which.labels.clone())?;
    Ok((config, SessionRules::new(policy, &labels)))
}

/// What is decided about a request to a service, which is neither connected to nor asked.
fn request_to_service(config: &Config, rules: &SessionRules, name: &str, text: &str) -> anyhow::Result<Answer> {
    let [service] = &of_names(config, &known(config, &[name.to_owned()])?)?[..] else {
        anyhow::bail!("the service is not there any more")
    };
    let form = || NoSuchCall("write a method and a path below the service, as in 'POST /v1/messages'".to_owned());
    let RequestName { method, path, is_websocket } = RequestName::read(text).ok_or_else(form)?;
    if method.bytes().any(|byte| byte.is_ascii_lowercase()) {
        return Err(NoSuchCall(format!("{method:?} is refused: methods are written in capital letters")).into());
    }
    if ["TRACE", "TRACK"].contains(&method) {
        return Err(NoSuchCall(format!("{method} is refused: services do not take it")).into());
    }
    // A tunnel is written as clients ask for it, too.
    let path = if method == CONNECT && !path.starts_with('/') { format!("/{path}") } else { path.to_owned() };
    let path = RequestPath::read(&path).map_err(|bad| NoSuchCall(format!("the path is refused: {bad}")))?;
    let effects =
        if is_websocket { service.rules.effects_of_websocket(&path) } else { service.rules.effects(method, &path) };
    let subject = Subject::http(name, method, path.as_written(), effects);
    let effects = Some(effects);
    if let Some(rule) = rules.hides_this(&subject) {
        return Ok(Answer { decision: Word::Hide, rule: Some(rule.id.to_string()), effects });
    }
    if !service.rules.allows(method, &path) || (is_websocket && !service.rules.websocket) {
        return Ok(Answer { decision: Word::NotTaken, rule: None, effects });
    }
    let decided = rules.decide(&subject, &Tested::default());
    Ok(Answer { decision: Word::Decided(decided.decision), rule: decided.rule.map(|rule| rule.to_string()), effects })
}

/// What is asked about.
struct Asked {
    server: String,
    tool: String,
    arguments: String,
}

/// What a policy says, as the operator hears it: a guest is never told that something is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Word {
    Decided(Decision),
    Hide,
    /// It is none of the requests that the service takes.
    NotTaken,
    /// Its definition is not what was pinned.
    Changed,
}

struct Answer {
    decision: Word,
    rule: Option<String>,
    effects: Option<Effects>,
}

impl Asked {
    async fn decide(self, config: Config, rules: &SessionRules) -> anyhow::Result<Answer> {
        let (depth, store) = (config.limits.calls.argument_depth, config.store);
        let names: Vec<&str> = config.servers.iter().map(|spec| spec.name.as_str()).collect();
        if !names.contains(&self.server.as_str()) {
            let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let what = format!("no server \"{}\" is configured; there are: {there}", self.server);
            return Err(NoSuchCall(what).into());
        }
        if let Some(rule) = rules.hides_server(&self.server) {
            return Ok(Answer { decision: Word::Hide, rule: Some(rule.id.to_string()), effects: None });
        }
        let looked = catalogues(config, |spec| spec.name.as_str() == self.server).await;
        let (server, offered) = looked.into_iter().next().context("the server is not there any more")?;
        let offered = offered.map_err(|why| anyhow::anyhow!("{why}"))?;
        let entries = offered.entries();
        let tool = entries.tool(&self.tool).ok_or_else(|| {
            let known: Vec<&str> = entries.tools().map(|tool| tool.name()).collect();
            NoSuchCall(format!(
                "Tool \"{}\" not found on server \"{server}\"; there are: {}",
                self.tool,
                known.join(", ")
            ))
        })?;
        let subject = rules.tool(server.as_str(), tool.name(), tool.effects());
        let effects = Some(subject.effects());
        if let Some(rule) = rules.hides_this(&subject) {
            return Ok(Answer { decision: Word::Hide, rule: Some(rule.id.to_string()), effects });
        }
        let text = footbridge_proto::json::check(self.arguments.as_bytes(), footbridge_proto::json::MAX_BODY_DEPTH)
            .map_err(|bad| NoSuchCall(format!("the arguments cannot be read: {bad}")))?;
        let tested = tested(rules, server.clone(), tool, depth, text.trim()).map_err(|error| {
            let error = error_of(&error.into());
            let violations = error.data.as_ref().and_then(|data| data.get("validationErrors")?.as_array());
            let violations = violations.filter(|all| !all.is_empty()).cloned().map(Value::from);
            NoSuchCall(violations.map_or_else(|| error.message.clone(), |all| format!("{} {all}", error.message)))
        })?;
        let folders = Folders::of_this_user()?;
        let pins = KnownPins::read(store, &folders.state, Some(&self.server)).await?;
        if pins.changed(&server, &offered).contains(&self.tool) {
            return Ok(Answer { decision: Word::Changed, rule: None, effects });
        }
        let decided = rules.decide(&subject, &tested);
        let rule = decided.rule.map(|rule| rule.to_string());
        Ok(Answer { decision: Word::Decided(decided.decision), rule, effects })
    }
}

impl Answer {
    /// Why that is decided.
    fn why(&self, policy: &str) -> String {
        match &self.rule {
            None if self.decision == Word::NotTaken => {
                "since it is none of the requests that the service takes (its \"requests\", those of its preset where it has \
                 none, or [tunnels])"
                    .to_owned()
            }
            None if self.decision == Word::Changed => {
                "since its definition is not what was pinned, whatever the policy says: \"footbridge servers pins diff\" shows \
                 how, and \"footbridge servers pins accept\" takes it"
                    .to_owned()
            }
            Some(rule) => format!("by rule \"{rule}\" of policy \"{policy}\""),
            None => format!("since no rule of policy \"{policy}\" matches"),
        }
    }

    fn shown(&self, rules: &SessionRules, json: bool) -> String {
        let decision = match self.decision {
            Word::Decided(decision) => decision.as_str(),
            Word::Hide => "hide",
            Word::NotTaken | Word::Changed => Decision::Deny.as_str(),
        };
        let policy = rules.policy().name();
        let effects = self.effects.map(Effects::words);
        let why = self.why(policy);
        if json {
            return format!(
                "{}\n",
                json!({"decision": decision, "policy": policy, "rule": self.rule, "effects": effects, "reason": why,
                       "definitionChanged": self.decision == Word::Changed})
            );
        }
        let mut text = format!("{decision}\n{}\n", Escaped(&why));
        if let Some(effects) = effects {
            text.push_str(&format!("effects: {}\n", effects.join(", ")));
        }
        text
    }
}
