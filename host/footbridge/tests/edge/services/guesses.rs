//! A guest that guesses at the credential, at an origin that repeats what it is told.

use super::{Services, origin::KEY};

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
