//! A public type has its name for itself in the whole workspace, so that a name says which one is meant.

use std::collections::{BTreeMap, BTreeSet};

use crate::{programs::Sources, report::Violation};

const REMEDY: &str = "Call one of them by what makes it another thing, or let it be seen in its crate alone.";

pub(crate) fn check(sources: &Sources) -> Vec<Violation> {
    let mut places: BTreeMap<&str, BTreeSet<(&str, usize)>> = BTreeMap::new();
    for file in sources.files() {
        for one in &file.types {
            places.entry(&one.name).or_default().insert((&file.path, one.line));
        }
    }
    let shared = places.iter().filter(|(_, places)| places.len() > 1);
    let violation = |(name, places): (_, &BTreeSet<(&str, usize)>)| {
        let (file, line) = places.first()?;
        let others: Vec<_> = places.iter().skip(1).map(|(file, line)| format!("{file}:{line}")).collect();
        let broken = format!("the public type {name} shares its name with {}", others.join(", "));
        Some(Violation::new(file, *line, broken, REMEDY))
    };
    shared.filter_map(violation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HOUSE, tree::Tree};

    fn found(proto: &str, guest: &str) -> Vec<String> {
        let tree = Tree::of(&[("guest/src/lib.rs", guest), ("proto/src/lib.rs", proto)]);
        let sources = Sources::read(&tree, &HOUSE);
        assert_eq!(sources.unread, []);
        check(&sources).iter().map(|violation| format!("{}: {}", violation.file, violation.broken)).collect()
    }

    #[test]
    fn two_public_types_of_one_name_are_found() {
        for guest in [
            "pub struct A;",
            "pub enum A {}",
            "pub type A = u8;",
            "pub trait A {}",
            "pub union A { a: u8 }",
            "mod m { pub struct A; }",
            "m! { pub struct A; }",
        ] {
            let broken = "guest/src/lib.rs: the public type A shares its name with proto/src/lib.rs:2";
            assert_eq!(found("\npub struct A;", guest), [broken], "{guest}");
        }
    }

    #[test]
    fn others_may_share_one() {
        for guest in [
            "pub struct B;",
            "struct A;",
            "pub(crate) struct A;",
            "pub fn A() {}",
            "pub use footbridge_proto::A;",
            "impl T for B { type A = u8; }",
            "pub trait T { type A; }",
            "#[cfg(test)] pub struct A;",
        ] {
            assert_eq!(found("pub struct A;", guest), [] as [&str; 0], "{guest}");
        }
    }
}
