//! `tool-cli stubs`: each server as a module of typed functions, for agents that write code.
//!
//! A module needs the standard library alone: the file `bridge` beside it has the one request that there is. Names of
//! files and functions are made of what is plain in those of servers and tools, told apart by numbers; everything a server
//! wrote stands in literals or in comments, where it can end neither. For TypeScript the functions are JavaScript, which
//! every Node runs as it is, with their types in a declaration beside it.

mod python;

use std::{collections::HashSet, fmt::Write as _, fs, path::Path};

use footbridge_cli::{
    gathered::gathered,
    output::NotWritten,
    schema::{kind, meant, properties, required, takes_null},
    signature::first_sentence,
};
use footbridge_guest::answers::ToolDescription;
use serde_json::{Value, json};

/// How deep types are written.
const MOST_DEPTH: usize = 6;
/// Values of an enum that become a type.
const MOST_VALUES: usize = 30;
/// Bytes that the types of one schema may come to: one whose members are it itself would have some that no disk holds.
const MOST_BYTES: usize = 64 * 1024;

/// What functions are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    TypeScript,
}

impl Language {
    /// The words for each.
    pub(crate) const WORDS: [(&str, Self); 2] = [("py", Self::Python), ("ts", Self::TypeScript)];

    /// By its word.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(known, _)| *known == word).map(|(_, language)| *language)
    }

    /// The files that a module is: the end of each one's name, and its text.
    fn module(self, server: &str, tools: &[ToolDescription]) -> Vec<NewFile> {
        match self {
            Self::Python => vec![("py", python::module(server, tools))],
            Self::TypeScript => {
                let (code, types) = typescript_module(server, tools);
                vec![("mjs", code), ("d.mts", types)]
            }
        }
    }

    fn bridge(self) -> Vec<NewFile> {
        match self {
            Self::Python => vec![("py", include_str!("stubs/bridge.py").to_owned())],
            Self::TypeScript => vec![
                ("mjs", include_str!("stubs/bridge.mjs").to_owned()),
                ("d.mts", include_str!("stubs/bridge.d.mts").to_owned()),
            ],
        }
    }

    /// Words that no function and no parameter can be called.
    fn is_taken(self, name: &str) -> bool {
        const PYTHON: &str = " False None True and as assert async await break class continue def del elif else except \
            finally for from global if import in is lambda nonlocal not or pass raise return try while with call Any Literal TypedDict ABSENT SERVER ";
        const TYPESCRIPT: &str = " break case catch class const continue debugger default delete do else enum export \
            extends false finally for function if import in instanceof new null return super switch this throw true try \
            typeof var void while with yield let static implements interface package private protected public await call \
            arguments eval SERVER ";
        let words = if self == Self::Python { PYTHON } else { TYPESCRIPT };
        words.contains(&format!(" {name} "))
    }

    /// Whether a file of this name would take the place of a module of the language's own; those in C have a line in front.
    fn has_module(self, name: &str) -> bool {
        let public = name.trim_start_matches('_');
        self == Self::Python && OF_PYTHON.split(' ').any(|module| module == public)
    }
}

/// Modules of Python's standard library, 3.14 and before: a file of such a name would take its place, also for `bridge`.
const OF_PYTHON: &str = "abc aifc annotationlib antigravity argparse array ast asynchat asyncio asyncore atexit audioop \
    base64 bdb binascii bisect builtins bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs \
    codeop collections colorsys compileall compression concurrent configparser contextlib contextvars \
    copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils doctest \
    email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib \
    functools gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http \
    idlelib imaplib imghdr imp importlib inspect io ipaddress itertools json keyword lib2to3 linecache \
    locale logging lzma mailbox mailcap marshal math mimetypes mmap modulefinder msilib msvcrt \
    multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode operator optparse os \
    ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath \
    pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re \
    readline reprlib resource rlcompleter runpy sched secrets select selectors shelve shlex shutil \
    signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile sre_constants \
    sre_parse ssl stat statistics string stringprep struct subprocess sunau symtable sys sysconfig \
    syslog tabnanny tarfile telnetlib tempfile termios textwrap this threading time timeit tkinter token \
    tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest \
    urllib uu uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc \
    zipapp zipfile zipimport zlib zoneinfo";

/// The end of a file's name, and its text.
type NewFile = (&'static str, String);

/// Writes the modules of these servers, and gives the paths of all files.
pub(crate) fn write(
    language: Language,
    folder: &Path,
    servers: &[(String, Vec<ToolDescription>)],
) -> Result<Vec<String>, NotWritten> {
    let failed = |path: &Path, source| NotWritten::File {
        path: path.to_owned(),
        source,
        then: "Nothing was called: choose another folder",
    };
    fs::create_dir_all(folder).map_err(|source| failed(folder, source))?;
    let mut names = HashSet::from(["bridge".to_owned()]);
    let modules = servers.iter().map(|(server, tools)| {
        let files = language.module(server, tools);
        let mut name = spelled(language, server);
        if language.has_module(&name) {
            name.push('_');
        }
        (plain(language, &name, &mut names), files)
    });
    let mut written = Vec::new();
    for (name, files) in std::iter::once(("bridge".to_owned(), language.bridge())).chain(modules) {
        for (end, text) in files {
            let path = folder.join(format!("{name}.{end}"));
            fs::write(&path, text).map_err(|source| failed(&path, source))?;
            written.push(path.display().to_string());
        }
    }
    Ok(written)
}

/// A name that the language takes.
fn spelled(language: Language, name: &str) -> String {
    let spelled: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let is_name = !language.is_taken(&spelled) && spelled.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if is_name { spelled } else { format!("_{spelled}") }
}

/// A name that the language takes, and that is not there yet.
fn plain(language: Language, name: &str, names: &mut HashSet<String>) -> String {
    let plain = spelled(language, name);
    let mut unique = plain.clone();
    for number in 2.. {
        if names.insert(unique.clone()) {
            break;
        }
        unique = format!("{plain}_{number}");
    }
    unique
}

/// The functions, and their types.
fn typescript_module(server: &str, tools: &[ToolDescription]) -> (String, String) {
    let (mut names, head) = (HashSet::new(), "// Tools of a server behind the bridge, made by tool-cli stubs.\n");
    let mut code = format!("{head}import {{ call }} from \"./bridge.mjs\";\n\nconst SERVER = {};\n", json!(server));
    let mut types = head.to_owned();
    for tool in tools {
        let name = plain(Language::TypeScript, &tool.name, &mut names);
        let tool_name = json!(tool.name);
        let _ =
            write!(code, "\nexport function {name}(args = {{}}) {{\n  return call(SERVER, {tool_name}, args);\n}}\n");
        types.push_str(&typescript(&name, tool));
    }
    (code, types)
}

/// A text for a comment of one line, without what could end a comment of several.
fn comment(tool: &ToolDescription) -> String {
    let sentence = first_sentence(tool.description.as_deref().unwrap_or(&tool.name));
    // Slashes first: what they make ends comments too.
    sentence.replace('\\', "/").replace("*/", "* /").replace('"', "'")
}

fn typescript(name: &str, tool: &ToolDescription) -> String {
    let schema = &*gathered(&tool.input_schema);
    let optional = if required(schema).next().is_some() { "" } else { "?" };
    let kind = match typescript_type(schema).as_str() {
        "any" => "Record<string, any>".to_owned(),
        kind => kind.to_owned(),
    };
    let result = tool.output_schema.as_ref().map_or_else(|| "any".to_owned(), typescript_type);
    format!("\n/** {} */\nexport function {name}(args{optional}: {kind}): Promise<{result}>;\n", comment(tool))
}

/// Whether a value may be null.
fn may_be_null(property: &Value, root: &Value) -> bool {
    let is_one = |values: &Vec<Value>| values.iter().any(Value::is_null);
    takes_null(property, root) || meant(property, root).get("enum").and_then(Value::as_array).is_some_and(is_one)
}

/// The values of an enum but for null, where each is a literal that both languages have, and all together have room.
fn literals(at: &Value, left: &mut usize) -> Option<Vec<String>> {
    let values: Vec<&Value> = at.get("enum")?.as_array()?.iter().filter(|value| !value.is_null()).collect();
    let values = Some(values).filter(|values| (1..=MOST_VALUES).contains(&values.len()))?;
    let is_literal = |value: &&Value| value.is_string() || value.is_i64();
    let bytes = |value: &&Value| value.as_str().map_or(0, str::len);
    *left = values.iter().all(is_literal).then(|| left.checked_sub(values.iter().map(bytes).sum()))??;
    Some(values.iter().map(ToString::to_string).collect())
}

fn typescript_type(schema: &Value) -> String {
    TypescriptTypes { root: schema, left: MOST_BYTES }.of(schema, 0)
}

/// The type of what may be anything, and what is behind one that may be null.
const ANY: &str = "any";
const OR_NULL: &str = " | null";

/// The types of one schema on their way.
struct TypescriptTypes<'s> {
    root: &'s Value,
    /// How many more bytes of them there is room for.
    left: usize,
}

impl TypescriptTypes<'_> {
    fn of(&mut self, property: &Value, depth: usize) -> String {
        let found = self.without_null(property, depth);
        if found != ANY && may_be_null(property, self.root) { format!("{found}{OR_NULL}") } else { found }
    }

    fn without_null(&mut self, property: &Value, depth: usize) -> String {
        if self.left == 0 {
            return ANY.to_owned();
        }
        self.left = self.left.saturating_sub(ANY.len());
        let at = meant(property, self.root);
        if let Some(values) = literals(at, &mut self.left) {
            return format!("({})", values.join(" | "));
        }
        match kind(at) {
            Some("string") => "string".to_owned(),
            Some("integer" | "number") => "number".to_owned(),
            Some("boolean") => "boolean".to_owned(),
            Some("array") => match at.get("items").filter(|_| depth < MOST_DEPTH) {
                Some(items) => match self.of(items, depth + 1) {
                    either if either.ends_with(OR_NULL) => format!("({either})[]"),
                    one => format!("{one}[]"),
                },
                None => "any[]".to_owned(),
            },
            Some("object") | None if properties(at).next().is_some() && depth < MOST_DEPTH => self.object(at, depth),
            Some("object") => "Record<string, any>".to_owned(),
            _ => ANY.to_owned(),
        }
    }

    fn object(&mut self, at: &Value, depth: usize) -> String {
        let needed: Vec<&str> = required(at).collect();
        let mut members = Vec::new();
        for (name, property) in properties(at) {
            let optional = if needed.contains(&name.as_str()) { "" } else { "?" };
            self.left = self.left.saturating_sub(name.len());
            members.push(format!("{}{optional}: {}", json!(name), self.of(property, depth + 1)));
        }
        format!("{{ {} }}", members.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_module_takes_the_place_of_one_of_the_standard_library() {
        let folder = tempfile::tempdir().unwrap();
        let servers = ["time", "http", "demo", "py-compile", "_socket"].map(|name| (name.to_owned(), Vec::new()));
        let files = |language| {
            let written = write(language, folder.path(), &servers).unwrap();
            let name = |path: &String| Path::new(path).file_name().unwrap().to_str().unwrap().to_owned();
            written.iter().map(name).collect::<Vec<_>>()
        };
        let python = ["bridge.py", "time_.py", "http_.py", "demo.py", "py_compile_.py", "_socket_.py"];
        assert_eq!(files(Language::Python), python);
        assert!(files(Language::TypeScript).contains(&"time.mjs".to_owned()));
    }

    #[test]
    fn no_schema_makes_types_without_end() {
        let own: serde_json::Map<String, Value> = (0..50).map(|at| (at.to_string(), json!({"$ref": "#"}))).collect();
        let values = json!({"enum": ["x".repeat(20_000)]});
        let same: serde_json::Map<String, Value> =
            (0..50).map(|at| (at.to_string(), json!({"$ref": "#/$defs/v"}))).collect();
        for schema in [json!({ "properties": own }), json!({"properties": same, "$defs": {"v": values}})] {
            let tool = json!({"name": "t", "inputSchema": schema, "outputSchema": schema});
            let tool: ToolDescription = serde_json::from_value(tool).unwrap();
            let python = python::module("s", std::slice::from_ref(&tool));
            let (_, types) = typescript_module("s", &[tool]);
            assert!(types.contains("\"0\"?: ") && types.contains(": any"), "{types}");
            for text in [python, types] {
                assert!(text.len() < 8 * MOST_BYTES, "{}", text.len());
            }
        }
    }

    #[test]
    fn what_may_be_null_is_typed_so() {
        let text = json!({"type": ["string", "null"]});
        let object = json!({"type": "object", "properties": {"b": {"type": "boolean"}}});
        let schema = json!({"properties": {"ns": text, "l": {"type": ["array", "null"], "items": text},
            "e": {"enum": ["a", null]}, "o": {"anyOf": [object, {"type": "null"}]}, "s": {"type": "string"},
            "any": {"type": ["string", "integer", "null"]}}});
        let tool: ToolDescription = serde_json::from_value(json!({"name": "t", "inputSchema": schema})).unwrap();
        let python = python::module("s", std::slice::from_ref(&tool));
        for part in [
            "ns: str | None = ABSENT",
            "l: list[str | None] | None = ABSENT",
            "e: Literal[\"a\"] | None = ABSENT",
            "o: \"TO | None\" = ABSENT",
            "s: str = ABSENT",
            "any: Any = ABSENT",
        ] {
            assert!(python.contains(part), "{part}: {python}");
        }
        let (_, types) = typescript_module("s", &[tool]);
        for part in [
            "\"ns\"?: string | null;",
            "\"l\"?: (string | null)[] | null;",
            "\"e\"?: (\"a\") | null;",
            "\"o\"?: { \"b\"?: boolean } | null;",
            "\"s\"?: string;",
            "\"any\"?: any ",
        ] {
            assert!(types.contains(part), "{part}: {types}");
        }
    }

    #[test]
    fn nothing_that_a_server_wrote_leaves_its_literal_or_comment() {
        let tool = json!({"name": "a\"); evil(\"", "description": "\"\"\" */ *\\ evil()\\",
            "inputSchema": {"properties": {"x\"y": {"enum": ["\"]"]}, "class": {"type": "string"}, "x_y": {}}}});
        let tool: ToolDescription = serde_json::from_value(tool).unwrap();
        let python = python::module("s\"\n", std::slice::from_ref(&tool));
        for line in [
            "SERVER = \"s\\\"\\n\"\n",
            "def a____evil__(*, x_y: Literal[\"\\\"]\"] = ABSENT, _class: str = ABSENT, x_y_2: Any = ABSENT) -> Any:\n",
            "    \"\"\"''' * / * / evil()/\"\"\"\n",
            "    return call(SERVER, \"a\\\"); evil(\\\"\", {\"x\\\"y\": x_y, \"class\": _class, \"x_y\": x_y_2})\n",
        ] {
            assert!(python.contains(line), "{line}: {python}");
        }
        let (code, types) = typescript_module("s", &[tool]);
        assert!(
            code.contains(
                "export function a____evil__(args = {}) {\n  return call(SERVER, \"a\\\"); evil(\\\"\", args);\n}\n"
            ),
            "{code}"
        );
        let end = "/** ''' * / * / evil()/ */\nexport function a____evil__(args?: ARGS): Promise<any>;\n";
        let args = "{ \"x\\\"y\"?: (\"\\\"]\"); \"class\"?: string; \"x_y\"?: any }";
        assert!(types.ends_with(&end.replace("ARGS", args)), "{types}");
    }
}
