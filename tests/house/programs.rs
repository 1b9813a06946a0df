//! What the workspace compiles outside tests: each library, program, example and build script with its modules.

use crate::{
    Crate, House,
    code::{Function, PublicType, TupleParameter},
    modules::{Module, Reading},
    report::Violation,
    tree::{Tree, is_below},
};

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    pub(crate) programs: Vec<Program>,
    /// What could not be read, so that no rule was applied to it.
    pub(crate) unread: Vec<Violation>,
}

/// What is compiled as one: a library, a program, an example or a build script.
#[derive(Debug)]
pub(crate) struct Program {
    /// Its package; if it is not the library, with the name of its first file.
    pub(crate) name: String,
    /// The first is the root.
    pub(crate) modules: Vec<Module>,
    pub(crate) files: Vec<File>,
}

/// What is in a file of a program, whichever its modules.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) functions: Vec<Function>,
    pub(crate) tuples: Vec<TupleParameter>,
    pub(crate) types: Vec<PublicType>,
}

impl Sources {
    pub(crate) fn read(tree: &Tree, house: &House) -> Self {
        let mut sources = Self::default();
        for one in house.crates() {
            for (path, _) in tree.rust().filter(|(path, _)| is_below(path, one.folder)) {
                let inside = &path[one.folder.len() + 1..];
                if !is_root(inside) {
                    continue;
                }
                let name = match inside {
                    "src/lib.rs" => one.package.to_owned(),
                    _ => format!("{} ({inside})", one.package),
                };
                let mut reading = Reading::of(tree, &mut sources.unread);
                reading.root(path);
                let (modules, files) = reading.done();
                sources.programs.push(Program { name, modules, files });
            }
        }
        sources
    }

    /// What no rule was applied to, crates without any code among it.
    pub(crate) fn left_out(&self, house: &House) -> Vec<Violation> {
        const REMEDY: &str = "Bring the table of crates and the folders into line.";
        let has_code = |one: &Crate| self.files().any(|file| is_below(&file.path, one.folder));
        let empty = house.crates().filter(|one| !has_code(one));
        let empty = empty.map(|one| Violation::new(one.folder, 1, format!("{} has no code", one.package), REMEDY));
        self.unread.iter().cloned().chain(empty).collect()
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.programs.iter().flat_map(|program| &program.files)
    }
}

/// Whether a file of a package is one that cargo compiles by itself, tests and benchmarks left out.
fn is_root(path: &str) -> bool {
    let parts: Vec<_> = path.split('/').collect();
    matches!(
        parts.as_slice(),
        ["build.rs"]
            | ["src", "lib.rs" | "main.rs"]
            | ["src", "bin", _]
            | ["src", "bin", _, "main.rs"]
            | ["examples", _]
            | ["examples", _, "main.rs"]
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HOUSE, report::places};

    #[test]
    fn programs_are_what_cargo_compiles_without_tests() {
        let files = [
            "host/core/build.rs",
            "host/core/examples/one.rs",
            "host/core/src/bin/one.rs",
            "host/core/src/bin/two/main.rs",
            "host/core/src/bin/two/part.rs",
            "host/core/src/lib.rs",
            "host/core/src/part.rs",
            "host/core/tests/edge.rs",
            "host/more/src/lib.rs",
        ];
        let tree = Tree::of(&files.map(|file| (file, "")));
        let sources = Sources::read(&tree, &HOUSE);
        let names: Vec<_> = sources.programs.iter().map(|program| program.name.as_str()).collect();
        let expected = [
            "footbridge-core (build.rs)",
            "footbridge-core (examples/one.rs)",
            "footbridge-core (src/bin/one.rs)",
            "footbridge-core (src/bin/two/main.rs)",
            "footbridge-core",
        ];
        assert_eq!(names, expected);
        let house = House { host: &HOUSE.host[..2], ..HOUSE };
        let left_out = ["proto:1", "proto/cli:1", "proto/domains:1", "guest:1", "host/audit:1"];
        assert_eq!(places(&sources.left_out(&house)), left_out);
    }
}
