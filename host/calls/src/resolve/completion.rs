//! Completing an argument of a prompt, or a part of a resource template.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::value::to_raw_value;

use super::Found;
use crate::catalogue::{Visible, no_such_resource};
use crate::cause::{Broken, Cause};
use crate::request::{Completed, OutgoingRequest};
use footbridge_core::{
    gate::{SessionRules, Tested},
    names::ServerName,
};

/// What a guest says besides what it is about.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct Asked {
    argument: Argument,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context: Option<Context>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Argument {
    name: String,
    value: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct Context {
    #[serde(default)]
    arguments: BTreeMap<String, String>,
}

/// What is sent: `params` of `completion/complete` (MCP 2025-11-25). Its members are in the order of their names, so
/// its text is the canonical one.
#[derive(Serialize)]
struct Sent<'a> {
    #[serde(flatten)]
    asked: Asked,
    #[serde(rename = "ref")]
    about: &'a Completed,
}

/// Whether the session may know that this can be completed: that there is such a prompt or template, and that no rule
/// hides its completions.
///
/// # Errors
/// Why not.
pub(super) fn find(visible: &Visible, rules: &SessionRules, about: &Completed) -> Result<(), Cause> {
    let server = visible.server();
    let shown = rules.shows(&about.subject(server.as_str()));
    match about {
        Completed::Prompt { name } if !shown => Err(visible.no_such_prompt(name)),
        Completed::Prompt { name } => visible.prompt(name).map(drop),
        Completed::Template { uri } if !shown || !visible.entries().has_template(uri) => {
            Err(no_such_resource(server, uri))
        }
        Completed::Template { .. } => Ok(()),
    }
}

/// Checks the shape of what a guest says. Rules have no conditions on it.
///
/// # Errors
/// Why not.
pub(super) fn checked(server: ServerName, about: Completed, text: &str) -> Result<Found, Cause> {
    let asked: Asked = serde_json::from_str(text)
        .map_err(|_| Cause::CompletionArguments { server: server.clone(), name: about.name().to_owned() })?;
    let broken = |_| Cause::Internal(Broken::Writing);
    let params = to_raw_value(&Sent { asked, about: &about }).map_err(broken)?;
    let effects = about.subject(server.as_str()).effects();
    Ok(Found::of(server, OutgoingRequest::Complete { about, params }, effects, Tested::default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_canonical_and_holds_nothing_else() {
        let sent = |about: Completed, text: &str| {
            checked("s".parse().unwrap(), about, text).map(|found| found.request.arguments().unwrap().get().to_owned())
        };
        let prompt = || Completed::Prompt { name: "p".to_owned() };
        let text = r#"{"context":{"x":1,"arguments":{"b":"2","a":"1"}},"argument":{"value":"v","more":1,"name":"n"}}"#;
        assert_eq!(
            sent(prompt(), text).unwrap(),
            r#"{"argument":{"name":"n","value":"v"},"context":{"arguments":{"a":"1","b":"2"}},"ref":{"name":"p","type":"ref/prompt"}}"#
        );
        let template = Completed::Template { uri: "a:{b}".to_owned() };
        let text = r#"{"argument":{"name":"b","value":""}}"#;
        let params = r#"{"argument":{"name":"b","value":""},"ref":{"type":"ref/resource","uri":"a:{b}"}}"#;
        assert_eq!(sent(template, text).unwrap(), params);
        for text in ["{}", r#"{"argument":{"name":"n"}}"#, r#"{"argument":{"name":"n","value":7}}"#, "[]"] {
            let error = sent(prompt(), text).unwrap_err();
            assert!(matches!(error, Cause::CompletionArguments { .. }), "{text}");
        }
        assert!(sent(prompt(), r#"{"argument":{"name":"n","value":"v"},"context":{"arguments":{"a":1}}}"#).is_err());
    }
}
