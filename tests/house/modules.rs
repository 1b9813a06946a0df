//! The modules of one program, found from its first file on.

use std::collections::BTreeMap;

use crate::{
    code::{Code, Import, Mention, ModuleFile, Path, Scope},
    programs::File,
    report::Violation,
    tree::Tree,
};

/// A module of a program, with a file of its own or in that of another one.
#[derive(Debug)]
pub(crate) struct Module {
    /// Its names from the root on; nothing for the root.
    pub(crate) path: Path,
    pub(crate) file: String,
    pub(crate) parent: Option<usize>,
    pub(crate) children: BTreeMap<String, usize>,
    /// The module that its file is.
    pub(crate) home: usize,
    /// The nearest one above that has another file.
    pub(crate) above: Option<usize>,
    pub(crate) scope: Scope,
}

impl Module {
    pub(crate) fn imports(&self) -> &[Import] {
        &self.scope.imports
    }

    pub(crate) fn mentions(&self) -> &[Mention] {
        &self.scope.mentions
    }
}

/// A program that is being read.
pub(crate) struct Reading<'a> {
    tree: &'a Tree,
    unread: &'a mut Vec<Violation>,
    modules: Vec<Module>,
    files: Vec<File>,
}

impl<'a> Reading<'a> {
    pub(crate) fn of(tree: &'a Tree, unread: &'a mut Vec<Violation>) -> Self {
        Self { tree, unread, modules: Vec::new(), files: Vec::new() }
    }

    pub(crate) fn root(&mut self, path: &str) {
        self.file(path, folder_of(path), None, Vec::new());
    }

    pub(crate) fn done(self) -> (Vec<Module>, Vec<File>) {
        (self.modules, self.files)
    }

    /// Reads a file, whose modules have theirs in that folder.
    fn file(&mut self, path: &str, folder: &str, parent: Option<usize>, names: Path) {
        let code = match Code::read(self.tree.text(path).unwrap_or_default()) {
            Ok(code) => code,
            Err(error) => {
                let broken = format!("this is not understood: {error}");
                self.unread.push(Violation::new(path, error.span().start().line, broken, "Let the reader know it."));
                return;
            }
        };
        let Code { functions, tuples, types, .. } = code;
        self.files.push(File { path: path.to_owned(), functions, tuples, types });
        let home = self.modules.len();
        let above = parent.map(|parent| self.modules[parent].home);
        let mut files = Vec::new();
        for mut scope in code.scopes {
            files.push((self.modules.len(), std::mem::take(&mut scope.files)));
            let path_of_module = [names.as_slice(), &scope.inside].concat();
            let parent = if scope.inside.is_empty() { parent } else { self.outer(home, &scope.inside) };
            let module = Module {
                path: path_of_module,
                file: path.to_owned(),
                parent,
                children: BTreeMap::new(),
                home,
                above,
                scope,
            };
            self.add(module);
        }
        for (module, files) in files {
            files.iter().for_each(|file| self.child(module, folder, file));
        }
    }

    /// The module that one inside a file is directly in.
    fn outer(&self, home: usize, inside: &[String]) -> Option<usize> {
        let (_, outer) = inside.split_last()?;
        outer.iter().try_fold(home, |module, name| self.modules[module].children.get(name).copied())
    }

    fn add(&mut self, module: Module) {
        let index = self.modules.len();
        if let (Some(parent), Some(name)) = (module.parent, module.path.last()) {
            self.modules[parent].children.insert(name.clone(), index);
        }
        self.modules.push(module);
    }

    fn child(&mut self, parent: usize, folder: &str, file: &ModuleFile) {
        let module = &self.modules[parent];
        let (own, inside) = (module.file.clone(), module.scope.inside.join("/"));
        let folder = joined(folder, &inside);
        let names = [module.path.as_slice(), std::slice::from_ref(&file.name)].concat();
        let (alone, with_others) = (format!("{folder}/{}.rs", file.name), format!("{folder}/{}/mod.rs", file.name));
        let candidates = match &file.path {
            Some(path) if inside.is_empty() => vec![joined(folder_of(&own), path)],
            Some(path) => vec![joined(&folder, path)],
            None => vec![alone, with_others],
        };
        match candidates.iter().find(|path| self.tree.text(path).is_some()) {
            // A file that an attribute names has its modules beside it, as a `mod.rs` has.
            Some(path) if file.path.is_some() || path.ends_with("/mod.rs") => {
                self.file(path, folder_of(path), Some(parent), names);
            }
            Some(path) => self.file(path, &path[..path.len() - ".rs".len()], Some(parent), names),
            None => {
                let broken = format!("the file of the module {} is not found", file.name);
                self.unread.push(Violation::new(&own, file.line, broken, "Put it where the language looks for it."));
            }
        }
    }
}

/// The folder that a file is in.
fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// A path relative to a folder, which may go up.
fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').collect();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> (Vec<(String, String)>, Vec<Violation>) {
        let (tree, mut unread) = (Tree::of(files), Vec::new());
        let mut reading = Reading::of(&tree, &mut unread);
        reading.root("x/src/lib.rs");
        let (modules, _) = reading.done();
        (modules.into_iter().map(|module| (module.path.join("::"), module.file)).collect(), unread)
    }

    #[test]
    fn modules_are_found_where_the_language_looks_for_them() {
        let (modules, unread) = read(&[
            ("x/src/lib.rs", "mod a; mod b { mod c; } #[path = \"../d.rs\"] mod d; #[cfg(test)] mod tests;"),
            ("x/src/a.rs", "mod e;"),
            ("x/src/a/e/mod.rs", "mod f;"),
            ("x/src/a/e/f.rs", ""),
            ("x/src/b/c.rs", ""),
            ("x/d.rs", ""),
            ("x/src/tests.rs", "not Rust at all"),
        ]);
        let expected = [
            ("", "x/src/lib.rs"),
            ("b", "x/src/lib.rs"),
            ("a", "x/src/a.rs"),
            ("a::e", "x/src/a/e/mod.rs"),
            ("a::e::f", "x/src/a/e/f.rs"),
            ("d", "x/d.rs"),
            ("b::c", "x/src/b/c.rs"),
        ];
        assert_eq!(modules, expected.map(|(path, file)| (path.to_owned(), file.to_owned())));
        assert_eq!(unread, []);
    }

    #[test]
    fn a_module_that_is_not_found_or_understood_is_reported() {
        let (_, unread) = read(&[("x/src/lib.rs", "\nmod a; mod b;"), ("x/src/b.rs", "fn f( {}")]);
        assert_eq!(crate::report::places(&unread), ["x/src/lib.rs:2", "x/src/b.rs:1"]);
    }
}
