//! A case: code that must not build, the errors that it must give, and its twin, which must build.
//!
//! It refuses to know cargo and rustc.

use std::{collections::BTreeMap, fs, path::Path};

/// Before the codes of the errors that a line must give.
const MARK: &str = "//~";
/// Before what is allowed in place of the line above.
const INSTEAD: &str = "//=";

/// A file of code with at least one line that must not build.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) text: String,
    /// The same without the lines that must not build. All lines keep their numbers.
    pub(crate) twin: String,
    /// Lines and codes, in order.
    pub(crate) errors: Vec<(usize, String)>,
}

impl Case {
    /// All of `walls/`, and what is wrong with the way that the others are written.
    pub(crate) fn all() -> (Vec<Self>, Vec<String>) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/walls");
        let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let texts: BTreeMap<String, String> = paths
            .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap()))
            .collect();
        let (mut cases, mut wrong) = (Vec::new(), Vec::new());
        for (name, text) in texts {
            match Self::read(&name, &text) {
                Ok(case) => cases.push(case),
                Err(why) => wrong.push(why),
            }
        }
        (cases, wrong)
    }

    /// # Errors
    /// What is wrong with the marks.
    fn read(name: &str, text: &str) -> Result<Self, String> {
        let (mut errors, mut twin) = (Vec::new(), String::new());
        let mut lines = text.lines().zip(1..).peekable();
        while let Some((line, number)) = lines.next() {
            if line.trim_start().starts_with(INSTEAD) {
                return Err(format!("{name}:{number}: there is nothing that this is instead of"));
            }
            let Some((_, codes)) = line.split_once(MARK) else {
                twin.push_str(line);
                twin.push('\n');
                continue;
            };
            let codes: Vec<&str> = codes.split_whitespace().collect();
            if codes.is_empty() || !codes.iter().all(|code| is_code(code)) {
                return Err(format!("{name}:{number}: a mark has codes of errors, such as E0624"));
            }
            errors.extend(codes.into_iter().map(|code| (number, code.to_owned())));
            let instead = lines.peek().and_then(|(below, _)| below.trim_start().strip_prefix(INSTEAD));
            if let Some(instead) = instead {
                lines.next();
                twin.push_str(instead);
                twin.push('\n');
            }
            twin.push('\n');
        }
        if errors.is_empty() {
            Err(format!("{name}: no line of it is marked, so it says nothing"))
        } else {
            Ok(Self { name: name.to_owned(), text: text.to_owned(), twin, errors })
        }
    }
}

fn is_code(text: &str) -> bool {
    text.strip_prefix('E').is_some_and(|digits| digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[test]
fn marked_lines_are_demanded_and_left_out_of_the_twin() {
    let text = "//! x\nfn f() {\n    a(); //~ E0001\n    //= b();\n    c(); //~ E0002 E0003\n}\n";
    let case = Case::read("x", text).unwrap();
    assert_eq!(case.errors, [(3, "E0001".to_owned()), (5, "E0002".to_owned()), (5, "E0003".to_owned())]);
    assert_eq!(case.twin, "//! x\nfn f() {\n b();\n\n\n}\n");
    assert_eq!(case.twin.lines().count(), text.lines().count());
}

#[test]
fn a_case_says_what_it_demands() {
    for text in ["fn f() {}", "f(); //~", "f(); //~ private", "f(); //~ E001", "f();\n//= g();", "//= f();"] {
        assert!(Case::read("x", text).is_err(), "{text}");
    }
}
