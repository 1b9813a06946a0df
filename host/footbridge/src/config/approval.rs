//! `[approval]` of `footbridge.toml`: who is asked.

use std::{collections::BTreeMap, ffi::OsString, path::Path, time::Duration};

use serde::Deserialize;

use super::{
    commands::Commands,
    passed::is_passed_to_ask,
    programs::in_full,
    secrets::{Gathered, Reader, Written},
    servers::{EntryError, http},
};
use crate::approvers;
use footbridge_core::{
    human::duration,
    settings_file::{File, Mistake},
};
use footbridge_outbound::HttpSpec;

/// Who is asked for approvals, as it is written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Approval {
    watch: Option<bool>,
    #[serde(deserialize_with = "command")]
    command: Vec<String>,
    webhook: Option<Webhook>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Webhook {
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, Written>,
    #[serde(default = "answers_within", deserialize_with = "duration")]
    timeout: Duration,
}

/// A person behind a webhook answers later, by `footbridge approvals`; what answers here is a program.
fn answers_within() -> Duration {
    Duration::from_secs(30)
}

fn command<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    if words.first().is_some_and(|program| !program.is_empty()) {
        return Ok(words);
    }
    Err(serde::de::Error::custom("write the program and its arguments, as in [\"/usr/local/bin/ask\", \"--team\"]"))
}

impl Approval {
    /// What it means, and the secrets that it refers to. The command gets of these variables what MCP servers get, and those
    /// of the desktop, where it may ask.
    pub(super) fn meant(
        self,
        file: &File<'_>,
        variables: &[(String, String)],
        commands: &Commands,
    ) -> Result<(approvers::ApprovalSettings, Gathered), Mistake> {
        let path = file.path();
        let var = |name: &str| variables.iter().find(|(n, _)| n == name).map(|(_, value)| OsString::from(value));
        let base = path.parent().unwrap_or(Path::new("/"));
        let mut reader = Reader { var: &var, base, commands, gathered: Gathered::default() };
        let webhook = self.webhook.map(|webhook| webhook.meant(file, &mut reader)).transpose()?.flatten();
        let mut words = self.command.into_iter();
        let command = words.next().map(|program| approvers::CommandSpec {
            program: in_full(base, &program),
            args: words.collect(),
            env: commands
                .handed_on(variables, is_passed_to_ask)
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        });
        Ok((approvers::ApprovalSettings { watch: self.watch, command, webhook }, reader.gathered))
    }
}

impl Webhook {
    /// None where what it refers to is not there and nothing is to be started.
    fn meant(self, file: &File<'_>, reader: &mut Reader<'_>) -> Result<Option<approvers::Webhook>, Mistake> {
        let at = |keys: &[&str], what: String| {
            let keys: Vec<String> = ["approval", "webhook"].iter().chain(keys).map(|key| (*key).to_owned()).collect();
            file.mistake(&keys, what)
        };
        let found = http(&self.url, &self.headers, &approvers::OURS, reader);
        let are_run = reader.commands.are_run();
        if matches!(&found, Err(EntryError::Secret(_, why)) if why.is_absent() && !are_run) {
            return Ok(None);
        }
        let (url, headers) = found.map_err(|error| match &error {
            EntryError::Url(_) | EntryError::PlainHttp | EntryError::Address(_) => at(&["url"], error.to_string()),
            EntryError::Secret(name, why) if name == "url" => at(&["url"], why.to_string()),
            EntryError::Secret(name, why) => at(&["headers", name], why.to_string()),
            EntryError::Header(name) | EntryError::HeaderValue(name, _) => at(&["headers", name], error.to_string()),
            _ => at(&[], error.to_string()),
        })?;
        // Whoever writes an address here means it, wherever it leads.
        let spec = HttpSpec { url, headers, allow_private: true };
        approvers::Webhook::new(spec, self.timeout).map(Some).map_err(|error| at(&[], error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::Settings;

    fn meant(text: &str) -> Result<(approvers::ApprovalSettings, Gathered), Vec<String>> {
        meant_by(text, &Commands::default())
    }

    fn meant_by(text: &str, commands: &Commands) -> Result<(approvers::ApprovalSettings, Gathered), Vec<String>> {
        let file = File::new(Path::new("/etc/f.toml"), text);
        let said = |mistakes: Vec<Mistake>| mistakes.iter().map(ToString::to_string).collect::<Vec<_>>();
        let settings: Settings = file.read(&[], file.parse().map_err(|mistake| said(vec![mistake]))?).map_err(said)?;
        let variables = [("KEY", "s3cret-value"), ("DISPLAY", ":0"), ("XDG_RUNTIME_DIR", "/run/user/7")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        settings.approval.meant(&file, &variables, commands).map_err(|mistake| said(vec![mistake]))
    }

    #[test]
    fn a_command_gets_what_leads_to_the_desktop_and_no_more_than_servers_besides() {
        let (settings, _) = meant("[approval]\ncommand = [\"/bin/ask\"]\n").unwrap();
        let names: Vec<String> = settings.command.unwrap().env.into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["DISPLAY", "XDG_RUNTIME_DIR"]);
    }

    #[test]
    fn a_webhook_whose_secret_is_not_there_is_a_mistake_where_it_is_to_be_asked() {
        let text =
            "[approval]\nwebhook = { url = \"https://ask.test/a\", headers = { authorization = \"${NO_KEY}\" } }\n";
        assert!(meant(text).unwrap_err()[0].contains("NO_KEY"));
        let (shown, _) = meant_by(text, &Commands::default().not_run()).unwrap();
        assert!(shown.webhook.is_none());
    }

    #[test]
    fn a_webhook_has_secrets_by_reference() {
        let (settings, gathered) = meant(
            "[approval]\nwebhook = { url = \"https://ask.test/a\", headers = { authorization = \"Bearer ${KEY}\" } }\n",
        )
        .unwrap();
        assert!(settings.watch.is_none() && settings.webhook.is_some());
        assert!(gathered.names.contains("KEY"));
        assert!(gathered.secrets.iter().any(|secret| secret.expose() == "s3cret-value"));
        assert!(!format!("{settings:?}").contains("s3cret"), "{settings:?}");
        for url in ["http://127.0.0.1:9/x", "http://[::1]:9/x", "https://10.0.0.1/x", "https://box.internal/x"] {
            meant(&format!("[approval.webhook]\nurl = {url:?}\ntimeout = \"5s\"\n")).unwrap();
        }
    }

    #[test]
    fn a_mistake_in_a_webhook_is_named_with_its_line() {
        for (text, line, what) in [
            ("url = \"http://ask.test/\"", 2, "http without TLS"),
            ("url = \"ftp://ask.test/\"", 2, "not an http"),
            ("url = \"https://${NONE}/\"", 2, "NONE is not set"),
            ("url = \"https://me:pass@ask.test/\"", 2, "user name"),
            ("url = \"https://a.test\"\ntimeout = \"0s\"", 3, "no duration"),
            ("url = \"https://a.test\"\nmethod = \"PUT\"", 3, "\"method\" is not known here"),
            ("timeout = \"5s\"", 1, "\"url\" is missing"),
            (
                "url = \"https://a.test\"\n[approval.webhook.headers]\nx-a = \"1\"\nx-b = \"${NONE}\"",
                5,
                "NONE is not set",
            ),
            ("url = \"https://a.test\"\n[approval.webhook.headers]\n\"x a\" = \"1\"", 4, "not the name of a header"),
            ("url = \"https://a.test\"\nheaders = { host = \"x\" }", 3, "set here"),
            ("url = \"https://a.test\"\nheaders = { x = \"a\\nb\" }", 3, "no header may have"),
        ] {
            let found = meant(&format!("[approval.webhook]\n{text}\n")).unwrap_err();
            let start = format!("/etc/f.toml:{line}: ");
            assert!(found.len() == 1 && found[0].starts_with(&start) && found[0].contains(what), "{text}: {found:?}");
            assert!(!found[0].contains("pass@"), "{found:?}");
        }
    }
}
