//! Cursors of listings: where a page ended, as a text that means nothing to clients.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

/// The cursor for a key.
pub(super) fn of(key: &str) -> String {
    URL_SAFE_NO_PAD.encode(key)
}

/// The key that a cursor stands for; none where it is no cursor of ours.
pub(super) fn key(cursor: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()
}
