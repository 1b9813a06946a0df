//! Approvals, as people and as programs read them. All that guests and servers wrote is escaped.

use footbridge_proto::text::SafeJson;
use serde::Serialize;

use crate::approvers::prompt::show::{ApprovalLines, callers, state, time_left, words, wrap};
use footbridge_calls::{
    approval::{ApprovalInfo, ApprovalShown},
    request::repeated,
};

/// Characters of what is asked that its line has.
const GIST: usize = 60;

/// One JSON object a line, in which nothing steers a terminal.
pub(in crate::cli) fn json_lines<T: Serialize>(all: &[T]) -> serde_json::Result<String> {
    let mut out = String::new();
    for one in all {
        out += &SafeJson(&serde_json::to_string(one)?).to_string();
        out.push('\n');
    }
    Ok(out)
}

/// What is said of one that cannot be answered from here.
const ELSEWHERE: &str = "(answered in front of its run, or by a command or webhook, only)";

/// How a call or a question begins, which tells it from another one of its name. A request's line is its name.
fn gist(one: &ApprovalInfo) -> String {
    let text = match &one.question {
        Some(question) => &question.message,
        None if one.kind == "http" || one.head == "{}" => return String::new(),
        None => &one.head,
    };
    let mut all = words(text);
    let is_long = all.chars().count() > GIST;
    all = all.chars().take(GIST).collect();
    format!("  {all}{}", if is_long || !one.tail.is_empty() { " ..." } else { "" })
}

/// One line an approval, in which names are shortened; `none` where there is none.
pub(super) fn table(found: &[ApprovalInfo], none: &str) -> String {
    if found.is_empty() {
        return format!("{none}\n");
    }
    let line = |one: &ApprovalInfo| {
        let (id, state, session) = (words(&one.id), words(state(one)), words(&one.session));
        let asks = if one.question.is_some() { "question of " } else { "" };
        let call = format!("{asks}{}/{}", words(&one.server), words(&repeated(&one.name)));
        let elsewhere = if one.is_answered_elsewhere { format!("  {ELSEWHERE}") } else { String::new() };
        let (bytes, callers, gist) = (one.body_bytes.unwrap_or(one.bytes), callers(one), gist(one));
        // What is remembered has no end of its own, and somebody who said so.
        let until = match (&one.approver, one.is_remembered) {
            (Some(approver), true) => format!("by {}", words(approver)),
            (Some(_), false) => format!("{} left to make it", time_left(one.seconds_left)),
            _ => format!("{} to answer", time_left(one.seconds_left)),
        };
        format!("{id}  {state:7}  {session}  {call}{gist}  {bytes} bytes  {until}{callers}{elsewhere}\n")
    };
    found.iter().map(line).collect()
}

/// One in full, for a terminal of so many columns.
pub(super) fn whole(shown: &ApprovalShown, columns: u16) -> String {
    let lines = ApprovalLines::of(&shown.info, Some(&shown.arguments), !shown.info.is_answered_elsewhere);
    let elsewhere = shown.info.is_answered_elsewhere.then(|| ELSEWHERE.to_owned());
    let lines = lines.all().chain(&elsewhere);
    lines.flat_map(|line| wrap(line, columns.into())).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use footbridge_proto::text::needs_escape;

    use super::*;
    use crate::approvers::prompt::show::tests::info;
    use footbridge_calls::approval::QuestionInfo;

    const NONE: &str = "nothing waits for an answer";

    #[test]
    fn what_is_remembered_says_by_whom_and_has_no_end() {
        let one = ApprovalInfo {
            is_remembered: true,
            expires: None,
            seconds_left: 0,
            approver: Some("zoe\u{1b}[2J (approvals allow)".into()),
            ..info("ap-0000000000000001")
        };
        let text = table(std::slice::from_ref(&one), NONE);
        assert!(text.contains("  remembered  ") && text.contains("  by zoe\\u{1b}[2J (approvals allow)"), "{text}");
        assert!(!text.contains("left"), "{text}");
        let whole = whole(&ApprovalShown { info: one, arguments: "{}".into() }, 200);
        assert!(whole.contains("(remembered)") && !whole.contains("expires:"), "{whole}");
        assert!(whole.lines().any(|line| line.starts_with("approver:")), "{whole}");
    }

    #[test]
    fn calls_of_one_name_are_told_apart_and_identical_ones_counted() {
        let one =
            ApprovalInfo { head: "{\"path\":\"a\u{1b}\"}".into(), tail: String::new(), ..info("ap-0000000000000001") };
        let long = ApprovalInfo { head: "é".repeat(61), waiting: 3, ..one.clone() };
        let text = table(&[one, long], NONE);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("  {\"path\":\"a\\u{1b}\"}  ") && !lines[0].contains("identical"), "{text}");
        assert!(lines[1].contains(&format!("  {} ...  ", "é".repeat(60))), "{text}");
        assert!(lines[1].contains("; 3 identical calls wait"), "{text}");
    }

    #[test]
    fn a_question_is_told_from_a_call() {
        let question = QuestionInfo { message: "Which?".into(), url: None, fields: Vec::new() };
        let one = ApprovalInfo { question: Some(question), ..info("ap-0000000000000001") };
        assert!(table(std::slice::from_ref(&one), NONE).contains("question of demo/"));
    }

    #[test]
    fn what_cannot_be_answered_from_here_says_so() {
        let here = info("ap-0000000000000001");
        let elsewhere = ApprovalInfo { is_answered_elsewhere: true, ..here.clone() };
        let text = table(&[here, elsewhere.clone()], NONE);
        let marked: Vec<bool> = text.lines().map(|line| line.contains("in front of its run")).collect();
        assert_eq!(marked, [false, true], "{text}");
        assert!(whole(&ApprovalShown { info: elsewhere, arguments: "{}".into() }, 200).contains("in front of its run"));
    }

    #[test]
    fn a_request_says_how_long_its_body_is() {
        let one = ApprovalInfo { kind: "http".into(), bytes: 233, body_bytes: Some(21), ..info("ap-0000000000000001") };
        let text = table(&[one], NONE);
        assert!(text.contains("  21 bytes  "), "{text}");
    }

    #[test]
    fn what_nobody_waits_for_any_more_says_so() {
        let waits = info("ap-0000000000000001");
        let left = ApprovalInfo { is_abandoned: true, ..waits.clone() };
        let text = table(&[waits, left.clone()], NONE);
        let marked: Vec<bool> = text.lines().map(|line| line.contains("has left")).collect();
        assert_eq!(marked, [false, true], "{text}");
        let whole = whole(&ApprovalShown { info: left, arguments: "{}".into() }, 200);
        assert!(whole.lines().any(|line| line.starts_with("approval:") && line.contains("has left")), "{whole}");
    }

    #[test]
    fn nothing_of_a_guest_or_server_steers_a_terminal_or_makes_a_line() {
        let one = info("ap-0000000000000001");
        let shown = ApprovalShown { info: one.clone(), arguments: "{\"x\":\"\u{202e}\"}".into() };
        let text = [table(std::slice::from_ref(&one), NONE), whole(&shown, 200)].concat();
        assert!(!text.chars().any(|c| c != '\n' && needs_escape(c)), "{text:?}");
        assert_eq!(table(std::slice::from_ref(&one), NONE).lines().count(), 1);
        let line = json_lines(std::slice::from_ref(&shown)).unwrap();
        assert!(!line.trim_end().chars().any(needs_escape));
        assert_eq!(serde_json::from_str::<ApprovalShown>(&line).unwrap(), shown);
    }
}
