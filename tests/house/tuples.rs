//! A parameter is one thing: no tuple keeps a function within the number of parameters that clippy allows.

use crate::{House, programs::Sources, report::Violation};

const REMEDY: &str = "Take what is in it as parameters of their own, or give it a struct with a name; a pair that is one \
                      thing by nature goes into HOUSE.pairs.";

pub(crate) fn check(sources: &Sources, house: &House) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in sources.files() {
        for tuple in &file.tuples {
            if !house.pairs.contains(&(file.path.as_str(), tuple.function.as_str())) {
                let broken = format!("the function {} takes a tuple as a parameter", tuple.function);
                found.push(Violation::new(&file.path, tuple.line, broken, REMEDY));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HOUSE, report::places, tree::Tree};

    fn found(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("host/core/src/lib.rs", text)]);
        let sources = Sources::read(&tree, &HOUSE);
        assert_eq!(sources.unread, []);
        places(&check(&sources, &House { pairs: &[("host/core/src/lib.rs", "pair")], ..HOUSE }))
    }

    #[test]
    fn a_tuple_as_a_parameter_is_found_wherever_its_function_is() {
        for text in [
            "fn f(x: (u8, u8)) {}",
            "async fn f(a: u8, (x, y): (u8, &str)) {}",
            "fn f(&(x, y): &(u8, u8)) {}",
            "fn f(x: &mut (u8, impl Fn())) {}",
            "impl X { fn f(&self, x: (u8,)) {} }",
            "trait X { fn f(x: (u8, u8)); }",
            "fn g() { fn f(x: (u8, u8)) {} }",
        ] {
            assert_eq!(found(text), ["host/core/src/lib.rs:1"], "{text}");
        }
        assert_eq!(found("fn f(\n    a: u8,\n    x: (u8, u8),\n) {}"), ["host/core/src/lib.rs:3"]);
    }

    #[test]
    fn pairs_by_nature_are_left() {
        for text in [
            "fn f(x: (), y: (u8), z: &(dyn Fn() + 'static)) -> (u8, u8) { (1, 2) }",
            "fn f(x: &[(u8, u8)], y: Option<(u8, u8)>, z: impl Fn((u8, u8))) {}",
            "fn f() { g(|(x, y): (u8, u8)| x + y) }",
            "fn pair(x: (u8, u8)) {}",
            "#[cfg(test)] fn f(x: (u8, u8)) {}",
            "#[cfg(test)] mod tests { fn f(x: (u8, u8)) {} }",
        ] {
            assert_eq!(found(text), [] as [&str; 0], "{text}");
        }
    }
}
