//! The many spellings of a URI or path, and the one in which those that servers take for the same are compared.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Characters of a pattern that do not stand for themselves.
pub(super) const META: [char; 7] = ['*', '?', '[', ']', '{', '}', '\\'];

/// A text as written and decoded, without blanks at its edges, whole and up to where a reader may end it, and without
/// the parameters (`;...`) that a reader may take off each of its segments.
pub(crate) fn readings(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    add_ends(text, &mut all);
    // Some end a text before they decode it, and some after.
    for written in all.clone().iter().filter(|written| written.contains('%')) {
        add_ends(&String::from_utf8_lossy(&decode(written).0), &mut all);
    }
    all
}

/// Adds what readers may leave of a text that they do not decode.
fn add_ends(text: &str, all: &mut Vec<String>) {
    const ENDS: [&[char]; 3] = [&[], &['#'], &['#', '?']];
    for ends in ENDS {
        let text = before(text, ends);
        for reading in [text, before(text, &[';']), &without_parameters(text)] {
            let reading = reading.trim();
            if !all.iter().any(|other| other == reading) {
                all.push(reading.to_owned());
            }
        }
    }
}

fn before<'t>(text: &'t str, ends: &[char]) -> &'t str {
    &text[..text.find(ends).unwrap_or(text.len())]
}

fn without_parameters(text: &str) -> String {
    text.split('/').map(|segment| before(segment, &[';'])).collect::<Vec<_>>().join("/")
}

/// A pattern in the spelling that URIs are compared in where it stops them.
pub(super) fn spelling_of_pattern(pattern: &str) -> String {
    let special = |text: &str| text.matches(META).count();
    let (decoded, whole) = decode(pattern);
    match String::from_utf8(decoded) {
        // What an escape stands for must not become a sign of the pattern.
        Ok(decoded) if whole && special(&decoded) == special(pattern) => one_spelling(&decoded, true),
        _ => one_spelling(pattern, true),
    }
}

/// Hosts that mean this machine in a `file:` URI.
const OWN_HOSTS: [&str; 4] = ["localhost", "127.0.0.1", "[::1]", "."];

/// The scheme, one slash, and the rest with single slashes and none at its end. A host that adds nothing is left out:
/// this machine in a `file:` URI, and elsewhere a user, a default port and a last dot.
pub(super) fn one_spelling(text: &str, of_pattern: bool) -> String {
    let text = with_lower_authority(text);
    let (scheme, rest) = parts(&text, of_pattern);
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let host = host.to_ascii_lowercase();
            match scheme {
                "file" if OWN_HOSTS.contains(&host.as_str()) => path.to_owned(),
                _ => format!("{}{path}", bare_host(scheme, &host)),
            }
        }
        None => rest.to_owned(),
    };
    spelled(scheme, &path)
}

/// As [`one_spelling`], by a reader that does not look at the host of a `file:` URI.
pub(super) fn without_file_host(text: &str) -> String {
    let lowered = with_lower_authority(text);
    match parts(&lowered, false) {
        ("file", rest) => {
            let path = rest.strip_prefix("//").map_or(rest, |rest| &rest[rest.find('/').unwrap_or(rest.len())..]);
            spelled("file", path)
        }
        _ => one_spelling(text, false),
    }
}

fn spelled(scheme: &str, path: &str) -> String {
    let mut out = String::with_capacity(scheme.len() + path.len() + 2);
    out.push_str(scheme);
    if !scheme.is_empty() {
        out.push(':');
    }
    let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
    if parts.peek().is_none() || !scheme.is_empty() || path.starts_with('/') {
        out.push('/');
    }
    out + &parts.collect::<Vec<_>>().join("/")
}

/// The scheme and what follows it. What has none may be a path, which readers take for that of a file; a pattern that
/// may stand for a scheme too has none.
fn parts(text: &str, of_pattern: bool) -> (&str, &str) {
    let first = text.split('/').next().unwrap_or_default();
    match first.split_once(':') {
        Some((scheme, _)) => (scheme, &text[scheme.len() + 1..]),
        None if of_pattern && first.contains(META) => ("", text),
        None => ("file", text),
    }
}

fn bare_host<'h>(scheme: &str, host: &'h str) -> &'h str {
    let host = host.rsplit('@').next().unwrap_or(host);
    let port = match scheme {
        "http" | "ws" => ":80",
        "https" | "wss" => ":443",
        _ => ":",
    };
    let host = host.strip_suffix(port).or(host.strip_suffix(':')).unwrap_or(host);
    host.strip_suffix('.').unwrap_or(host)
}

/// Scheme and host in small letters: they mean the same in any case.
pub(crate) fn with_lower_authority(text: &str) -> String {
    let Some(colon) = text.find(':').filter(|at| text[..*at].bytes().all(is_scheme)) else { return text.to_owned() };
    let rest = &text[colon + 1..];
    let end = match rest.strip_prefix("//") {
        Some(authority) => colon + 3 + authority.find(['/', '?', '#']).unwrap_or(authority.len()),
        None => colon,
    };
    text[..end].to_ascii_lowercase() + &text[end..]
}

/// Whether a URI begins so that every reader takes the same scheme and host from it. What has no scheme is a path.
pub(super) fn has_plain_start(text: &str) -> bool {
    let text = text.trim();
    let first = text.split(['/', '?', '#']).next().unwrap_or_default();
    let Some((scheme, _)) = first.split_once(':') else { return !first.starts_with(['<', '"', '\'', '(']) };
    if scheme.is_empty() || !scheme.bytes().all(is_scheme) || scheme.eq_ignore_ascii_case("url") {
        return false;
    }
    let rest = &text[scheme.len() + 1..];
    let web = ["http", "https", "ws", "wss", "ftp"].iter().any(|one| scheme.eq_ignore_ascii_case(one));
    // Those of the web have a host whatever slashes they have in front of it.
    let authority = match rest.strip_prefix("//") {
        Some(rest) if !web => rest,
        None if !web => return true,
        _ => rest.trim_start_matches('/'),
    };
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or(authority);
    // A scheme that only its server knows has hosts as it likes.
    if web { is_plain_host(host) } else { !scheme.eq_ignore_ascii_case("file") || host.is_ascii() }
}

/// Whether a host of the web and its port are written as all readers read them: in ASCII, without a part that is
/// missing, as an address in its usual form or as a name that is none, and with a port that has no zero in front.
fn is_plain_host(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) => (is_usual_ipv6(address), rest),
        None => {
            let (name, _) = host.split_once(':').unwrap_or((host, ""));
            let is_plain = name.is_ascii() && !name.contains(' ') && !name.starts_with('.') && !name.ends_with("..");
            (is_plain && !is_odd_number(name), &host[name.len()..])
        }
    };
    let port = port.strip_prefix(':').unwrap_or(port);
    name && port.bytes().all(|byte| byte.is_ascii_digit()) && !port.starts_with('0')
}

fn is_usual_ipv6(address: &str) -> bool {
    address.parse::<Ipv6Addr>().is_ok_and(|ip| ip.to_string() == address && ip.to_ipv4_mapped().is_none())
}

/// Whether a host is a number to some reader, and no address as all write it.
fn is_odd_number(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.to_ascii_lowercase().starts_with("0x");
    is_number && !last.is_empty() && host.parse::<Ipv4Addr>().is_err()
}

fn is_scheme(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)
}

/// Decoded once, and whether each `%` had its two digits.
pub(super) fn decode(text: &str) -> (Vec<u8>, bool) {
    let (bytes, mut out, mut whole, mut at) = (text.as_bytes(), Vec::with_capacity(text.len()), true, 0);
    while at < bytes.len() {
        let digit =
            |at: usize| bytes.get(at).and_then(|b| char::from(*b).to_digit(16)).and_then(|d| u8::try_from(d).ok());
        match (bytes[at], digit(at + 1), digit(at + 2)) {
            (b'%', Some(high), Some(low)) => {
                out.push(high * 16 + low);
                at += 3;
            }
            (byte, ..) => {
                whole &= byte != b'%';
                out.push(byte);
                at += 1;
            }
        }
    }
    (out, whole)
}
