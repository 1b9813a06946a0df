//! How a definition differs from its pin, as people read it.
//!
//! Every line that a server wrote begins with blanks and a sign, and is escaped and marked: none can look like a line of
//! ours, steer a terminal, or hide something by the order or the looks of its characters.

use std::io::IsTerminal as _;

use serde_json::{Map, Value};

use super::{
    lines::{Line, compare},
    show::{digest, origin, since},
};
use crate::{
    approvers::prompt::{plain::plain, show::words},
    store::{StoredDefinition, StoredPin},
};
use footbridge_core::catalogue::{SERVER, TOOL, VERBATIM};
use footbridge_processes::terminal::window;

/// Unchanged lines that are shown around changed ones.
const AROUND: usize = 3;

/// Most blanks that a line begins or ends with and that are shown as they are: values in values are indented.
const INDENT: usize = 40;

/// Members in the order that people look for them; others come after.
const FIRST: [&str; 6] = [SERVER, "title", "description", "inputSchema", "outputSchema", "annotations"];

/// Whether it is for a terminal that takes colours.
#[derive(Debug, Clone, Copy)]
pub(in crate::cli) struct Colours(bool);

impl Colours {
    /// For standard output.
    pub(in crate::cli) fn of_output() -> Self {
        let no_colour = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self(std::io::stdout().is_terminal() && window::draws() && !no_colour)
    }

    pub(in crate::cli) fn line(self, colour: &str, text: &str) -> String {
        if self.0 { format!("\u{1b}[{colour}m{text}\u{1b}[0m\n") } else { format!("{text}\n") }
    }
}

/// All that is different; nothing for a pin without a change.
pub(super) fn shown(pin: &StoredPin, paint: Colours) -> String {
    let Some(changed) = &pin.changed else { return String::new() };
    let name = format!("{}/{}", plain(&pin.server), plain(&pin.tool));
    let mut text = paint.line("1", &name);
    let origin = origin(pin);
    if !origin.is_empty() {
        text.push_str(&format!("  server   {}\n", whole_line(&origin)));
    }
    text.push_str(&format!("  pinned   {}  {}\n", since(&pin.pinned), digest(&pin.pinned)));
    text.push_str(&format!("  changed  {}  {}\n", since(changed), digest(changed)));
    let (old, new) = (members(&pin.pinned), members(changed));
    let mut names: Vec<&String> = old.keys().chain(new.keys().filter(|name| !old.contains_key(*name))).collect();
    names.sort_by_key(|name| (FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()), *name));
    for name in names {
        let (old, new) = (old.get(name), new.get(name));
        if old != new {
            text.push_str(&paint.line("1", &format!("  {}:", plain(name))));
            member(old, new, paint, &mut text);
        }
    }
    text
}

/// What is compared of a definition, by name.
fn members(definition: &StoredDefinition) -> Map<String, Value> {
    let mut parts: Map<String, Value> = serde_json::from_str(&definition.text).unwrap_or_default();
    let mut take = |part: &str| match parts.remove(part) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    };
    let (mut all, verbatim) = (take(TOOL), take(VERBATIM));
    // One that no value keeps is never among the others too.
    all.extend(verbatim);
    // A member of the tool may be called like what is ours.
    let own = all.remove(SERVER).map(|own| (format!("{SERVER} (of the tool)"), own));
    all.extend(own);
    all.extend(parts.remove(SERVER).map(|server| (SERVER.to_owned(), server)));
    all
}

/// The lines of a value that are gone or new, with a few around them.
pub(in crate::cli) fn member(old: Option<&Value>, new: Option<&Value>, paint: Colours, text: &mut String) {
    let are_texts = [old, new].iter().flatten().all(|value| value.is_string());
    let written = |value: &Value| match value {
        Value::String(text) if are_texts => text.clone(),
        // A value always serializes.
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    let (old, new) = (old.map(written), new.map(written));
    let lines = match (&old, &new) {
        (Some(old), Some(new)) => compare(old, new),
        (Some(old), None) => old.split('\n').map(Line::Gone).collect(),
        (None, Some(new)) => new.split('\n').map(Line::New).collect(),
        (None, None) => Vec::new(),
    };
    let is_near = |at: usize| {
        let mut near = lines.iter().skip(at.saturating_sub(AROUND)).take(at.min(AROUND) + AROUND + 1);
        near.any(|line| !matches!(line, Line::Same(_)))
    };
    let mut left_out = 0;
    for (at, line) in lines.iter().enumerate() {
        if !is_near(at) {
            left_out += 1;
            continue;
        }
        skipped(&mut left_out, text);
        match line {
            Line::Same(same) => text.push_str(&format!("     {}\n", whole_line(same))),
            Line::Gone(gone) => text.push_str(&paint.line("31", &format!("    -{}", whole_line(gone)))),
            Line::New(new) => text.push_str(&paint.line("32", &format!("    +{}", whole_line(new)))),
        }
    }
    skipped(&mut left_out, text);
}

fn skipped(left_out: &mut usize, text: &mut String) {
    if *left_out > 0 {
        text.push_str(&format!("    ({left_out} more, unchanged)\n"));
        *left_out = 0;
    }
}

/// A line in which everything shows, blanks at its end too, and long runs of them as their number: what follows those would
/// be off the side, or a line of its own.
fn whole_line(line: &str) -> String {
    let kept = line.trim_end_matches(' ');
    let text = kept.trim_start_matches(' ');
    let indent = Some(kept.len() - text.len()).filter(|indent| *indent <= INDENT).unwrap_or_default();
    let (at_end, few) = (line.len() - kept.len(), INDENT);
    let end = if at_end <= few { "\\u{20}".repeat(at_end) } else { format!("<{at_end} blanks>") };
    format!("{:indent$}{}{end}", "", words(kept.get(indent..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use footbridge_proto::text::needs_escape;
    use serde_json::json;

    use super::*;
    use footbridge_core::digest::Digest;

    fn definition(value: &Value) -> StoredDefinition {
        let text = value.to_string();
        StoredDefinition { digest: Digest::of(&text), text, since: UNIX_EPOCH + Duration::from_secs(1_700_000_000) }
    }

    fn pin(old: &Value, new: &Value) -> StoredPin {
        let (pinned, changed) = (definition(old), Some(definition(new)));
        StoredPin { server: "x".into(), origin: String::new(), tool: "t\u{1b}[2J".into(), pinned, changed }
    }

    /// Without the head, whose digests say nothing to a reader.
    fn body(old: &Value, new: &Value) -> String {
        shown(&pin(old, new), Colours(false)).lines().skip(3).map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn each_member_is_shown_by_itself_and_schemas_by_their_lines() {
        let old = json!({"server": {"command": "a"}, "tool": {"name": "t", "description": "One.\nTwo.", "title": "T",
            "inputSchema": {"properties": {"a": {}, "b": {}, "c": {"type": "string"}}, "type": "object"}}});
        let new = json!({"server": {"command": "a"}, "tool": {"name": "t", "description": "One.\nThree. ", "zeal": 1,
            "inputSchema": {"properties": {"a": {}, "b": {}, "c": {"type": "number"}}, "type": "object"}}});
        let expected = "  title:
    -T
  description:
     One.
    -Two.
    +Three.\\u{20}
  inputSchema:
    (2 more, unchanged)
         \"a\": {},
         \"b\": {},
         \"c\": {
    -      \"type\": \"string\"
    +      \"type\": \"number\"
         }
       },
       \"type\": \"object\"
    (1 more, unchanged)
  zeal:
    +1
";
        assert_eq!(body(&old, &new), expected);
    }

    #[test]
    fn another_command_and_what_no_value_keeps_show_too() {
        let old = json!({"server": {"command": "a"}, "tool": {"name": "t", "server": 1}, "verbatim": {"n": "1e400"}});
        let new = json!({"server": {"command": "b"}, "tool": {"name": "t", "server": 2}, "verbatim": {"n": "2e400"}});
        let text = body(&old, &new);
        assert!(text.contains("-  \"command\": \"a\"\n    +  \"command\": \"b\"") && text.contains("+2e400"), "{text}");
        assert!(text.contains("server (of the tool):\n    -1\n    +2\n"), "{text}");
    }

    #[test]
    fn what_stands_far_behind_blanks_shows_beside_what_is_before_them() {
        let blanks = " ".repeat(300);
        let new = json!({"command": "sh", "args": ["-c", format!("make{blanks}; curl evil")], "text": "x"});
        let mut text = String::new();
        member(None, Some(&new), Colours(false), &mut text);
        assert!(text.contains("\"make<300 blanks>; curl evil\"") && text.contains("    +    \"-c\",\n"), "{text}");
        for (line, shown) in [
            (format!("{blanks}x"), "<300 blanks>x"),
            (format!("x{blanks}"), "x<300 blanks>"),
            ("                  \"deep\"".to_owned(), "                  \"deep\""),
        ] {
            assert_eq!(whole_line(&line), shown);
        }
    }

    #[test]
    fn nothing_of_a_server_steers_a_terminal_or_looks_like_a_line_of_ours() {
        let evil = "fine\u{202e}txt\u{1b}[2J\u{9b}31m\r\nx/other\n  description:\n    +all is well\n\u{200b}\t";
        let old = json!({"tool": {"name": "t", "description": "fine"}});
        let new = json!({"tool": {"name": "t", "description": evil, "a\nb": {"\u{202e}": evil}}});
        for paint in [Colours(false), Colours(true)] {
            let text = shown(&pin(&old, &new), paint);
            let colours = ["\u{1b}[1m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[0m"];
            let bare = colours.iter().fold(text.clone(), |text, colour| text.replace(colour, ""));
            assert!(!bare.chars().any(|c| c != '\n' && needs_escape(c)), "{bare:?}");
            assert!(bare.lines().filter(|line| !line.starts_with(' ')).eq(["x/t\\u{1b}[2J"]), "{bare}");
            assert_eq!(bare.lines().filter(|line| line.starts_with("  description:")).count(), 1, "{bare}");
            assert!(bare.contains("    +  description:\n") && bare.contains("fine\\u{202e}txt\\u{1b}[2J"), "{bare}");
            assert_eq!(text.contains('\u{1b}'), paint.0);
        }
    }

    #[test]
    fn a_pin_without_a_change_has_no_difference() {
        let same = StoredPin { changed: None, ..pin(&json!({}), &json!({})) };
        assert_eq!(shown(&same, Colours(true)), "");
    }
}
