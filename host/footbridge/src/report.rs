//! The one place that prints errors and messages of the command line.

use std::{
    io::{self, Write as _},
    os::fd::AsFd,
    thread,
    time::Duration,
};

use footbridge_processes::threads::file_limit;
use footbridge_proto::text::EscapedLines;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::waiting;

/// Prints an error with its causes, one a line, on standard error.
pub(crate) fn error(error: &anyhow::Error) {
    // Without a standard error there is nobody to tell.
    let _ = waiting::aside(|| io::stderr().write_all(text_of(error).as_bytes()));
}

fn text_of(error: &anyhow::Error) -> String {
    let mut text = format!("footbridge: {}\n", EscapedLines(&error.to_string()));
    let mut said = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        // Many errors repeat their cause in their own words.
        if !said.contains(&cause) {
            text.push_str(&format!("  because: {}\n", EscapedLines(&cause)));
        }
        said = cause;
    }
    // Wherever a limit of open files is met, it is the same one that helps.
    if let Some(limit) = error.chain().filter_map(|cause| cause.downcast_ref()).find_map(file_limit)
        && !text.contains("ulimit")
    {
        text.push_str(&format!("  {limit}\n"));
    }
    text
}

/// Prints a line for whoever is watching, on standard error.
pub(crate) fn note(text: &str) {
    // Without a standard error there is nobody to tell.
    let _ = waiting::aside(|| io::stderr().write_all(format!("{}\n", EscapedLines(text)).as_bytes()));
}

/// A number with what it counts, as in `1 call` and `2 calls`.
#[must_use]
pub(crate) fn counted(number: u64, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Writes a result to standard output. A reader that left ends it quietly.
///
/// # Errors
/// When it cannot be written for another reason, as when the disk is full.
pub(crate) fn out(text: &str) -> io::Result<()> {
    piece(text).map(|_| ())
}

/// As [`out`], and says whether there is still a reader.
///
/// # Errors
/// As for [`out`].
pub(crate) fn piece(text: &str) -> io::Result<bool> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(io::Error::new(error.kind(), format!("cannot write to standard output: {error}"))),
        Ok(()) => Ok(true),
    }
}

/// Waits this long before more is written, or until nobody reads standard output any more. Whether somebody does.
pub(crate) fn stays_read(time: Duration) -> bool {
    stays_open(io::stdout(), time)
}

fn stays_open(output: impl AsFd, time: Duration) -> bool {
    let mut outputs = [PollFd::new(output.as_fd(), PollFlags::empty())];
    let longest = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
    match poll(&mut outputs, longest) {
        Ok(0) => true,
        Ok(_)
            if outputs[0].revents().is_some_and(|found| found.intersects(PollFlags::POLLERR | PollFlags::POLLHUP)) =>
        {
            false
        }
        // There is none, so whether it is read is nobody's question.
        Ok(_) | Err(_) => {
            thread::sleep(time);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use nix::libc::EMFILE;

    use std::{fs::File, time::Instant};

    use super::*;

    #[test]
    fn a_reader_that_leaves_is_noticed_while_nothing_is_written() {
        let (reader, writer) = io::pipe().unwrap();
        assert!(stays_open(&writer, Duration::from_millis(1)));
        let leaves = thread::spawn(move || drop(reader));
        let (start, long) = (Instant::now(), Duration::from_secs(3600));
        assert!(!stays_open(&writer, long) && start.elapsed() < long);
        leaves.join().unwrap();
        assert!(
            stays_open(File::open("/dev/null").unwrap(), Duration::from_millis(1)),
            "what nobody reads, nobody leaves"
        );
    }

    #[test]
    fn a_limit_of_open_files_is_told_once_wherever_it_is_met() {
        let met = || Err::<(), _>(io::Error::from_raw_os_error(EMFILE));
        let told = text_of(&met().context("cannot open the control socket").unwrap_err());
        assert!(
            told.starts_with("footbridge: cannot open the control socket\n") && told.contains("ulimit -n"),
            "{told}"
        );
        let told = text_of(&met().context("is ulimit -n too low?").unwrap_err());
        assert_eq!(told.matches("ulimit").count(), 1, "{told}");
        let told = text_of(&anyhow::anyhow!("another error"));
        assert_eq!(told, "footbridge: another error\n");
    }
}
