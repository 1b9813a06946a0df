//! What shows of an entry that nobody trusts yet: keys that are misspelt, and that it starts nothing. No secret is read
//! for it, and nothing is run.

use footbridge_core::settings_file::Mistake;

use super::{EntryError, OF_OTHERS};
use crate::config::{fields::Fields, node::Member, written::WrittenServer};

/// All keys of ours.
pub(super) const OURS: [&str; 18] = [
    "allowPrivate",
    "allowedPrograms",
    "alwaysAllow",
    "args",
    "autoApprove",
    "command",
    "confine",
    "cwd",
    "disabled",
    "disabledTools",
    "enabled",
    "env",
    "headers",
    "protocol",
    "tools",
    "trustFolder",
    "type",
    "url",
];

/// What can be said of an entry that is not trusted yet: no secret is read and no command is run for it.
pub(in crate::config) fn misspelt(server: &WrittenServer) -> Vec<Mistake> {
    let mut fields = match Fields::of(&server.entry, format!("server {:?}", server.name)) {
        Ok(fields) => fields,
        Err(mistake) => return vec![mistake],
    };
    let there = OURS.map(|key| (key, fields.member(key).is_some()));
    let is_there = |keys: &[&str]| there.iter().any(|(key, is_there)| *is_there && keys.contains(key));
    let unknown = fields.unknown(&OF_OTHERS).into_iter();
    let meant = |(member, meant): (&Member, Option<&str>)| {
        Some(fields.note(&member.at, format!("key {:?} is not known here; did you mean \"{}\"?", member.name, meant?)))
    };
    let mut found: Vec<Mistake> = unknown.filter_map(meant).collect();
    if !is_there(&["command", "url", "tools"]) {
        found.push(fields.note(&server.at, EntryError::Neither));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::written;

    #[test]
    fn what_is_misspelt_shows_without_reading_any_secret() {
        let said = |entry: &str| -> Vec<String> {
            let text = format!("{{\"mcpServers\": {{\"a\": {entry}}}}}");
            let servers = written::servers(Path::new("/s.json"), &text).unwrap();
            misspelt(&servers[0]).iter().map(|mistake| mistake.what.clone()).collect()
        };
        assert_eq!(
            said(r#"{"comand": "${NOT_SET}", "env": {"A": {"command": ["false"]}}}"#),
            [
                "server \"a\": key \"comand\" is not known here; did you mean \"command\"?",
                "server \"a\": it has neither \"command\" nor \"url\": write the program to start, or the address to call"
            ]
        );
        assert_eq!(said(r#"{"command": "x", "comment": "mine", "oauth": {}}"#), Vec::<String>::new());
        assert_eq!(said("[]").len(), 1);
    }
}
