//! Variables of the harness that servers get, and commands that are asked.

use footbridge_proto::vars::GUEST_PREFIX;

/// Variables of the harness that every server gets.
const PASSED: [&str; 9] =
    ["PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR"];
/// Beginnings of further ones.
const PASSED_PREFIXES: [&str; 3] = ["LC_", "XDG_", "SSL_CERT_"];
/// Ends of further ones, in either case.
const PASSED_SUFFIXES: [&str; 2] = ["_PROXY", "_proxy"];

/// Variables that lead a program to its user's desktop, where it may ask.
const OF_THE_DESKTOP: [&str; 4] = ["DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS"];

/// Whether a program that asks people gets this variable of the harness.
pub(super) fn is_passed_to_ask(name: &str) -> bool {
    is_passed(name) || OF_THE_DESKTOP.contains(&name)
}

/// Whether servers get this variable of the harness.
pub(crate) fn is_passed(name: &str) -> bool {
    !name.starts_with(GUEST_PREFIX)
        && (PASSED.contains(&name)
            || PASSED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
            || PASSED_SUFFIXES.iter().any(|suffix| name.ends_with(suffix)))
}
