//! Whose values an entry may take over: those of an earlier entry that starts the same program or calls the same origin.
//! A later file that names another one, as a project's may, would get keys that were never meant for it.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{
    loading::{is_leading, is_loading},
    node::{Node, NodeValue},
};

/// What says which program is started: the values of `env` go there.
const OF_PROGRAMS: [&str; 3] = ["command", "args", "cwd"];
/// What says it besides where programs are wrapped.
const OF_WRAPPED: [&str; 2] = ["allowedPrograms", "tools"];

/// Whether an entry starts the same program as an earlier one, so that it may have that one's `env`. A variable of its
/// own by which the program may load other code, or send what it has to others, has to be the earlier one's, too.
pub(super) fn is_same_program(entry: &Node, earlier: &Node) -> bool {
    let of_earlier = deciding(earlier);
    program(entry) == program(earlier)
        && deciding(entry).iter().all(|(name, value)| of_earlier.get(name) == Some(value))
}

/// Whether both entries call the same origin, so that one's `headers` may be the other's.
pub(super) fn is_same_origin(one: &Node, other: &Node) -> bool {
    let of = |entry: &Node| Some(origin(entry.member("url")?.node.text()?));
    of(one).is_some_and(|origin| of(other) == Some(origin))
}

/// Scheme, host and port; the whole text where a reference could be part of them.
fn origin(url: &str) -> String {
    let parsed = url::Url::parse(url).ok().filter(|_| !url.contains("${"));
    parsed.map_or_else(|| url.to_owned(), |url| url.origin().ascii_serialization())
}

/// The members that say which program it is.
fn program(entry: &Node) -> Value {
    let is_wrapped = entry.member("type").is_some_and(|kind| kind.node.text() == Some("cli"));
    let keys = OF_PROGRAMS.iter().chain(OF_WRAPPED.iter().filter(|_| is_wrapped));
    let members = keys.filter_map(|key| Some(((*key).to_owned(), placed(&entry.member(key)?.node, key))));
    // An empty list is as good as none.
    let members = members.filter(|(_, value)| !value.is_null() && *value != json!([]));
    json!([is_wrapped, members.collect::<Map<_, _>>()])
}

/// The variables by which a program may load other code, or send what it has to others.
fn deciding(entry: &Node) -> Map<String, Value> {
    let variables = entry.member("env").and_then(|env| env.node.members()).unwrap_or_default();
    let deciding = variables.iter().filter(|member| is_loading(&member.name) || is_leading(&member.name));
    deciding.map(|member| (member.name.clone(), placed(&member.node, "env"))).collect()
}

/// A value with the folder of its file where it depends on that.
fn placed(node: &Node, key: &str) -> Value {
    match &node.value {
        NodeValue::Text(text) if depends_on_folder(text, key) => json!([node.at.folder(), text]),
        NodeValue::List(elements) => elements.iter().map(|element| placed(element, key)).collect(),
        NodeValue::Object(members) => {
            let members = members.iter().map(|member| (member.name.clone(), placed(&member.node, &member.name)));
            Value::Object(members.collect())
        }
        _ => node.to_json(),
    }
}

fn depends_on_folder(text: &str, key: &str) -> bool {
    let is_relative = !Path::new(text).is_absolute() && !text.starts_with('~');
    let is_path = match key {
        "cwd" | "file" => true,
        "command" | "allowedPrograms" => text.contains('/'),
        _ => text.starts_with("./") || text.starts_with("../"),
    };
    (is_path && is_relative) || text.contains("${workspaceFolder}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::jsonc;

    fn entry(folder: &str, text: &Value) -> Node {
        jsonc::parse(&Path::new(folder).join("s.json"), &text.to_string()).unwrap().unwrap()
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let same = |one: &str, other: &str| {
            is_same_origin(&entry("/a", &json!({"url": one})), &entry("/b", &json!({"url": other})))
        };
        assert!(same("https://h/mcp", "https://H:443/other?x=1"));
        assert!(same("https://${HOST}/mcp", "https://${HOST}/mcp"));
        for other in
            ["http://h/mcp", "https://h:8443/mcp", "https://h.evil/mcp", "https://${X:-h}/mcp", "https://h@evil"]
        {
            assert!(!same("https://h/mcp", other), "{other}");
        }
        assert!(!is_same_origin(&entry("/a", &json!({"url": "https://h"})), &entry("/a", &json!({"command": "h"}))));
        assert!(!is_same_origin(&entry("/a", &json!({})), &entry("/a", &json!({}))));
    }

    #[test]
    fn a_program_is_its_words_and_where_they_lead() {
        let same = |one: &Value, other: &Value| is_same_program(&entry("/a", one), &entry("/b", other));
        let npx = json!({"command": "npx", "args": ["-y", "@scope/pkg"], "env": {"A": "1"}});
        assert!(same(
            &npx,
            &json!({"type": "stdio", "command": "npx", "args": ["-y", "@scope/pkg"], "disabledTools": []})
        ));
        let loads = json!({"command": "node", "env": {"NODE_OPTIONS": "--require ./x.js", "A": "1"}});
        assert!(same(&json!({"command": "node"}), &loads), "it has none of its own");
        assert!(same(&json!({"command": "node", "args": []}), &json!({"command": "node", "cwd": null})));
        let tells =
            json!({"command": "npx", "args": ["-y", "@scope/pkg"], "env": {"GITHUB_TOOLSETS": "all", "A": "2"}});
        assert!(same(&tells, &npx), "data of its own");
        for variable in [
            "GITHUB_HOST",
            "HTTPS_PROXY",
            "http_proxy",
            "NODE_TLS_REJECT_UNAUTHORIZED",
            "SSLKEYLOGFILE",
            "REQUESTS_CA_BUNDLE",
            "GIT_SSL_NO_VERIFY",
            "OPENAI_BASE_URL",
            "apiUrl",
            "DATABASE_URI",
            "PGHOSTADDR",
            "PGSSLROOTCERT",
            "DB_CONNECTION_STRING",
            "GIT_CONFIG_KEY_0",
        ] {
            let leads = json!({"command": "npx", "args": ["-y", "@scope/pkg"], "env": {variable: "x"}});
            assert!(!same(&leads, &npx) && same(&leads, &leads), "{variable}");
        }
        let git = json!({"type": "cli", "command": "git", "allowedPrograms": ["git"], "tools": [{"name": "log"}]});
        assert!(same(&git, &git));
        for (one, other) in [
            (&npx, json!({"command": "npx", "args": ["-y", "evil"]})),
            (&npx, json!({"command": "npx"})),
            (
                &json!({"command": "npx", "args": ["-y", "@scope/pkg"], "env": {"NODE_OPTIONS": "--require /repo/x.js"}}),
                npx.clone(),
            ),
            (&npx, json!({"command": "npx", "args": ["-y", "@scope/pkg"], "cwd": "/repo"})),
            (&json!({"command": "./server"}), json!({"command": "./server"})),
            (&json!({"command": "node", "args": ["./s.js"]}), json!({"command": "node", "args": ["./s.js"]})),
            (&json!({"command": "node", "cwd": "sub"}), json!({"command": "node", "cwd": "sub"})),
            (
                &json!({"command": "node", "args": ["${workspaceFolder}/s.js"]}),
                json!({"command": "node", "args": ["${workspaceFolder}/s.js"]}),
            ),
            (&git, json!({"type": "cli", "command": "git", "allowedPrograms": ["git"], "tools": [{"name": "push"}]})),
            (&git, json!({"command": "git"})),
        ] {
            assert!(!same(one, &other), "{one} {other}");
        }
    }
}
