//! The text of the workspace: its Rust files and manifests, by their paths from its root.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

/// Files and their texts; paths have `/` in between.
#[derive(Default)]
pub(crate) struct Tree(BTreeMap<String, String>);

impl Tree {
    /// What is below some folders of the workspace, and its own manifest.
    pub(crate) fn read(folders: &[&str]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut tree = Self::default();
        tree.add(root, &root.join("Cargo.toml"));
        let mut waiting: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).collect();
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let entry = entry.unwrap();
                let (path, is_folder) = (entry.path(), entry.file_type().unwrap().is_dir());
                if is_folder && entry.file_name() != "target" {
                    waiting.push(path);
                } else if !is_folder && (path.ends_with("Cargo.toml") || path.extension().is_some_and(|e| e == "rs")) {
                    tree.add(root, &path);
                }
            }
        }
        tree
    }

    fn add(&mut self, root: &Path, path: &Path) {
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        self.0.insert(name, fs::read_to_string(path).unwrap());
    }

    /// A small tree, for the tests of the rules.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        Self(files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect())
    }

    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// Paths and texts, in the order of the paths.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The same, of Rust files alone.
    pub(crate) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".rs"))
    }
}

/// Whether a file is somewhere below a folder.
pub(crate) fn is_below(file: &str, folder: &str) -> bool {
    file.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}
