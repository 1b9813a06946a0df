//! One tool of an entry of type `cli`: as it is written, and as it is meant.

use std::{collections::BTreeSet, time::Duration};

use footbridge_core::{
    catalogue::{BadEntry, Offered},
    human::parse_duration,
    limits::ServerLimits,
    schema::{BadSchema, InputSchema},
    secret::Secret,
};
use footbridge_mcp::wrapped::{CliTool, Piece, Prints, Word};
use footbridge_processes::launch::ProgramSpec;
use serde_json::{Map, Value, json, value::RawValue};

use super::{
    super::{
        super::{
            fields::Fields,
            node::{Member, Node, NodeValue, WrittenAt},
        },
        Entry, Reader,
        program::keep_out_of_reach,
    },
    Around,
    code::{CallersCode, Template, of_callers},
    words::{self, BadWord},
};

/// What is wrong with one tool.
#[derive(Debug, thiserror::Error)]
enum BadTool {
    #[error("it has no \"name\"")]
    NoName,
    #[error("it names no program: write \"command\", one of \"allowedPrograms\"")]
    NoProgram,
    #[error("it runs {0:?}, which is none of \"allowedPrograms\" ({1}): add it there, or run one of them")]
    NotAllowed(String, String),
    #[error("\"{{{0}}}\" is in its words, and is no property of its \"inputSchema\" ({1})")]
    NoProperty(String, String),
    #[error("it allows options for {0:?}, which is no property of its \"inputSchema\" ({1})")]
    NoOption(String, String),
    #[error("\"{0}\" holds {1}, and {2} is expected")]
    Element(&'static str, &'static str, &'static str),
    #[error("\"exitCodes\" is empty, so that each call would fail: name statuses, or leave it out for [0]")]
    NoCode,
    #[error("its \"inputSchema\" is of no object, and arguments are one: write \"type\": \"object\"")]
    NoObject,
    #[error("its annotation {0:?} is {1}, and true or false is expected")]
    Hint(String, &'static str),
    #[error("{0:?} is no duration: write \"250ms\", \"10s\" or \"5m\"")]
    Time(String),
    #[error("output {0:?} is not known: \"text\", \"json\" and \"result\" are")]
    Output(String),
    #[error("key {0:?} is not known{1}")]
    Unknown(String, String),
    #[error("{0}")]
    Word(#[from] BadWord),
    #[error("{0}")]
    Code(#[from] CallersCode),
    #[error("it cannot be served: {0}")]
    Entry(#[from] BadEntry),
    #[error("its \"inputSchema\" cannot be used: {0}")]
    Schema(#[from] BadSchema),
    #[error("its \"outputSchema\" cannot be used: {0}")]
    OutputSchema(BadSchema),
    #[error("it has an \"outputSchema\", and prints text: write \"output\": \"json\" or \"result\"")]
    Unstructured,
}

impl<'n> Entry<'n, '_> {
    /// A tool over a program that the entry allows, with every mistake of it.
    pub(super) fn tool(&mut self, node: &'n Node, around: &Around<'n>) -> Option<CliTool> {
        let name = node.member("name").and_then(|name| name.node.text());
        let label = format!("server {:?}, tool {:?}", self.server.name, name.unwrap_or_default());
        let mut fields = match Fields::of(node, label) {
            Ok(fields) => fields,
            Err(mistake) => {
                self.fields.wrong_as(mistake);
                return None;
            }
        };
        let mut tool = Tool { at: &node.at, fields: &mut fields };
        let meant = tool.meant(self, around);
        tool.refuse_unknown();
        self.fields.also(fields);
        meant
    }
}

/// A tool that is being understood.
struct Tool<'n, 'f> {
    at: &'n WrittenAt,
    fields: &'f mut Fields<'n>,
}

impl<'n> Tool<'n, '_> {
    fn wrong<T>(&mut self, at: &WrittenAt, error: impl Into<BadTool>) -> Option<T> {
        match error.into() {
            BadTool::Word(BadWord::Secret(text, why)) if why.is_absent() => {
                self.fields.lacks(at, BadWord::Secret(text, why));
            }
            error => self.fields.wrong(at, error),
        }
        None
    }

    fn meant(&mut self, entry: &mut Entry<'n, '_>, around: &Around<'n>) -> Option<CliTool> {
        // Asked for before anything can be wrong, so that none of these counts as unknown.
        for key in ["title", "description", "inputSchema", "outputSchema", "annotations"] {
            let _known = self.fields.member(key);
        }
        let name = self.fields.text("name").map(|(name, _)| name.to_owned());
        let name = name.or_else(|| self.wrong(self.at, BadTool::NoName));
        let command = self.program(around);
        let (allowed, time) = (self.texts("allowOptions"), self.time());
        let args = self.args(entry.reader, &allowed);
        let input = self.fields.text("stdin").map(|(text, at)| (words::word(text, entry.reader), at));
        let input = match input {
            None => Some(None),
            Some((Ok(word), _)) => Some(Some(word)),
            Some((Err(bad), at)) => self.wrong(at, bad),
        };
        let (prints, ends_well) = (self.prints(), self.exit_codes());
        let own = self.fields.object("env");
        entry.note_places(own);
        let variables = entry.variables(own);
        let (args, input) = (args?, input?);
        let schema = self.fields.member("inputSchema").map(|member| member.node.to_json());
        let is_held = |name: &str| schema.as_ref().is_some_and(|schema| holds(&schema["properties"][name]));
        let path = around.path.as_deref();
        let template = |program| Template { program, args: &args, input: input.as_ref(), path };
        if let Some(code) = command.as_deref().and_then(|command| of_callers(&template(command), is_held)) {
            self.wrong::<()>(self.at, code);
        }
        let definition = self.definition(name.as_deref()?, &args, input.as_ref(), &allowed);
        let mut env = around.env.clone();
        env.extend(variables?.into_iter().filter(|(name, _)| own.iter().any(|member| member.name == *name)));
        let literals = args.iter().flatten().map(|word| Secret::new(words::literal_text(word))).collect();
        let (env, cwd) = (env.into_iter().collect(), around.cwd.clone());
        let mut program = ProgramSpec { command: command?, args: literals, env, cwd, confine: around.confine };
        if !around.trust_folder {
            // What all tools share is in reach of guests for each of them alike.
            if let Err(exposed) = keep_out_of_reach(&mut program, entry.reader) {
                entry.fields.wrong_once(self.at, exposed);
                return None;
            }
        }
        let program = ProgramSpec { args: Vec::new(), ..program };
        let (definition, prints) = (definition?, prints?);
        if prints == Prints::Text && definition.get("outputSchema").is_some() {
            return self.wrong(self.at, BadTool::Unstructured);
        }
        Some(CliTool { name: name?, definition, program, args, input, time, prints, ends_well })
    }

    fn program(&mut self, around: &Around<'n>) -> Option<String> {
        let own = self.fields.text("command");
        let only = || Some((around.programs.only()?, self.at));
        let Some((written, at)) = own.or(around.command).or_else(only) else {
            return self.wrong(self.at, BadTool::NoProgram);
        };
        match around.programs.place(written) {
            Some(place) => Some(place.clone()),
            None => self.wrong(at, BadTool::NotAllowed(written.to_owned(), around.programs.names())),
        }
    }

    /// Words, and lists of words that are there together or not at all.
    fn args(&mut self, reader: &mut Reader<'_>, allowed: &[String]) -> Option<Vec<Vec<Word>>> {
        let mut args = Vec::new();
        for node in self.fields.list("args") {
            let words = node.elements().unwrap_or(std::slice::from_ref(node));
            let words: Vec<_> = words.iter().map(|node| self.word(node, reader, allowed)).collect();
            args.push(words.into_iter().collect::<Option<Vec<_>>>());
        }
        args.into_iter().collect()
    }

    fn word(&mut self, node: &Node, reader: &mut Reader<'_>, allowed: &[String]) -> Option<Word> {
        let Some(text) = node.text() else {
            return self.wrong(&node.at, BadTool::Element("args", node.kind(), "a text or a list of texts"));
        };
        match words::word(text, reader) {
            Ok(word) => {
                let may_be_option = word.names().any(|name| allowed.iter().any(|allowed| allowed == name));
                Some(Word { may_be_option, ..word })
            }
            Err(bad) => self.wrong(&node.at, bad),
        }
    }

    fn texts(&mut self, key: &'static str) -> Vec<String> {
        let mut texts = Vec::new();
        for node in self.fields.list(key) {
            match node.text() {
                Some(text) => texts.push(text.to_owned()),
                None => self.fields.wrong(&node.at, BadTool::Element(key, node.kind(), "a text")),
            }
        }
        texts
    }

    fn time(&mut self) -> Option<Duration> {
        let (text, at) = self.fields.text("timeout")?;
        let found = parse_duration(text).filter(|time| !time.is_zero());
        found.or_else(|| self.wrong(at, BadTool::Time(text.to_owned())))
    }

    fn prints(&mut self) -> Option<Prints> {
        match self.fields.text("output") {
            None | Some(("text", _)) => Some(Prints::Text),
            Some(("json", _)) => Some(Prints::Json),
            Some(("result", _)) => Some(Prints::Result),
            Some((other, at)) => self.wrong(at, BadTool::Output(other.to_owned())),
        }
    }

    fn exit_codes(&mut self) -> Vec<i32> {
        let written = self.fields.list("exitCodes");
        let mut codes = Vec::new();
        for node in written {
            let number = if let NodeValue::Number(number) = &node.value { number.parse().ok() } else { None };
            match number.filter(|code| (0..=255).contains(code)) {
                Some(code) => codes.push(code),
                None => {
                    self.fields.wrong(&node.at, BadTool::Element("exitCodes", node.kind(), "a number from 0 to 255"))
                }
            }
        }
        match self.fields.member("exitCodes") {
            Some(member) if member.node.elements().is_some_and(<[_]>::is_empty) => {
                self.fields.wrong(&member.node.at, BadTool::NoCode);
                codes
            }
            Some(_) => codes,
            None => vec![0],
        }
    }

    fn refuse_unknown(&mut self) {
        for (member, meant) in self.fields.unknown(&[]) {
            let meant = meant.map(|meant| format!("; did you mean \"{meant}\"?")).unwrap_or_default();
            self.fields.wrong(&member.at, BadTool::Unknown(member.name.clone(), meant));
        }
    }

    /// What guests see of it, checked as a server's own definitions are.
    fn definition(
        &mut self,
        name: &str,
        args: &[Vec<Word>],
        input: Option<&Word>,
        allowed: &[String],
    ) -> Option<Value> {
        let names: BTreeSet<&str> = args.iter().flatten().chain(input).flat_map(Word::names).collect();
        let written = self.fields.member("inputSchema");
        let at = written.map_or(self.at, |member| &member.node.at);
        let mut words = args.iter().flatten().chain(input);
        let takes_all = words.any(|word| word.pieces.iter().any(|piece| matches!(piece, Piece::All)));
        let schema = written.map_or_else(|| schema_of(&names, takes_all), |member| member.node.to_json());
        let places = self.check_names(&names, allowed, &schema);
        let mut definition = Map::from_iter([("name".to_owned(), json!(name))]);
        for key in ["title", "description"] {
            definition.extend(self.fields.text(key).map(|(text, _)| (key.to_owned(), json!(text))));
        }
        definition.insert("inputSchema".to_owned(), schema);
        for key in ["outputSchema", "annotations"] {
            definition.extend(self.fields.member(key).map(|member| (key.to_owned(), member.node.to_json())));
        }
        let definition = Value::Object(definition);
        if let Some(member) = written
            && definition["inputSchema"]["type"].as_str().is_some_and(|kind| kind != "object")
        {
            return self.wrong(&member.node.at, BadTool::NoObject);
        }
        let hints = self.hints();
        match served(&definition, name) {
            Ok(()) => places.and(hints).map(|()| definition),
            Err(bad) => self.wrong(at, bad),
        }
    }

    /// What a tool says of itself besides its title is true or false.
    fn hints(&mut self) -> Option<()> {
        let members = self.fields.object("annotations");
        let is_wrong = |member: &&Member| {
            member.name.ends_with("Hint") && !matches!(member.node.value, NodeValue::Bool(_) | NodeValue::Null)
        };
        let wrong: Vec<&Member> = members.iter().filter(is_wrong).collect();
        for Member { name, node, .. } in &wrong {
            self.fields.wrong(&node.at, BadTool::Hint(name.clone(), node.kind()));
        }
        wrong.is_empty().then_some(())
    }

    fn check_names(&mut self, names: &BTreeSet<&str>, allowed: &[String], schema: &Value) -> Option<()> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let is_known = |name: &str| properties.is_some_and(|known| known.contains_key(name));
        let known = || match properties.filter(|known| !known.is_empty()) {
            Some(known) => format!("it has {}", known.keys().cloned().collect::<Vec<_>>().join(", ")),
            None => "it has none".to_owned(),
        };
        let unknown = names.iter().filter(|name| !is_known(name));
        let unknown = unknown.map(|name| BadTool::NoProperty((*name).to_owned(), known()));
        let options = allowed.iter().filter(|name| !is_known(name));
        let wrong: Vec<BadTool> = unknown.chain(options.map(|name| BadTool::NoOption(name.clone(), known()))).collect();
        let is_right = wrong.is_empty();
        wrong.into_iter().for_each(|bad| self.fields.wrong(self.at, bad));
        is_right.then_some(())
    }
}

/// Whether guests could use a definition.
fn served(definition: &Value, name: &str) -> Result<(), BadTool> {
    let raw = RawValue::from_string(definition.to_string()).map_err(|_| BadEntry::NoKey("name"))?;
    let mut offered = Offered::default();
    offered.add_tool(&raw, &ServerLimits::default())?;
    if let Some(promised) = definition.get("outputSchema") {
        InputSchema::compile(promised).map_err(BadTool::OutputSchema)?;
    }
    match offered.entries().tool(name) {
        Some(tool) => Ok(tool.compile_schema().map(drop)?),
        None => Ok(()),
    }
}

/// For a tool that says nothing of its arguments: a text for each place, and others too where there is a place for all.
fn schema_of(names: &BTreeSet<&str>, takes_all: bool) -> Value {
    let properties: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": takes_all})
}

/// Whether the schema of an argument takes only numbers, or only values that it names: none of them is a caller's own words.
fn holds(schema: &Value) -> bool {
    let is_scalar = |kind: &Value| matches!(kind.as_str(), Some("integer" | "number" | "boolean"));
    // Beside a reference some drafts take nothing else for said.
    schema.get("$ref").is_none()
        && (is_scalar(&schema["type"]) || schema["enum"].is_array() || schema.get("const").is_some())
}
