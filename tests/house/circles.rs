//! Modules use each other in no circle: neither the top modules of a crate, nor those in any one module.
//!
//! What a module re-exports from another one counts as a use of both. A module and what is in it may use each other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::{
    modules::Module,
    programs::{Program, Sources},
    report::Violation,
    resolve::resolve,
};

const REMEDY: &str =
    "Move what both need into a module that uses neither, or hand it in through a trait or a function.";

/// Where one module uses another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Example {
    file: String,
    line: usize,
}

/// The uses among the modules that are directly in one module, each with an example.
type Uses = BTreeMap<usize, BTreeMap<usize, Example>>;

pub(crate) fn check(sources: &Sources) -> Vec<Violation> {
    sources.programs.iter().flat_map(of_program).collect()
}

fn of_program(program: &Program) -> Vec<Violation> {
    let mut circles: Vec<_> = uses_by_parent(program)
        .into_values()
        .flat_map(|uses| circles_of(&uses).into_iter().map(move |circle| (circle, uses.clone())))
        .collect();
    circles.sort_by_key(|(circle, _)| (circle.len(), names(&program.modules, circle)));
    circles.iter().map(|(circle, uses)| violation(program, circle, uses)).collect()
}

fn violation(program: &Program, circle: &[usize], uses: &Uses) -> Violation {
    let around: Vec<_> = circle.iter().zip(circle.iter().cycle().skip(1)).collect();
    let examples: Vec<_> = around.iter().map(|(user, used)| &uses[*user][*used]).collect();
    let arrows = around.iter().zip(&examples).map(|((user, used), example)| {
        let (user, used) = (name(&program.modules, **user), name(&program.modules, **used));
        format!("{user} uses {used} at {}:{}", example.file, example.line)
    });
    let mut names = names(&program.modules, circle);
    names.push(names[0].clone());
    let (around, arrows) = (names.join(" -> "), arrows.collect::<Vec<_>>().join(", "));
    let broken = format!("modules of {} use each other in a circle: {around} ({arrows})", program.name);
    Violation::new(&examples[0].file, examples[0].line, broken, REMEDY)
}

fn name(modules: &[Module], module: usize) -> String {
    modules[module].path.join("::")
}

fn names(modules: &[Module], circle: &[usize]) -> Vec<String> {
    circle.iter().map(|module| name(modules, *module)).collect()
}

/// For each module that has others in it: how these use each other.
fn uses_by_parent(program: &Program) -> BTreeMap<usize, Uses> {
    let mut all: BTreeMap<usize, Uses> = BTreeMap::new();
    for (user, used, example) in uses(program) {
        if let Some((parent, user, used)) = siblings(&program.modules, user, used) {
            let examples = all.entry(parent).or_default().entry(user).or_default();
            let first = examples.entry(used).or_insert_with(|| example.clone());
            *first = example.min(first.clone());
        }
    }
    all
}

/// Every use of a module by another one, both as files.
fn uses(program: &Program) -> Vec<(usize, usize, Example)> {
    let mut uses = Vec::new();
    for (index, module) in program.modules.iter().enumerate() {
        let imports = module.imports().iter().map(|import| (&import.path, import.line));
        for (path, line) in imports.chain(module.mentions().iter().map(|mention| (&mention.path, mention.line))) {
            for used in resolve(program, index, path).modules {
                uses.push((module.home, program.modules[used].home, Example { file: module.file.clone(), line }));
            }
        }
    }
    uses
}

/// The module that both are in, and which two in it they are or are in; nothing if one is in the other.
fn siblings(modules: &[Module], user: usize, used: usize) -> Option<(usize, usize, usize)> {
    let (user, used) = (line_down(modules, user), line_down(modules, used));
    let common = user.iter().zip(&used).take_while(|(a, b)| a == b).count();
    Some((user[common - 1], *user.get(common)?, *used.get(common)?))
}

/// The files' modules from the root to this one.
fn line_down(modules: &[Module], module: usize) -> Vec<usize> {
    let mut line: Vec<_> = std::iter::successors(Some(module), |module| modules[*module].above).collect();
    line.reverse();
    line
}

/// The shortest circle through each use that is on one.
fn circles_of(uses: &Uses) -> BTreeSet<Vec<usize>> {
    let all = uses.iter().flat_map(|(user, used)| used.keys().map(move |used| (*user, *used)));
    all.filter_map(|(user, used)| {
        let mut circle = way(uses, used, user)?;
        let smallest = circle.iter().enumerate().min_by_key(|(_, module)| **module).map_or(0, |(at, _)| at);
        circle.rotate_left(smallest);
        Some(circle)
    })
    .collect()
}

/// The shortest way from one to another along uses, both included.
fn way(uses: &Uses, from: usize, to: usize) -> Option<Vec<usize>> {
    let (mut before, mut waiting) = (BTreeMap::from([(from, from)]), VecDeque::from([from]));
    while let Some(module) = waiting.pop_front() {
        if module == to {
            let mut way: Vec<_> = std::iter::successors(Some(to), |at| (*at != from).then(|| before[at])).collect();
            way.reverse();
            return Some(way);
        }
        for next in uses.get(&module).into_iter().flat_map(BTreeMap::keys) {
            if !before.contains_key(next) {
                before.insert(*next, module);
                waiting.push_back(*next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HOUSE, tree::Tree};

    /// The circle that a violation is about.
    fn circle(violation: &Violation) -> &str {
        let (_, circle) = violation.broken.split_once("circle: ").unwrap();
        circle.split_once(" (").unwrap().0
    }

    fn found(files: &[(&str, &str)]) -> Vec<Violation> {
        let sources = Sources::read(&Tree::of(files), &HOUSE);
        assert_eq!(sources.unread, []);
        check(&sources)
    }

    /// The circles among three modules of a library, the third of which uses the second.
    fn among(a: &str, b: &str) -> Vec<String> {
        let root = "mod a; mod b; mod c; pub use b::Handed; pub struct Root; pub mod inline { pub use crate::b::In; }";
        let c = "pub use super::b::Through;";
        let found =
            found(&[("proto/src/lib.rs", root), ("proto/src/a.rs", a), ("proto/src/b.rs", b), ("proto/src/c.rs", c)]);
        found.iter().map(|violation| circle(violation).to_owned()).collect()
    }

    #[test]
    fn a_circle_is_found_however_a_module_is_named() {
        for a in [
            "use crate::b::X;",
            "use super::{Root, b::{self, Y}};",
            "use crate::Handed as H;",
            "use crate::inline::In;",
            "use crate::c::Through;",
            "use super::*; fn f(_: Handed) {}",
            "use crate::b;",
            "fn f() { crate::b::g(); }",
            "fn f(_: Vec<super::b::X>) {}",
            "fn f() { use super::b; }",
            "fn f() { println!(\"{}\", crate::b::X); }",
            "impl crate::b::T for u8 {}",
            "macro_rules! m { () => { $crate::b::X } }",
            "#[derive(D)] #[serde(with = \"crate::b\")] struct X;",
            "mod inside { use super::super::b::X; }",
            "pub(crate) use crate::b::X;",
        ] {
            let circles = among(a, "use crate::a::X; fn f() {}");
            assert!(circles.contains(&"a -> b -> a".to_owned()), "{a}: {circles:?}");
        }
    }

    #[test]
    fn what_is_no_use_of_a_module_is_in_no_circle() {
        for a in [
            "use crate::Root;",
            "use ::b::X;",
            "use std::b;",
            "pub(in super::b) struct X;",
            "#[cfg(test)] use crate::b::X;",
            "#[cfg(test)] mod tests { use crate::b::X; }",
            "#[test] fn f() { crate::b::g(); }",
            "//! [`crate::b`]\n/// [`crate::b`]\nfn f() { let b = \"crate::b\"; }",
            "mod b { pub struct X; } use self::b::X; fn f(_: b::X) {}",
        ] {
            assert_eq!(among(a, "use crate::a::X;"), [] as [&str; 0], "{a}");
        }
    }

    #[test]
    fn modules_in_a_module_are_held_to_it_too_and_their_parent_is_not() {
        let files = [
            ("guest/src/lib.rs", "mod p; mod q;"),
            ("guest/src/p.rs", "mod a; mod b; mod d; pub struct Own; use a::A; pub use b::B;"),
            ("guest/src/p/a.rs", "use super::{Own, B};"),
            ("guest/src/p/b.rs", "mod deep;"),
            ("guest/src/p/b/deep.rs", "\nuse crate::p::a::A;"),
            ("guest/src/p/d.rs", "use super::{Own, a::A, B}; use crate::q::Q;"),
            ("guest/src/q.rs", ""),
        ];
        let found = found(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            found[0].to_string(),
            "guest/src/p/a.rs:1: modules of footbridge-guest use each other in a circle: p::a -> p::b -> p::a \
             (p::a uses p::b at guest/src/p/a.rs:1, p::b uses p::a at guest/src/p/b/deep.rs:2). "
                .to_owned()
                + REMEDY
        );
    }

    #[test]
    fn every_circle_is_reported_and_short_ones_come_first() {
        let found = found(&[
            ("guest/src/lib.rs", "mod a; mod b; mod c; mod d; mod e;"),
            ("guest/src/a.rs", "use crate::b::X;"),
            ("guest/src/b.rs", "use crate::c::X;"),
            ("guest/src/c.rs", "use crate::a::X; use crate::d::X;"),
            ("guest/src/d.rs", "use crate::e::X;"),
            ("guest/src/e.rs", "use crate::d::X;"),
            ("guest/src/main.rs", "mod f; mod g;"),
            ("guest/src/f.rs", "use crate::g::X;"),
            ("guest/src/g.rs", "use crate::f::X;"),
        ]);
        let circles: Vec<_> = found.iter().map(circle).collect();
        assert_eq!(circles, ["d -> e -> d", "a -> b -> c -> a", "f -> g -> f"]);
        assert!(found[2].broken.starts_with("modules of footbridge-guest (src/main.rs) use"), "{}", found[2]);
    }
}
