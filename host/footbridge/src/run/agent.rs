//! What an agent in the sandbox is told, so that it uses the bridge as an MCP server: `tool-cli mcp` over standard input
//! and output, with the names of the variables that it needs, never their values.
//!
//! Nothing of it goes into a file of the user. Claude Code, Codex and Copilot take it as words of their command line,
//! opencode in a variable, and Gemini CLI in a file of the run's own folder. Each form is as the agent's own
//! documentation has it.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use footbridge_processes::sandbox::Asked;
use footbridge_proto::vars;
use serde_json::{Map, Value, json};

/// The server's name for the agent.
const NAME: &str = "footbridge";
/// What it starts.
const PROGRAM: &str = "tool-cli";
/// The variables that `tool-cli` needs, and agents keep from what they start.
const PASSED: [&str; 2] = [vars::PORT, vars::TOKEN];
/// Where Gemini CLI looks for settings above the user's.
const GEMINI_SETTINGS: &str = "GEMINI_CLI_SYSTEM_SETTINGS_PATH";
/// Settings that opencode puts over its files.
const OPENCODE_SETTINGS: &str = "OPENCODE_CONFIG_CONTENT";

/// An agent whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// GitHub Copilot CLI.
    Copilot,
}

/// The agent cannot be told.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotTold {
    /// Its words would go to another program.
    #[error(
        "--agent {0} adds words behind the program \"{0}\", and CMD starts \"{1}\": start the agent itself, or put there what \
         \"footbridge agent-config {0}\" prints"
    )]
    Program(&'static str, String),
    /// The variable is set already.
    #[error("--agent {0} sets {1}, which --env names too: leave one of them out")]
    Variable(&'static str, &'static str),
    /// The file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Agent {
    /// Its program.
    fn program(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Copilot => "copilot",
        }
    }

    /// Its configuration, as a file of its own would have it.
    #[must_use]
    pub fn configuration(self) -> String {
        match self {
            Self::Codex => {
                let entries: String = codex_entries().map(|(key, value)| format!("{key} = {value}\n")).collect();
                format!("[mcp_servers.{NAME}]\n{entries}")
            }
            _ => format!("{:#}\n", self.json()),
        }
    }

    /// Where its configuration goes, for a person.
    #[must_use]
    pub fn place(self) -> &'static str {
        match self {
            Self::Claude => "claude --mcp-config FILE, or .mcp.json of a project",
            Self::Codex => "~/.codex/config.toml, or codex -c for each line",
            Self::Gemini => "~/.gemini/settings.json, or the file that GEMINI_CLI_SYSTEM_SETTINGS_PATH names",
            Self::Opencode => "opencode.json, or the variable OPENCODE_CONFIG_CONTENT",
            Self::Copilot => "~/.copilot/mcp-config.json, or copilot --additional-mcp-config @FILE",
        }
    }

    fn json(self) -> Value {
        let variables = |written: fn(&str) -> String| -> Map<String, Value> {
            PASSED.iter().map(|name| ((*name).to_owned(), written(name).into())).collect()
        };
        let braces = || variables(|name| format!("${{{name}}}"));
        match self {
            Self::Opencode => {
                let environment = variables(|name| format!("{{env:{name}}}"));
                let command = json!([PROGRAM, "mcp"]);
                json!({"mcp": {NAME: {"type": "local", "command": command, "environment": environment, "enabled": true}}})
            }
            Self::Copilot => json!({"mcpServers": {NAME:
                {"type": "local", "command": PROGRAM, "args": ["mcp"], "env": braces(), "tools": ["*"]}}}),
            Self::Claude | Self::Gemini | Self::Codex => {
                json!({"mcpServers": {NAME: {"command": PROGRAM, "args": ["mcp"], "env": braces()}}})
            }
        }
    }

    /// Tells the agent that this command starts: in its words, its variables, or a file below `folder`, which the
    /// command sees as `inside`.
    ///
    /// # Errors
    /// [`NotTold`].
    pub(super) fn tell(
        self,
        command: &mut Vec<OsString>,
        env: &mut Vec<Asked>,
        folder: &Path,
        inside: &Path,
    ) -> Result<(), NotTold> {
        match self {
            Self::Claude => {
                self.check_program(command)?;
                // It takes all words behind it, so it is the last; what is behind two dashes is no option.
                let at = command.iter().position(|word| word == "--").unwrap_or(command.len());
                let words = ["--mcp-config".into(), self.json().to_string().into()];
                command.splice(at..at, words);
            }
            Self::Codex => {
                self.check_program(command)?;
                let words = codex_entries()
                    .flat_map(|(key, value)| ["-c".into(), format!("mcp_servers.{NAME}.{key}={value}").into()]);
                command.splice(1..1, words);
            }
            Self::Copilot => {
                self.check_program(command)?;
                command.splice(1..1, ["--additional-mcp-config".into(), self.json().to_string().into()]);
            }
            Self::Opencode => self.set(env, OPENCODE_SETTINGS, self.json().to_string().into())?,
            Self::Gemini => {
                let file = folder.join("gemini.json");
                // Read by whoever the sandbox runs as, whatever the umask is: it holds no secret.
                let readable = || fs::set_permissions(&file, fs::Permissions::from_mode(0o644));
                let written = fs::write(&file, self.configuration()).and_then(|()| readable());
                written.map_err(|source| NotTold::File { path: file.clone(), source })?;
                self.set(env, GEMINI_SETTINGS, inside.join("gemini.json").into())?;
            }
        }
        Ok(())
    }

    fn check_program(self, command: &[OsString]) -> Result<(), NotTold> {
        let program = command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
        match program == self.program() {
            true => Ok(()),
            false => Err(NotTold::Program(self.program(), program.to_string_lossy().into_owned())),
        }
    }

    fn set(self, env: &mut Vec<Asked>, name: &'static str, value: OsString) -> Result<(), NotTold> {
        if env.iter().any(|asked| asked.name == name) {
            return Err(NotTold::Variable(self.program(), name));
        }
        env.push(Asked { name: name.to_owned(), value: Some(value) });
        Ok(())
    }
}

/// The table of a server in TOML.
fn codex_entries() -> impl Iterator<Item = (&'static str, Value)> {
    // A list of texts is written alike in JSON and TOML.
    [("command", json!(PROGRAM)), ("args", json!(["mcp"])), ("env_vars", json!(PASSED))].into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(agent: Agent, command: &[&str]) -> Result<(Vec<String>, Vec<Asked>, String), String> {
        let folder = tempfile::tempdir().unwrap();
        let (mut command, mut env) = (command.iter().map(OsString::from).collect(), Vec::new());
        let told = agent.tell(&mut command, &mut env, folder.path(), Path::new("/inside"));
        told.map_err(|error| error.to_string())?;
        let file = fs::read_to_string(folder.path().join("gemini.json")).unwrap_or_default();
        Ok((command.into_iter().map(|word| word.into_string().unwrap()).collect(), env, file))
    }

    const SERVER: &str = r#"{"command":"tool-cli","args":["mcp"],"env":{"TOOL_CLI_PORT":"${TOOL_CLI_PORT}","TOOL_CLI_TOKEN":"${TOOL_CLI_TOKEN}"}}"#;

    #[test]
    fn each_agent_is_told_in_its_own_way() {
        let (words, env, _) = told(Agent::Claude, &["/usr/bin/claude", "-p", "hi"]).unwrap();
        let config = format!("{{\"mcpServers\":{{\"footbridge\":{SERVER}}}}}");
        assert_eq!(words, ["/usr/bin/claude", "-p", "hi", "--mcp-config", &config]);
        assert!(env.is_empty());
        let (words, ..) = told(Agent::Claude, &["claude", "--", "hi"]).unwrap();
        assert_eq!(words, ["claude", "--mcp-config", &config, "--", "hi"]);
        let (words, ..) = told(Agent::Codex, &["codex", "exec", "hi"]).unwrap();
        let expected = [
            "codex",
            "-c",
            r#"mcp_servers.footbridge.command="tool-cli""#,
            "-c",
            r#"mcp_servers.footbridge.args=["mcp"]"#,
            "-c",
            r#"mcp_servers.footbridge.env_vars=["TOOL_CLI_PORT","TOOL_CLI_TOKEN"]"#,
            "exec",
            "hi",
        ];
        assert_eq!(words, expected);
        let (words, ..) = told(Agent::Copilot, &["copilot", "-p", "hi"]).unwrap();
        assert!(words[1] == "--additional-mcp-config" && words[2].contains(r#""tools":["*"]"#), "{words:?}");
        let (words, env, _) = told(Agent::Opencode, &["sh", "-c", "opencode"]).unwrap();
        assert_eq!((words.len(), env[0].name.as_str()), (3, "OPENCODE_CONFIG_CONTENT"));
        assert!(
            env[0].value.as_ref().unwrap().to_str().unwrap().contains(r#""TOOL_CLI_TOKEN":"{env:TOOL_CLI_TOKEN}""#)
        );
        let (_, env, file) = told(Agent::Gemini, &["gemini"]).unwrap();
        assert_eq!(env[0].value.as_deref(), Some("/inside/gemini.json".as_ref()));
        assert_eq!(
            serde_json::from_str::<Value>(&file).unwrap()["mcpServers"]["footbridge"],
            serde_json::from_str::<Value>(SERVER).unwrap()
        );
    }

    #[test]
    fn what_would_go_elsewhere_is_refused() {
        for agent in [Agent::Claude, Agent::Codex, Agent::Copilot] {
            let error = told(agent, &["npx", "it"]).unwrap_err();
            assert!(error.contains("starts \"npx\"") && error.contains("footbridge agent-config"), "{error}");
        }
        let mut env = vec![Asked { name: OPENCODE_SETTINGS.to_owned(), value: None }];
        let place = Path::new("/");
        let error = Agent::Opencode.tell(&mut vec!["opencode".into()], &mut env, place, place).unwrap_err();
        assert!(error.to_string().contains("--env names too"), "{error}");
    }

    #[test]
    fn codex_gets_toml() {
        let table: toml::Table = Agent::Codex.configuration().parse().unwrap();
        assert_eq!(table["mcp_servers"]["footbridge"]["env_vars"][1].as_str(), Some("TOOL_CLI_TOKEN"));
    }
}
