//! What the benches have in common: a figure of many, and printing it.

use std::{io::Write as _, time::Duration};

/// Says a figure, or why there is none.
pub fn say(text: &str) {
    // A figure that cannot be printed is not worth failing over.
    let _ = writeln!(std::io::stdout(), "{text}");
}

/// The one in the middle.
pub fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
