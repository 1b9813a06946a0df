//! Sessions, as people and as programs read them. What an operator wrote is escaped for people.

use std::collections::BTreeMap;

use footbridge_proto::text::Escaped;
use serde::Serialize;

use crate::{
    cli::table::aligned,
    control::wire::{BudgetInfo, ListenerInfo, SessionInfo},
};

/// One JSON object a line.
pub(super) fn json_lines<T: Serialize>(all: &[T]) -> serde_json::Result<String> {
    all.iter().map(|one| serde_json::to_string(one).map(|text| text + "\n")).collect()
}

/// A session for programs, with its state in the word that people see.
#[derive(Serialize)]
pub(super) struct WithState<'a> {
    #[serde(flatten)]
    session: &'a SessionInfo,
    state: &'static str,
}

impl<'a> WithState<'a> {
    pub(super) fn all(sessions: &'a [SessionInfo]) -> Vec<Self> {
        sessions.iter().map(|session| Self { session, state: state(session) }).collect()
    }
}

/// A table of sessions.
pub(super) fn table(sessions: &[SessionInfo]) -> String {
    if sessions.is_empty() {
        return "no session\n".to_owned();
    }
    let head =
        ["NAME", "STATE", "POLICY", "CALLS", "CONNECTIONS", "EXPIRES", "SERVICES", "LISTENS ON"].map(str::to_owned);
    let mut rows = vec![head];
    for session in sessions {
        let listens: Vec<String> = session.listeners.iter().map(endpoint).collect();
        rows.push([
            session.name.clone(),
            state(session).to_owned(),
            session.policy.clone(),
            session.calls.to_string(),
            session.connections.to_string(),
            session.expires.clone().unwrap_or_else(|| "-".to_owned()),
            if session.services.is_empty() { "-".to_owned() } else { Escaped(&session.services.join(",")).to_string() },
            listens.join(" "),
        ]);
    }
    aligned(&rows)
}

fn state(session: &SessionInfo) -> &'static str {
    if session.closed.is_some() {
        "closed"
    } else if session.listeners.iter().any(|listener| listener.broken.is_some()) {
        "broken"
    } else {
        "open"
    }
}

fn endpoint(listener: &ListenerInfo) -> String {
    match listener.peer_cid {
        Some(cid) => format!("{} (cid {cid})", Escaped(&listener.endpoint)),
        None => Escaped(&listener.endpoint).to_string(),
    }
}

/// One session in full.
pub(super) fn one(session: &SessionInfo) -> String {
    let mut lines = vec![
        ("session", session.name.clone()),
        ("state", state(session).to_owned()),
        ("policy", session.policy.clone()),
        ("created", session.created.clone()),
        ("expires", session.expires.clone().unwrap_or_else(|| "-".to_owned())),
    ];
    lines.extend(session.closed.iter().map(|why| ("closed", Escaped(why).to_string())));
    lines.extend(session.pid.map(|pid| ("with pid", pid.to_string())));
    lines.extend(session.labels.iter().map(|(key, value)| ("label", format!("{}={}", Escaped(key), Escaped(value)))));
    lines.extend(session.limits.iter().map(|(name, value)| ("limit", format!("{}={}", Escaped(name), Escaped(value)))));
    if !session.services.is_empty() {
        lines.push(("services", Escaped(&session.services.join(", ")).to_string()));
    }
    lines.extend(session.folder.iter().map(|folder| ("folder", Escaped(folder).to_string())));
    for listener in &session.listeners {
        let mut text = endpoint(listener);
        listener.mode.iter().for_each(|mode| text.push_str(&format!(", mode {mode}")));
        listener.owner.iter().for_each(|owner| text.push_str(&format!(", of uid {owner}")));
        if !listener.allow_uids.is_empty() {
            let uids: Vec<String> = listener.allow_uids.iter().map(ToString::to_string).collect();
            text.push_str(&format!(", for uid {}", uids.join(", ")));
        }
        lines.push(("listens on", text));
        lines.extend(listener.broken.iter().map(|why| ("  broken", Escaped(why).to_string())));
    }
    lines.push(("connections", session.connections.to_string()));
    lines.push(("calls", session.calls.to_string()));
    labelled(&lines) + &budgets(&session.budgets)
}

/// What a session has spent of its budgets, a line each.
pub(super) fn budgets(all: &BTreeMap<String, BudgetInfo>) -> String {
    let spent = |(name, budget): (&String, &BudgetInfo)| {
        let of = budget.limit.map_or_else(|| ", no limit".to_owned(), |limit| format!(" of {limit}"));
        ("spent", format!("{}: {}{of}", Escaped(name), budget.spent))
    };
    labelled(&all.iter().map(spent).collect::<Vec<_>>())
}

fn labelled(lines: &[(&str, String)]) -> String {
    lines.iter().map(|(name, value)| format!("{:13}{value}\n", format!("{name}:"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> SessionInfo {
        SessionInfo {
            name: "agent-1".into(),
            policy: "open".into(),
            created: "2026-01-01T00:00:00Z".into(),
            expires: None,
            pid: Some(7),
            limits: [("calls.burst".to_owned(), "5".to_owned())].into(),
            labels: [("team".to_owned(), "\u{1b}[2J".to_owned())].into(),
            services: vec!["anthropic".into(), "tunnels".into()],
            folder: Some("/run/a/s".into()),
            listeners: vec![ListenerInfo {
                endpoint: "unix:/run/x.sock".into(),
                mode: Some("0600".into()),
                owner: Some(9),
                allow_uids: vec![7, 8],
                peer_cid: None,
                broken: None,
            }],
            closed: None,
            connections: 2,
            calls: 1,
            budgets: [
                ("budget.tokens".to_owned(), BudgetInfo { spent: 7, limit: Some(100) }),
                ("result_bytes".to_owned(), BudgetInfo { spent: 5, limit: None }),
            ]
            .into(),
        }
    }

    #[test]
    fn columns_are_aligned_and_what_is_broken_shows() {
        let mut broken = SessionInfo { name: "b".into(), ..session() };
        broken.listeners[0].broken = Some("taken".into());
        broken.listeners[0].peer_cid = Some(4);
        broken.services = Vec::new();
        let expected = "\
NAME     STATE   POLICY  CALLS  CONNECTIONS  EXPIRES  SERVICES           LISTENS ON
agent-1  open    open    1      2            -        anthropic,tunnels  unix:/run/x.sock
b        broken  open    1      2            -        -                  unix:/run/x.sock (cid 4)
";
        let both = [session(), broken];
        assert_eq!(table(&both), expected);
        let lines = json_lines(&WithState::all(&both)).unwrap();
        let states: Vec<bool> = lines.lines().map(|line| line.contains(r#""state":"open""#)).collect();
        assert!(states == [true, false] && lines.contains(r#""state":"broken""#) && lines.contains(r#""name":"b""#));
        assert!(lines.contains(r#""services":["anthropic","tunnels"]"#), "{lines}");
        assert_eq!(table(&[]), "no session\n");
    }

    #[test]
    fn one_is_shown_in_full_and_nothing_in_it_steers_a_terminal() {
        let text = one(&session());
        assert!(text.contains("listens on:  unix:/run/x.sock, mode 0600, of uid 9, for uid 7, 8\n"), "{text}");
        assert!(text.contains("folder:      /run/a/s\n"), "{text}");
        assert!(text.contains("limit:       calls.burst=5\n"), "{text}");
        assert!(
            text.ends_with("spent:       budget.tokens: 7 of 100\nspent:       result_bytes: 5, no limit\n"),
            "{text}"
        );
        assert!(text.contains("services:    anthropic, tunnels\n"), "{text}");
        assert!(!one(&SessionInfo { services: vec![], ..session() }).contains("services"));
        assert!(text.contains("with pid:    7\n") && !text.contains('\u{1b}'), "{text}");
        assert!(!json_lines(&[session()]).unwrap().contains('\u{1b}'));
    }
}
