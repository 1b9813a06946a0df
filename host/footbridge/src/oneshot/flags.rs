//! A tool's flags for clap, which reads the command line of `mcp-tool`.

use clap::{Arg, ArgAction, ArgMatches, builder::PossibleValuesParser};
use footbridge_cli::flags::{BadFlag, Flag, FlagValue, MOST_LISTED, ToolFlags, TypedFlag};

/// Under which heading they stand.
const HEADING: &str = "Arguments of the tool";

/// The flags, for a command line that has options of these names itself.
pub(crate) fn args(flags: &ToolFlags, taken: &[String]) -> Vec<Arg> {
    let names = flags.flags.iter().map(|flag| flag.name.as_str()).chain(taken.iter().map(String::as_str));
    let names: Vec<&str> = names.collect();
    let each = flags.flags.iter().enumerate();
    each.flat_map(|(at, flag)| std::iter::once(arg(flag, at, &names)).chain(no(flag, at, &names))).collect()
}

/// What was typed of them.
///
/// # Errors
/// [`BadFlag`], of lists alone: single words were checked by then.
pub(crate) fn typed(flags: &ToolFlags, matches: &ArgMatches) -> Result<Vec<TypedFlag>, BadFlag> {
    let of = |(at, flag): (usize, &Flag)| {
        let is_no = is_switch(flag) && matches.try_get_one::<bool>(&no_id(at)).is_ok_and(|no| no == Some(&true));
        if is_no {
            return Some(flag.typed(&["false".to_owned()]));
        }
        let words: Vec<String> = matches.get_many::<String>(&id(at))?.cloned().collect();
        Some(flag.typed(&words))
    };
    flags.flags.iter().enumerate().filter_map(of).collect()
}

/// Where a flag's matches are; its own name could be that of an option.
fn id(at: usize) -> String {
    format!("argument {at}")
}

/// The same of the flag that says no to it.
fn no_id(at: usize) -> String {
    format!("no argument {at}")
}

fn is_switch(flag: &Flag) -> bool {
    flag.word == FlagValue::Boolean && !flag.is_list
}

/// `--no-NAME` for what is yes or no, where nothing else is called so.
fn no(flag: &Flag, at: usize, names: &[&str]) -> Option<Arg> {
    let name = format!("no-{}", flag.name);
    let is_free = |name: &str| !names.contains(&name);
    let arg = Arg::new(no_id(at)).long(name.clone()).action(ArgAction::SetTrue).hide(true).conflicts_with(id(at));
    let dashed = name.replace('_', "-");
    let arg = if dashed != name && is_free(&dashed) { arg.alias(dashed) } else { arg };
    (is_switch(flag) && is_free(&name)).then_some(arg)
}

fn arg(flag: &Flag, at: usize, names: &[&str]) -> Arg {
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
    let dashed = flag.name.replace('_', "-");
    let arg = if dashed != flag.name && !names.contains(&dashed.as_str()) { arg.alias(dashed) } else { arg };
    match &flag.word {
        FlagValue::Boolean if is_switch(flag) => {
            let arg = arg.num_args(0..=1).require_equals(true).default_missing_value("true");
            arg.value_parser(PossibleValuesParser::new(flag.choices()))
        }
        FlagValue::OneOf(values) if !flag.is_list => {
            arg.value_parser(PossibleValuesParser::new(flag.choices())).hide_possible_values(values.len() > MOST_LISTED)
        }
        word => {
            let (flag, is_number) = (flag.clone(), matches!(word, FlagValue::Integer | FlagValue::Number));
            let check = move |typed: &str| flag.typed(&[typed.to_owned()]).map(|_| typed.to_owned());
            arg.value_parser(check).allow_negative_numbers(is_number)
        }
    }
}
