//! What a policy would decide about a call that is in the record, and what cannot be told from there.
//!
//! A record has names, effects and the arguments' digest, and perhaps their text without secrets. What hangs on
//! anything else is unknown, never guessed.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;

use footbridge_audit::read::ReadRecord;
use footbridge_core::{
    digest::{Digest, digest_text},
    gate::{
        CallKind, Decided, Effect, Effects, Policy, SessionRules, Subject, Tested,
        rules::{CONNECT, Kinds},
    },
    names::Labels,
    redact::MARK,
};

use crate::service::RequestName;

/// What follows the kept part of a name that was cut.
const CUT: &str = "... (sha256:";

/// A call that was decided about, as far as the record has it.
#[derive(Debug, Clone, PartialEq)]
pub struct PastCall {
    /// The tool's name or the resource's URI.
    pub name: String,
    /// The server.
    pub server: String,
    /// `tool`, `resource`, `prompt`, `completion`, or a kind of a later version.
    pub kind: String,
    /// What was decided.
    pub decision: String,
    /// The policy that decided.
    pub policy: String,
    /// The rule that decided; none where no rule matched.
    pub rule: Option<String>,
    effects: Option<Effects>,
    arguments: Option<Value>,
}

/// What a policy would decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Again {
    /// This, whatever the record lacks.
    Decided {
        /// `allow`, `ask`, `deny`, or `hide`, which records have not.
        decision: &'static str,
        /// The rule; several where only the rule hangs on what is not recorded; none where no rule matches.
        rules: Vec<Arc<str>>,
    },
    /// It cannot be told.
    Unknown {
        /// What is missing.
        why: Missing,
        /// What it may be.
        possible: Vec<&'static str>,
    },
}

/// What the record does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// It has them for a digest, or without parts.
    #[error("its arguments are not recorded in full")]
    Arguments,
    /// The record of its session is gone, or has them without parts.
    #[error("the labels of its session are not recorded in full")]
    Labels,
    /// It was cut, or something was taken out of it.
    #[error("its name is not recorded in full")]
    Name,
    /// A later version wrote it, or it is about a completion and the kind of what is completed matters.
    #[error("its effects or its kind are not known here")]
    Kind,
    /// The policy is not configured.
    #[error("its policy is not configured")]
    Policy,
}

impl PastCall {
    /// Of a record; none if nobody decided anything there.
    #[must_use]
    pub fn read(record: &ReadRecord) -> Option<Self> {
        let decision = Some(record.text("decision")).filter(|decision| !decision.is_empty())?;
        let effects = record.fields.get("effects").cloned();
        let effects = effects.and_then(|effects| serde_json::from_value::<Vec<Effect>>(effects).ok());
        let digest = record.text("arguments.digest");
        let is_whole = |text: &String| digest_text(Digest::of(text)) == digest;
        // No arguments have a digest that everybody knows.
        let text = [record.text("arguments.redacted"), "{}".to_owned()].into_iter().find(is_whole);
        Some(Self {
            name: record.text("name"),
            server: record.text("server"),
            kind: record.text("kind"),
            decision,
            policy: record.text("policy"),
            rule: Some(record.text("rule")).filter(|rule| !rule.is_empty()),
            effects: effects.map(|effects| Effects::of(&effects)),
            arguments: text.and_then(|text| serde_json::from_str(&text).ok()),
        })
    }

    /// What a policy would decide, of a session with these labels where they are known.
    #[must_use]
    pub fn again(&self, policy: &Arc<Policy>, labels: Option<&Labels>) -> Again {
        let unknown = |why| Again::Unknown { why, possible: Vec::new() };
        // Of a request rules see no query, in which secrets are redacted.
        let request = (self.kind == "http").then(|| RequestName::read(&self.name)).flatten();
        let named = request.map_or(self.name.as_str(), |request| request.path);
        if !is_whole(named) || !is_whole(&self.server) {
            return unknown(Missing::Name);
        }
        let labels = labels.filter(|labels| labels.iter().all(|(key, value)| is_whole(key) && is_whole(value)));
        let asks_labels = || {
            let mut rules = policy.rules().iter();
            rules.any(|rule| !rule.scope.labels.is_empty() && rule.is_about_some(self.kinds(), &self.server))
        };
        if labels.is_none() && asks_labels() {
            return unknown(Missing::Labels);
        }
        let rules = SessionRules::new(Arc::clone(policy), labels.unwrap_or(&Labels::new()));
        let (server, name) = (&self.server, &self.name);
        match (self.effects, self.kind.as_str()) {
            (Some(effects), "tool") => self.by(&rules, &rules.tool(server, name, effects), true),
            (Some(_), "resource") => self.by(&rules, &Subject::resource(server, name), false),
            (Some(_), "prompt") => self.by(&rules, &Subject::prompt(server, name), true),
            (Some(effects), "http") => {
                let Some(RequestName { method, path, .. }) = request else { return unknown(Missing::Name) };
                self.by(&rules, &Subject::http(server, method, path, effects), false)
            }
            (Some(effects), "tunnel") => {
                self.by(&rules, &Subject::http(server, CONNECT, &format!("/{name}"), effects), false)
            }
            (Some(_), "completion") => {
                // The record does not say whether the name is a prompt's or a template.
                let of_prompt = self.by(&rules, &Subject::completion(server, name), false);
                let of_template = self.by(&rules, &Subject::template_completion(server, name), false);
                if of_prompt == of_template { of_prompt } else { unknown(Missing::Kind) }
            }
            _ => unknown(Missing::Kind),
        }
    }

    /// The kinds of calls of which what rules say matters: where one is about a part of a server, others do not hide all
    /// of it.
    fn kinds(&self) -> Kinds {
        match self.kind.as_str() {
            "http" => Kinds::of(&[CallKind::Http]),
            "tunnel" => Kinds::of(&[CallKind::Tunnel]),
            _ => Kinds::OF_SERVERS,
        }
    }

    /// What these rules decide about it.
    fn by(&self, rules: &SessionRules, subject: &Subject<'_>, has_arguments: bool) -> Again {
        // A service may have the name of a server, and is not hidden with that.
        let of_server = (self.kinds() == Kinds::OF_SERVERS).then(|| rules.hides_server(&self.server)).flatten();
        if let Some(rule) = of_server.or_else(|| rules.hides_this(subject)) {
            return Again::Decided { decision: "hide", rules: vec![Arc::clone(&rule.id)] };
        }
        match &self.arguments {
            Some(arguments) if has_arguments => one_of(vec![rules.decide(subject, &rules.test(subject, arguments))]),
            None if has_arguments => one_of(rules.possible(subject)),
            // Conditions are about the arguments of tools and prompts.
            _ => one_of(vec![rules.decide(subject, &Tested::default())]),
        }
    }
}

/// One decision, where all that may be decided are the same.
fn one_of(possible: Vec<Decided>) -> Again {
    let decisions: BTreeSet<&'static str> = possible.iter().map(|decided| decided.decision.as_str()).collect();
    let mut decisions = decisions.into_iter();
    match (decisions.next(), decisions.len()) {
        (Some(decision), 0) => {
            Again::Decided { decision, rules: possible.into_iter().filter_map(|d| d.rule).collect() }
        }
        (first, _) => {
            Again::Unknown { why: Missing::Arguments, possible: first.into_iter().chain(decisions).collect() }
        }
    }
}

/// Whether a text of the record is what it was.
fn is_whole(text: &str) -> bool {
    !text.contains(MARK) && !text.contains(CUT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use footbridge_core::policy_file::policies_of;

    fn call(more: Value) -> PastCall {
        let mut fields = json!({"type": "intent", "session": "s", "kind": "tool", "server": "demo", "name": "add",
            "arguments": {"digest": "sha256:0", "bytes": 9}, "decision": "allow", "policy": "open", "rule": "all",
            "effects": ["write"]});
        for (key, value) in more.as_object().unwrap() {
            fields[key] = value.clone();
        }
        PastCall::read(&ReadRecord::parse(fields.to_string().as_bytes()).unwrap()).unwrap()
    }

    fn with(text: &str) -> Value {
        json!({"arguments": {"digest": format!("sha256:{}", Digest::of(text)), "bytes": 9, "redacted": text}})
    }

    fn policy(rules: &str) -> Arc<Policy> {
        policies_of(&format!("[policies.p]\n{rules}")).unwrap().get("p").unwrap()
    }

    fn rule(text: &str) -> String {
        format!("[[policies.p.rules]]\n{text}\n")
    }

    fn decided(decision: &'static str, rules: &[&str]) -> Again {
        Again::Decided { decision, rules: rules.iter().map(|rule| Arc::from(*rule)).collect() }
    }

    #[test]
    fn names_effects_and_labels_decide() {
        let writes = policy(
            &(rule("id = \"w\"\ndecision = \"deny\"\neffects = \"write\"") + &rule("id = \"r\"\ndecision = \"allow\"")),
        );
        assert_eq!(call(json!({})).again(&writes, None), decided("deny", &["w"]));
        assert_eq!(call(json!({"effects": ["read"]})).again(&writes, None), decided("allow", &["r"]));
        let hides = policy(&rule("id = \"h\"\ndecision = \"hide\"\nserver = \"demo\""));
        assert_eq!(call(json!({})).again(&hides, None), decided("hide", &["h"]));
        let asks = policy(&rule("id = \"x\"\ndecision = \"deny\"\nserver = \"other\""));
        assert_eq!(call(json!({})).again(&asks, None), decided("ask", &[]));
        let labelled = policy(
            &(rule("id = \"l\"\ndecision = \"deny\"\nlabels = { team = \"a*\" }")
                + &rule("id = \"r\"\ndecision = \"allow\"")),
        );
        let labels = |team: &str| Labels::from([("team".to_owned(), team.to_owned())]);
        assert_eq!(call(json!({})).again(&labelled, Some(&labels("ab"))), decided("deny", &["l"]));
        assert_eq!(call(json!({})).again(&labelled, Some(&labels("b"))), decided("allow", &["r"]));
        for missing in [None, Some(&labels("[redacted]"))] {
            let again = call(json!({})).again(&labelled, missing);
            assert_eq!(again, Again::Unknown { why: Missing::Labels, possible: vec![] });
        }
    }

    #[test]
    fn what_hangs_on_arguments_is_known_where_they_are_whole_and_never_guessed() {
        let only_bern = rule("id = \"b\"\ndecision = \"allow\"\narguments = [{ at = \"/city\", equals = \"Bern\" }]");
        let then_deny = policy(&(only_bern.clone() + &rule("id = \"d\"\ndecision = \"deny\"")));
        let unknown = Again::Unknown { why: Missing::Arguments, possible: vec!["allow", "deny"] };
        assert_eq!(call(json!({})).again(&then_deny, None), unknown);
        assert_eq!(call(with(r#"{"city":"Bern"}"#)).again(&then_deny, None), decided("allow", &["b"]));
        assert_eq!(call(with(r#"{"city":"Thun"}"#)).again(&then_deny, None), decided("deny", &["d"]));
        let mut cut = with(r#"{"city":"Bern"}"#);
        cut["arguments"]["redacted"] = json!(r#"{"city":"[redacted]"}"#);
        assert_eq!(call(cut).again(&then_deny, None), unknown);
        let mut none = with("{}");
        none["arguments"]["redacted"] = Value::Null;
        assert_eq!(call(none).again(&then_deny, None), decided("deny", &["d"]), "no arguments have a known digest");
        let either_way = policy(&(only_bern + &rule("id = \"a\"\ndecision = \"allow\"")));
        assert_eq!(call(json!({})).again(&either_way, None), decided("allow", &["b", "a"]));
    }

    #[test]
    fn prompts_are_decided_by_their_arguments_and_completions_where_it_is_plain_of_what() {
        let bern = rule(
            "id = \"b\"\ndecision = \"deny\"\nprompt = \"add\"\narguments = [{ at = \"/city\", equals = \"Bern\" }]",
        );
        let rules = policy(&(bern + &rule("id = \"a\"\ndecision = \"allow\"\nkind = [\"tool\", \"prompt\"]")));
        let mut prompt = with(r#"{"city":"Bern"}"#);
        prompt["kind"] = json!("prompt");
        assert_eq!(call(prompt).again(&rules, None), decided("deny", &["b"]));
        let completion = json!({"kind": "completion"});
        assert_eq!(call(completion.clone()).again(&rules, None), decided("ask", &[]));
        let by_name = policy(&rule("id = \"n\"\ndecision = \"allow\"\nprompt = \"add\""));
        let unknown = Again::Unknown { why: Missing::Kind, possible: vec![] };
        assert_eq!(call(completion).again(&by_name, None), unknown);
    }

    #[test]
    fn requests_are_decided_by_what_services_are_asked_and_by_nothing_of_servers() {
        let http = |name: &str| call(json!({"kind": "http", "server": "github", "name": name}));
        let path = policy(&rule("id = \"x\"\ndecision = \"allow\"\nservice = \"github\"\npath = \"/v1/x\""));
        for name in ["GET /v1/x", "GET /v1/x?q=1", "GET /v1/x (websocket)", "GET /v1/x?key=[redacted] (websocket)"] {
            assert_eq!(http(name).again(&path, None), decided("allow", &["x"]), "{name}");
        }
        assert_eq!(http("GET /v1/y (websocket)").again(&path, None), decided("ask", &[]));
        assert!(matches!(http("GET /v1/[redacted]?q=1").again(&path, None), Again::Unknown { why: Missing::Name, .. }));
        let tunnel = call(json!({"kind": "tunnel", "server": "tunnels", "name": "github.example:443"}));
        let hides = policy(
            &(rule("id = \"h\"\ndecision = \"hide\"\nserver = [\"github\", \"tunnels\"]")
                + &rule("id = \"a\"\ndecision = \"allow\"\nkind = [\"http\", \"tunnel\"]")),
        );
        assert_eq!(http("GET /").again(&hides, None), decided("allow", &["a"]), "it is a server's name");
        assert_eq!(tunnel.again(&hides, None), decided("allow", &["a"]));
        assert_eq!(call(json!({"server": "github"})).again(&hides, None), decided("hide", &["h"]));
    }

    #[test]
    fn labels_matter_where_a_rule_that_asks_for_them_is_about_such_a_call() {
        let http = call(json!({"kind": "http", "server": "github", "name": "GET /v1/x"}));
        let tunnel = call(json!({"kind": "tunnel", "server": "tunnels", "name": "github.example:443"}));
        let tool = call(json!({"server": "github"}));
        let unknown = Again::Unknown { why: Missing::Labels, possible: vec![] };
        for (about, of) in [
            ("service = \"github\"", [true, false, false]),
            ("service = \"github\"\nmethod = \"GET\"", [true, false, false]),
            ("kind = \"tunnel\"", [false, true, false]),
            ("server = \"github\"", [false, false, true]),
            ("tool = \"other\"", [false, false, true]),
            ("", [true, true, true]),
        ] {
            let rules = policy(
                &(rule(&format!("id = \"l\"\ndecision = \"deny\"\nlabels = {{ team = \"a\" }}\n{about}"))
                    + &rule("id = \"a\"\ndecision = \"allow\"")),
            );
            let again = [&http, &tunnel, &tool].map(|call| call.again(&rules, None));
            assert_eq!(again.map(|again| again == unknown), of, "{about}");
        }
    }

    #[test]
    fn what_the_record_cut_or_a_later_version_wrote_is_unknown() {
        let open = Policy::open();
        let unknown = |why| Again::Unknown { why, possible: vec![] };
        assert_eq!(call(json!({"name": "a... (sha256:00)"})).again(&open, None), unknown(Missing::Name));
        assert_eq!(call(json!({"name": "a [redacted]"})).again(&open, None), unknown(Missing::Name));
        assert_eq!(call(json!({"kind": "sampling"})).again(&open, None), unknown(Missing::Kind));
        assert_eq!(call(json!({"effects": ["teleports"]})).again(&open, None), unknown(Missing::Kind));
        assert!(
            PastCall::read(&ReadRecord::parse(br#"{"type":"refused","reason":"unknown_tool"}"#).unwrap()).is_none()
        );
        let resource = json!({"kind": "resource", "name": "note:///1", "effects": ["read"]});
        assert_eq!(call(resource).again(&Policy::readonly(), None), decided("allow", &["reads"]));
    }
}
