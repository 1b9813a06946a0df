//! Step files: a program that is run once, as one that prints a result or as an MCP server that is asked once, and
//! routines, which are lists of such steps.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Deserializer, de::Error as _};
use serde_json::Value as Json;
use toml::{Table, Value};

use super::{
    Config, ConfigError, Variables,
    folders::Folders,
    load, programs,
    secrets::{Gathered, Reader, SecretError, Written},
    servers::NoVariable,
    sources,
};
use footbridge_core::{
    human::parse_duration,
    names::ServerName,
    secret::Secret,
    settings_file::{File, Mistake, closest},
};
use footbridge_mcp::{
    ProtocolChoice, ServerSpec, TransportSpec,
    wrapped::{CliSpec, Word, fixed},
};
use footbridge_processes::launch::ProgramSpec;

/// How long a step may take that says nothing of it.
const TIME: Duration = Duration::from_secs(60);

/// The steps of a file, and the secrets that they refer to.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    pub(crate) steps: Vec<StepSpec>,
    pub(crate) gathered: Gathered,
}

/// One step: a server with one call.
#[derive(Debug, Clone)]
pub(crate) struct StepSpec {
    /// What it is called, as is its server.
    pub(crate) server: ServerSpec,
    pub(crate) tool: String,
    /// The arguments, a JSON object.
    pub(crate) arguments: String,
    /// How long all of it may take.
    pub(crate) time: Duration,
    /// A program that is not there.
    pub(crate) missing: Option<String>,
}

/// A step as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenStep {
    name: Option<String>,
    command: String,
    #[serde(default)]
    args: Vec<Written>,
    tool: Option<String>,
    #[serde(default)]
    params: Table,
    #[serde(default = "minute", deserialize_with = "time")]
    timeout: Duration,
    #[serde(default)]
    env: BTreeMap<String, Written>,
    cwd: Option<String>,
}

fn minute() -> Duration {
    TIME
}

/// The longest time that a step may take.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A duration as people write it, or seconds.
fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let found = match Value::deserialize(from)? {
        Value::Integer(seconds) => u64::try_from(seconds).ok().map(Duration::from_secs),
        Value::Float(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Value::String(text) => parse_duration(&text),
        _ => None,
    };
    let found = found.filter(|time| !time.is_zero() && *time <= LONGEST);
    let what = "it is no duration of a year at most: write seconds, or \"250ms\", \"10s\" or \"5m\"";
    found.ok_or_else(|| D::Error::custom(what))
}

/// What is wrong with a value of a step.
#[derive(Debug, thiserror::Error)]
enum BadStep {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Variable(#[from] NoVariable),
    #[error("a step is called like its server: {0}")]
    Name(#[from] footbridge_core::names::BadServerName),
    #[error("JSON has no number like {0}")]
    Number(f64),
}

/// What is wrong with the values of one step, each by its keys.
#[derive(Debug, Default)]
struct WrongValues(Vec<(Vec<String>, BadStep)>);

impl WrongValues {
    /// What was found at these keys, unless it is wrong.
    fn take<T>(&mut self, keys: &[&str], found: Result<T, impl Into<BadStep>>) -> Option<T> {
        let keys = || keys.iter().map(|key| (*key).to_owned()).collect();
        found.map_err(|bad| self.0.push((keys(), bad.into()))).ok()
    }
}

/// Reads a file: its own step, or those of a routine.
///
/// # Errors
/// [`ConfigError`], with every mistake.
pub(crate) fn read(path: &Path, routine: Option<&str>, variables: &Variables) -> Result<Steps, ConfigError> {
    chosen(path, variables, |file, table, routines| match routine {
        Some(name) => of_routine(file, routines, name),
        None if table.is_empty() => {
            let has = match routines.as_ref().and_then(Value::as_table) {
                Some(routines) => format!("name a routine with --routine: {}", names(routines)),
                None => "write at least \"command\"".to_owned(),
            };
            Err(wrong_file(path, format!("it has no step of its own: {has}")))
        }
        None => Ok(vec![(Vec::new(), table)]),
    })
}

/// Reads a file: its own step, and those of all routines.
///
/// # Errors
/// [`ConfigError`], with every mistake.
pub(crate) fn all(path: &Path, variables: &Variables) -> Result<Steps, ConfigError> {
    chosen(path, variables, |file, table, routines| {
        let names: Vec<String> =
            routines.as_ref().and_then(Value::as_table).into_iter().flat_map(Table::keys).cloned().collect();
        let mut tables = if table.is_empty() { Vec::new() } else { vec![(Vec::new(), table)] };
        for name in names {
            tables.extend(of_routine(file, routines.clone(), &name)?);
        }
        Ok(tables)
    })
}

/// Reads a file: the steps that are chosen of its own table and of its routines.
fn chosen(
    path: &Path,
    variables: &Variables,
    choose: impl FnOnce(&File<'_>, Table, Option<Value>) -> Result<Vec<(Vec<String>, Table)>, ConfigError>,
) -> Result<Steps, ConfigError> {
    if path.metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Err(wrong_file(path, "No such file: write it, or name another".to_owned()));
    }
    let read = sources::read(path, None, variables.commands.writable());
    let (real, text) = read.map_err(|what| wrong_file(path, what))?;
    let file = File::new(&real, &text);
    let mut table = file.parse().map_err(|mistake| ConfigError(vec![mistake]))?;
    let routines = table.remove("routines");
    meant(&file, choose(&file, table, routines)?, variables)
}

fn wrong_file(path: &Path, what: String) -> ConfigError {
    ConfigError(vec![Mistake::of_file(path, what)])
}

/// All steps of these tables, or every mistake of each.
fn meant(file: &File<'_>, tables: Vec<(Vec<String>, Table)>, variables: &Variables) -> Result<Steps, ConfigError> {
    let path = file.path();
    let var = |name: &str| variables.value(name);
    let base = path.parent().unwrap_or(Path::new("/"));
    let mut reader = Reader { var: &var, base, commands: &variables.commands, gathered: Gathered::default() };
    let (mut steps, mut mistakes) = (Vec::new(), Vec::new());
    for (at, table) in tables {
        match file.read::<WrittenStep>(&at, table) {
            Ok(written) => {
                let mut wrong = WrongValues::default();
                steps.extend(written.meant(&path, &mut reader, &variables.all, &mut wrong));
                let place = |keys: Vec<String>| [at.clone(), keys].concat();
                mistakes.extend(wrong.0.into_iter().map(|(keys, bad)| file.mistake(&place(keys), bad.to_string())));
            }
            Err(found) => mistakes.extend(found),
        }
    }
    if mistakes.is_empty() { Ok(Steps { steps, gathered: reader.gathered }) } else { Err(ConfigError(mistakes)) }
}

fn names(routines: &Table) -> String {
    routines.keys().cloned().collect::<Vec<_>>().join(", ")
}

fn of_routine(file: &File<'_>, routines: Option<Value>, name: &str) -> Result<Vec<(Vec<String>, Table)>, ConfigError> {
    let wrong = |keys: &[&str], what: String| {
        let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
        ConfigError(vec![file.mistake(&keys, what)])
    };
    let mut routines = match routines {
        Some(Value::Table(routines)) => routines,
        Some(_) => return Err(wrong(&["routines"], "it is no table: write [[routines.NAME.steps]]".to_owned())),
        None => return Err(ConfigError(vec![Mistake::of_file(file.path(), "it has no [[routines.NAME.steps]]")])),
    };
    let known = names(&routines);
    let meant = closest(name, routines.keys().map(String::as_str)).map(|meant| format!("; did you mean {meant:?}?"));
    let Some(routine) = routines.remove(name) else {
        let meant = meant.unwrap_or_else(|| format!(": it has {known}"));
        return Err(ConfigError(vec![Mistake::of_file(file.path(), format!("it has no routine {name:?}{meant}"))]));
    };
    let steps = match routine.get("steps") {
        Some(Value::Array(steps)) if !steps.is_empty() => steps.clone(),
        _ => return Err(wrong(&["routines", name], "it has no steps: write [[routines.NAME.steps]]".to_owned())),
    };
    let step = |(index, step): (usize, Value)| {
        let index = index.to_string();
        let keys = ["routines", name, "steps", &index];
        match step {
            Value::Table(step) => Ok((keys.map(str::to_owned).to_vec(), step)),
            _ => Err(wrong(&keys, "it is no table".to_owned())),
        }
    };
    steps.into_iter().enumerate().map(step).collect()
}

impl WrittenStep {
    /// The step, unless a value of it is wrong; all that is wrong is said.
    fn meant(
        self,
        file: &Path,
        reader: &mut Reader<'_>,
        vars: &[(String, String)],
        wrong: &mut WrongValues,
    ) -> Option<StepSpec> {
        let key = if self.name.is_some() { "name" } else { "command" };
        let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = wrong.take(&[key], self.name.or(stem).unwrap_or_default().parse::<ServerName>());
        let args = self.args.iter().enumerate();
        let args: Vec<Option<Secret>> =
            args.map(|(index, arg)| wrong.take(&["args", &index.to_string()], reader.read_path(arg))).collect();
        let mut env: BTreeMap<String, Secret> =
            reader.commands.passed(vars).map(|(name, value)| (name.to_owned(), Secret::new(value))).collect();
        for (name, written) in &self.env {
            wrong.take(&["env", name], NoVariable::check(name));
            let value = wrong.take(&["env", name], reader.read_variable(name, written));
            env.extend(value.map(|value| (name.clone(), value)));
        }
        let cwd = self.cwd.as_ref().and_then(|cwd| wrong.take(&["cwd"], reader.path(cwd)));
        let cwd = cwd.map(|cwd| reader.base.join(cwd.expose()));
        let command = wrong.take(&["command"], reader.path(&self.command));
        let params = Value::Table(self.params);
        no_numbers(&params, &["params".to_owned()], wrong);
        let (name, args, command) = (name?, args.into_iter().collect::<Option<Vec<_>>>()?, command?);
        if !wrong.0.is_empty() {
            return None;
        }
        let command = programs::in_full(reader.base, command.expose());
        let path = env.get("PATH").map(|path| path.expose().to_owned());
        let place = programs::find(&command, None, path.as_deref()).filter(|place| programs::is_program(place));
        let missing = place.is_none().then(|| command.clone());
        let command = place.map_or(command, |place: PathBuf| place.to_string_lossy().into_owned());
        let program = ProgramSpec { command, args, env: env.into_iter().collect(), cwd, confine: true };
        let arguments = to_json(params);
        let takes = arguments.as_object().is_some_and(|members| !members.is_empty()).then(Word::all);
        let (tool, transport) = match self.tool {
            Some(tool) => (tool, TransportSpec::Stdio(program)),
            None => {
                let tools = vec![fixed(name.as_str(), program, takes, self.timeout)];
                (name.to_string(), TransportSpec::Cli(CliSpec { tools, missing: None }))
            }
        };
        let server = ServerSpec {
            name,
            transport,
            protocol: ProtocolChoice::Initialize,
            disabled_tools: BTreeSet::new(),
            hint: None,
        };
        Some(StepSpec { server, tool, arguments: arguments.to_string(), time: self.timeout, missing })
    }
}

/// Finds numbers that JSON does not have.
fn no_numbers(value: &Value, keys: &[String], wrong: &mut WrongValues) {
    let mut below = |key: &str, value: &Value| no_numbers(value, &[keys, &[key.to_owned()]].concat(), wrong);
    match value {
        Value::Float(number) if !number.is_finite() => wrong.0.push((keys.to_vec(), BadStep::Number(*number))),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| below(&index.to_string(), item));
        }
        Value::Table(table) => table.iter().for_each(|(key, value)| below(key, value)),
        _ => {}
    }
}

/// As JSON has it; dates are texts.
fn to_json(value: Value) -> Json {
    match value {
        Value::String(text) => Json::String(text),
        Value::Integer(number) => number.into(),
        Value::Float(number) => serde_json::Number::from_f64(number).map_or(Json::Null, Json::Number),
        Value::Boolean(value) => value.into(),
        Value::Datetime(date) => date.to_string().into(),
        Value::Array(items) => Json::Array(items.into_iter().map(to_json).collect()),
        Value::Table(table) => Json::Object(table.into_iter().map(|(key, value)| (key, to_json(value))).collect()),
    }
}

/// What a step runs with besides its file: these settings files, or else `footbridge.toml` of the configuration folder,
/// if there is one. No servers file is looked for.
///
/// # Errors
/// [`ConfigError`].
pub(crate) fn settings(given: &[PathBuf], folders: &Folders, variables: &Variables) -> Result<Config, ConfigError> {
    let own = folders.config.join("footbridge.toml");
    if !given.is_empty() {
        return load(given, folders, variables);
    }
    if own.exists() {
        return load(&[own], folders, variables);
    }
    Ok(Config::of(variables))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use super::*;

    fn read_text(text: &str, routine: Option<&str>) -> Result<Steps, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("fetch.toml");
        fs::write(&file, text).unwrap();
        let key = folder.path().join("key");
        fs::write(&key, "s3cret-value\n").unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        read(&file, routine, &Variables::of_this_process()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_step_is_a_server_with_one_call() {
        let steps = read_text(
            "command = \"cat\"\nargs = [\"-\"]\nparams = { at = 2026-01-02, n = [1, 2.5] }\ntimeout = 5\n\
             env = { KEY = { file = \"key\" } }\n",
            None,
        );
        let steps = steps.unwrap();
        let step = &steps.steps[0];
        assert_eq!((step.server.name.as_str(), step.tool.as_str()), ("fetch", "fetch"));
        assert_eq!(step.arguments, r#"{"at":"2026-01-02","n":[1,2.5]}"#);
        assert_eq!((step.time, &step.missing), (Duration::from_secs(5), &None));
        let TransportSpec::Cli(cli) = &step.server.transport else { panic!("{step:?}") };
        assert!(cli.tools[0].program.env.iter().any(|(name, value)| name == "KEY" && value.expose() == "s3cret-value"));
        assert_eq!(steps.gathered.secrets.first().map(Secret::expose), Some("s3cret-value"));
        let asked = read_text("name = \"x\"\ncommand = \"cat\"\ntool = \"t\"\ntimeout = \"2m\"", None).unwrap();
        assert!(matches!(asked.steps[0].server.transport, TransportSpec::Stdio(_)));
        assert_eq!(asked.steps[0].tool, "t");
    }

    #[test]
    fn a_value_is_a_secret_by_its_variables_name_as_in_servers_files() {
        let text = "command = \"cat\"\nenv = { MY_TOKEN = \"literal-value\", my_api_key = \"another-value\", LEVEL = \"plain\" }\n";
        let steps = read_text(text, None).unwrap();
        let secrets: Vec<&str> = steps.gathered.secrets.iter().map(Secret::expose).collect();
        assert_eq!(secrets, ["literal-value", "another-value"]);
    }

    #[test]
    fn a_routine_is_a_list_of_steps() {
        let text = "[[routines.nightly.steps]]\nname = \"a\"\ncommand = \"cat\"\n\
                    [[routines.nightly.steps]]\nname = \"b\"\ncommand = \"no-such-program\"\n";
        let steps = read_text(text, Some("nightly")).unwrap().steps;
        assert_eq!(steps.iter().map(|step| step.server.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(steps[1].missing.as_deref(), Some("no-such-program"));
        assert!(read_text(text, Some("nightlu")).unwrap_err().contains("did you mean \"nightly\"?"));
        assert!(read_text(text, None).unwrap_err().contains("name a routine with --routine: nightly"));
    }

    #[test]
    fn every_mistake_is_named_with_its_place() {
        for (text, says) in [
            ("", "it has no step of its own: write at least \"command\""),
            ("name = \"a\"", "/fetch.toml: \"command\" is missing"),
            ("[[step]]\ncommand = \"cat\"", "/fetch.toml: \"command\" is missing"),
            ("command = \"cat\"\ntimeout = \"soon\"", ":2: timeout: it is no duration"),
            ("command = \"cat\"\ntimeout = 9223372036854775807", ":2: timeout: it is no duration of a year"),
            ("command = \"cat\"\nargz = []", ":2: argz"),
            ("command = \"cat\"\nenv = { A = { file = \"none\" } }", ":2: env.A: cannot read the secret file"),
            ("command = \"cat\"\n\n[env]\n\"B=C\" = \"x\"", ":4: env.B=C: \"B=C\" in \"env\" cannot be"),
            (
                "command = \"cat\"\nargs = [\"${NO_SUCH_VARIABLE}\"]",
                ":2: args[1]: the variable NO_SUCH_VARIABLE is not set",
            ),
            ("command = \"cat\"\nparams = { n = [1, inf] }", ":2: params.n[2]: JSON has no number like inf"),
            ("command = \"cat\"\nname = \"-a\"", ":2: name: a step is called like its server"),
            ("args = []\ncommand = \"${NO_SUCH_VARIABLE}\"", ":2: command: the variable"),
            ("command = \"cat\"\n\ncwd = \"${NO_SUCH_VARIABLE}\"", ":3: cwd: the variable"),
            ("command = ", ":1:11: it does not parse: expected a value"),
        ] {
            let said = read_text(text, None).unwrap_err();
            assert!(said.contains(says), "{text}: {said}");
        }
        let several = "command = \"cat\"\nenv = { A = { file = \"none\" } }\nargs = [\"${NONE_A}\", \"${NONE_B}\"]\n\
                       params = { n = nan }\n";
        let said = read_text(several, None).unwrap_err();
        assert_eq!(said.lines().count(), 4, "all of them at once: {said}");
        let both = "[[routines.r.steps]]\nname = \"a\"\n[[routines.r.steps]]\ncommand = 5\n";
        let said = read_text(both, Some("r")).unwrap_err();
        assert!(said.contains("routines.r.steps[1]") && said.contains("routines.r.steps[2]"), "{said}");
    }
}
