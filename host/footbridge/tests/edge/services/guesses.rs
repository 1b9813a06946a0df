//! A guest that guesses at the credential, at an origin that repeats what it is told.

use super::{Services, origin::KEY};
use crate::bridge::eventually;

#[test]
fn no_answer_tells_a_right_guess_from_a_wrong_one() {
    let services = Services::open();
    let wrong = format!("{}x", &KEY[..KEY.len() - 1]);
    for guess in [KEY, &*wrong] {
        let escaped: String = guess.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        for (line, note, body) in [
            (format!("POST /s/tracker/repeat/{guess}"), "none", "none".to_owned()),
            (format!("POST /s/tracker/repeat?p={guess}"), "none", "none".to_owned()),
            ("POST /s/tracker/repeat".to_owned(), guess, "none".to_owned()),
            ("POST /s/tracker/repeat".to_owned(), "none", format!("a guess: {guess}")),
            ("POST /s/tracker/repeat".to_owned(), "none", format!("a guess: {escaped} {guess}")),
        ] {
            let target = line.replace("POST /s/tracker", "/api");
            let answer = services.ask(&line, &[&format!("X-Note: {note}")], &body);
            assert_eq!(answer.body, format!("{target}\n{note}\n{body}"), "{line} {note} {body}");
            assert!(answer.head.contains(&format!("x-said: {note}\r\n")), "{}", answer.head);
        }
    }
    let answer = services.get("/echo");
    assert!(!answer.body.contains(KEY), "what one request said is nothing to another: {}", answer.body);
}

#[test]
fn what_may_be_read_in_more_ways_than_one_passes_whole_in_pieces() {
    let services = Services::open();
    let body = r#"%25\n&amp;"#.repeat(6_000);
    let answer = services.ask("POST /s/tracker/repeat", &["X-Note: none"], &body);
    assert!(
        answer.status == 200 && answer.body == format!("/api/repeat\nnone\n{body}"),
        "{} {:.300}",
        answer.head,
        answer.body
    );
    assert_eq!(services.origin.received()[0].body, body.as_bytes());
    let outcome = eventually(|| services.records.lines().into_iter().rfind(|line| line["type"] == "outcome"));
    let both = [body.len(), answer.body.len()].map(serde_json::Value::from);
    assert_eq!([&outcome["sent"], &outcome["received"]], [&both[0], &both[1]], "{outcome}");
}
