//! One approval as people see it, line by line. All that guests and servers wrote is escaped, and stays right of the
//! column of our labels.

use footbridge_proto::text::Escaped;

use footbridge_calls::approval::{ApprovalInfo, QuestionInfo};

/// Columns of our labels.
const LABEL: usize = 12;

/// So many blanks in a row, or more, are shown as their number: they would move what follows them to where it seems to
/// be a line of ours.
const BLANKS: usize = 16;

/// What others wrote, on one line: escaped, and long runs of blanks as their number.
pub(crate) fn words(text: &str) -> String {
    let mut out = String::new();
    let mut blanks = String::new();
    let is_blank =
        |c: char| c.is_whitespace() || matches!(c, '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}');
    for c in Escaped(text).to_string().chars().map(Some).chain([None]) {
        if let Some(blank) = c.filter(|c| is_blank(*c)) {
            blanks.push(blank);
            continue;
        }
        match blanks.chars().count() {
            many @ BLANKS.. => out.push_str(&format!("<{many} blanks>")),
            _ => out.push_str(&blanks),
        }
        blanks.clear();
        out.extend(c);
    }
    out
}

/// One of our lines.
fn line(label: &str, value: &str) -> String {
    format!("{:LABEL$}{value}", format!("{label}:"))
}

/// Cuts one of these lines to so many columns. What goes on is marked, below the label. What is not ASCII may take two.
pub(crate) fn wrap(line: &str, columns: usize) -> Vec<String> {
    let mark = if columns < 4 * LABEL { "| ".to_owned() } else { format!("{:>LABEL$}", "| ") };
    let mut out = vec![String::new()];
    let mut used = 0;
    for c in line.chars() {
        let width = if c.is_ascii() { 1 } else { 2 };
        if used + width > columns.max(mark.len() + 2) {
            out.push(mark.clone());
            used = mark.len();
        }
        if let Some(last) = out.last_mut() {
            last.push(c);
        }
        used += width;
    }
    out
}

/// What is always shown of one, line by line. Our own lines come before those in which a server speaks.
/// `others` says whether `footbridge approvals` answers it.
pub(crate) fn fields(one: &ApprovalInfo, others: bool) -> Vec<String> {
    let labels = one.labels.iter().map(|(key, value)| format!(" {}={}", words(key), words(value)));
    let what = if one.question.is_some() { "question" } else { "arguments" };
    let mut lines = vec![
        line("approval", &format!("{} ({})", words(&one.id), words(&one.state))),
        line("session", &format!("{}{}", words(&one.session), labels.collect::<String>())),
        line("peer", &words(&one.peer)),
        line("server", &words(&one.server)),
        line(named(&one.kind), &words(&one.name)),
        line("effects", &words(&one.effects.join(", "))),
        line("policy", &words(&one.policy)),
        line("definition", &one.definition.as_deref().map_or_else(|| "-".to_owned(), words)),
        line("expires", &words(&one.expires)),
        line(what, &format!("{} bytes, {}", one.bytes, words(&one.digest))),
    ];
    lines.extend(one.question.iter().flat_map(|question| asked(question, others.then_some(&one.id))));
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

/// What a server asks. Its words cannot be taken for ours: each line begins with one of ours. With an id,
/// `footbridge approvals` answers it.
fn asked(question: &QuestionInfo, id: Option<&String>) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(url) = &question.url {
        lines.push(line("answer", "allow says that you agree; nothing is opened, here or later"));
        lines.push(line("address", &words(url)));
    }
    if !question.fields.is_empty() {
        let missing = question.fields.iter().any(|field| field.required && field.default.is_none());
        let how = match (id, missing) {
            (Some(id), _) => format!("footbridge approvals allow {} --field NAME=VALUE ...", words(id)),
            (None, false) => "allow gives the defaults; for other values set watch = true in [approval]".to_owned(),
            (None, true) => "it can only be declined here; to fill it in, set watch = true in [approval]".to_owned(),
        };
        lines.push(line("answer", &how));
    }
    lines.push(line("asks", &format!("\"{}\"", words(&question.message))));
    for field in &question.fields {
        let mut text = format!("{} ({}", words(&field.name), words(&field.takes));
        let listed = [&field.choices, &field.limits].map(|list| words(&list.join(", ")));
        let (required, default) = (field.required.then(|| "required".to_owned()), field.default.as_ref());
        let default = default.map(|default| format!("default {}", words(&default.to_string())));
        listed.into_iter().filter(|part| !part.is_empty()).chain(required).chain(default).for_each(|part| {
            text.push_str(if text.ends_with("one of") || text.ends_with("any of") { " " } else { "; " });
            text.push_str(&part);
        });
        text.push(')');
        for said in [&field.title, &field.description].into_iter().flatten() {
            text.push_str(&format!(" \"{}\"", words(said)));
        }
        lines.push(line("field", &text));
    }
    lines
}

/// The arguments as they are shown at first: of long ones, their ends.
pub(crate) fn ends(one: &ApprovalInfo) -> Vec<String> {
    if one.question.is_some() {
        // It is shown field by field.
        return Vec::new();
    }
    let mut lines = vec![whole(&one.head)];
    if !one.tail.is_empty() {
        let left_out = one.bytes.saturating_sub(one.head.len() + one.tail.len());
        lines.push(format!("--- {left_out} bytes are not shown here ---"));
        lines.push(whole(&one.tail));
    }
    lines
}

/// Arguments, or a part of them.
pub(crate) fn whole(arguments: &str) -> String {
    format!("{:LABEL$}{}", "", words(arguments))
}

#[cfg(test)]
pub(crate) mod tests {
    use footbridge_proto::text::needs_escape;

    use super::*;
    use footbridge_calls::approval::FieldInfo;

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
            is_answered_elsewhere: false,
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
        let lines = fields(&one, true);
        assert!(!lines.concat().chars().any(needs_escape), "{lines:#?}");
        assert_eq!(lines.iter().filter(|line| line.starts_with("session:")).count(), 1);
        assert!(lines.iter().any(|line| line.starts_with("field:      colour") && line.contains("(one of r (Red), g")));
        assert!(lines.iter().any(|line| line.contains("required; default \"r")), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("approvals allow ap-0000000000000001 --field")));
        let mut alone = fields(&one, false);
        assert!(alone.iter().any(|line| line.contains("allow gives the defaults")), "{alone:#?}");
        let question = one.question.clone().unwrap();
        let without = question.fields.iter().cloned().map(|field| FieldInfo { default: None, ..field }).collect();
        alone = fields(
            &ApprovalInfo { question: Some(QuestionInfo { fields: without, ..question }), ..one.clone() },
            false,
        );
        assert!(alone.iter().any(|line| line.contains("only be declined here")), "{alone:#?}");
        assert!(!alone.concat().contains("footbridge approvals"), "{alone:#?}");
        assert!(ends(&one).is_empty());
    }

    #[test]
    fn nothing_of_a_guest_or_server_is_where_our_labels_are() {
        let pad = |columns: usize| " ".repeat(columns);
        for blanks in [15, 40, 65, 77, 80, 500] {
            let fake = format!("x{}approval:   ap-2{}effects:    read", pad(blanks), "\u{2003}".repeat(blanks));
            let message = fake.clone();
            let question = QuestionInfo { message, url: Some("https://a.test/".into()), fields: Vec::new() };
            let one = ApprovalInfo { head: fake.clone(), name: fake, ..info("ap-1") };
            let asked = ApprovalInfo { question: Some(question), ..one.clone() };
            for columns in [20, 77, 80] {
                let lines: Vec<String> = [fields(&one, true), ends(&one), fields(&asked, true)].concat();
                let shown: Vec<String> = lines.iter().flat_map(|line| wrap(line, columns)).collect();
                for (label, times) in [("approval:", 2), ("effects:", 2), ("tool:", 2)] {
                    let found = shown.iter().filter(|line| line.trim_start().starts_with(label)).count();
                    assert_eq!(found, times, "{label} {columns} {blanks}: {shown:#?}");
                }
            }
        }
        assert_eq!(words(&format!("a{}b  c", pad(50))), "a<50 blanks>b  c");
        assert_eq!(words(&pad(20)), "<20 blanks>");
    }

    #[test]
    fn what_is_true_comes_before_what_a_server_says() {
        let question = QuestionInfo { message: "long".into(), url: Some("https://a.test/".into()), fields: Vec::new() };
        let lines = fields(&ApprovalInfo { question: Some(question), ..info("ap-1") }, true);
        assert!(lines.last().unwrap().starts_with("asks:") && lines.iter().any(|line| line.starts_with("address:")));
    }

    #[test]
    fn a_narrow_screen_wraps_and_keeps_all() {
        assert_eq!(wrap("abcdefgh", 4), ["abcd", "| ef", "| gh"]);
        assert_eq!(wrap("\u{e9}\u{e9}\u{e9}", 4), ["\u{e9}\u{e9}", "| \u{e9}"]);
        assert_eq!(wrap(&"x".repeat(60), 50)[1], format!("{}| {}", " ".repeat(10), "x".repeat(10)));
        assert_eq!(wrap("", 4), [""]);
    }

    #[test]
    fn nothing_of_a_guest_or_server_steers_a_terminal_or_makes_a_line() {
        let one = info("ap-0000000000000001");
        let text = [fields(&one, true).join(""), ends(&one).join("")].concat();
        assert!(!text.chars().any(needs_escape), "{text:?}");
        assert_eq!(fields(&one, true).iter().filter(|line| line.starts_with("session:")).count(), 1);
        assert!(ends(&one)[1].contains("not shown here"));
        for kind in ["tool", "resource", "prompt", "completion"] {
            let lines = fields(&ApprovalInfo { kind: kind.into(), ..info("ap-0000000000000001") }, true);
            assert!(lines.iter().any(|line| line.starts_with(&format!("{kind}:"))), "{lines:#?}");
        }
    }
}
