//! Reading a file of the configuration: a regular one, up to a size. A pipe or device in its place holds nothing up.

use std::{
    fs::Metadata,
    io::{self, Read as _},
    path::Path,
};

use footbridge_processes::regular_file::open_regular;

/// The text of a file of at most so many bytes, and what the kernel says of it.
pub(super) fn bounded(path: &Path, most: u64) -> io::Result<(String, Metadata)> {
    let (file, meta) = open_regular(path)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {most} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let (before, line) = (String::from_utf8_lossy(valid), valid.iter().filter(|byte| **byte == b'\n').count() + 1);
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        io::Error::other(format!("line {line}, column {column} is not UTF-8: save it as that"))
    })?;
    Ok((text, meta))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_text_of_bounded_size_in_a_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        std::fs::write(at("text"), "12345").unwrap();
        std::fs::write(at("bytes"), b"a\n\xc3\xa4\xff").unwrap();
        assert_eq!(bounded(&at("text"), 5).unwrap().0, "12345");
        for (name, most, says) in [
            ("pipe", 5, "no regular file"),
            ("text", 4, "larger than 4 bytes"),
            ("bytes", 5, "line 2, column 2 is not UTF-8"),
            (".", 5, ""),
        ] {
            let said = bounded(&at(name), most).unwrap_err().to_string();
            assert!(said.contains(says), "{name}: {said}");
        }
    }
}
