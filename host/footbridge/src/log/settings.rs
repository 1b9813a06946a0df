//! What the variables of the log mean: `FOOTBRIDGE_LOG` and `FOOTBRIDGE_LOG_FORMAT`. What means nothing is a mistake,
//! since a log that is silent for a typing error is found out when it is needed.

use std::ffi::OsString;

use footbridge_core::settings_file::closest;
use tracing_subscriber::EnvFilter;

/// What is logged.
const FILTER: &str = "FOOTBRIDGE_LOG";

/// How.
const FORMAT: &str = "FOOTBRIDGE_LOG_FORMAT";

/// The words of levels.
const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// Whose lines there are: each crate of ours, and libraries that log.
const MODULES: [&str; 15] = [
    "footbridge",
    "footbridge_audit",
    "footbridge_calls",
    "footbridge_core",
    "footbridge_edge",
    "footbridge_mcp",
    "footbridge_outbound",
    "footbridge_processes",
    "footbridge_services",
    "hyper",
    "hyper_util",
    "mio",
    "rmcp",
    "rustls",
    "sqlx",
];

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Text,
    /// One object a line.
    Json,
}

/// Both of them.
#[derive(Debug)]
pub(super) struct LogSettings {
    pub(super) filter: EnvFilter,
    pub(super) format: Format,
}

/// A variable of the log that means nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: {}; {next}", footbridge_proto::text::Escaped(.what))]
pub(crate) struct BadLogSetting {
    variable: &'static str,
    what: String,
    next: &'static str,
}

impl LogSettings {
    /// From the environment, with this filter where none is set.
    pub(super) fn of(default: &str, var: impl Fn(&str) -> Option<OsString>) -> Result<Self, BadLogSetting> {
        let text = |name| var(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.is_empty());
        let filter = match text(FILTER) {
            None => EnvFilter::new(default),
            Some(written) => filter(&written).map_err(|what| BadLogSetting {
                variable: FILTER,
                what,
                next: "write a level (error, warn, info, debug, trace, off), or MODULE=LEVEL, with commas between them, as \
                       in info,footbridge_mcp=debug",
            })?,
        };
        let format = match text(FORMAT).as_deref() {
            None | Some("text") => Format::Text,
            Some("json") => Format::Json,
            Some(other) => {
                let what = format!("{other:?} is no format");
                return Err(BadLogSetting { variable: FORMAT, what, next: "write text or json" });
            }
        };
        Ok(Self { filter, format })
    }
}

fn filter(written: &str) -> Result<EnvFilter, String> {
    let parts: Vec<&str> = written.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    for part in &parts {
        let level = part.rsplit_once('=').map_or(*part, |(_, level)| level);
        // A word alone would be taken for the name of a module.
        if !LEVELS.contains(&level.to_ascii_lowercase().as_str()) {
            return Err(format!("{level:?} is no level"));
        }
    }
    for part in &parts {
        known_module(part)?;
    }
    // What the MCP library says is of its own types; whoever wants it names it.
    let library = (!parts.iter().any(|part| part.starts_with("rmcp"))).then_some("rmcp=off");
    EnvFilter::try_new(parts.iter().copied().chain(library).collect::<Vec<_>>().join(","))
        .map_err(|error| format!("{written:?} is no filter: {error}"))
}

/// A part that names a module names one that says something.
fn known_module(part: &str) -> Result<(), String> {
    let module = part.rsplit_once('=').map(|(module, _)| module.split(['[', ':']).next().unwrap_or_default());
    let Some(module) = module.filter(|module| !module.is_empty()) else { return Ok(()) };
    if MODULES.contains(&module) {
        return Ok(());
    }
    Err(match closest(module, MODULES) {
        Some(meant) => format!("{module:?} is no module that logs; did you mean \"{meant}\"?"),
        None => format!("{module:?} is no module that logs: {} are", MODULES.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(filter: &str, format: &str) -> Result<Format, String> {
        let var = |name: &str| Some(OsString::from(if name == FILTER { filter } else { format }));
        LogSettings::of("warn", var).map(|settings| settings.format).map_err(|error| error.to_string())
    }

    #[test]
    fn what_means_nothing_is_named_with_what_would() {
        assert_eq!(of("", ""), Ok(Format::Text));
        assert_eq!(of("footbridge_mcp::supervisor=debug,footbridge[call]=trace,hyper=off", ""), Ok(Format::Text));
        assert_eq!(of("info,rmcp=off, footbridge_mcp=Debug", "json"), Ok(Format::Json));
        for (filter, format, says) in [
            ("wran", "", "FOOTBRIDGE_LOG: \"wran\" is no level; write a level (error, warn"),
            ("info,footbridge_mcp=loud", "", "\"loud\" is no level"),
            ("footbridge_mcp", "", "\"footbridge_mcp\" is no level"),
            ("fotbridge=debug", "", "\"fotbridge\" is no module that logs; did you mean \"footbridge\"?"),
            ("info,zebra::x=debug", "", "\"zebra\" is no module that logs: footbridge, "),
            ("[=info", "", "is no filter"),
            ("", "yaml", "FOOTBRIDGE_LOG_FORMAT: \"yaml\" is no format; write text or json"),
        ] {
            let said = of(filter, format).unwrap_err();
            assert!(said.contains(says), "{filter} {format}: {said}");
        }
    }
}
