//! One approval as people see it, line by line. All that guests and servers wrote is escaped.

use footbridge_proto::text::Escaped;

use crate::control::wire::{ApprovalInfo, QuestionInfo};

/// What is always shown of one, line by line.
pub(crate) fn fields(one: &ApprovalInfo) -> Vec<String> {
    let labels = one.labels.iter().map(|(key, value)| format!(" {}={}", Escaped(key), Escaped(value)));
    let line = |name: &str, value: String| format!("{:12}{value}", format!("{name}:"));
    let what = if one.question.is_some() { "question" } else { "arguments" };
    let mut lines = vec![
        line("approval", format!("{} ({})", Escaped(&one.id), Escaped(&one.state))),
        line("session", format!("{}{}", Escaped(&one.session), labels.collect::<String>())),
        line("peer", Escaped(&one.peer).to_string()),
        line("server", Escaped(&one.server).to_string()),
        line(named(&one.kind), Escaped(&one.name).to_string()),
        line("effects", Escaped(&one.effects.join(", ")).to_string()),
        line("policy", Escaped(&one.policy).to_string()),
        line("definition", one.definition.as_deref().map_or_else(|| "-".to_owned(), |d| Escaped(d).to_string())),
        line("expires", Escaped(&one.expires).to_string()),
        line(what, format!("{} bytes, {}", one.bytes, Escaped(&one.digest))),
    ];
    lines.extend(one.question.iter().flat_map(|question| asked(question, &one.id)));
    lines
}

/// What a call of this kind names. A question of a server is about the tool that it runs.
fn named(kind: &str) -> &'static str {
    match kind {
        "resource" => "resource",
        "prompt" => "prompt",
        "completion" => "completion",
        _ => "tool",
    }
}

/// What a server asks. Its words cannot be taken for ours: each line begins with one of ours.
fn asked(question: &QuestionInfo, id: &str) -> Vec<String> {
    let line = |name: &str, value: String| format!("{:12}{value}", format!("{name}:"));
    let mut lines = vec![line("asks", format!("\"{}\"", Escaped(&question.message)))];
    if let Some(url) = &question.url {
        lines.push(line("address", Escaped(url).to_string()));
        lines.push(line("answer", "allow says that you agree; nothing is opened, here or later".to_owned()));
    }
    for field in &question.fields {
        let mut text = format!("{} ({}", Escaped(&field.name), Escaped(&field.takes));
        let listed = [&field.choices, &field.limits].map(|list| Escaped(&list.join(", ")).to_string());
        let (required, default) = (field.required.then(|| "required".to_owned()), field.default.as_ref());
        let default = default.map(|default| format!("default {}", Escaped(&default.to_string())));
        listed.into_iter().filter(|part| !part.is_empty()).chain(required).chain(default).for_each(|part| {
            text.push_str(if text.ends_with("one of") || text.ends_with("any of") { " " } else { "; " });
            text.push_str(&part);
        });
        text.push(')');
        for said in [&field.title, &field.description].into_iter().flatten() {
            text.push_str(&format!(" \"{}\"", Escaped(said)));
        }
        lines.push(line("field", text));
    }
    if !question.fields.is_empty() {
        lines.push(line("answer", format!("footbridge approvals allow {} --field NAME=VALUE ...", Escaped(id))));
    }
    lines
}

/// The arguments as they are shown at first: of long ones, their ends.
pub(crate) fn ends(one: &ApprovalInfo) -> Vec<String> {
    if one.question.is_some() {
        // It is shown field by field.
        return Vec::new();
    }
    let mut lines = vec![Escaped(&one.head).to_string()];
    if !one.tail.is_empty() {
        let left_out = one.bytes.saturating_sub(one.head.len() + one.tail.len());
        lines.push(format!("--- {left_out} bytes are not shown here ---"));
        lines.push(Escaped(&one.tail).to_string());
    }
    lines
}

#[cfg(test)]
pub(crate) mod tests {
    use footbridge_proto::text::needs_escape;

    use super::*;
    use crate::control::wire::FieldInfo;

    pub(crate) fn info(id: &str) -> ApprovalInfo {
        ApprovalInfo {
            id: id.into(),
            state: "pending".into(),
            session: "agent-1".into(),
            labels: [("team".to_owned(), "\u{202e}x".to_owned())].into(),
            peer: "unix:uid=7".into(),
            kind: "tool".into(),
            server: "demo".into(),
            name: "wipe\u{1b}[2J\nsession: other".into(),
            effects: vec!["write".into(), "destructive".into()],
            policy: "ask".into(),
            definition: Some("sha256:ab".into()),
            digest: "sha256:cd".into(),
            bytes: 5000,
            head: "{\"a\":\"\u{9b}".into(),
            tail: "end\u{200b}\"}".into(),
            question: None,
            asked: "2026-01-01T00:00:00Z".into(),
            expires: "2026-01-01T00:05:00Z".into(),
        }
    }

    #[test]
    fn a_question_is_shown_field_by_field_and_steers_nothing() {
        let field = FieldInfo {
            name: "colour\u{1b}[2J".into(),
            takes: "one of".into(),
            choices: vec!["r (Red)".into(), "g\napproval: x".into()],
            limits: Vec::new(),
            required: true,
            default: Some("r\u{202e}".into()),
            title: Some("Colour\u{9b}".into()),
            description: Some("a\nb".into()),
        };
        let message = "Which?\nsession: other\u{1b}[1m".to_owned();
        let question = QuestionInfo { message, url: Some("https://a.test/\u{200b}".into()), fields: vec![field] };
        let one = ApprovalInfo { kind: "elicitation".into(), question: Some(question), ..info("ap-0000000000000001") };
        let lines = fields(&one);
        assert!(!lines.concat().chars().any(needs_escape), "{lines:#?}");
        assert_eq!(lines.iter().filter(|line| line.starts_with("session:")).count(), 1);
        assert!(lines.iter().any(|line| line.starts_with("field:      colour") && line.contains("(one of r (Red), g")));
        assert!(lines.iter().any(|line| line.contains("required; default \"r")), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("approvals allow ap-0000000000000001 --field")));
        assert!(ends(&one).is_empty());
    }

    #[test]
    fn nothing_of_a_guest_or_server_steers_a_terminal_or_makes_a_line() {
        let one = info("ap-0000000000000001");
        let text = [fields(&one).join(""), ends(&one).join("")].concat();
        assert!(!text.chars().any(needs_escape), "{text:?}");
        assert_eq!(fields(&one).iter().filter(|line| line.starts_with("session:")).count(), 1);
        assert!(ends(&one)[1].contains("not shown here"));
        for kind in ["tool", "resource", "prompt", "completion"] {
            let lines = fields(&ApprovalInfo { kind: kind.into(), ..info("ap-0000000000000001") });
            assert!(lines.iter().any(|line| line.starts_with(&format!("{kind}:"))), "{lines:#?}");
        }
    }
}
