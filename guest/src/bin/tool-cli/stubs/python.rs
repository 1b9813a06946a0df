//! A module of Python: a function a tool, and a `TypedDict` for each object that its schemas name.
//!
//! Types are declared before their function, and named in quotes, so that one may be within itself.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    ptr,
};

use footbridge_cli::{
    gathered::gathered,
    schema::{kind, meant, properties, required},
};
use footbridge_guest::answers::ToolDescription;
use serde_json::{Value, json};

use super::{Language, MOST_BYTES, MOST_DEPTH, comment, literals, may_be_null, plain};

/// Longest name of a type, before what tells it from others.
const MOST_NAME: usize = 60;

pub(super) fn module(server: &str, tools: &[ToolDescription]) -> String {
    // What annotations are made of: a tool of such a name would take its place.
    let mut names = HashSet::from(["str", "int", "float", "bool", "list", "dict"].map(str::to_owned));
    let mut out = format!(
        "\"\"\"Tools of a server behind the bridge, made by tool-cli stubs.\"\"\"\n\nfrom typing import Any, Literal, TypedDict\n\n\
         from bridge import ABSENT, call\n\nSERVER = {}\n",
        json!(server)
    );
    // Functions have the names of their tools, whatever types there are.
    let functions: Vec<String> = tools.iter().map(|tool| plain(Language::Python, &tool.name, &mut names)).collect();
    for (name, tool) in functions.iter().zip(tools) {
        out.push_str(&function(name, tool, &mut names));
    }
    out
}

fn function(name: &str, tool: &ToolDescription, module: &mut HashSet<String>) -> String {
    let schema = &*gathered(&tool.input_schema);
    let needed: Vec<&str> = required(schema).collect();
    let mut types = ObjectTypes::new(schema, module);
    let mut names = HashSet::new();
    let (mut parameters, mut arguments) = (String::new(), String::new());
    for (property, kind) in properties(schema) {
        let parameter = plain(Language::Python, property, &mut names);
        let is_needed = needed.contains(&property.as_str());
        let default = if is_needed { "" } else { " = ABSENT" };
        let kind = types.of(kind, &type_name(name, property), 0);
        let _ = write!(parameters, ", {parameter}: {kind}{default}");
        let _ = write!(arguments, "{}: {parameter}, ", json!(property));
    }
    let star = if parameters.is_empty() { "" } else { "*" };
    let mut declared = types.declared;
    let result = tool.output_schema.as_ref().map_or_else(
        || "Any".to_owned(),
        |output| {
            let mut types = ObjectTypes::new(output, module);
            let kind = types.of(output, &type_name(name, "result"), 0);
            declared.push_str(&types.declared);
            kind
        },
    );
    format!(
        "{declared}\n\ndef {name}({star}{parameters}) -> {result}:\n    \"\"\"{}\"\"\"\n    return call(SERVER, {}, {{{}}})\n",
        comment(tool),
        json!(tool.name),
        arguments.trim_end_matches(", ")
    )
}

/// `get_weather` and `filter` as `GetWeatherFilter`.
fn type_name(before: &str, of: &str) -> String {
    let words =
        before.split(|c: char| !c.is_ascii_alphanumeric()).chain(of.split(|c: char| !c.is_ascii_alphanumeric()));
    let capital = |word: &str| word.get(..1).map_or_else(String::new, |first| first.to_uppercase() + &word[1..]);
    words.map(capital).collect::<String>().chars().take(MOST_NAME).collect()
}

/// The types of the objects of one schema.
struct ObjectTypes<'s, 'n> {
    root: &'s Value,
    /// Names of the module.
    names: &'n mut HashSet<String>,
    /// By where in the schema it is: an object that is referred to has one type.
    known: HashMap<*const Value, String>,
    declared: String,
    /// How many more bytes of values there is room for. Of anything else there is no more than the schema has.
    left: usize,
}

impl<'s, 'n> ObjectTypes<'s, 'n> {
    fn new(root: &'s Value, names: &'n mut HashSet<String>) -> Self {
        Self { root, names, known: HashMap::new(), declared: String::new(), left: MOST_BYTES }
    }

    /// The type of a property; `name` is for an object. One that may be null and has a name in quotes is in quotes as a whole:
    /// Python joins no text with `None`.
    fn of(&mut self, property: &'s Value, name: &str, depth: usize) -> String {
        let found = self.without_null(property, name, depth);
        if found == "Any" || !may_be_null(property, self.root) {
            return found;
        }
        match found.strip_prefix('"').and_then(|named| named.strip_suffix('"')) {
            Some(named) => format!("\"{named} | None\""),
            None => format!("{found} | None"),
        }
    }

    fn without_null(&mut self, property: &'s Value, name: &str, depth: usize) -> String {
        let at = meant(property, self.root);
        if let Some(values) = literals(at, &mut self.left) {
            return format!("Literal[{}]", values.join(", "));
        }
        let takes_more = at.get("additionalProperties").is_some_and(|more| *more != Value::Bool(false));
        match kind(at) {
            Some("string") => "str".to_owned(),
            Some("integer") => "int".to_owned(),
            Some("number") => "float".to_owned(),
            Some("boolean") => "bool".to_owned(),
            Some("array") => match at.get("items").filter(|_| depth < MOST_DEPTH) {
                Some(items) => format!("list[{}]", self.of(items, name, depth + 1)),
                None => "list[Any]".to_owned(),
            },
            Some("object") | None if properties(at).next().is_some() && depth < MOST_DEPTH && !takes_more => {
                json!(self.named(at, name, depth)).to_string()
            }
            Some("object") => "dict[str, Any]".to_owned(),
            _ => "Any".to_owned(),
        }
    }

    /// The name of an object's type, which is declared where it is not yet.
    fn named(&mut self, at: &'s Value, name: &str, depth: usize) -> String {
        if let Some(known) = self.known.get(&ptr::from_ref(at)) {
            return known.clone();
        }
        let name = plain(Language::Python, name, self.names);
        self.known.insert(ptr::from_ref(at), name.clone());
        let needed: Vec<&str> = required(at).collect();
        let (mut always, mut perhaps) = (Vec::new(), Vec::new());
        for (member, property) in properties(at) {
            let kind = self.of(property, &type_name(&name, member), depth + 1);
            let is_needed = needed.contains(&member.as_str());
            if is_needed { &mut always } else { &mut perhaps }.push(format!("{}: {kind}", json!(member)));
        }
        let of = |name: &str, members: &[String], total: &str| {
            format!("\n{name} = TypedDict(\"{name}\", {{{}}}{total})\n", members.join(", "))
        };
        let declared = if perhaps.is_empty() {
            of(&name, &always, "")
        } else if always.is_empty() {
            of(&name, &perhaps, ", total=False")
        } else {
            let [base, rest] =
                ["Needed", "Optional"].map(|word| plain(Language::Python, &type_name(&name, word), self.names));
            let class = format!("\n\nclass {name}({base}, {rest}):\n    pass\n");
            of(&base, &always, "") + &of(&rest, &perhaps, ", total=False") + &class
        };
        self.declared.push_str(&declared);
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_types_of_their_own_also_within_themselves() {
        let schema = json!({"required": ["filter"], "properties": {
            "filter": {"type": "object", "required": ["owner"], "properties":
                {"owner": {"type": "string"}, "kind\n": {"enum": ["a", "b"]}}},
            "tree": {"$ref": "#/$defs/Node"}, "any": {"type": "object"}},
            "$defs": {"Node": {"type": "object", "properties":
                {"below": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}}});
        let output = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
        let tool = json!({"name": "list", "inputSchema": schema, "outputSchema": output});
        let text = module("s", &[serde_json::from_value(tool).unwrap()]);
        for line in [
            "\nList2FilterNeeded = TypedDict(\"List2FilterNeeded\", {\"owner\": str})\n",
            "\nList2FilterOptional = TypedDict(\"List2FilterOptional\", {\"kind\\n\": Literal[\"a\", \"b\"]}, total=False)\n",
            "\n\nclass List2Filter(List2FilterNeeded, List2FilterOptional):\n    pass\n",
            "\nList2Tree = TypedDict(\"List2Tree\", {\"below\": list[\"List2Tree\"]}, total=False)\n",
            "\nList2Result = TypedDict(\"List2Result\", {\"n\": int})\n",
            "filter: \"List2Filter\"",
            "tree: \"List2Tree\" = ABSENT",
            "any: dict[str, Any] = ABSENT",
            ") -> \"List2Result\":\n",
            "\ndef list_2(*, ",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
    }
}
