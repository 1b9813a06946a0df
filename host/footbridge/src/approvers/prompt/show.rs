//! One approval as people see it, line by line: first what is asked, with its arguments, then what is said of it, and
//! digests last. All that guests and servers wrote is escaped and marked, and stays right of the column of our labels.

use serde_json::Value;

use super::plain::{Marks, plain};
use footbridge_calls::approval::{ApprovalInfo, QuestionInfo};

/// Columns of our labels.
const LABEL: usize = 12;

/// So many blanks in a row, or more, are shown as their number: they would move what follows them to where it seems to
/// be a line of ours.
const BLANKS: usize = 16;

/// What others wrote, on one line: marked where it is not what it looks like, and long runs of blanks as their number.
pub(crate) fn words(text: &str) -> String {
    let mut out = String::new();
    let mut blanks = 0;
    for c in plain(text).chars().map(Some).chain([None]) {
        if c == Some(' ') {
            blanks += 1;
            continue;
        }
        match std::mem::take(&mut blanks) {
            many @ BLANKS.. => out.push_str(&format!("<{many} blanks>")),
            few => out.extend(std::iter::repeat_n(' ', few)),
        }
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
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let colour = colour_at(rest);
        let (piece, after) = rest.split_at(colour.or_else(|| escape_at(rest)).unwrap_or(c.len_utf8()));
        rest = after;
        let width = match c {
            _ if colour.is_some() => 0,
            _ if c.is_ascii() => piece.len(),
            _ => 2,
        };
        if used + width > columns.max(mark.len() + 2) {
            out.push(mark.clone());
            used = mark.len();
        }
        if let Some(last) = out.last_mut() {
            last.push_str(piece);
        }
        used += width;
    }
    out
}

/// The length of what sets a colour at the beginning of this text: it takes no room, and is nothing in two pieces.
fn colour_at(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    numbers[end..].starts_with('m').then_some("\u{1b}[".len() + end + 1)
}

/// The length of the character by its number (`\u{NUMBER}`) that this text begins with: broken across lines it would be
/// none to who reads it.
fn escape_at(text: &str) -> Option<usize> {
    let number = text.strip_prefix("\\u{")?.as_bytes();
    // No further than one can be: what is searched for its end at each place takes minutes.
    let digits = number.iter().take(7).take_while(|digit| digit.is_ascii_hexdigit()).count();
    let is_one = (1..=6).contains(&digits) && number.get(digits) == Some(&b'}');
    is_one.then_some(digits + "\\u{}".len())
}

/// One approval, line by line: what is asked, what the tool does, who asks, and digests. Only our lines begin at the
/// left edge. Without the whole `arguments` there are their ends. `others` says whether `footbridge approvals` answers.
#[derive(Debug)]
pub(crate) struct ApprovalLines {
    /// Which tool of which server, or what else.
    what: Vec<String>,
    /// The arguments, or what a server asks.
    arguments: Vec<String>,
    /// What is said of it.
    said: Vec<String>,
    /// Who asks, until when, and what exactly by digests.
    rest: Vec<String>,
}

/// How it is, in a word.
pub(crate) fn state(one: &ApprovalInfo) -> &str {
    if one.is_remembered { "remembered" } else { one.state.as_str() }
}

/// What is said of one whose callers left, or are several; nothing of others.
pub(crate) fn callers(one: &ApprovalInfo) -> String {
    match one.waiting {
        _ if one.is_abandoned => "; whoever asked has left, the answer is kept for the same call".to_owned(),
        0 | 1 => String::new(),
        many => format!("; {many} identical calls wait, and a yes is for one of them"),
    }
}

impl ApprovalLines {
    /// Of an approval.
    pub(crate) fn of(one: &ApprovalInfo, arguments: Option<&str>, others: bool) -> Self {
        let labels = one.labels.iter().map(|(key, value)| format!(" {}={}", words(key), words(value)));
        let digest = if one.question.is_some() { "question" } else { "arguments" };
        Self {
            what: vec![line("server", &words(&one.server)), line(named(&one.kind), &words(&one.name))],
            arguments: match (&one.question, arguments) {
                (Some(question), _) => asked(question, others.then_some(&one.id)),
                (None, all) => match request(one, all) {
                    Some(request) => request.lines(),
                    None => all.map_or_else(|| ends(one), |all| vec![line("arguments", &words(all))]),
                },
            },
            said: said(one, arguments),
            rest: one
                .expires
                .iter()
                .map(|expires| line("expires", &words(expires)))
                .chain(one.approver.iter().map(|approver| line("approver", &words(approver))))
                .chain([
                    line("session", &format!("{}{}", words(&one.session), labels.collect::<String>())),
                    line("peer", &words(&one.peer)),
                    line("policy", &words(&one.policy)),
                    line("approval", &format!("{} ({}{})", words(&one.id), words(state(one)), callers(one))),
                    line("definition", &one.definition.as_deref().map_or_else(|| "-".to_owned(), words)),
                    line("digest", &format!("{}, of {} bytes of {digest}", words(&one.digest), one.bytes)),
                ])
                .collect(),
        }
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &String> {
        [&self.what, &self.arguments, &self.said, &self.rest].into_iter().flatten()
    }

    /// The first page of several, of so many rows: what is asked, both ends of the arguments, and what is said of it.
    /// None where there are too few rows for that, or where all of that is on the first page anyway.
    pub(crate) fn first_page(&self, rows: usize, columns: usize) -> Option<Vec<String>> {
        let wrapped = |lines: &[String]| lines.iter().flat_map(|line| wrap(line, columns)).collect::<Vec<_>>();
        if [&self.what, &self.arguments, &self.said].map(|lines| wrapped(lines).len()).iter().sum::<usize>() <= rows {
            return None;
        }
        let part = (rows / 4).max(3);
        let (what, said) = (fit(wrapped(&self.what), part, columns), fit(wrapped(&self.said), part, columns));
        let left = rows.checked_sub(what.len() + said.len()).filter(|left| *left >= 3)?;
        Some([what, fit(wrapped(&self.arguments), left, columns), said].concat())
    }
}

/// Both ends of too many lines, and between them how many are left out.
fn fit(mut lines: Vec<String>, rows: usize, columns: usize) -> Vec<String> {
    let Some(out) = lines.len().checked_sub(rows).filter(|out| *out > 0) else { return lines };
    let head = rows / 2;
    let between = format!("[{} more lines]", out + 1);
    lines.splice(head..head + out + 1, wrap(&between, columns).into_iter().take(1));
    lines
}

/// A request to a service, with what of its body is text taken out of the rest.
struct ServiceLines {
    rest: String,
    /// The whole body, where it is text.
    text: String,
    /// What a body that is none begins with.
    begins: Vec<String>,
}

/// Of an approval that is about one, where all of it is known.
fn request(one: &ApprovalInfo, arguments: Option<&str>) -> Option<ServiceLines> {
    let all = arguments.or_else(|| one.tail.is_empty().then_some(&one.head))?;
    let mut all: Value = serde_json::from_str(all).ok().filter(|_| one.kind == "http")?;
    let body = all.get_mut("body")?.as_object_mut()?;
    let text = body.remove("text").and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default();
    let begins = body.remove("begins").and_then(|lines| serde_json::from_value(lines).ok()).unwrap_or_default();
    all.sort_all_objects();
    Some(ServiceLines { rest: all.to_string(), text, begins })
}

impl ServiceLines {
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![line("arguments", &words(&self.rest))];
        let more = |lines: &mut Vec<String>, label: &str, texts: &[&str]| {
            for (at, text) in texts.iter().enumerate() {
                let begins = if at == 0 { format!("{label}:") } else { String::new() };
                lines.push(format!("{begins:LABEL$}{}", words(text)));
            }
        };
        let text: Vec<&str> = self.text.split('\n').collect();
        more(&mut lines, "body", if self.text.is_empty() { &[] } else { &text });
        more(&mut lines, "begins", &self.begins.iter().map(String::as_str).collect::<Vec<_>>());
        lines
    }

    fn marks(&self) -> Marks {
        self.begins.iter().map(|text| Marks::of(text)).fold(Marks::of(&self.text), Marks::and)
    }
}

/// How a request begins whose body is shown in part; no text that a guest writes can.
const PART_OF_BODY: &str = r#"{"body":{"base64_head":"#;

/// What is said of a call: what to beware of in it, what its tool does, and what that has for effects.
fn said(one: &ApprovalInfo, arguments: Option<&str>) -> Vec<String> {
    let mut lines = Vec::new();
    let question = one.question.as_ref().map(question_marks).unwrap_or_default();
    let texts = [&*one.server, &one.name, arguments.unwrap_or(&one.head), &one.tail];
    let of_body = request(one, arguments).map(|request| request.marks()).unwrap_or_default();
    let marks = texts.into_iter().map(Marks::of).fold(question.and(of_body), Marks::and);
    lines.extend(marks.warning().map(|warning| line("beware", &warning)));
    if one.head.starts_with(PART_OF_BODY) {
        lines.push(line("beware", "the body is no text: nothing between its beginning and its end is shown"));
    }
    lines.extend(one.description.iter().map(|text| line("says", &format!("\"{}\"", words(text)))));
    let by = match one.effects_by.as_deref() {
        Some("operator") => " (as footbridge.toml says)",
        Some(_) => " (as the server says of itself)",
        None => "",
    };
    lines.push(line("effects", &format!("{}{by}", words(&one.effects.join(", ")))));
    lines
}

fn question_marks(question: &QuestionInfo) -> Marks {
    // All of its texts, as its JSON has them; the characters that JSON escapes are shown escaped as well.
    serde_json::to_string(question).map(|text| Marks::of(&text)).unwrap_or_default()
}

/// What a call of this kind names. A question of a server is about the tool that it runs.
fn named(kind: &str) -> &'static str {
    match kind {
        "resource" => "resource",
        "prompt" => "prompt",
        "completion" => "completion",
        "http" => "request",
        "tunnel" => "tunnel",
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

/// The arguments as far as they are known without asking for them: of long ones, their ends.
fn ends(one: &ApprovalInfo) -> Vec<String> {
    let mut lines = vec![line("arguments", &words(&one.head))];
    if !one.tail.is_empty() {
        let left_out = one.bytes.saturating_sub(one.head.len() + one.tail.len());
        lines.push(format!("--- {left_out} bytes are not shown here ---"));
        lines.push(format!("{:LABEL$}{}", "", words(&one.tail)));
    }
    lines
}

/// How long is left, roughly, so that it is not another text each second.
pub(crate) fn time_left(seconds: u64) -> String {
    match seconds {
        120.. => format!("{} min", seconds / 60),
        60.. => "1 min".to_owned(),
        10.. => format!("{} s", seconds / 10 * 10),
        _ => "seconds".to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use footbridge_proto::{approval::ApprovalStatus, text::needs_escape};

    use super::*;
    use footbridge_calls::approval::FieldInfo;

    fn fields(one: &ApprovalInfo, others: bool) -> Vec<String> {
        ApprovalLines::of(one, None, others).all().cloned().collect()
    }

    pub(crate) fn info(id: &str) -> ApprovalInfo {
        ApprovalInfo {
            id: id.into(),
            state: ApprovalStatus::Pending,
            session: "agent-1".into(),
            labels: [("team".to_owned(), "\u{202e}x".to_owned())].into(),
            peer: "unix:uid=7".into(),
            kind: "tool".into(),
            server: "demo".into(),
            name: "wipe\u{1b}[2J\nsession: other".into(),
            description: Some("Wipes.\u{1b}[2J\nsession: other".into()),
            effects: vec!["write".into(), "destructive".into()],
            effects_by: Some("server".into()),
            policy: "ask".into(),
            definition: Some("sha256:ab".into()),
            digest: "sha256:cd".into(),
            bytes: 5000,
            body_bytes: None,
            head: "{\"a\":\"\u{9b}".into(),
            tail: "end\u{200b}\"}".into(),
            question: None,
            asked: "2026-01-01T00:00:00Z".into(),
            expires: Some("2026-01-01T00:05:00Z".into()),
            seconds_left: 299,
            approver: None,
            is_remembered: false,
            is_answered_elsewhere: false,
            is_abandoned: false,
            waiting: 1,
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
    }

    #[test]
    fn the_body_of_a_request_is_shown_as_text() {
        let all = r#"{"body":{"bytes":21,"digest":"sha256:ab","text":"{\"a\": 1,\n \"b\":\"\u001b\u202e\"}"},"method":"POST","path":"/x"}"#;
        let one = ApprovalInfo { kind: "http".into(), head: all.into(), tail: String::new(), ..info("ap-1") };
        for arguments in [None, Some(all)] {
            let lines: Vec<String> = ApprovalLines::of(&one, arguments, true).all().cloned().collect();
            let at = lines.iter().position(|line| line.starts_with("body:")).unwrap();
            let before = r#"arguments:  {"body":{"bytes":21,"digest":"sha256:ab"},"method":"POST","path":"/x"}"#;
            assert_eq!(
                lines[at - 1..at + 2],
                [before, "body:       {\"a\": 1,", "             \"b\":\"\\u{1b}\\u{202e}\"}"]
            );
            assert!(lines.iter().any(|line| line.starts_with("beware:") && line.contains("do not show")), "{lines:?}");
        }
        let pushed = r#"{"body":{"base64":"AAA=","begins":["0 1 refs/heads/main\u0000 atomic","0 2 refs/heads/x"],"bytes":9},"method":"POST"}"#;
        let lines = ApprovalLines::of(&one, Some(pushed), true).all().cloned().collect::<Vec<_>>();
        let shown = ["begins:     0 1 refs/heads/main\\u{0} atomic", "            0 2 refs/heads/x"];
        assert!(lines.windows(2).any(|two| two == shown), "{lines:?}");
        assert!(lines.iter().any(|line| line.contains("\"base64\":\"AAA=\"")), "{lines:?}");
        let tool = ApprovalInfo { kind: "tool".into(), ..one };
        assert!(fields(&tool, true).iter().all(|line| !line.starts_with("body:")));
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
                let lines: Vec<String> = [fields(&one, true), fields(&asked, true)].concat();
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
    fn what_is_asked_comes_first_and_digests_last() {
        let lines = fields(&info("ap-1"), true);
        let at = |label: &str| lines.iter().position(|line| line.starts_with(label)).unwrap();
        let order =
            ["server:", "tool:", "arguments:", "beware:", "says:", "effects:", "expires:", "session:", "digest:"];
        assert!(order.map(at).is_sorted() && at("server:") == 0 && at("digest:") + 1 == lines.len(), "{lines:#?}");
        assert!(lines[at("effects:")].contains("as the server says of itself"), "{lines:#?}");
        let ours = ApprovalInfo { effects_by: Some("operator".into()), ..info("ap-1") };
        assert!(fields(&ours, true).iter().any(|line| line.contains("as footbridge.toml says")));
    }

    #[test]
    fn the_first_page_of_many_has_both_ends() {
        let all = format!("{{\"first\":\"{}\",\"last\":1}}", "x".repeat(9000));
        for (rows, columns) in [(20, 80), (9, 20), (30, 100)] {
            let page = ApprovalLines::of(&info("ap-1"), Some(&all), true).first_page(rows, columns).unwrap();
            assert!(page.len() <= rows, "{page:#?}");
            assert!(page[0].starts_with("server:"), "{page:#?}");
            assert!(page.iter().any(|line| line.starts_with("arguments:  {\"first\"")), "{page:#?}");
            assert!(
                page.iter().any(|line| line.contains("more lines]")) && page.iter().any(|line| line.ends_with("1}")),
                "{page:#?}"
            );
        }
        assert!(ApprovalLines::of(&info("ap-1"), Some(&all), true).first_page(3, 80).is_none());
    }

    #[test]
    fn a_question_is_marked_too() {
        let question = QuestionInfo { message: "р\u{430}ypal?".into(), url: None, fields: Vec::new() };
        let one = ApprovalInfo {
            labels: [].into(),
            name: "t".into(),
            head: String::new(),
            tail: String::new(),
            ..info("ap-1")
        };
        assert!(!fields(&one, true).iter().any(|line| line.starts_with("beware:")));
        let lines = fields(&ApprovalInfo { question: Some(question), ..one }, true);
        assert!(
            lines.iter().any(|line| line.starts_with("beware:") && line.contains("look like others")),
            "{lines:#?}"
        );
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
        let text = fields(&one, true).join("");
        assert!(!text.chars().any(needs_escape), "{text:?}");
        assert_eq!(fields(&one, true).iter().filter(|line| line.starts_with("session:")).count(), 1);
        assert!(fields(&one, true).iter().any(|line| line.contains("not shown here")));
        for kind in ["tool", "resource", "prompt", "completion"] {
            let lines = fields(&ApprovalInfo { kind: kind.into(), ..info("ap-0000000000000001") }, true);
            assert!(lines.iter().any(|line| line.starts_with(&format!("{kind}:"))), "{lines:#?}");
        }
    }

    #[test]
    fn a_character_by_its_number_is_not_broken_across_lines() {
        let lines = wrap(&format!("{}\\u{{430}}b", "a".repeat(17)), 20);
        assert_eq!(lines, ["a".repeat(17), "| \\u{430}b".to_owned()]);
        assert_eq!(wrap(&format!("{}\\u{{x", "a".repeat(19)), 20).len(), 2, "what is none is broken as it comes");
    }
}
