//! What can be seen in tokens that are no code yet: the inside of macros and attributes.

use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;

/// Whose tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Code,
    /// Its texts may be paths, as in `#[serde(with = "a::b")]`.
    Attribute,
}

/// Something among tokens.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A path of more than one name.
    Path(Vec<String>),
    /// `fn name ... { ... }`
    Function {
        name: String,
        /// The line of its closing brace.
        end: usize,
    },
    /// The name after `pub struct` and the like.
    PublicType(String),
}

/// All that is seen, each with its line.
pub(crate) fn seen(stream: TokenStream, of: Of) -> Vec<(usize, Seen)> {
    let mut found = Vec::new();
    look(stream, of, &mut found);
    found
}

fn look(stream: TokenStream, of: Of, found: &mut Vec<(usize, Seen)>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let rest = &tokens[at + 1..];
        at += 1;
        match token {
            TokenTree::Ident(ident) => {
                let line = ident.span().start().line;
                let path = path(ident, rest);
                if ident == "fn" {
                    found.extend(function(rest).map(|function| (line, function)));
                } else if ident == "pub" {
                    found.extend(public_type(rest).map(|name| (line, Seen::PublicType(name))));
                } else if path.len() > 1 {
                    at += 3 * (path.len() - 1);
                    found.push((line, Seen::Path(path)));
                }
            }
            TokenTree::Group(group) => look(group.stream(), of, found),
            TokenTree::Literal(text) if of == Of::Attribute => {
                let path = text.to_string().trim_matches('"').split("::").map(str::to_owned).collect::<Vec<_>>();
                if path.len() > 1 && path.iter().all(|name| syn::parse_str::<Ident>(name).is_ok() || is_root(name)) {
                    found.push((text.span().start().line, Seen::Path(path)));
                }
            }
            _ => {}
        }
    }
}

/// Words that begin a path and are no names.
fn is_root(name: &str) -> bool {
    ["crate", "self", "super"].contains(&name)
}

fn path(first: &Ident, rest: &[TokenTree]) -> Vec<String> {
    let mut path = vec![first.unraw().to_string()];
    for next in rest.chunks(3) {
        match next {
            [TokenTree::Punct(a), TokenTree::Punct(b), TokenTree::Ident(name)]
                if a.as_char() == ':' && b.as_char() == ':' =>
            {
                path.push(name.unraw().to_string());
            }
            _ => break,
        }
    }
    path
}

/// The function whose name these tokens begin with; in `macro_rules!` a name may be a variable.
fn function(rest: &[TokenTree]) -> Option<Seen> {
    let name = rest.iter().take(2).find_map(|token| match token {
        TokenTree::Ident(name) => Some(name.unraw().to_string()),
        _ => None,
    })?;
    if !matches!(rest.first()?, TokenTree::Ident(_)) && rest.first()?.to_string() != "$" {
        return None;
    }
    for token in rest {
        match token {
            TokenTree::Punct(end) if end.as_char() == ';' => return None,
            TokenTree::Group(body) if body.delimiter() == Delimiter::Brace => {
                return Some(Seen::Function { name, end: body.span_close().end().line });
            }
            _ => {}
        }
    }
    None
}

fn public_type(rest: &[TokenTree]) -> Option<String> {
    match rest {
        [TokenTree::Ident(kind), TokenTree::Ident(name), ..] => {
            let is_type = ["struct", "enum", "union", "trait", "type"].iter().any(|word| kind == word);
            is_type.then(|| name.unraw().to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sees(text: &str, of: Of) -> Vec<Seen> {
        seen(text.parse().unwrap(), of).into_iter().map(|(_, seen)| seen).collect()
    }

    fn path(text: &str) -> Seen {
        Seen::Path(text.split("::").map(str::to_owned).collect())
    }

    #[test]
    fn paths_functions_and_types_are_seen_in_macros() {
        assert_eq!(sees("x, $crate::a::b!(c::d())", Of::Code), [path("crate::a::b"), path("c::d")]);
        assert_eq!(sees("\"a::b\"", Of::Code), []);
        assert_eq!(sees("fn $name() {\n}", Of::Code), [Seen::Function { name: "name".to_owned(), end: 2 }]);
        assert_eq!(sees("f: fn(u8); fn f();", Of::Code), []);
        assert_eq!(sees("pub struct A; pub(crate) enum B {}", Of::Code), [Seen::PublicType("A".to_owned())]);
    }

    #[test]
    fn texts_of_attributes_may_be_paths() {
        assert_eq!(sees("with = \"crate::a::b\", x = \"a: :b\"", Of::Attribute), [path("crate::a::b")]);
    }
}
