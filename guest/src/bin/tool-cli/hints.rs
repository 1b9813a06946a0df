//! What may have been meant by a name that is none, or by arguments that do not fit: a line for whoever reads standard
//! error, behind the bridge's own words.

use footbridge_cli::{
    schema::properties,
    signature::arguments,
    suggest::{closest, instead},
};
use footbridge_guest::answers::ListedServers;
use footbridge_proto::{rpc::Reason, text::Escaped, wire::method};
use serde_json::{Value, json};

use crate::{
    asked::{Asked, described},
    failure::Failure,
};

/// Adds what there is to say to a failure that is about a server, and perhaps a tool of it.
pub(crate) fn hinted(asked: &mut Asked, server: &str, tool: Option<&str>, failure: Failure) -> Failure {
    match failure {
        Failure::Client { source, call, .. } if asked.hints => {
            let hint = source.object().and_then(|error| {
                let data = error.data.clone().unwrap_or_default();
                match (error.reason(), tool) {
                    (Some(Reason::UnknownServer), _) => of_server(asked, server),
                    (Some(Reason::UnknownTool), Some(tool)) => of_tool(tool, &data),
                    (Some(Reason::InvalidArguments), Some(tool)) => of_arguments(asked, server, tool, &data),
                    _ => None,
                }
            });
            Failure::Client { source, call, hint }
        }
        other => other,
    }
}

fn of_server(asked: &mut Asked, server: &str) -> Option<String> {
    if matches!(server, "read" | "resources") {
        return Some(
            "resources are listed by: tool-cli resource list SERVER, and read by: tool-cli resource read SERVER URI"
                .to_owned(),
        );
    }
    let (_, list) = asked.get::<ListedServers>(method::LIST_SERVERS, &json!({})).ok()?;
    let names: Vec<&str> = list.servers.iter().map(|server| server.name.as_str()).collect();
    Some(format!("No server has this name{}", instead(server, &names, "none is connected")))
}

fn of_tool(tool: &str, data: &Value) -> Option<String> {
    let known: Vec<&str> = data["discoveredTools"].as_array()?.iter().filter_map(Value::as_str).collect();
    Some(format!("No tool has this name{}", instead(tool, &known, "the server has none")))
}

fn of_arguments(asked: &mut Asked, server: &str, tool: &str, data: &Value) -> Option<String> {
    let (_, full) = described(asked, server, tool).ok()?;
    let mut hint = format!("{} takes {}", Escaped(tool), arguments(&full.input_schema));
    let known: Vec<&str> = properties(&full.input_schema).map(|(name, _)| name.as_str()).collect();
    for violation in data["validationErrors"].as_array().into_iter().flatten() {
        let name = violation["params"]["additionalProperty"].as_str();
        if let Some((name, meant)) = name.and_then(|name| Some((name, closest(name, &known)?))) {
            hint.push_str(&format!("\n  for \"{}\", did you mean \"{}\"?", Escaped(name), Escaped(meant)));
        }
    }
    Some(hint)
}
