//! What an agent in the sandbox is told, so that it uses the bridge as an MCP server: `tool-cli mcp` over standard input
//! and output, with the names of the variables that it needs, never their values.
//!
//! Nothing of it goes into a file of the user. Claude Code, Codex and Copilot take it as words of their command line, and
//! opencode in a variable; the others by a file of their own alone, which is printed for a person to put there. Gemini CLI
//! is one of them: settings that a variable names it takes from files of root alone. Each form is as the agent's own
//! documentation has it.

use std::{ffi::OsString, path::Path};

use footbridge_processes::sandbox::Asked;
use footbridge_proto::vars;
use footbridge_services::ServiceSpec;
use serde_json::{Map, Value, json};

/// The server's name for the agent.
const NAME: &str = "footbridge";
/// What it starts.
const PROGRAM: &str = "tool-cli";
/// The variables that `tool-cli` needs in a run, and agents keep from what they start.
const OF_RUN: [&str; 2] = [vars::PORT, vars::TOKEN];
/// Those that it may need in any sandbox, most of which are not set.
const OF_ANY: [&str; 5] = [vars::PORT, vars::TOKEN, vars::HOST, vars::SOCKET, vars::TOKEN_FILE];
/// Settings that opencode puts over its files.
const OPENCODE_SETTINGS: &str = "OPENCODE_CONFIG_CONTENT";

/// An agent whose configuration is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Agent {
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
    /// Aider, which has no MCP servers: its part is the model.
    Aider,
    /// Continue.
    Continue,
    /// npm, which is no agent: its registry.
    Npm,
}

/// Addresses of services that agents are told of: models, by whose API they speak, and a registry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Models {
    /// Of OpenAI's API.
    openai: Option<String>,
    /// Of Anthropic's.
    anthropic: Option<String>,
    /// A registry of npm.
    npm: Option<String>,
}

impl Models {
    /// The services that are called as their presets, at this port.
    #[must_use]
    pub(crate) fn of_presets(port: u16) -> Self {
        let address = |name: &str| Some(address(name, port));
        Self { openai: address("openai"), anthropic: address("anthropic"), npm: address("npm") }
    }

    /// The first of these services for each, by the variables that guests get of it, at this port.
    #[must_use]
    pub(crate) fn of(services: &[ServiceSpec], port: u16) -> Self {
        let setting = |variable: &str| {
            let service = services.iter().find(|spec| spec.environment.contains_key(variable));
            service.map(|spec| address(spec.name.as_str(), port))
        };
        Self {
            openai: setting("OPENAI_BASE_URL"),
            anthropic: setting("ANTHROPIC_BASE_URL"),
            npm: setting("npm_config_registry"),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The agent cannot be told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotTold {
    /// It is told by a file of its own alone.
    #[error("{0} is told by its own file alone: put there what \"footbridge agent-config {0}\" prints")]
    OwnFile(&'static str),
    /// Its words would go to another program.
    #[error(
        "--agent {0} adds words behind the program \"{0}\", and CMD starts \"{1}\": start the agent itself, or put there what \
         \"footbridge agent-config {0}\" prints"
    )]
    Program(&'static str, String),
    /// The variable is set already.
    #[error("--agent {0} sets {1}, which --env names too: leave one of them out")]
    Variable(&'static str, &'static str),
}

impl Agent {
    /// The names of those that a run can tell.
    pub(crate) const TOLD: [&str; 4] = ["claude", "codex", "opencode", "copilot"];

    /// Its program.
    fn program(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Copilot => "copilot",
            Self::Aider => "aider",
            Self::Continue => "continue",
            Self::Npm => "npm",
        }
    }

    /// Its configuration for these services, as a file of its own would have it.
    #[must_use]
    pub(crate) fn configuration(self, models: &Models) -> String {
        match self {
            Self::Codex => {
                let entries: String = codex_entries(&OF_ANY).map(|(key, value)| format!("{key} = {value}\n")).collect();
                let model = models.openai.as_deref().into_iter().flat_map(codex_model);
                let model: String = model.map(|(key, value)| format!("{key} = {value}\n")).collect();
                format!("{model}{LOGIN_SHELL} = false\n\n[mcp_servers.{NAME}]\n{entries}")
            }
            Self::Aider => {
                let openai = models.openai.iter().map(|address| format!("openai-api-base: {address}/v1\n"));
                let set = |address: &String| format!("set-env:\n  - ANTHROPIC_API_BASE={address}\n");
                openai.chain(models.anthropic.iter().map(set)).collect()
            }
            Self::Continue => continue_yaml(models),
            Self::Npm => models.npm.as_deref().map(npmrc).unwrap_or_default(),
            _ => format!("{:#}\n", self.json(models, &OF_ANY)),
        }
    }

    /// Where its configuration goes, for a person.
    #[must_use]
    pub(crate) fn place(self) -> &'static str {
        match self {
            Self::Claude => "claude --mcp-config FILE, or .mcp.json of a project",
            Self::Codex => "~/.codex/config.toml, or codex -c TABLE.KEY=VALUE for each line of it",
            Self::Gemini => "~/.gemini/settings.json",
            Self::Opencode => "opencode.json, or the variable OPENCODE_CONFIG_CONTENT",
            Self::Copilot => "~/.copilot/mcp-config.json, or copilot --additional-mcp-config @FILE",
            Self::Aider => ".aider.conf.yml; keys are read from OPENAI_API_KEY and ANTHROPIC_API_KEY",
            Self::Continue => "~/.continue/config.yaml, or cn --config FILE",
            Self::Npm => ".npmrc of a project or the home folder, where the registry is the service \"npm\"",
        }
    }

    /// `models` are for whoever takes them from no variable. A variable that is not set is empty for opencode, and for
    /// Claude Code where it has that as its default; the others hand on what is written here, which `tool-cli` knows.
    fn json(self, models: &Models, passed: &[&str]) -> Value {
        let variables = |written: &dyn Fn(&str) -> String| -> Map<String, Value> {
            passed.iter().map(|name| ((*name).to_owned(), written(name).into())).collect()
        };
        let default = |name: &str| if self == Self::Claude && !OF_RUN.contains(&name) { ":-" } else { "" };
        let braces = || variables(&|name| format!("${{{name}{}}}", default(name)));
        match self {
            Self::Opencode => {
                let environment = variables(&|name| format!("{{env:{name}}}"));
                let command = json!([PROGRAM, "mcp"]);
                let server = json!({"type": "local", "command": command, "environment": environment, "enabled": true});
                let mut all = json!({"mcp": {NAME: server}});
                let providers = opencode_providers(models);
                if !providers.is_empty() {
                    all["provider"] = providers.into();
                }
                all
            }
            Self::Copilot => json!({"mcpServers": {NAME:
                {"type": "local", "command": PROGRAM, "args": ["mcp"], "env": braces(), "tools": ["*"]}}}),
            // It takes the address of its model from a variable, and asks how to log in all the same.
            Self::Gemini => json!({
                "mcpServers": {NAME: {"command": PROGRAM, "args": ["mcp"], "env": braces()}},
                "security": {"auth": {"selectedType": "gemini-api-key"}},
            }),
            Self::Claude | Self::Codex | Self::Aider | Self::Continue | Self::Npm => {
                json!({"mcpServers": {NAME: {"command": PROGRAM, "args": ["mcp"], "env": braces()}}})
            }
        }
    }

    /// Tells the agent that this command starts, in its words or its variables. `models` are those that the run has.
    ///
    /// # Errors
    /// [`NotTold`].
    pub(super) fn tell(
        self,
        command: &mut Vec<OsString>,
        env: &mut Vec<Asked>,
        models: &Models,
    ) -> Result<(), NotTold> {
        match self {
            Self::Claude => {
                self.check_program(command)?;
                // It takes all words behind it, so it is the last; what is behind two dashes is no option.
                let at = command.iter().position(|word| word == "--").unwrap_or(command.len());
                let words = ["--mcp-config".into(), self.json(models, &OF_RUN).to_string().into()];
                command.splice(at..at, words);
            }
            Self::Codex => {
                self.check_program(command)?;
                let entries = codex_entries(&OF_RUN).map(|(key, value)| format!("mcp_servers.{NAME}.{key}={value}"));
                // A login shell sets PATH anew, and tool-cli is not found any more.
                let login = std::iter::once(format!("{LOGIN_SHELL}=false"));
                let model = models
                    .openai
                    .as_deref()
                    .into_iter()
                    .flat_map(codex_model)
                    .map(|(key, value)| format!("{key}={value}"));
                let words = entries.chain(login).chain(model).flat_map(|word| ["-c".into(), word.into()]);
                command.splice(1..1, words.collect::<Vec<OsString>>());
            }
            Self::Copilot => {
                self.check_program(command)?;
                command.splice(1..1, ["--additional-mcp-config".into(), self.json(models, &OF_RUN).to_string().into()]);
            }
            Self::Gemini | Self::Aider | Self::Continue | Self::Npm => return Err(NotTold::OwnFile(self.program())),
            Self::Opencode => self.set(env, OPENCODE_SETTINGS, self.json(models, &OF_RUN).to_string().into())?,
        }
        Ok(())
    }

    fn check_program(self, command: &[OsString]) -> Result<(), NotTold> {
        let program = command.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
        if program == self.program() {
            Ok(())
        } else {
            Err(NotTold::Program(self.program(), program.to_string_lossy().into_owned()))
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
fn codex_entries(passed: &[&str]) -> impl Iterator<Item = (&'static str, Value)> {
    // A list of texts is written alike in JSON and TOML.
    [("command", json!(PROGRAM)), ("args", json!(["mcp"])), ("env_vars", json!(passed))].into_iter()
}

/// The setting of Codex that decides whether commands get a login shell.
const LOGIN_SHELL: &str = "allow_login_shell";

/// The address of a service of this name, as the guest has it.
fn address(service: &str, port: u16) -> String {
    format!("http://127.0.0.1:{port}/s/{service}")
}

/// A provider of models in TOML, whose service has this address: Codex takes it from no variable.
fn codex_model(address: &str) -> impl Iterator<Item = (&'static str, String)> + use<> {
    let provider =
        format!("{{name=\"{NAME}\",base_url=\"{address}/v1\",env_key=\"OPENAI_API_KEY\",wire_api=\"responses\"}}");
    [("model_provider", format!("\"{NAME}\"")), ("model_providers.footbridge", provider)].into_iter()
}

/// Providers of models for opencode, which takes their addresses from no variable.
fn opencode_providers(models: &Models) -> Map<String, Value> {
    let all = [("anthropic", &models.anthropic, "ANTHROPIC_AUTH_TOKEN"), ("openai", &models.openai, "OPENAI_API_KEY")];
    let one = |(name, address, key): (&str, &Option<String>, &str)| {
        let options = json!({"baseURL": format!("{}/v1", address.as_ref()?), "apiKey": format!("{{env:{key}}}")});
        Some((name.to_owned(), json!({ "options": options })))
    };
    all.into_iter().filter_map(one).collect()
}

/// A service as the registry. Packages are asked of it wherever their metadata say that they are.
fn npmrc(address: &str) -> String {
    let bare = address.strip_prefix("http:").unwrap_or(address);
    format!("registry={address}/\nreplace-registry-host=always\n{bare}/:_authToken=${{{}}}\n", vars::TOKEN)
}

/// Models and the bridge for Continue, which reads secrets from its variables, and hands these on to servers.
fn continue_yaml(models: &Models) -> String {
    let model = |name: &str, provider: &str, address: &str, key: &str| {
        format!(
            "  - name: {name}\n    provider: {provider}\n    model: MODEL\n    apiBase: {address}/v1\n    \
             apiKey: ${{{{ secrets.{key} }}}}\n"
        )
    };
    let anthropic = models.anthropic.iter().map(|at| model("Anthropic", "anthropic", at, "ANTHROPIC_AUTH_TOKEN"));
    let openai = models.openai.iter().map(|at| model("OpenAI", "openai", at, "OPENAI_API_KEY"));
    let all: String = anthropic.chain(openai).collect();
    let all = if all.is_empty() { all } else { format!("models:\n{all}") };
    format!(
        "name: {NAME}\nversion: 0.0.1\nschema: v1\n{all}mcpServers:\n  - name: {NAME}\n    command: {PROGRAM}\n    \
         args: [mcp]\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(agent: Agent, command: &[&str]) -> Result<(Vec<String>, Vec<Asked>), String> {
        let (mut command, mut env) = (command.iter().map(OsString::from).collect(), Vec::new());
        let models = Models { openai: Some("http://127.0.0.1:7179/s/mine".to_owned()), ..Models::default() };
        let told = agent.tell(&mut command, &mut env, &models);
        told.map_err(|error| error.to_string())?;
        Ok((command.into_iter().map(|word| word.into_string().unwrap()).collect(), env))
    }

    /// What Claude Code is told of the bridge.
    const SERVER: &str = r#"{"command":"tool-cli","args":["mcp"],"env":{"TOOL_CLI_PORT":"${TOOL_CLI_PORT}","TOOL_CLI_TOKEN":"${TOOL_CLI_TOKEN}"}}"#;

    #[test]
    fn each_agent_is_told_in_its_own_way() {
        let (words, env) = told(Agent::Claude, &["/usr/bin/claude", "-p", "hi"]).unwrap();
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
            "-c",
            "allow_login_shell=false",
            "-c",
            r#"model_provider="footbridge""#,
            "-c",
            r#"model_providers.footbridge={name="footbridge",base_url="http://127.0.0.1:7179/s/mine/v1",env_key="OPENAI_API_KEY",wire_api="responses"}"#,
            "exec",
            "hi",
        ];
        assert_eq!(words, expected);
        let (words, ..) = told(Agent::Copilot, &["copilot", "-p", "hi"]).unwrap();
        assert!(words[1] == "--additional-mcp-config" && words[2].contains(r#""tools":["*"]"#), "{words:?}");
        let (words, env) = told(Agent::Opencode, &["sh", "-c", "opencode"]).unwrap();
        assert_eq!((words.len(), env[0].name.as_str()), (3, "OPENCODE_CONFIG_CONTENT"));
        let settings: Value = serde_json::from_str(env[0].value.as_ref().unwrap().to_str().unwrap()).unwrap();
        assert_eq!(settings["mcp"]["footbridge"]["environment"]["TOOL_CLI_TOKEN"], "{env:TOOL_CLI_TOKEN}");
        // The service that there is alone.
        let options = json!({"baseURL": "http://127.0.0.1:7179/s/mine/v1", "apiKey": "{env:OPENAI_API_KEY}"});
        assert_eq!(settings["provider"], json!({"openai": {"options": options}}));
    }

    #[test]
    fn what_would_go_elsewhere_is_refused() {
        for agent in [Agent::Claude, Agent::Codex, Agent::Copilot] {
            let error = told(agent, &["npx", "it"]).unwrap_err();
            assert!(error.contains("starts \"npx\"") && error.contains("footbridge agent-config"), "{error}");
        }
        for agent in [Agent::Aider, Agent::Continue, Agent::Gemini] {
            assert!(told(agent, &["aider"]).unwrap_err().contains("its own file alone"));
        }
        for agent in [Agent::Aider, Agent::Continue] {
            assert!(agent.configuration(&Models::of_presets(vars::DEFAULT_PORT)).contains("/s/anthropic"));
        }
        let mut env = vec![Asked { name: OPENCODE_SETTINGS.to_owned(), value: None }];
        let error = Agent::Opencode.tell(&mut vec!["opencode".into()], &mut env, &Models::default()).unwrap_err();
        assert!(error.to_string().contains("--env names too"), "{error}");
    }

    #[test]
    fn what_is_printed_has_the_services_of_the_presets_names() {
        let opencode: Value =
            serde_json::from_str(&Agent::Opencode.configuration(&Models::of_presets(vars::DEFAULT_PORT))).unwrap();
        let address = |provider: &str| opencode["provider"][provider]["options"]["baseURL"].clone();
        assert_eq!(address("anthropic"), "http://127.0.0.1:7179/s/anthropic/v1");
        assert_eq!(address("openai"), "http://127.0.0.1:7179/s/openai/v1");
        let npmrc = "registry=http://127.0.0.1:7179/s/npm/\nreplace-registry-host=always\n\
                     //127.0.0.1:7179/s/npm/:_authToken=${TOOL_CLI_TOKEN}\n";
        assert_eq!(Agent::Npm.configuration(&Models::of_presets(vars::DEFAULT_PORT)), npmrc);
    }

    #[test]
    fn a_file_has_what_a_session_at_a_socket_needs_and_a_run_does_not() {
        let variables = |agent: Agent| -> Value {
            let file: Value =
                serde_json::from_str(&agent.configuration(&Models::of_presets(vars::DEFAULT_PORT))).unwrap();
            file["mcpServers"]["footbridge"]["env"].clone()
        };
        let names = ["TOOL_CLI_PORT", "TOOL_CLI_TOKEN", "TOOL_CLI_HOST", "TOOL_CLI_SOCKET", "TOOL_CLI_TOKEN_FILE"];
        for agent in [Agent::Claude, Agent::Gemini, Agent::Copilot] {
            let all = variables(agent);
            assert_eq!(all.as_object().unwrap().len(), names.len(), "{all}");
            assert!(names.iter().all(|name| all[name].as_str().unwrap().starts_with(&format!("${{{name}"))), "{all}");
        }
        assert_eq!(variables(Agent::Claude)["TOOL_CLI_SOCKET"], "${TOOL_CLI_SOCKET:-}");
        assert_eq!(variables(Agent::Gemini)["TOOL_CLI_SOCKET"], "${TOOL_CLI_SOCKET}");
        let gemini: Value =
            serde_json::from_str(&Agent::Gemini.configuration(&Models::of_presets(vars::DEFAULT_PORT))).unwrap();
        assert_eq!(gemini["security"]["auth"]["selectedType"], "gemini-api-key");
    }

    #[test]
    fn codex_gets_toml() {
        let table: toml::Table = Agent::Codex.configuration(&Models::of_presets(vars::DEFAULT_PORT)).parse().unwrap();
        assert_eq!(table["mcp_servers"]["footbridge"]["env_vars"].as_array().unwrap().len(), OF_ANY.len());
        assert_eq!(table["mcp_servers"]["footbridge"]["env_vars"][1].as_str(), Some("TOOL_CLI_TOKEN"));
        let provider = &table["model_providers"]["footbridge"];
        assert_eq!(provider["base_url"].as_str(), Some("http://127.0.0.1:7179/s/openai/v1"));
        assert_eq!(table["allow_login_shell"].as_bool(), Some(false));
    }
}
