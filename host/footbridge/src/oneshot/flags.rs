//! A tool's flags for clap, which reads the command line of `mcp-tool`. Which flag a name means is not clap's to say: names
//! come to it as [`ToolFlags::meant`] has them, so that `tool-cli` takes the same.

use std::ffi::{OsStr, OsString};

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use footbridge_cli::flags::{BadFlag, Flag, FlagValue, MOST_LISTED, ToolFlags, TypedFlag};

/// Under which heading they stand.
const HEADING: &str = "Arguments of the tool";

/// The flags, for a command line.
pub(crate) fn args(flags: &ToolFlags) -> Vec<Arg> {
    flags.flags.iter().enumerate().map(|(at, flag)| arg(flag, at)).collect()
}

/// The words of a command line with the names of flags as [`args`] has them, whichever way they were typed, and `=false` for
/// `no-`. What is the name of an option, which are `taken`, stays, and so does what no flag is called, or more than one.
pub(crate) fn named(flags: &ToolFlags, taken: &[String], words: &[OsString]) -> Vec<OsString> {
    let ours = words.iter().take_while(|word| *word != "--").count();
    let (ours, others) = words.split_at(ours);
    let name = |word: &OsString| named_word(flags, taken, word).unwrap_or_else(|| word.clone());
    ours.iter().map(name).chain(others.iter().cloned()).collect()
}

fn named_word(flags: &ToolFlags, taken: &[String], word: &OsStr) -> Option<OsString> {
    let word = word.to_str()?.strip_prefix("--")?;
    let (name, value) = word.split_once('=').map_or((word, ""), |(name, _)| (name, &word[name.len()..]));
    if taken.iter().any(|option| option == name) {
        return None;
    }
    match flags.meant(name).as_slice() {
        [(flag, false)] => Some(format!("--{}{value}", flag.name).into()),
        // With a value, it is no flag.
        [(flag, true)] if value.is_empty() => Some(format!("--{}=false", flag.name).into()),
        _ => None,
    }
}

/// Takes the options among words, which are `taken`, for options.
///
/// # Errors
/// [`BadFlag::AlsoOption`], where an argument may be meant.
pub(crate) fn as_options(flags: &ToolFlags, taken: &[String], words: &[OsString]) -> Result<(), BadFlag> {
    let ours = words.iter().take_while(|word| *word != "--").filter_map(|word| word.to_str()?.strip_prefix("--"));
    let mut options = ours.map(|word| word.split_once('=').map_or(word, |(name, _)| name));
    options.try_for_each(|name| if taken.iter().any(|it| it == name) { flags.as_option(name) } else { Ok(()) })
}

/// What was typed of them.
///
/// # Errors
/// [`BadFlag`], of lists alone: single words were checked by then.
pub(crate) fn typed(flags: &ToolFlags, matches: &ArgMatches) -> Result<Vec<TypedFlag>, BadFlag> {
    let of = |(at, flag): (usize, &Flag)| {
        let words: Vec<String> = matches.get_many::<String>(&id(at))?.cloned().collect();
        Some(flag.typed(&words))
    };
    flags.flags.iter().enumerate().filter_map(of).collect()
}

/// Where a flag's matches are; its own name could be that of an option.
fn id(at: usize) -> String {
    format!("argument {at}")
}

/// The few words that a flag takes, in whatever form it takes them.
#[derive(Clone)]
struct Choices(Flag);

impl TypedValueParser for Choices {
    type Value = String;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, typed: &OsStr) -> Result<String, clap::Error> {
        let word = typed.to_str().map(str::to_owned);
        match word.filter(|word| self.0.typed(std::slice::from_ref(word)).is_ok()) {
            Some(word) => Ok(word),
            None => PossibleValuesParser::new(self.0.choices()).parse_ref(command, arg, typed),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.choices().into_iter().map(PossibleValue::new)))
    }
}

fn arg(flag: &Flag, at: usize) -> Arg {
    let mut shown = flag.shown.clone();
    let mut add = |text: &str| shown.push_str(&format!("{}{text}", if shown.is_empty() { "" } else { " " }));
    if flag.is_required {
        add("[required]");
    }
    if flag.is_list {
        add("[may be repeated]");
    }
    let arg = Arg::new(id(at)).long(flag.name.clone()).help(shown).help_heading(HEADING);
    let arg = arg.value_name(flag.word.name());
    let arg = arg.action(if flag.is_list { ArgAction::Append } else { ArgAction::Set });
    match &flag.word {
        FlagValue::Boolean if flag.is_switch() => {
            let arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true");
            arg.value_parser(Choices(flag.clone()))
        }
        // Of more, as much is said as `tool-cli` says.
        FlagValue::OneOf(values) if !flag.is_list && values.len() <= MOST_LISTED => {
            arg.value_parser(Choices(flag.clone()))
        }
        word => {
            let (flag, is_number) = (flag.clone(), matches!(word, FlagValue::Integer | FlagValue::Number));
            let check = move |typed: &str| flag.typed(&[typed.to_owned()]).map(|_| typed.to_owned());
            arg.value_parser(check).allow_negative_numbers(is_number)
        }
    }
}

#[cfg(test)]
mod tests {
    use footbridge_cli::flags::ToolWord;
    use serde_json::{Map, Value, json};

    use super::*;

    const NAMES: [&str; 13] = [
        "x",
        "X",
        "no_x",
        "no-x",
        "x_y",
        "x-y",
        "no-x-y",
        "no_x-y",
        "a_b-c",
        "a-b_c",
        "no-a-b-c",
        "json-file",
        "json_file",
    ];

    fn taken() -> Vec<String> {
        ["json", "json-file", "no-x_y"].map(str::to_owned).into()
    }

    fn of(properties: &[(&str, &Value)]) -> ToolFlags {
        let properties: Map<String, Value> =
            properties.iter().map(|(name, schema)| ((*name).to_owned(), (*schema).clone())).collect();
        ToolFlags::of(&json!({ "properties": properties }), &["json", "json-file", "no-x_y"])
    }

    fn command(flags: &ToolFlags) -> Command {
        let options = taken().into_iter().map(|name| Arg::new(name.clone()).long(name).action(ArgAction::SetTrue));
        Command::new("t").no_binary_name(true).args(args(flags)).args(options)
    }

    /// What `mcp-tool` takes a flag for.
    fn as_matched(flags: &ToolFlags, word: &str) -> Option<Vec<TypedFlag>> {
        let words = named(flags, &taken(), &[word.into()]);
        typed(flags, &command(flags).try_get_matches_from(words).ok()?).ok()
    }

    /// What `tool-cli` does.
    fn as_read(flags: &ToolFlags, word: &str) -> Option<Vec<TypedFlag>> {
        let word = word.strip_prefix("--")?;
        let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value.to_owned())));
        Some(flags.read(vec![ToolWord::Flag(name.to_owned(), value)]).ok()?.0)
    }

    #[test]
    fn whatever_two_arguments_are_called_both_programs_take_each_name_for_the_same() {
        let kinds = [json!({"type": "boolean"}), json!({"type": "string"})];
        let both = kinds.iter().flat_map(|one| kinds.iter().map(move |other| (one, other)));
        for (one, other) in both {
            for (a, b) in NAMES.iter().flat_map(|a| NAMES.iter().map(move |b| (*a, *b))) {
                let flags = of(&[(a, one), (b, other)]);
                command(&flags).debug_assert();
                for name in NAMES.iter().chain(&["no-x_y", "no-no-x", "a-b-c", "no-a_b-c", "X-Y"]) {
                    for typed in [format!("--{name}"), format!("--{name}=true")] {
                        if taken().iter().any(|option| option == name) {
                            continue;
                        }
                        let (matched, read) = (as_matched(&flags, &typed), as_read(&flags, &typed));
                        assert_eq!(matched, read, "{typed} of {a} and {b}");
                    }
                }
            }
        }
    }

    #[test]
    fn of_very_many_values_few_are_named_where_one_is_wrong() {
        let values: Vec<Value> = (0..8_000).map(|n| json!(format!("value-{n}"))).collect();
        let flags = of(&[("e", &json!({ "enum": values }))]);
        let matches = |value: &str| command(&flags).try_get_matches_from(["--e", value]);
        assert_eq!(typed(&flags, &matches("value-7999").unwrap()).unwrap()[0].json, "\"value-7999\"");
        let said = matches("else").unwrap_err().render().to_string();
        assert!(said.contains("is none of its values") && said.len() < 1_000, "{said}");
    }

    #[test]
    fn a_number_among_a_few_is_taken_in_another_form() {
        let flags = of(&[("e", &json!({"enum": [1.0, 2, "x"]})), ("b", &json!({"type": ["boolean", "null"]}))]);
        let matches = |words: &[&str]| command(&flags).try_get_matches_from(words);
        let json = |words: &[&str]| typed(&flags, &matches(words).unwrap()).unwrap().remove(0).json;
        assert_eq!(
            (json(&["--e", "1"]), json(&["--e=2.0"]), json(&["--b=null"])),
            ("1.0".into(), "2".into(), "null".into())
        );
        let said = matches(&["--e", "3"]).unwrap_err().render().to_string();
        assert!(said.contains("[possible values: 1.0, 2, x]"), "{said}");
    }

    #[test]
    fn names_stay_behind_two_dashes_alone_and_where_they_are_an_option() {
        let flags = of(&[("json_file", &json!({"type": "string"})), ("dry_run", &json!({"type": "boolean"}))]);
        let words = ["--json-file", "--json_file", "--Dry-Run=false", "--no-dry-run", "--what", "x", "--", "--dry-run"];
        let expected =
            ["--json-file", "--arg.json_file", "--dry_run=false", "--dry_run=false", "--what", "x", "--", "--dry-run"];
        assert_eq!(named(&flags, &taken(), &words.map(OsString::from)), expected.map(OsString::from));
        let options =
            |words: &[&str]| as_options(&flags, &taken(), &words.iter().map(OsString::from).collect::<Vec<_>>());
        let said = options(&["--dry-run", "--json-file=x"]).unwrap_err().to_string();
        assert!(said.starts_with("--json-file could be an option") && said.contains("--arg.json_file"), "{said}");
        assert!(options(&["--json", "--json_file", "x", "--", "--json-file"]).is_ok());
    }
}
