//! The local terminal as it is left when the command has ended.
//!
//! A command may end in the middle of a string, on the other screen, or with modes that only a program can use; what the
//! harness says then, and the shell's prompt, would be in that string or on no screen. And it may have asked the terminal
//! for an answer, which comes as if it were typed: the shell would get it.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use nix::sys::stat::{SFlag, fstat};
use nix::sys::termios::{FlushArg, tcflush};
use nix::unistd::{getpgrp, tcgetpgrp};
use tokio::time::sleep;

use super::{Attached, Modes, modes::ENDS, write_all};
use crate::terminal::{mark_unended, window};

/// How long an answer of the terminal may be under way.
const ANSWER: Duration = Duration::from_millis(100);

impl Attached {
    /// Ends what the command was writing, and switches off what it left on. A terminal that was left clean is not changed.
    pub(super) async fn leave(&self, modes: &Mutex<Modes>) -> io::Result<()> {
        if !window::draws() {
            return Ok(());
        }
        let local = self.local.get_ref();
        let in_front = tcgetpgrp(local).is_ok_and(|group| group == getpgrp());
        let is_piped = [fstat(io::stdout()), fstat(io::stderr())].into_iter().flatten().any(|to| is_pipe(to.st_mode));
        // Otherwise somebody else draws there, or reads its keys: a pager behind a pipe, whoever is in front of a job.
        let is_ours = in_front && self.raw.is_some() && !is_piped;
        let (text, is_clean) = {
            let modes = modes.lock().unwrap_or_else(PoisonError::into_inner);
            let text = modes.ended(!is_ours);
            // What went past this file, as through `| cat`, may end in a string as well.
            let past = text.is_empty() && in_front && is_piped;
            (if past { ENDS.to_owned() } else { text }, modes.is_left_clean())
        };
        write_all(&self.local, text.as_bytes(), |_| ()).await?;
        let _it_is_only_for_us = mark_unended(local, false);
        if !is_clean && is_ours {
            sleep(ANSWER).await;
            tcflush(local, FlushArg::TCIFLUSH)?;
        }
        Ok(())
    }
}

fn is_pipe(mode: nix::libc::mode_t) -> bool {
    let kind = SFlag::from_bits_truncate(mode) & SFlag::S_IFMT;
    kind == SFlag::S_IFIFO || kind == SFlag::S_IFSOCK
}
