//! What a person sees, and what their keys come to.

use std::{convert::Infallible, time::Duration};

use footbridge_proto::text::needs_escape;

use super::{show::tests::info, *};

const HERE: PromptContext = PromptContext { name: "here", leave: "later", stop: Some("stop"), others: true };
const LONG: Duration = Duration::from_secs(1);

/// Types, and gives what came of it.
fn types(prompt: &mut Prompt, keys: &str, now: Instant) -> Vec<Step> {
    keys.bytes().map(|key| prompt.feed(key, now)).filter(|step| *step != Step::Nothing).collect()
}

fn asked(ids: &[&str], now: Instant) -> Prompt {
    let mut prompt = Prompt::new(HERE, now);
    assert_eq!(prompt.update(ids.iter().map(|id| info(id)).collect(), now), Step::Turned);
    is_drawn(&mut prompt, now);
    prompt
}

/// What whoever brings the terminal does before keys are read.
fn is_drawn(prompt: &mut Prompt, now: Instant) {
    if prompt.missing().is_some() {
        prompt.whole(Ok::<_, Infallible>("{\"a\":\"b\"}".to_owned()));
    }
    prompt.text(Some((30, 80)));
    prompt.drawn(now);
}

#[test]
fn a_word_answers_the_call_that_is_shown() {
    let start = Instant::now();
    for (word, answer) in [
        ("allow", PromptAnswer::Allow { remember: false }),
        ("remember", PromptAnswer::Allow { remember: true }),
        ("deny", PromptAnswer::Deny),
    ] {
        let mut prompt = asked(&["ap-1", "ap-2"], start);
        let typed = types(&mut prompt, &format!("{word}\r"), start + LONG);
        assert_eq!(typed, [Step::Answer("ap-1".into(), answer)]);
    }
    let mut prompt = asked(&["ap-1"], start);
    assert_eq!(types(&mut prompt, "later\r", start + LONG), [Step::Leave]);
    assert_eq!(types(&mut prompt, "stop\r", start + LONG), [Step::Stop]);
    assert_eq!(types(&mut prompt, "quit\r", start + LONG), [], "it is another place's word");
    assert!(prompt.text(None).contains("\"quit\" is none of the words"));
    assert_eq!(types(&mut prompt, "ALLOW\r", start + LONG), []);
    assert!(prompt.text(None).contains("\"ALLOW\" is none of the words: allow, deny,"));
    assert_eq!(types(&mut prompt, "allow please\r", start + LONG), []);
    assert!(prompt.text(None).contains("\"allow please\" is none of the words: allow, deny,"));
}

#[test]
fn the_help_names_every_word_and_no_answer_is_given_to_it() {
    let start = Instant::now();
    let mut prompt = asked(&["ap-1"], start);
    assert!(prompt.text(Some((30, 80))).contains("here: 1 waiting, 4 min to answer"));
    assert_eq!(types(&mut prompt, "help\r", start + LONG), []);
    let text = prompt.text(None);
    for word in ["allow", "remember", "deny", "all", "next", "later", "stop"] {
        assert!(text.contains(&format!("  {word:<10} ")), "{word}: {text}");
    }
    assert!(!text.contains("tool:"), "{text}");
    assert_eq!(types(&mut prompt, "deny\r", start + LONG), [], "the call is not on the screen");
    assert!(prompt.text(None).contains("type \"deny\" again") && prompt.text(None).contains("tool:"));
    assert_eq!(types(&mut prompt, "deny\r", start + LONG), [Step::Answer("ap-1".into(), PromptAnswer::Deny)]);
}

#[test]
fn what_was_typed_for_one_call_is_no_answer_to_the_next() {
    let start = Instant::now();
    let mut prompt = asked(&["ap-1", "ap-2"], start);
    assert_eq!(types(&mut prompt, "allo", start + LONG), []);
    assert_eq!(prompt.update(vec![info("ap-2")], start + LONG), Step::Turned, "the first one ended elsewhere");
    is_drawn(&mut prompt, start + LONG);
    assert_eq!(types(&mut prompt, "w\rallow\r", start + LONG), []);
    let later = start + 2 * LONG;
    assert_eq!(types(&mut prompt, "w\r", later), [], "{prompt:?}");
    assert_eq!(types(&mut prompt, "deny\r", later), [Step::Answer("ap-2".into(), PromptAnswer::Deny)]);
    assert_eq!(prompt.answered("ap-2", PromptAnswer::Deny, Ok::<_, Infallible>(()), later), Step::Turned);
    assert_eq!(prompt.update(Vec::new(), later), Step::Nothing);
    assert_eq!(types(&mut prompt, "allow\r", later + LONG), [], "nothing is shown");
}

#[test]
fn a_call_is_shown_once_the_terminal_has_it_and_not_before() {
    let start = Instant::now();
    let mut prompt = Prompt::new(HERE, start);
    prompt.update(vec![info("ap-1")], start);
    // A terminal that takes long to draw: what is typed meanwhile is meant for something else.
    assert_eq!(types(&mut prompt, "allow\r", start + LONG), []);
    let drawn = start + 2 * LONG;
    is_drawn(&mut prompt, drawn);
    assert_eq!(types(&mut prompt, "allow\r", drawn + LONG / 4), []);
    prompt.drawn(drawn + LONG);
    assert_eq!(
        types(&mut prompt, "deny\r", drawn + LONG),
        [Step::Answer("ap-1".into(), PromptAnswer::Deny)],
        "the same call again"
    );
}

#[test]
fn on_a_screen_that_is_too_small_nothing_counts_as_shown() {
    let (start, later) = (Instant::now(), Instant::now() + LONG);
    let allowed = Step::Answer("ap-1".into(), PromptAnswer::Allow { remember: false });
    let shows = |prompt: &mut Prompt, size: (u16, u16), now: Instant| {
        let text = prompt.text(Some(size));
        prompt.drawn(now);
        text
    };
    for (size, fits) in [((2, 8), false), ((3, 80), false), ((24, 19), false), ((4, 20), true), ((0, 0), true)] {
        let mut prompt = Prompt::new(HERE, start);
        prompt.update(vec![ApprovalInfo { tail: String::new(), ..info("ap-1") }], start);
        let mut typed = Vec::new();
        for _ in 0..200 {
            let text = shows(&mut prompt, size, start);
            assert_eq!(text.contains("too small"), size.1 > 8 && !fits, "{size:?}: {text}");
            assert!(fits || text.split("\r\n").count() <= size.0.into(), "{size:?}: {text}");
            typed.extend(types(&mut prompt, "allow\r", later));
        }
        assert_eq!(typed.contains(&allowed), fits, "{size:?}");
    }
    let mut prompt = Prompt::new(HERE, start);
    prompt.update(vec![ApprovalInfo { tail: String::new(), ..info("ap-1") }], start);
    shows(&mut prompt, (3, 10), start);
    assert_eq!(types(&mut prompt, "allow", later), []);
    shows(&mut prompt, (30, 80), later);
    assert_eq!(types(&mut prompt, "\r", later + LONG), [], "it was typed before there was anything to see");
    shows(&mut prompt, (3, 10), later);
    assert_eq!(types(&mut prompt, "allow\r", later + LONG), [], "it is made small again");
    shows(&mut prompt, (30, 80), later);
    assert_eq!(types(&mut prompt, "allow\r", later + LONG), [allowed]);
}

#[test]
fn nothing_allows_a_call_before_all_of_it_was_on_the_screen() {
    let start = Instant::now();
    let later = start + LONG;
    let mut prompt = Prompt::new(HERE, start);
    prompt.update(vec![info("ap-1")], start);
    assert_eq!(prompt.missing().as_deref(), Some("ap-1"));
    prompt.whole(Ok::<_, Infallible>(format!("{{\"x\":\"{}END\"}}", "long ".repeat(1000))));
    let text = prompt.text(Some((24, 80)));
    assert!(text.contains("page 1 of 6") && text.contains("{\"x\":\"long") && text.contains("END\"}"), "{text}");
    prompt.drawn(start);
    for word in ["allow\r", "remember\r", "\r\r\r\r\r\rallow\r"] {
        assert_eq!(types(&mut prompt, word, later), [], "{word:?}: one page was on the screen");
    }
    for page in 2..=6 {
        let text = prompt.text(Some((24, 80)));
        assert!(text.contains(&format!("page {page} of 6")), "{text}");
        assert_eq!(types(&mut prompt, "allow\r", later), [], "page {page} is not drawn");
        prompt.drawn(later);
        if page < 6 {
            assert_eq!(types(&mut prompt, "allow\r", later), []);
            assert!(prompt.text(Some((24, 80))).contains("not allowed yet"));
        }
    }
    let allowed = Step::Answer("ap-1".into(), PromptAnswer::Allow { remember: false });
    assert_eq!(types(&mut prompt, "allow\r", later), [allowed]);
    // Another screen has other pages.
    assert!(prompt.text(Some((20, 80))).contains("allow counts once"));
    assert_eq!(types(&mut prompt, "allow\r", later), []);
    assert_eq!(types(&mut prompt, "deny\r", later), [Step::Answer("ap-1".into(), PromptAnswer::Deny)]);
}

#[test]
fn what_cannot_be_shown_in_full_cannot_be_allowed() {
    let start = Instant::now();
    let mut prompt = Prompt::new(HERE, start);
    prompt.update(vec![info("ap-1")], start);
    prompt.whole(Err("it is \u{1b}[2J over"));
    assert!(prompt.text(Some((40, 80))).contains("not shown here"));
    prompt.drawn(start);
    assert_eq!(types(&mut prompt, "allow\r", start + LONG), []);
    assert!(prompt.text(Some((40, 80))).contains("it cannot be allowed here"));
}

#[test]
fn one_looks_at_them_in_turn_and_at_all_of_one() {
    let start = Instant::now();
    let mut prompt = Prompt::new(HERE, start);
    prompt.update(vec![info("ap-1"), info("ap-2")], start);
    prompt.whole(Ok::<_, Infallible>("x".repeat(5000)));
    prompt.text(None);
    prompt.drawn(start);
    assert_eq!(types(&mut prompt, "all\r", start + LONG), []);
    assert!(prompt.text(None).contains("page 2 of"));
    assert_eq!(types(&mut prompt, "next\r", start + LONG), [Step::Turned]);
    is_drawn(&mut prompt, start + LONG);
    assert_eq!(types(&mut prompt, "deny\r", start + 2 * LONG), [Step::Answer("ap-2".into(), PromptAnswer::Deny)]);
    let step = prompt.answered("ap-2", PromptAnswer::Deny, Err("it is \u{1b}[2J over"), start + 2 * LONG);
    assert_eq!((step, prompt.waiting().collect::<Vec<_>>()), (Step::Turned, vec!["ap-1"]));
    assert!(prompt.text(None).contains("\\u{1b}[2J over"), "{:?}", prompt.text(None));
}

#[test]
fn the_screen_holds_nothing_that_steers_it_but_what_is_ours() {
    let start = Instant::now();
    let mut prompt = asked(&["ap-1"], start);
    for size in [None, Some((24, 80)), Some((1, 1)), Some((4, 20))] {
        let text = prompt.text(size);
        let ours = ["\x1b[2J\x1b[H", "\r\n"].iter().fold(text, |text, ours| text.replace(ours, ""));
        let (rows, _) = size.map_or((24, 80), |(rows, columns)| (rows.max(4), columns.max(20)));
        let ours = [rows - 1, rows].iter().fold(ours, |text, row| text.replace(&format!("\x1b[{row};1H"), ""));
        assert!(!ours.chars().any(needs_escape), "{ours:?}");
        assert!(ours.contains("later, stop> ") || size.is_some_and(|(_, columns)| columns < 60), "{ours:?}");
    }
}
