//! Answers in every shape, one byte at a time.

use super::*;

/// Gives its bytes one at a time, so that every boundary is met.
struct Drip<'a>(&'a [u8]);

impl Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.0.len().min(1);
        buffer[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

impl Write for Drip<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Connection for Drip<'_> {
    fn measure_silence(&mut self) {}
}

fn answer(text: &str) -> Result<(u16, String), HttpError> {
    let whole = read_answer(&mut Drip(text.as_bytes()), None);
    whole.map(|answer| (answer.status, String::from_utf8(answer.body).unwrap()))
}

#[test]
fn a_body_ends_by_length_by_chunks_or_with_the_stream() {
    for text in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhiXX",
        "HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n\r\n1\r\nh\r\n1;x=y\r\ni\r\n0\r\nT: v\r\n\r\n",
        "HTTP/1.0 200 OK\nServer: x\n\nhi",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
    ] {
        assert_eq!(answer(text).unwrap(), (200, "hi".to_owned()), "{text}");
    }
    let endless = answer(&"HTTP/1.1 100 Continue\r\n\r\n".repeat(1_000));
    assert!(matches!(endless, Err(HttpError::Malformed(why)) if why.contains("goes on")));
    assert_eq!(answer("HTTP/1.1 204 No Content\r\n\r\n").unwrap(), (204, String::new()));
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
        "HTTP/1.1 2 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nhi",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nhi\r\n0\r\n\r\n",
    ] {
        assert!(matches!(answer(text), Err(HttpError::Malformed(_))), "{text}");
    }
    let huge = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n";
    assert!(matches!(answer(huge), Err(HttpError::TooLarge)));
}

#[test]
fn the_request_has_one_length_and_the_token_once() {
    let token = Token::parse("fbt_x").unwrap();
    let ask = Ask { host: "127.0.0.1:1", token: Some(&token), body: b"{}", waits: true, keeps: false };
    let text = String::from_utf8(request(&ask, false)).unwrap();
    assert!(text.starts_with("POST / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"), "{text}");
    assert_eq!(text.matches("Authorization: Bearer fbt_x\r\n").count(), 1);
    assert!(text.ends_with("Content-Length: 2\r\n\r\n{}"), "{text}");
}
