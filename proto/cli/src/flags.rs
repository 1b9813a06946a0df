//! A tool's input schema as flags, and what was typed of them as JSON.
//!
//! Every argument is a flag. Texts, numbers, yes or no and one of a few values are words; lists are these by repetition,
//! or one JSON list; objects are JSON, and their members flags behind a dot. `--no-NAME` says no. What has the name of
//! an option of the command, or is told from it by `-`, `_` and capitals alone, is `--arg.NAME`. The schema is the server's own text: names that no flag can have are left to
//! JSON, and everything shown is escaped. It checks only what makes a word into JSON; whether the arguments fit is the
//! bridge's to say.

mod flag;
mod value;

use std::collections::HashSet;

use footbridge_proto::text::{Escaped, SafeJson};
use serde_json::{Map, Value};

use self::flag::{FlagPlace, flag};
pub use self::{
    flag::{Flag, TypedFlag},
    value::FlagValue,
};
use crate::{
    gathered::gathered,
    schema::{kind, meant, properties, required, sample},
    shell_word::quoted,
    suggest::{closest, instead},
};

/// Most properties that become flags.
const MOST_FLAGS: usize = 200;
/// How deep members of objects are flags, and how many of all objects are looked at: objects may be made of themselves.
const MOST_DEPTH: usize = 4;
const MOST_MEMBERS: usize = 2_000;
/// Longest name of a flag.
const MOST_NAME: usize = 64;
/// More values than this are not listed.
pub const MOST_LISTED: usize = 20;
/// What is before the name of an argument that an option has.
const PREFIX: &str = "arg.";

/// What of a tool's arguments can be typed as flags.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolFlags {
    /// Those that can.
    pub flags: Vec<Flag>,
    /// Arguments that are said in JSON alone, since no flag can have their names.
    pub in_json: Vec<String>,
    required: Vec<String>,
    /// Those that a call needs and no flag can say, with a value for an example.
    needed_json: Map<String, Value>,
    /// Options of the command, which may be meant by a name that is no flag's.
    options: Vec<String>,
    /// The same as [`folded`] has them.
    folded_options: Vec<String>,
    /// Values that were read for words.
    values: usize,
}

/// One word behind the name of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolWord {
    /// A flag, with what is behind its `=`.
    Flag(String, Option<String>),
    /// Anything else.
    Plain(String),
}

/// Why typed flags are none of a tool's.
#[derive(Debug, thiserror::Error)]
pub enum BadFlag {
    /// There is no such flag.
    #[error("unknown flag --{}{}", Escaped(.0), .1)]
    Unknown(String, String),
    /// It has no value.
    #[error("--{0} needs a value behind it: {1}")]
    NoValue(String, String),
    /// Its value is none.
    #[error("--{0}: {1}")]
    Value(String, String),
    /// It is an option's name, and an argument may be meant.
    #[error(
        "--{0} could be an option or an argument of the tool: write {1} for the argument, and the option in front of all names"
    )]
    AlsoOption(String, String),
}

impl ToolFlags {
    /// Of a schema; `taken` are names of options that are not the tool's.
    #[must_use]
    pub fn of(schema: &Value, taken: &[&str]) -> Self {
        let schema = &*gathered(schema);
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let needed = required(schema).map(str::to_owned).collect();
        let folded_options = taken.iter().map(|option| folded(option)).collect();
        let mut found = Self { required: needed, options: owned(taken), folded_options, ..Self::default() };
        // Members of objects come after all arguments, so that none is left out for them.
        let mut level: Vec<(FlagPlace, &Value)> = vec![(FlagPlace::default(), schema)];
        let (needed, mut left) = (required(schema).collect::<HashSet<_>>(), MOST_MEMBERS);
        for depth in 0..MOST_DEPTH {
            let mut below = Vec::new();
            for (place, object) in level {
                let is_needed = |name: &str| match depth {
                    0 => needed.contains(name),
                    _ => required(object).any(|needed| needed == name),
                };
                let most = if depth == 0 { usize::MAX } else { left };
                for (at, (name, property)) in properties(object).enumerate().take(most) {
                    left = left.saturating_sub(usize::from(depth > 0));
                    let place = place.member(name, at, is_needed(name));
                    found.add(&place, property, schema);
                    if depth + 1 < MOST_DEPTH && kind(meant(property, schema)) == Some("object") {
                        below.push((place, meant(property, schema)));
                    }
                }
            }
            level = below;
        }
        let is_described = |name: &str| properties(schema).any(|(known, _)| known == name);
        for name in required(schema).take(MOST_FLAGS).filter(|name| !is_described(name)) {
            found.needed_json.insert(name.to_owned(), sample(&Value::Bool(true), schema));
            found.in_json.push(name.to_owned());
        }
        found.flags.sort_by(|one, other| one.order.cmp(&other.order));
        found
    }

    fn add(&mut self, place: &FlagPlace, property: &Value, schema: &Value) {
        let path = place.path.as_slice();
        let joined = path.join(".");
        let is_option = self.folded_options.contains(&folded(&joined));
        let name = if is_option { format!("{PREFIX}{joined}") } else { joined };
        let is_new = !self.flags.iter().any(|flag| flag.name == name);
        if is_name(&name) && is_new && self.flags.len() < MOST_FLAGS {
            self.flags.push(flag(name, place, property, schema, &mut self.values));
        } else if let [own] = path {
            if place.is_needed && self.needed_json.len() < MOST_FLAGS {
                self.needed_json.insert(own.clone(), sample(property, schema));
            }
            self.in_json.push(own.clone());
        } else if let (false, [object @ .., _]) = (is_new, path) {
            let object = object.join(".");
            let other = self.flags.iter_mut().find(|flag| flag.name == name);
            let note = format!("[not the member of --{object}, which is given in its JSON]");
            other.into_iter().for_each(|flag| flag.note(&note));
        }
    }

    /// Each flag that may be meant by a name, and whether that says no to it. All programs that have flags of a tool go by
    /// this alone: its own name, or that behind `arg.`, is one flag's. Any other is that of a flag by `-` for `_` and in other
    /// capitals, and behind `no-` that of a switch; one that more than one flag claims, or an option too, is none's.
    #[must_use]
    pub fn meant(&self, name: &str) -> Vec<(&Flag, bool)> {
        if let Some(own) = self.own(name) {
            return vec![(own, false)];
        }
        let no = name.strip_prefix("no-").map_or(Vec::new(), |name| match self.own(name) {
            Some(own) => vec![own],
            None => self.alike(name),
        });
        let no = no.into_iter().filter(|flag| flag.is_switch());
        self.alike(name).into_iter().map(|flag| (flag, false)).chain(no.map(|flag| (flag, true))).collect()
    }

    /// The flag that is meant by a name, where it is one and is not said no to.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Flag> {
        match self.meant(name).as_slice() {
            [(flag, false)] => Some(flag),
            _ => None,
        }
    }

    /// The name of the flag of a path.
    pub(crate) fn name_of(&self, path: &[String]) -> String {
        self.flags.iter().find(|flag| flag.path == path).map_or_else(|| path.join("."), |flag| flag.name.clone())
    }

    /// That of exactly this name, or of this path, where that is no option's name.
    fn own(&self, name: &str) -> Option<&Flag> {
        let own = self.flags.iter().find(|flag| flag.name == name);
        own.or_else(|| {
            let path = name.strip_prefix(PREFIX).or_else(|| Some(name).filter(|_| !self.is_option(name)))?;
            let mut all = self.flags.iter().filter(|flag| flag.path.join(".") == path);
            all.next().filter(|_| all.next().is_none())
        })
    }

    /// Those that may be typed so.
    fn alike(&self, name: &str) -> Vec<&Flag> {
        let (typed, behind) = (folded(name), name.strip_prefix(PREFIX).map(folded));
        let is_meant = |flag: &&Flag| {
            folded(&flag.name) == typed || behind.as_ref().is_some_and(|path| folded(&flag.path.join(".")) == *path)
        };
        self.flags.iter().filter(is_meant).collect()
    }

    fn is_option(&self, name: &str) -> bool {
        self.options.iter().any(|option| option == name)
    }

    /// Takes the name of an option for that option, unless an argument may be meant: one that `-`, `_` and capitals alone tell
    /// from it, or a switch that is said no to so. An argument of exactly its name is not: that one is behind `arg.` alone.
    ///
    /// # Errors
    /// [`BadFlag::AlsoOption`].
    pub fn as_option(&self, name: &str) -> Result<(), BadFlag> {
        let of = |name: &str| {
            let typed = folded(name);
            self.flags.iter().filter(move |flag| folded(&flag.path.join(".")) == typed)
        };
        let like = of(name).filter(|flag| flag.path.join(".") != name).map(|flag| format!("--{}", flag.name));
        let no = name.strip_prefix("no-").into_iter().flat_map(of).filter(|flag| flag.is_switch());
        let ways: Vec<String> = like.chain(no.map(|flag| format!("--{}=false", flag.name))).collect();
        if ways.is_empty() { Ok(()) } else { Err(BadFlag::AlsoOption(name.to_owned(), ways.join(" or "))) }
    }

    /// Reads what was typed behind a tool's name: its flags, and the words that belong to none.
    ///
    /// # Errors
    /// [`BadFlag`].
    pub fn read(&self, words: Vec<ToolWord>) -> Result<(Vec<TypedFlag>, Vec<String>), BadFlag> {
        let (mut given, mut plain): (Vec<(&Flag, Vec<String>)>, Vec<String>) = (Vec::new(), Vec::new());
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            let (name, value) = match word {
                ToolWord::Plain(word) => {
                    plain.push(word);
                    continue;
                }
                ToolWord::Flag(name, value) => (name, value),
            };
            let (flag, is_no) = self.typed(&name)?;
            let value = match (value, flag.is_switch()) {
                (Some(value), _) if !is_no => value,
                (None, true) => (!is_no).to_string(),
                (None, false) if matches!(words.peek(), Some(ToolWord::Plain(_))) => match words.next() {
                    Some(ToolWord::Plain(value)) => value,
                    _ => String::new(),
                },
                (Some(_), _) => return Err(BadFlag::Value(name, "it takes no value".to_owned())),
                (None, false) => return Err(BadFlag::NoValue(flag.name.clone(), flag.kind.clone())),
            };
            match given.iter_mut().find(|(known, _)| known.name == flag.name) {
                Some((_, values)) => values.push(value),
                None => given.push((flag, vec![value])),
            }
        }
        let typed = given.into_iter().map(|(flag, values)| flag.typed(&values));
        Ok((typed.collect::<Result<_, _>>()?, plain))
    }

    /// The flag of this name, and whether it is said not to be.
    fn typed(&self, name: &str) -> Result<(&Flag, bool), BadFlag> {
        if let [meant] = self.meant(name).as_slice() {
            return Ok(*meant);
        }
        if let Some(claims) = self.claims(name) {
            return Err(BadFlag::Unknown(name.to_owned(), format!("; {claims}")));
        }
        let known: Vec<&str> = self.flags.iter().map(|flag| flag.name.as_str()).collect();
        let all = known.iter().copied().chain(self.options.iter().map(String::as_str));
        let all: Vec<&str> = all.filter(|known| *known != name).collect();
        let named = closest(name, &all).map_or(known, |meant| vec![meant]);
        Err(BadFlag::Unknown(name.to_owned(), instead(name, &named, "there are no arguments")))
    }

    /// What a name could be that more than one flag claims, or one and an option.
    #[must_use]
    pub fn claims(&self, name: &str) -> Option<String> {
        let claims = self.meant(name);
        let typed = |(flag, is_no): &(&Flag, bool)| format!("--{}{}", flag.name, if *is_no { "=false" } else { "" });
        let mut typed: Vec<String> = claims.iter().map(typed).collect();
        if typed.is_empty() {
            let as_typed = folded(name);
            let arguments = self.alike(&format!("{PREFIX}{name}")).into_iter();
            typed.extend(arguments.map(|flag| format!("--{}", flag.name)));
            typed
                .extend(self.options.iter().filter(|it| folded(it) == as_typed).map(|it| format!("the option --{it}")));
        }
        (typed.len() > 1).then(|| format!("it could be {}", typed.join(" or ")))
    }

    /// What is required and not among these, each as it can be given.
    pub fn missing(&self, given: impl Fn(&str) -> bool) -> Vec<String> {
        let missing = self.required.iter().filter(|name| !given(name));
        let as_given = |name: &String| match self.flags.iter().find(|flag| flag.path == [name.as_str()]) {
            Some(flag) => format!("--{}", flag.name),
            None => format!("{} (in JSON)", Escaped(name)),
        };
        missing.map(as_given).collect()
    }

    /// Members that are missing from the objects that need them, each as its flag. `lacks` says whether an object is
    /// there, by the names that lead to it, and has no member of the last one.
    pub(crate) fn missing_members(&self, lacks: impl Fn(&[String]) -> bool) -> Vec<String> {
        let needed = self.flags.iter().filter(|flag| flag.needed_with.is_some() && lacks(&flag.path));
        needed.map(|flag| format!("--{}", flag.name)).collect()
    }

    /// The words of an example, without the tool's name: all that a call needs. `before_json` is what is typed before the
    /// JSON of what no flag can say.
    #[must_use]
    pub fn example(&self, before_json: &[&str]) -> String {
        let needed: Vec<&Flag> = self.flags.iter().filter(|flag| flag.is_required).collect();
        let is_none = needed.is_empty() && self.needed_json.is_empty();
        let shown = if is_none { self.flags.iter().take(1).collect() } else { needed };
        let mut words: Vec<String> = shown.iter().map(|flag| flag.example()).collect();
        if !self.needed_json.is_empty() {
            let json = Value::Object(self.needed_json.clone()).to_string();
            words.extend(before_json.iter().map(|word| (*word).to_owned()));
            words.push(quoted(&SafeJson(&json).to_string()));
        }
        words.join(" ")
    }

    /// What a flag takes, where that is one of a few words.
    #[must_use]
    pub fn choices(&self, name: &str) -> Vec<String> {
        self.find(name).map(Flag::choices).unwrap_or_default()
    }
}

/// A name without what may be typed in another way.
fn folded(name: &str) -> String {
    name.replace(['-', '_'], "").to_lowercase()
}

fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$' | '@' | '/' | ':');
    (1..=MOST_NAME).contains(&name.len()) && name.chars().all(is_plain) && !name.starts_with('-')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "$defs": {"Unit": {"type": "string", "enum": ["metric", "imperial"]}},
            "properties": {
                "city": {"type": "string", "description": "Which \u{1b}[2J", "examples": ["Bern"]},
                "days": {"type": "integer", "default": 3},
                "share": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                "dry_run": {"type": ["boolean", "null"]},
                "unit": {"$ref": "#/$defs/Unit"},
                "level": {"enum": [1, 2, "max"]},
                "mode": {"enum": [null, "fast", 1]},
                "word": {"enum": ["null", null]},
                "tags": {"type": "array", "items": {"type": "string"}},
                "units": {"type": "array", "items": {"allOf": [{"$ref": "#/$defs/Unit"}]}},
                "filter": {"type": "object", "required": ["owner"], "properties":
                    {"owner": {"type": "object", "properties": {"name": {"type": "string"}}}, "n": {"type": "integer"}}},
                "rows": {"type": "array", "items": {"type": "object"}},
                "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
                "json": {"type": "string"},
                "maxCount": {"type": "integer"},
                "a b": {"type": "string"},
                "-x": {"type": "string"},
            },
            "required": ["city", "filter"],
        })
    }

    fn words(words: &[&str]) -> Vec<ToolWord> {
        let read = |word: &&str| match word.strip_prefix("--") {
            Some(flag) => match flag.split_once('=') {
                Some((name, value)) => ToolWord::Flag(name.to_owned(), Some(value.to_owned())),
                None => ToolWord::Flag(flag.to_owned(), None),
            },
            None => ToolWord::Plain((*word).to_owned()),
        };
        words.iter().map(read).collect()
    }

    fn typed(typed: &[&str]) -> Result<String, String> {
        let flags = ToolFlags::of(&schema(), &["json"]);
        let (read, plain) = flags.read(words(typed)).map_err(|error| error.to_string())?;
        let read: Vec<String> = read.into_iter().map(|one| format!("{}={}", one.path.join("/"), one.json)).collect();
        Ok([read.join(" "), plain.join(" ")].join(if plain.is_empty() { "" } else { " | " }))
    }

    #[test]
    fn a_schema_that_is_made_of_itself_or_says_much_again_costs_little() {
        let own = |count: usize, needed: bool| {
            let members: Map<String, Value> = (0..count).map(|n| (format!("p{n}"), json!({"$ref": "#"}))).collect();
            let needed: Vec<&String> = members.keys().filter(|_| needed).collect();
            json!({"type": "object", "required": needed, "properties": members})
        };
        let values: Vec<String> = (0..20_000).map(|n| format!("v{n}")).collect();
        let again: Map<String, Value> = (0..150).map(|n| (format!("p{n}"), json!({"$ref": "#/$defs/e"}))).collect();
        let names: Vec<String> = (0..14_000).map(|n| format!("{n:x}")).collect();
        let many: Map<String, Value> = names.iter().map(|name| (name.clone(), json!({}))).collect();
        let parts: Vec<Value> = (0..180)
            .map(|part| json!({"required": (0..190).map(|n| format!("{:x}", part * 190 + n)).collect::<Vec<_>>()}))
            .collect();
        for (what, schema) in [
            ("objects of itself", own(100, false)),
            ("what it needs is itself", own(12, true)),
            ("all have the same values", json!({"$defs": {"e": {"enum": values}}, "properties": again})),
            ("all of many are needed", json!({"properties": many, "required": names})),
            ("parts need many", json!({"allOf": parts})),
        ] {
            let flags = ToolFlags::of(&schema, &[]);
            let tool = serde_json::from_value(json!({"name": "t", "inputSchema": schema, "outputSchema": schema}));
            let help = crate::help::explained(&tool.unwrap(), &flags, "tool-cli s t");
            assert!(flags.flags.len() <= MOST_FLAGS && help.len() < 16 << 20, "{what}: {}", help.len());
        }
    }

    #[test]
    fn null_is_no_value_where_it_could_be_nothing_else() {
        let object = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let schema = json!({"$defs": {"N": {"type": ["number", "null"]}}, "properties": {
            "n": {"type": ["integer", "null"]}, "r": {"$ref": "#/$defs/N"}, "b": {"type": ["boolean", "null"]},
            "o": {"anyOf": [object, {"type": "null"}]}, "e": {"anyOf": [{"enum": ["x"]}, {"type": "null"}]},
            "text": {"type": ["string", "null"]}, "plain": {"type": "integer"}}});
        let flags = ToolFlags::of(&schema, &[]);
        for name in ["n", "r", "b", "o", "e"] {
            let json = flags.find(name).unwrap().typed(&["null".to_owned()]).map(|typed| typed.json);
            assert_eq!(json.unwrap(), "null", "{name}");
        }
        assert_eq!(flags.find("text").unwrap().typed(&["null".to_owned()]).unwrap().json, "\"null\"");
        assert!(flags.find("plain").unwrap().typed(&["null".to_owned()]).is_err());
        assert_eq!(flags.choices("b"), ["true", "false", "null"]);
    }

    #[test]
    fn null_alone_is_no_list_where_there_may_be_none() {
        let list = |items: Value| json!({"type": ["array", "null"], "items": items});
        let schema = json!({"properties": {"s": list(json!({"type": "string"})), "n": list(json!({"type": "integer"})),
            "e": list(json!({"enum": ["null", "x"]})), "plain": {"type": "array", "items": {"type": "string"}}}});
        let flags = ToolFlags::of(&schema, &[]);
        let json = |name: &str, words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            flags.find(name).unwrap().typed(&words).map(|typed| typed.json).ok()
        };
        for (name, words, becomes) in [
            ("s", ["null"].as_slice(), Some("null")),
            ("n", &["null"], Some("null")),
            ("s", &[r#"["null"]"#], Some(r#"["null"]"#)),
            ("s", &["null", "x"], Some(r#"["null","x"]"#)),
            ("n", &["null", "1"], None),
            ("e", &["null"], Some(r#"["null"]"#)),
            ("plain", &["null"], Some(r#"["null"]"#)),
        ] {
            assert_eq!(json(name, words).as_deref(), becomes, "{name} {words:?}");
        }
    }

    #[test]
    fn a_member_whose_flag_is_an_argument_s_is_said_to_be_given_in_json() {
        let text = json!({"type": "string"});
        let object = json!({"type": "object", "properties": {"b": text, "c": text}});
        let flags = ToolFlags::of(&json!({"properties": {"a.b": text, "a": object}}), &[]);
        assert_eq!(flags.find("a.b").unwrap().shown, "[not the member of --a, which is given in its JSON]");
        assert_eq!(flags.find("a.b").unwrap().path, ["a.b"]);
        assert_eq!(flags.find("a.c").unwrap().path, ["a", "c"]);
    }

    #[test]
    fn values_of_several_types_and_a_single_one_are_words_to_choose_from() {
        let schema = json!({"properties": {"e": {"enum": ["a", 1, true, null, "1", "true"]}, "c": {"const": "k"}}});
        let flags = ToolFlags::of(&schema, &[]);
        assert_eq!(flags.choices("e"), ["a", "1", "true", "\"1\"", "\"true\"", "null"]);
        let json = |word: &str| flags.find("e").unwrap().typed(&[word.to_owned()]).map(|typed| typed.json).ok();
        let typed = ["a", "1", "\"1\"", "null", "b"].map(json);
        assert_eq!(
            typed,
            [Some("\"a\""), Some("1"), Some("\"1\""), Some("null"), None].map(|it| it.map(str::to_owned))
        );
        assert_eq!(flags.choices("c"), ["k"]);
    }

    #[test]
    fn words_become_json_of_the_kind_that_the_schema_asks_for() {
        for (given, becomes) in [
            (["--city", "Bern", "--days", "-3"].as_slice(), r#"city="Bern" days=-3"#),
            (&["--days", "12345678901234567890123", "--share=2.50"], "days=12345678901234567890123 share=2.50"),
            (&["--dry-run", "{}"], "dry_run=true | {}"),
            (&["--no-dry-run"], "dry_run=false"),
            (&["--unit", "metric", "--level=max"], r#"unit="metric" level="max""#),
            (&["--mode", "null", "--word", "null"], r#"mode=null word="null""#),
            (&["--tags", "a", "--tags", "1", "--tags", r#"["x","y"]"#], r#"tags=["a","1","x","y"]"#),
            (&["--filter", r#"{"n": 1e400}"#], r#"filter={"n": 1e400}"#),
            (&["--filter.owner.name", "x", "--filter.n=2"], r#"filter/owner/name="x" filter/n=2"#),
            (&["--rows", r#"{"a":1}"#, "--rows", "[{}]"], r#"rows=[{"a":1},{}]"#),
            (&["--either", "5", "--arg.json", "x"], r#"either=5 json="x""#),
            (&["--either", "five"], r#"either="five""#),
            (&["--max-count", "1"], "maxCount=1"),
            (&["--arg.city=--out"], r#"city="--out""#),
            (&["--days", "7.0", "--level", "2.0"], "days=7 level=2"),
            (&["--days=-1e2", "--level=1e0"], "days=-100 level=1"),
        ] {
            assert_eq!(typed(given).as_deref(), Ok(becomes), "{given:?}");
        }
    }

    #[test]
    fn very_many_values_are_words_to_choose_from_as_quickly() {
        let values: Vec<Value> = (0..100_000).map(|n| json!(format!("value {n}"))).collect();
        let flags = ToolFlags::of(&json!({"properties": {"e": {"enum": values}}}), &[]);
        assert!(matches!(&flags.flags[0].word, FlagValue::OneOf(all) if all.len() == 100_000));
        let said = flags.flags[0].typed(&["else".to_owned()]).unwrap_err().to_string();
        assert!(said.contains("is none of its values") && said.len() < 1_000, "{said}");
    }

    #[test]
    fn a_name_that_two_flags_claim_is_neither_of_them() {
        let boolean = json!({"type": "boolean"});
        let of = |names: &[&str]| {
            let properties: Map<String, Value> =
                names.iter().map(|name| ((*name).to_owned(), boolean.clone())).collect();
            ToolFlags::of(&json!({ "properties": properties }), &[])
        };
        let typed = |names: &[&str], typed: &str| {
            let flags = of(names);
            let read = flags.read(words(&[typed])).map_err(|error| error.to_string())?;
            Ok(read.0.into_iter().map(|one| format!("{}={}", one.path.join("/"), one.json)).collect::<String>())
        };
        for (names, word, becomes) in [
            (["cache", "no_cache"], "--no_cache", Ok("no_cache=true")),
            (
                ["cache", "no_cache"],
                "--no-cache",
                Err("unknown flag --no-cache; it could be --no_cache or --cache=false"),
            ),
            (["cache", "no-cache"], "--no-cache", Ok("no-cache=true")),
            (["x_y", "x-y"], "--x-y", Ok("x-y=true")),
            (["x_y", "x-y"], "--no-x_y", Ok("x_y=false")),
            (["x_y", "x-y"], "--X-y", Err("unknown flag --X-y; it could be --x_y or --x-y")),
            (["a_b-c", "a-b_c"], "--a-b-c", Err("unknown flag --a-b-c; it could be --a_b-c or --a-b_c")),
            (["a_b-c", "other"], "--A-b-C", Ok("a_b-c=true")),
        ] {
            let becomes = becomes.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(typed(&names, word), becomes, "{names:?} {word}");
        }
    }

    #[test]
    fn an_argument_that_is_told_from_an_option_by_dashes_alone_is_behind_arg_or_has_its_exact_name() {
        let (text, boolean) = (json!({"type": "string"}), json!({"type": "boolean"}));
        let properties = json!({"max_bytes": text, "outDir": text, "out": text, "wait": boolean, "max_count": text});
        let flags = ToolFlags::of(&json!({ "properties": properties }), &["max-bytes", "out-dir", "out", "no-wait"]);
        let mut named: Vec<&str> = flags.flags.iter().map(|flag| flag.name.as_str()).collect();
        named.sort_unstable();
        assert_eq!(named, ["arg.max_bytes", "arg.out", "arg.outDir", "max_count", "wait"]);
        let read = |word: &str| {
            let read = flags.read(words(&[&format!("{word}=1")])).map_err(|error| error.to_string())?;
            Ok::<_, String>(read.0[0].path.join("/"))
        };
        for (word, argument) in [
            ("--max_bytes", "max_bytes"),
            ("--arg.max_bytes", "max_bytes"),
            ("--arg.max-bytes", "max_bytes"),
            ("--outDir", "outDir"),
            ("--arg.out-dir", "outDir"),
            ("--arg.out", "out"),
            ("--arg.max-count", "max_count"),
        ] {
            assert_eq!(read(word).as_deref(), Ok(argument), "{word}");
        }
        let said = read("--maxBytes").unwrap_err();
        assert_eq!(said, "unknown flag --maxBytes; it could be --arg.max_bytes or the option --max-bytes");
        let said = |option: &str| flags.as_option(option).map_err(|bad| bad.to_string());
        assert!(
            said("max-bytes").unwrap_err().contains("write --arg.max_bytes for the argument, and the option in front")
        );
        assert!(said("out-dir").unwrap_err().contains("--arg.outDir"));
        assert!(said("no-wait").unwrap_err().contains("--wait=false"));
        assert_eq!(said("out"), Ok(()));
    }

    #[test]
    fn words_that_do_not_fit_are_named_with_what_does() {
        for (given, says) in [
            (["--unit", "metrik"].as_slice(), "is none of its values; did you mean \"metric\"?"),
            (&["--units", "x"], "is none of its values: there are metric, imperial"),
            (&["--mode", "slow"], "is none of its values: there are fast, 1, null"),
            (&["--days", "2.5"], "whole number"),
            (&["--days", "007"], "whole number"),
            (&["--share", "NaN"], "a number, such as"),
            (&["--dry_run=maybe"], "true or false"),
            (&["--no-dry_run=true"], "takes no value"),
            (&["--citty", "x"], "unknown flag --citty; did you mean \"city\"?"),
            (&["--jsno", "x"], "unknown flag --jsno; did you mean \"json\"?"),
            (&["--json", "x"], "unknown flag --json"),
            (&["--no-city"], "unknown flag --no-city"),
            (&["--filter", "x"], "a JSON object"),
            (&["--rows", "x"], "a JSON object"),
            (&["--city", "a", "--City=b"], "--city: it is given 2 times, and takes one value"),
            (&["--dry-run", "--no-dry-run", "--dry_run"], "--dry_run: it is given 3 times"),
            (&["--share", "null", "--share", "null"], "--share: it is given 2 times"),
            (&["--filter.n=1", "--filter.n=2"], "--filter.n: it is given 2 times"),
            (&["--city"], "--city needs a value behind it: str"),
            (&["--city", "--days", "1"], "--city needs a value"),
        ] {
            let error = typed(given).unwrap_err();
            assert!(error.contains(says), "{given:?}: {error}");
        }
    }

    #[test]
    fn what_no_flag_can_say_and_what_is_missing_is_named() {
        let flags = ToolFlags::of(&schema(), &["json"]);
        assert_eq!(flags.in_json, ["a b", "-x"]);
        assert_eq!(flags.missing(|_| false), ["--city", "--filter"]);
        assert_eq!(flags.missing(|name| name == "city"), ["--filter"]);
        assert_eq!(flags.example(&["--json"]), r#"--city Bern --filter '{"owner":{}}'"#);
        let odd = json!({"properties": {"weird name": {"type": "string"}, "n": {"type": "integer"}},
            "required": ["weird name"]});
        let odd = ToolFlags::of(&odd, &[]);
        assert_eq!(odd.example(&["--json"]), r#"--json '{"weird name":"text"}'"#);
        assert_eq!(odd.example(&[]), r#"'{"weird name":"text"}'"#);
        let dashed =
            json!({"properties": {"e": {"enum": ["-x", "--y"]}, "n": {"enum": [-1, -2]}}, "required": ["e", "n"]});
        assert_eq!(
            ToolFlags::of(&dashed, &[]).example(&[]),
            "--e=-x --n=-1",
            "what begins like a flag is one behind a blank"
        );
        let undescribed = ToolFlags::of(
            &json!({"properties": {"at": {"type": "array", "prefixItems":
            [{"type": "string"}, {"type": "integer"}]}}, "required": ["at", "what"]}),
            &[],
        );
        assert_eq!(undescribed.example(&["--json"]), r#"--at '["text",1]' --json '{"what":"text"}'"#);
    }

    #[test]
    fn nothing_of_a_schema_steers_a_terminal_and_odd_ones_do_no_harm() {
        let shown: String = ToolFlags::of(&schema(), &[]).flags.iter().map(|flag| flag.shown.clone()).collect();
        assert!(!shown.contains('\u{1b}') && shown.contains("\\u{1b}"), "{shown}");
        let many: serde_json::Map<String, Value> =
            (0..300).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
        assert_eq!(ToolFlags::of(&json!({"properties": many}), &[]).flags.len(), MOST_FLAGS);
        let own = ToolFlags::of(
            &json!({"properties": {"a": {"type": "object", "properties": {"b": {"$ref": "#/properties/a"}}}}}),
            &[],
        );
        assert_eq!(own.flags.len(), MOST_DEPTH, "a schema within itself ends");
        for odd in [
            json!(null),
            json!({"properties": 7}),
            json!({"properties": {"a": true, "b": null, "c": {"$ref": "#/properties/c"}}}),
            json!({"properties": {"a": {"type": "array"}, "b": {"enum": []}, "c": {"enum": [[1], {}]}}, "required": "a"}),
            json!({"properties": {"a": {"enum": ["1", "1"]}, "b": {"enum": ["\u{202e}"]}, "c": {"type": "new"}}}),
        ] {
            let flags = ToolFlags::of(&odd, &[]);
            let words: Vec<&FlagValue> = flags.flags.iter().map(|flag| &flag.word).collect();
            assert!(!words.iter().any(|word| matches!(word, FlagValue::OneOf(_))), "{odd}: {words:?}");
            let _ = (flags.example(&[]), flags.missing(|_| false));
        }
    }
}
