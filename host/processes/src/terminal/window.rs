//! A terminal's window: its size, and whether anything can be drawn there.

use std::os::fd::AsFd;

use crate::sys::{set_window, window};

/// Whether the terminal of this process understands what moves its cursor and colours its text.
#[must_use]
pub fn draws() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Rows and columns; none if it is no terminal, or has no size.
pub fn size(terminal: impl AsFd) -> Option<(u16, u16)> {
    let size = window(terminal).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some((size.ws_row, size.ws_col))
}

/// Copies the size of one terminal's window to another.
pub(crate) fn copy(from: impl AsFd, to: impl AsFd) -> nix::Result<()> {
    set_window(to, &window(from)?)
}

/// Makes it one row smaller.
pub(crate) fn shrink(terminal: impl AsFd) -> nix::Result<()> {
    let mut size = window(&terminal)?;
    size.ws_row = size.ws_row.saturating_sub(1).max(1);
    set_window(terminal, &size)
}
