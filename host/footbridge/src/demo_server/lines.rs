//! Lines of bounded length.

use std::io::{self, BufRead};

/// Longest line that is read: far more than any request here needs.
const MAX_LINE: usize = 1024 * 1024;

/// What comes next in the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line, without its end.
    Text(Vec<u8>),
    /// A line with nothing on it.
    Blank,
    /// A line beyond the limit. It was skipped.
    TooLong,
    /// Nothing: the input ended.
    End,
}

/// Reads up to the end of a line. A last line without its end counts.
pub(super) fn next(input: &mut impl BufRead) -> io::Result<Line> {
    let (mut line, mut length, mut any) = (Vec::new(), 0_usize, false);
    loop {
        let chunk = match input.fill_buf() {
            Ok(chunk) => chunk,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = &chunk[..end.unwrap_or(chunk.len())];
        any |= !chunk.is_empty();
        length = length.saturating_add(part.len());
        if length <= MAX_LINE {
            line.extend_from_slice(part);
        }
        let (ended, used) = (end.is_some() || chunk.is_empty(), part.len() + usize::from(end.is_some()));
        input.consume(used);
        if ended {
            return Ok(match (any, length > MAX_LINE) {
                (false, _) => Line::End,
                (true, true) => Line::TooLong,
                (true, false) if line.trim_ascii().is_empty() => Line::Blank,
                (true, false) => Line::Text(line),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_read() {
        let text = format!("{}\nshort\n\nlast", "x".repeat(MAX_LINE + 1));
        let mut input = BufReader::with_capacity(7, text.as_bytes());
        assert_eq!(next(&mut input).unwrap(), Line::TooLong);
        assert_eq!(next(&mut input).unwrap(), Line::Text(b"short".to_vec()));
        assert_eq!(next(&mut input).unwrap(), Line::Blank);
        assert_eq!(next(&mut input).unwrap(), Line::Text(b"last".to_vec()));
        assert_eq!(next(&mut input).unwrap(), Line::End);
    }
}
