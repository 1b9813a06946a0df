//! What the reader of values says, in words for whoever wrote the file: what was found, what is expected, and which
//! known name is close to one that is not known.
//!
//! A message that is not recognised goes on as it is; those that the settings can have are pinned by tests.

/// The name that a message says is not known.
pub(super) fn unknown_field(message: &str) -> Option<&str> {
    message.strip_prefix("unknown field `")?.split('`').next()
}

/// The name that a message says is missing.
pub(super) fn missing_field(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `")?.split('`').next()
}

/// A message in plain words.
pub(super) fn in_plain_words(message: &str) -> String {
    if let Some(name) = missing_field(message) {
        return format!("\"{name}\" is missing");
    }
    if let Some(name) = unknown_field(message) {
        return not_known(&format!("\"{name}\" is not known here"), name, message);
    }
    if let Some(name) = between(message, "unknown variant `", "`") {
        return not_known(&format!("\"{name}\" is none of the words for this"), name, message);
    }
    let wrong = message.strip_prefix("invalid type: ").or_else(|| message.strip_prefix("invalid value: "));
    if let Some((found, expected)) = wrong.and_then(|rest| rest.split_once(", expected ")) {
        return format!("it is {}, and {} is expected", found_plainly(found), expected_plainly(expected));
    }
    if message.starts_with("data did not match any variant") {
        return "expected a text, { file = \"PATH\" }, { command = [\"PROGRAM\", \"ARGUMENT\"] } or \
                { credential = \"NAME\" }"
            .to_owned();
    }
    message.to_owned()
}

/// Why a text is no TOML, from what its parser says.
#[must_use]
pub fn not_parsed(message: &str) -> String {
    let what = match message.split(", expected").next().unwrap_or_default() {
        "string values must be quoted" => "expected a value: a text in quotes, a number, true, false, [ or {",
        "missing value" | "missing value for key" => "expected a value after \"=\"",
        "invalid key-value pair" => "expected NAME = VALUE, or [TABLE]",
        "key with no value" => "expected \"=\" and a value after the name",
        "extra `=`" | "unexpected key or value" | "unexpected content" => "expected nothing more in this line",
        _ => message,
    };
    format!("it does not parse: {what}")
}

/// The known name that is closest to this one, if a typing error could be between them.
#[must_use]
pub fn closest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let (lower, allowed) = (name.to_lowercase(), name.chars().count().div_ceil(4).clamp(1, 3));
    let distance = |other: &str| strsim::damerau_levenshtein(&lower, &other.to_lowercase());
    let near = known.into_iter().map(|other| (distance(other), other)).filter(|(distance, _)| *distance <= allowed);
    near.min_by_key(|(distance, _)| *distance).map(|(_, other)| other)
}

/// With the name that may be meant, and those that are known.
fn not_known(what: &str, name: &str, message: &str) -> String {
    let known: Vec<&str> = message.split_once(", expected").map(|(_, list)| quoted(list).collect()).unwrap_or_default();
    match (closest(name, known.iter().copied()), known.as_slice()) {
        (Some(meant), _) => format!("{what}; did you mean \"{meant}\"?"),
        (None, []) => what.to_owned(),
        (None, [one]) => format!("{what}: \"{one}\" is"),
        (None, many) => {
            let names: Vec<String> = many.iter().map(|name| format!("\"{name}\"")).collect();
            format!("{what}: {} are", names.join(", "))
        }
    }
}

/// The names between backticks.
fn quoted(list: &str) -> impl Iterator<Item = &str> {
    list.split('`').skip(1).step_by(2)
}

fn between<'m>(message: &'m str, start: &str, end: &str) -> Option<&'m str> {
    message.strip_prefix(start)?.split(end).next()
}

/// The longest text that is shown: what stands where it does not belong may be a secret.
const SHOWN_BYTES: usize = 24;

fn found_plainly(found: &str) -> String {
    for (word, plain) in [
        ("integer `", "the number "),
        ("floating point `", "the number "),
        ("boolean `", ""),
        ("string \"", "the text \""),
        ("newtype variant", "a value of another kind"),
    ] {
        if let Some(rest) = found.strip_prefix(word) {
            if word.starts_with("string") && rest.len() > SHOWN_BYTES {
                return "a text".to_owned();
            }
            return format!("{plain}{}", rest.trim_end_matches('`'));
        }
    }
    match found {
        "map" => "a table",
        "sequence" => "a list",
        "string" => "a text",
        "null" | "unit value" => "nothing",
        other => other,
    }
    .to_owned()
}

fn expected_plainly(expected: &str) -> String {
    let whole = |bits: &str, most: &str| format!("a whole number from {bits} to {most}");
    match expected {
        "u8" => whole("0", "255"),
        "u16" => whole("0", "65535"),
        "u32" | "u64" | "usize" | "a nonzero usize" | "a nonzero u64" => {
            "a whole number that is not negative".to_owned()
        }
        "i32" | "i64" => "a whole number".to_owned(),
        "f64" | "f32" => "a number".to_owned(),
        "a string" | "string" | "a borrowed string" => "a text in quotes".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "a list, as in [\"a\", \"b\"]".to_owned(),
        "a map" => "a table".to_owned(),
        other if other.starts_with("struct ") => "a table".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_reader_are_said_plainly() {
        for (message, plain) in [
            ("missing field `url`", "\"url\" is missing"),
            ("unknown field `speed`, expected `burst`", "\"speed\" is not known here: \"burst\" is"),
            (
                "unknown field `brust`, expected one of `burst`, `url`",
                "\"brust\" is not known here; did you mean \"burst\"?",
            ),
            ("unknown field `zzzzzz`, expected one of `a`, `b`", "\"zzzzzz\" is not known here: \"a\", \"b\" are"),
            ("unknown field `x`, there are no fields", "\"x\" is not known here"),
            (
                "unknown variant `alow`, expected one of `allow`, `deny`",
                "\"alow\" is none of the words for this; did you mean \"allow\"?",
            ),
            (
                "invalid value: integer `-1`, expected u32",
                "it is the number -1, and a whole number that is not negative is expected",
            ),
            ("invalid type: string \"x\", expected a boolean", "it is the text \"x\", and true or false is expected"),
            (
                "invalid type: string \"Bearer 0123456789abcdef0123\", expected a map",
                "it is a text, and a table is expected",
            ),
            (
                "invalid value: floating point `-2.2250738585072014e-308`, expected u32",
                "it is the number -2.2250738585072014e-308, and a whole number that is not negative is expected",
            ),
            ("invalid type: map, expected a sequence", "it is a table, and a list, as in [\"a\", \"b\"] is expected"),
            ("invalid type: integer `5`, expected struct Edge", "it is the number 5, and a table is expected"),
            ("write 5s", "write 5s"),
        ] {
            assert_eq!(in_plain_words(message), plain);
        }
    }

    #[test]
    fn a_name_is_suggested_where_a_typing_error_could_be_between() {
        let known = ["command", "args", "env", "url", "headers"];
        for (typed, meant) in [
            ("comand", Some("command")),
            ("Command", Some("command")),
            ("cmmoand", Some("command")),
            ("arg", Some("args")),
            ("header", Some("headers")),
            ("timeout", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(closest(typed, known), meant, "{typed}");
        }
    }
}
