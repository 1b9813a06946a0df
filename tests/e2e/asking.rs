//! A run that asks on its own terminal: its command is held, a word answers, and without a terminal nobody is asked.

use std::process::Command;

use footbridge_tests::{Host, Person, Running, Servers, starting};
use nix::sys::signal::Signal;
use serde_json::Value;

const SANDBOXES: [&str; 2] = ["net", "none"];
const BACK: &str = "\u{1b}[?1049l";
const TAKEN: &str = "\u{1b}[?1049h";
const NOBODY_IS_ASKED: &str = "no terminal to ask on";

fn asks() -> Host {
    Host::with(&Servers::demo()).policy("ask")
}

/// A command that adds a note.
fn adds(text: &str) -> String {
    format!("tool-cli demo add_note '{{\"text\":\"{text}\"}}'")
}

/// What the record says of approvals: state and approver.
fn steps(host: &Host) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let lines = host.record().into_iter().filter(|line| line["type"] == "approval");
    lines.map(|line| (text(&line["state"]), text(&line["approver"]))).collect()
}

fn starts(host: &Host, person: &mut Person, script: &str) -> Running {
    person.starts(&host.run_of(&["bash", "-c", script]))
}

#[test]
fn a_word_answers_and_what_was_typed_before_does_not() {
    for sandbox in SANDBOXES {
        let host = asks().sandbox(sandbox);
        let mut person = Person::new();
        let script =
            format!("echo ready; read word; {}; tool-cli demo list_notes '{{}}'; echo \"<$word>\"", adds("one"));
        let mut run = starts(&host, &mut person, &script);
        person.sees("ready");
        person.types("deny\rallow\r");
        person.sees("footbridge run: 1 waiting");
        person.sees("{\"text\":\"one\"}");
        person.reads();
        assert_eq!(host.pending(1).len(), 1);
        person.types("allow\r");
        person.sees(BACK);
        person.sees("note:///1");
        person.sees("<deny>");
        assert!(run.status().success(), "{person:?}");
        let steps = steps(&host);
        assert_eq!(steps.iter().map(|(state, _)| state.as_str()).collect::<Vec<_>>(), ["pending", "granted", "used"]);
        assert!(steps[1].1.starts_with("terminal of run (uid "), "{steps:?}");
    }
}

#[test]
fn allow_counts_once_the_last_byte_was_on_the_screen() {
    let host = asks();
    let mut person = Person::new();
    let text = format!("begin{}MIDDLE{}end", "a".repeat(1800), "b".repeat(1800));
    let mut run = starts(&host, &mut person, &format!("{}; echo after-$?", adds(&text)));
    person.sees("page 1 of 4");
    person.sees("begin");
    person.sees("bend\"}");
    person.sees("Enter: next page");
    assert!(!person.saw("MIDDLE"), "{person:?}");
    person.reads();
    // What is typed blindly shows one page more, and no more than that.
    person.types("allow\r\r\r\r\r\r\r\rallow\r");
    for page in 2..=4 {
        person.sees(&format!("page {page} of 4"));
        assert_eq!(host.pending(1).len(), 1, "page {page}: {person:?}");
        person.types("allow\r");
    }
    person.sees(BACK);
    person.sees("after-0");
    assert!(person.saw("MIDDLE") && run.status().success(), "{person:?}");
    assert_eq!(
        steps(&host).iter().map(|(state, _)| state.as_str()).collect::<Vec<_>>(),
        ["pending", "granted", "used"]
    );
}

#[test]
fn what_deceives_is_marked_on_the_screen() {
    let host = asks();
    let mut person = Person::new();
    let mut run = starts(&host, &mut person, &format!("{}; echo after-$?", adds("p\u{430}ypal \u{34f} \u{5d0}")));
    person.sees("p\\u{430}ypal \\u{34f} <rtl:\u{5d0}:rtl>");
    person.sees("beware:");
    person.sees("as the server says of itself");
    person.reads();
    person.types("allow please\r");
    person.sees("\"allow please\" is none of the words");
    person.types("deny\r");
    person.sees("after-1");
    assert!(run.status().success(), "{person:?}");
}

#[test]
fn one_after_the_other_is_asked_and_an_answer_from_elsewhere_counts_too() {
    let host = asks();
    let mut person = Person::new();
    let script = format!("{} & {} & wait; echo all done", adds("one"), adds("two"));
    let mut run = starts(&host, &mut person, &script);
    let pending = host.pending(2);
    person.sees("footbridge run: 2 waiting");
    let mut ids: Vec<&str> = pending.iter().map(|one| one["id"].as_str().unwrap()).collect();
    ids.sort_by_key(|id| !person.saw(id));
    host.answers(&["deny", ids[0]]);
    person.sees("footbridge run: 1 waiting");
    person.sees(&format!("{} (pending)", ids[1]));
    person.reads();
    person.types("deny\r");
    person.sees(BACK);
    person.sees("all done");
    assert!(run.status().success());
    let denied: Vec<_> = steps(&host).into_iter().filter(|(state, _)| state == "denied").collect();
    assert!(denied[0].1.starts_with("approvals deny") && denied[1].1.starts_with("terminal of run"), "{denied:?}");
}

#[test]
fn a_question_that_nobody_answers_gives_the_terminal_back() {
    let host = asks().settings("[limits.approval]\npending_time = \"3s\"\n");
    let mut person = Person::new();
    let mut run = starts(&host, &mut person, &format!("{}; echo after-$?", adds("late")));
    person.sees("{\"text\":\"late\"}");
    person.sees(BACK);
    person.sees("after-1");
    assert!(run.status().success());
    assert_eq!(steps(&host).iter().map(|(state, _)| state.as_str()).collect::<Vec<_>>(), ["pending", "expired"]);
}

#[test]
fn a_question_can_be_left_for_later() {
    let host = asks();
    let mut person = Person::new();
    let script =
        format!("{} & read x; kill $!; wait $!; echo \"<$x>\"; read y; {}; echo after-$?", adds("left"), adds("new"));
    let mut run = starts(&host, &mut person, &script);
    person.sees("{\"text\":\"left\"}");
    person.reads();
    person.types("later\r");
    person.sees(BACK);
    // The one that waits opens no prompt again, and keys are the command's.
    assert_eq!(host.pending(1).len(), 1);
    person.forgets();
    person.types("x\r");
    person.sees("<x>");
    assert_eq!(host.pending(1).len(), 1, "its client left, and withdrew nothing");
    person.types("y\r");
    person.sees("{\"text\":\"new\"}");
    assert!(!person.saw("{\"text\":\"left\"}"), "{person:?}");
    // Ctrl-C leaves it too, and the next one is the command's.
    person.types("\u{3}");
    person.sees(BACK);
    person.types("\u{3}");
    person.sees("after-130");
    assert!(run.status().success(), "{person:?}");
    let states: Vec<String> = steps(&host).into_iter().map(|(state, _)| state).collect();
    assert_eq!(states, ["pending", "pending", "withdrawn", "withdrawn"], "by the end of the session");
}

#[test]
fn where_nobody_else_answers_a_question_that_was_left_comes_back() {
    let host = asks().settings("[approval]\nwatch = false\n");
    let mut person = Person::new();
    let mut run = starts(&host, &mut person, &format!("{}; echo after-$?", adds("left")));
    person.sees("{\"text\":\"left\"}");
    person.forgets();
    person.types("\u{3}");
    person.sees(BACK);
    person.forgets();
    // With no key and no change, once the pause is over.
    person.sees("{\"text\":\"left\"}");
    person.reads();
    person.types("allow\r");
    person.sees("after-0");
    assert!(run.status().success(), "{person:?}");
}

#[test]
fn stop_interrupts_the_command_as_a_typed_ctrl_c_would() {
    for sandbox in SANDBOXES {
        let host = asks().sandbox(sandbox);
        let mut person = Person::new();
        let script = format!("trap 'echo interrupted; exit 5' INT; {} & while :; do wait; done", adds("one"));
        let mut run = starts(&host, &mut person, &script);
        person.sees("later, stop> ");
        person.reads();
        person.types("stop\r");
        person.sees("interrupted");
        assert_eq!(run.status().code(), Some(5), "{sandbox}: {person:?}");
        assert_eq!(person.seen_since(BACK).matches(TAKEN).count(), 0);
    }
}

#[test]
fn a_command_that_asks_again_and_again_keeps_nobody_from_their_terminal() {
    let host = asks();
    let mut person = Person::new();
    let ask = "tool-cli --no-wait demo add_note";
    let script = format!(
        "trap 'echo interrupted; exit 5' INT
         for i in 1 2 3 4 5 6 7 8; do {ask} \"{{\\\"text\\\":\\\"$i\\\"}}\"; done; echo asked all; read go
         {} & while :; do wait; done",
        adds("last")
    );
    let mut run = starts(&host, &mut person, &script);
    // Their clients are gone by then, and the questions are not: they are left all at once, and stay away.
    let _ = host.pending(8);
    person.sees("later, stop> ");
    person.reads();
    person.types("later\r");
    person.sees(BACK);
    person.sees("asked all");
    let shown = format!("{person:?}").matches("[?1049h").count();
    assert_eq!(shown, 1, "{person:?}");
    person.types("go\r");
    // When the pause is over it asks, and leaving it lets the next Ctrl-C through, whatever asks meanwhile.
    person.sees("{\"text\":\"last\"}");
    person.forgets();
    person.types("\u{3}");
    person.sees(BACK);
    person.types("\u{3}");
    person.sees("interrupted");
    assert_eq!(run.status().code(), Some(5), "{person:?}");
}

#[test]
fn a_signal_in_the_middle_of_a_question_ends_the_command_and_leaves_the_terminal_as_it_was() {
    for sandbox in SANDBOXES {
        let host = asks().sandbox(sandbox);
        let mut person = Person::new();
        let before = person.settings();
        let mut run = starts(&host, &mut person, &adds("one"));
        person.sees("{\"text\":\"one\"}");
        run.signal(Signal::SIGTERM);
        person.sees(BACK);
        assert_eq!(run.status().code(), Some(143), "{sandbox}");
        assert_eq!(person.settings(), before, "{sandbox}");
        host.leaves_nothing_behind();
    }
}

#[test]
fn what_is_remembered_where_nobody_else_answers_is_shown_as_what_it_is() {
    let host = asks().settings("[approval]\nwatch = false\n");
    let mut person = Person::new();
    let mut run = starts(&host, &mut person, &format!("{}; echo done; read end", adds("one")));
    person.sees("{\"text\":\"one\"}");
    let waiting = host.pending(1);
    let id = waiting[0]["id"].as_str().unwrap();
    let elsewhere = "in front of its run";
    assert!(host.approvals(&["show", id]).well().contains(elsewhere));
    host.approvals(&["allow", id]).fails(1, &["only who sits in front of this run"]);
    person.reads();
    person.types("remember\r");
    person.sees("done");
    let shown = host.approvals(&["show", id]).well().to_owned();
    assert!(shown.contains("(remembered)") && !shown.contains(elsewhere), "{shown}");
    host.approvals(&["allow", id]).fails(1, &["is used"]);
    person.types("\r");
    assert!(run.status().success(), "{person:?}");
}

#[test]
fn a_quick_command_answers_before_the_person_is_asked() {
    let allow = r#"["sh", "-c", "cat >/dev/null; echo '{\"decision\":\"allow\"}'"]"#;
    let host = asks().settings(&format!("[approval]\nwatch = false\ncommand = {allow}\n"));
    let mut person = Person::new();
    let mut run = starts(&host, &mut person, &format!("{}; echo done", adds("one")));
    person.sees("done");
    assert!(run.status().success());
    assert!(!person.saw("1049"), "{person:?}");
    assert!(steps(&host).iter().any(|(_, by)| by == "command sh"));
}

#[test]
fn without_a_terminal_the_call_is_denied_and_that_is_said_once() {
    let host = Host::with(&Servers::demo()).default_policy();
    let script =
        format!("{0} 2>one; {1} 2>two; cat one two; tool-cli demo list_notes '{{}}'", adds("one"), adds("two"));
    let ran = host.runs_script(&script);
    assert_eq!(ran.status, 0, "{ran:?}");
    for part in
        [NOBODY_IS_ASKED, "policy \"ask\"", "watch = true", "approvals watch", "--policy readonly", "--policy open"]
    {
        assert_eq!(ran.stderr.matches(part).count(), 1, "{part}: {ran:?}");
    }
    for part in ["nobody can be asked here", "ask the operator to run this where somebody can answer"] {
        assert_eq!(ran.stdout.matches(part).count(), 2, "{part}: {ran:?}");
    }
    assert!(ran.stdout.contains("\"notes\":[]"), "{ran:?}");
    let refused = host.record().into_iter().filter(|line| line["type"] == "refused" && line["decision"] == "ask");
    assert_eq!(refused.count(), 2);
    assert_eq!(host.runs_script("tool-cli demo list_notes '{}' >/dev/null").well(), "", "what reads asks nobody");
}

#[test]
fn where_output_goes_through_a_pipe_or_keys_come_from_one_nobody_is_asked() {
    for (line, says) in [
        ("\"$@\" | cat", "standard output goes through a pipe"),
        ("echo | \"$@\"", "standard input is none"),
        ("\"$@\" 2>&1 | cat", "standard error is none"),
        ("\"$@\" </dev/null", "standard input is none"),
    ] {
        let host = asks();
        let mut person = Person::new();
        let run = host.run_of(&["bash", "-c", &format!("{}; echo status-$?", adds("one"))]);
        let mut shell = Command::new("sh");
        shell.args(["-c", line, "sh"]);
        let mut running = person.starts(&starting(&run, shell));
        person.sees("status-1");
        assert!(running.status().success(), "{line}: {person:?}");
        assert!(person.saw(&format!("{NOBODY_IS_ASKED}: {says}")) && !person.saw("1049"), "{line}: {person:?}");
    }
}

#[test]
fn on_a_terminal_that_draws_nothing_nobody_is_asked() {
    let host = asks();
    let mut person = Person::new();
    let mut run = host.run_of(&["bash", "-c", &format!("{}; echo status-$?", adds("one"))]);
    let mut running = person.starts(run.env("TERM", "dumb"));
    person.sees("status-1");
    assert!(running.status().success(), "{person:?}");
    assert!(person.saw(NOBODY_IS_ASKED) && !person.saw("1049"), "{person:?}");
}

#[test]
fn nothing_that_the_command_wrote_before_covers_the_question() {
    let host = asks();
    let mut person = Person::new();
    // A string without an end, lines of a box for letters, a region of one line, and the wrong screen.
    let script = format!(
        "printf '\\033(0\\033[5;5r\\033[?7l\\033[?25l\\033]0;'; {} >/dev/null 2>&1; printf 'title\\007'; echo the end",
        adds("one")
    );
    let mut run = starts(&host, &mut person, &script);
    person.sees("{\"text\":\"one\"}");
    let shown = person.seen_since("\u{1b}]0;");
    let taken = shown.split("footbridge run").next().unwrap();
    for part in ["\u{18}\u{1b}\\", "\u{1b}(B", "\u{1b}[r", "\u{1b}[?7h", "\u{1b}[?25h", "\u{1b}[?1049h"] {
        assert!(taken.contains(part), "{part:?}: {taken:?}");
    }
    person.reads();
    person.types("allow\r");
    person.sees(BACK);
    person.sees("the end");
    let back = person.seen_since(BACK);
    assert!(back.contains("\u{1b}]0;title\u{7}"), "what it was in the middle of goes on: {back:?}");
    assert!(run.status().success());
}

#[test]
fn what_is_said_when_the_command_has_ended_shows_whatever_that_was_writing() {
    for (sandbox, left, ends) in [
        ("net", "\\033]0;vim", "\u{1b}[?47l"),
        ("net", "\\033[?1049h\\033[H\\033P", "\u{1b}[?1049l"),
        ("none", "\\033[c\\033[?1003h", "\u{1b}[?1003l"),
    ] {
        let host = asks().sandbox(sandbox);
        let mut person = Person::new();
        let before = person.settings();
        let script = format!("echo 'export A=1' >.envrc; printf 'the end {left}'");
        let mut run = starts(&host, &mut person, &script);
        person.sees("\u{1b}[?25h");
        if sandbox == "net" {
            person.sees(".envrc; look before you use them");
        }
        assert!(run.status().success(), "{person:?}");
        let since = person.seen_since("the end ");
        let clean = since.split("footbridge: ").next().unwrap();
        for part in ["\u{18}\u{1b}\\", ends, "\u{1b}[?2004l", "\u{1b}[?1l", "\u{1b}(B"] {
            assert!(clean.contains(part), "{left}: {part:?}: {clean:?}");
        }
        assert_eq!(person.settings(), before);
    }
}

#[test]
fn a_command_that_leaves_the_terminal_clean_finds_nothing_added() {
    for (script, shown) in
        [("echo the end", "the end\r\n"), ("printf '\\033[31mthe end\\n'", "the end\r\n\u{18}\u{1b}\\\u{1b}[0m")]
    {
        let host = asks();
        let mut person = Person::new();
        let shell = "\"$@\"; echo over";
        let run = host.run_of(&["bash", "-c", script]);
        let mut command = Command::new("sh");
        command.args(["-c", shell, "sh"]);
        let mut running = person.starts(&starting(&run, command));
        person.sees("over\r\n");
        assert!(running.status().success(), "{person:?}");
        assert_eq!(format!("the end{}", person.seen_since("the end")), format!("{shown}over\r\n"));
    }
}
