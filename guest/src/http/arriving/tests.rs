//! Answers in every shape, in pieces of every length.

use super::*;

const PIECES: [usize; 6] = [1, 2, 3, 7, 64, 100_000];

/// An answer that is whole.
#[derive(Debug, Default, PartialEq)]
struct Whole {
    status: u16,
    session: Option<String>,
    messages: Vec<(Option<String>, String)>,
    leaves_open: bool,
}

impl Whole {
    fn body(&self) -> &str {
        match self.messages.as_slice() {
            [] => "",
            [(None, text)] => text,
            other => panic!("{other:?}"),
        }
    }
}

/// What comes of these bytes, the same in pieces of any length.
fn answer(text: &str) -> Result<Whole, HttpError> {
    let first = in_pieces(text, 1);
    for piece in PIECES {
        let (one, other) = (first.as_ref().map_err(ToString::to_string), in_pieces(text, piece));
        assert_eq!(one, other.as_ref().map_err(ToString::to_string), "{piece}: {text}");
    }
    first
}

fn in_pieces(text: &str, piece: usize) -> Result<Whole, HttpError> {
    let (mut arriving, mut whole) = (Arriving::new(), Whole::default());
    let mut take =
        |kind: Option<&str>, data| whole.messages.push((kind.map(str::to_owned), String::from_utf8(data).unwrap()));
    let mut is_done = false;
    for part in text.as_bytes().chunks(piece) {
        if is_done {
            // It came behind the end, as more of the same read would.
            arriving.is_followed = true;
            break;
        }
        is_done = arriving.feed(part, &mut take)?;
    }
    if !is_done {
        arriving.ends(&mut take)?;
    }
    whole.leaves_open = arriving.leaves_open();
    (whole.status, whole.session) = (arriving.status.unwrap(), arriving.session);
    Ok(whole)
}

#[test]
fn a_body_ends_by_length_by_chunks_or_with_the_stream() {
    for (text, leaves_open) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhiXX", false),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nContent-Length: 2\r\n\r\nhi", true),
        ("HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\nh\r\n1;x=y\r\ni\r\n0\r\nT: v\r\n\r\n", true),
        ("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nConnection: x, Close\r\n\r\n2\r\nhi\r\n0\r\n\r\n", false),
        ("HTTP/1.0 200 OK\nServer: x\n\nhi", false),
        ("HTTP/1.0 200 OK\nContent-Length: 2\n\nhi", false),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", true),
    ] {
        let whole = answer(text).unwrap();
        assert_eq!((whole.status, whole.body(), whole.leaves_open), (200, "hi", leaves_open), "{text}");
    }
    let endless = answer(&"HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000));
    assert!(matches!(endless, Err(HttpError::Malformed(why)) if why.contains("goes on")));
    for nothing in ["204 No Content\r\n", "304 Not Modified\r\nContent-Length: 7\r\n", "202 X\r\nContent-Length: 0\r\n"]
    {
        let whole = answer(&format!("HTTP/1.1 {nothing}\r\n")).unwrap();
        assert_eq!((whole.messages.len(), whole.leaves_open), (0, true), "{nothing}");
    }
}

#[test]
fn each_event_is_a_message_with_its_kind_and_the_session_is_known() {
    let events =
        "a\r\ndata: {\"b\"\r\n5\r\n:2}\n\n\r\n6\r\n: hi\n\n\r\n15\r\nevent: x\ndata: {\"c\"}\n\r\n1\r\n\n\r\n0\r\n\r\n";
    let head = "HTTP/1.1 200 OK\r\nMcp-Session-Id: abc\r\nContent-Type: Text/Event-Stream;charset=utf-8\r\n";
    let whole = answer(&format!("{head}Transfer-Encoding: chunked\r\n\r\n{events}")).unwrap();
    let message = |kind: &str, data: &str| (Some(kind.to_owned()), data.to_owned());
    assert_eq!(whole.messages, [message("", "{\"b\":2}"), message("x", "{\"c\"}")]);
    assert_eq!((whole.session.as_deref(), whole.leaves_open), (Some("abc"), true));
    let until_end = answer(&format!("{head}\r\ndata: 1\n\ndata: 2")).unwrap();
    assert_eq!(until_end.messages, [message("", "1")]);
}

#[test]
fn a_cut_answer_is_no_answer() {
    let whole = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
    for end in 0..whole.len() - 1 {
        assert!(matches!(answer(&whole[..end]), Err(HttpError::Cut)), "{end}");
    }
    assert!(matches!(answer("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi"), Err(HttpError::Cut)));
}

#[test]
fn what_is_ambiguous_or_too_much_is_refused() {
    for text in [
        "SSH-2.0-x\r\n",
        "\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 2 OK\r\n\r\n",
        "HTTP/1.1 +20 OK\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nhi\r\n0\r\n\r\n",
    ] {
        assert!(matches!(answer(text), Err(HttpError::Malformed(_))), "{text}");
    }
    let huge = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n";
    assert!(matches!(answer(huge), Err(HttpError::TooLarge)));
    let many = "X: y\r\n".repeat(20_000);
    for head in ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"] {
        assert!(matches!(in_pieces(&format!("{head}{many}\r\n"), 1000), Err(HttpError::Malformed(_))), "{head}");
    }
}
