//! What a server says in its handshake that it can do of tasks: the MCP library does not know of it.

use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

/// What a server says in its handshake that it can do of tasks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TaskSupport {
    /// Run calls of tools as tasks.
    pub(super) calls: bool,
    /// Cancel them.
    pub(super) cancels: bool,
}

impl TaskSupport {
    /// What this answer says; nothing where it is none to a handshake.
    pub(super) fn said(result: &RawValue) -> Option<Self> {
        #[derive(Deserialize)]
        struct Handshake {
            capabilities: Capabilities,
        }
        #[derive(Deserialize)]
        struct Capabilities {
            tasks: Tasks,
        }
        #[derive(Deserialize)]
        struct Tasks {
            #[serde(default)]
            requests: Requests,
            cancel: Option<IgnoredAny>,
        }
        #[derive(Deserialize, Default)]
        struct Requests {
            #[serde(default)]
            tools: Tools,
        }
        #[derive(Deserialize, Default)]
        struct Tools {
            call: Option<IgnoredAny>,
        }
        let Handshake { capabilities: Capabilities { tasks } } = serde_json::from_str(result.get()).ok()?;
        Some(Self { calls: tasks.requests.tools.call.is_some(), cancels: tasks.cancel.is_some() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_handshake_says_whether_calls_can_be_tasks() {
        let said = |tasks: &str| {
            let text = format!(r#"{{"capabilities":{{{tasks}}},"serverInfo":{{}}}}"#);
            TaskSupport::said(&raw(&text)).map(|said| (said.calls, said.cancels))
        };
        assert_eq!(said(r#""tools":{}"#), None);
        assert_eq!(said(r#""tasks":{}"#), Some((false, false)));
        assert_eq!(said(r#""tasks":{"requests":{"tools":{"call":{}}},"cancel":{},"list":{}}"#), Some((true, true)));
        assert_eq!(said(r#""tasks":{"requests":{"sampling":{}}}"#), Some((false, false)));
    }
}
