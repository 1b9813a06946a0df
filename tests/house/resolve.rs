//! Which modules a path in a program leads to, and what it is outside of it.

use std::collections::BTreeSet;

use crate::{code::Path, modules::Module, programs::Program};

/// Where a path leads.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    /// Modules where it ends, and those that only hand on the name from elsewhere.
    pub(crate) modules: BTreeSet<usize>,
    /// What it is in other crates.
    pub(crate) outside: BTreeSet<Path>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Module(usize),
    /// Something in a module, whatever it is.
    Item(usize),
    Outside(Path),
}

type Places = BTreeSet<Place>;

/// Where a path in a module leads. A single name is no module here: it may be a variable that is called like one.
pub(crate) fn resolve(program: &Program, from: usize, path: &[String]) -> Named {
    let mut walk = Walk { modules: &program.modules, asked: Vec::new(), passed: BTreeSet::new() };
    let places = walk.from(from, path);
    let mut named = Named { modules: walk.passed, outside: BTreeSet::new() };
    for place in places {
        match place {
            Place::Module(_) if path.len() == 1 => {}
            Place::Module(module) | Place::Item(module) => drop(named.modules.insert(module)),
            Place::Outside(path) => drop(named.outside.insert(path)),
        }
    }
    named
}

struct Walk<'a> {
    modules: &'a [Module],
    /// Names that are being looked up, each in a module: imports may go in circles.
    asked: Vec<(usize, String)>,
    /// Modules whose imports were followed.
    passed: BTreeSet<usize>,
}

impl Walk<'_> {
    fn from(&mut self, from: usize, path: &[String]) -> Places {
        let Some((first, mut rest)) = path.split_first() else { return Places::new() };
        let mut places = match first.as_str() {
            "::" => return Places::from([Place::Outside(rest.to_vec())]),
            "Self" => return Places::new(),
            "crate" => Places::from([Place::Module(0)]),
            "self" => Places::from([Place::Module(from)]),
            "super" => self.modules[from].parent.map(Place::Module).into_iter().collect(),
            name => {
                let found = self.member(from, from, name, rest.is_empty());
                if found.is_empty() { Places::from([Place::Outside(vec![name.to_owned()])]) } else { found }
            }
        };
        while let Some((name, after)) = rest.split_first() {
            places = places.into_iter().flat_map(|place| self.step(from, place, name, after.is_empty())).collect();
            rest = after;
        }
        places
    }

    fn step(&mut self, asker: usize, place: Place, name: &str, is_last: bool) -> Places {
        match place {
            Place::Module(module) if name == "super" => {
                self.modules[module].parent.map(Place::Module).into_iter().collect()
            }
            Place::Module(module) => {
                let found = self.member(asker, module, name, is_last);
                if found.is_empty() { Places::from([Place::Item(module)]) } else { found }
            }
            Place::Item(module) => Places::from([Place::Item(module)]),
            Place::Outside(mut path) => {
                path.push(name.to_owned());
                Places::from([Place::Outside(path)])
            }
        }
    }

    /// What a name is in a module for another one; nothing if it is not known there. At the end of a path a module,
    /// an import and an item may share a name, before it a module is what is meant.
    fn member(&mut self, asker: usize, module: usize, name: &str, is_last: bool) -> Places {
        let asked = (module, name.to_owned());
        if self.asked.contains(&asked) {
            return Places::new();
        }
        self.asked.push(asked);
        let (modules, mut places) = (self.modules, Places::new());
        let here = &modules[module];
        let is_inside = std::iter::successors(Some(asker), |at| modules[*at].parent).any(|at| at == module);
        let imports = || here.imports().iter().filter(|import| is_inside || !import.is_private);
        places.extend(here.children.get(name).copied().map(Place::Module));
        if is_last || places.is_empty() {
            for import in imports().filter(|import| import.name.as_deref() == Some(name)) {
                self.passed.insert(module);
                places.extend(self.from(module, &import.path));
            }
            places.extend(here.scope.items.contains(name).then_some(Place::Item(module)));
        }
        if places.is_empty() {
            for all in imports().filter(|import| import.name.is_none()) {
                for place in self.from(module, &all.path) {
                    let Place::Module(from) = place else { continue };
                    places.extend(self.member(asker, from, name, is_last));
                }
            }
        }
        self.asked.pop();
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HOUSE, programs::Sources, tree::Tree};

    /// The modules that a path in the module `a` leads to, and what it is outside.
    fn named(path: &str) -> (Vec<String>, Vec<String>) {
        let sources = Sources::read(
            &Tree::of(&[
                ("proto/src/lib.rs", "mod a; mod b; mod c; pub struct Root; pub use b::Handed;"),
                ("proto/src/a.rs", "use std::{thread, sync::mpsc as m}; use super::c::*; use x as x; mod own {}"),
                (
                    "proto/src/b.rs",
                    "mod inner; use crate::c::Private; pub use inner::*; pub use crate::c::Passed; pub struct Handed;",
                ),
                ("proto/src/b/inner.rs", "pub struct Deep;"),
                ("proto/src/c.rs", "pub struct Passed; pub use crate::b::b; pub struct b;"),
            ]),
            &HOUSE,
        );
        let program = &sources.programs[0];
        let path: Path = path.split("::").map(|name| if name.is_empty() { "::" } else { name }.to_owned()).collect();
        let from = program.modules[0].children["a"];
        let named = resolve(program, from, &path);
        let modules = named.modules.iter().map(|module| program.modules[*module].path.join("::"));
        (modules.collect(), named.outside.iter().map(|path| path.join("::")).collect())
    }

    #[test]
    fn a_path_leads_to_the_module_that_has_it_and_to_those_that_hand_it_on() {
        for (path, modules) in [
            ("crate::Root", &[""] as &[_]),
            ("crate::Handed", &["", "b"]),
            ("super::b::Handed::new", &["b"]),
            ("crate::b::inner::Deep", &["b::inner"]),
            ("crate::b::Deep", &["b::inner"]),
            ("crate::b::Passed", &["b", "c"]),
            ("crate::b::Unknown", &["b"]),
            ("crate::b::Private", &["b"]),
            ("Passed", &["c"]),
            ("own", &[]),
            ("own::super::super::c", &["c"]),
        ] {
            assert_eq!(named(path).0, modules, "{path}");
            assert_eq!(named(path).1, [] as [&str; 0], "{path}");
        }
    }

    #[test]
    fn what_is_outside_is_spelled_out() {
        for (path, outside) in [
            ("thread::spawn", "std::thread::spawn"),
            ("m::channel", "std::sync::mpsc::channel"),
            ("::b::Handed", "b::Handed"),
            ("x", "x"),
            ("serde::Serialize", "serde::Serialize"),
        ] {
            assert_eq!(named(path).1, [outside], "{path}");
        }
    }
}
