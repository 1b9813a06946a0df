//! Which crate may depend on which, by their manifests.

use std::collections::BTreeMap;

use toml::de::DeTable;

use crate::{Crate, House, report::Violation, tree::Tree};

const ORDER: &str = "Move what both need into an earlier crate, or turn the dependency round with a trait.";
const TABLE: &str = "Bring the table at the top of tests/house/main.rs and the folders into line.";

pub(crate) fn check(tree: &Tree, house: &House) -> Vec<Violation> {
    let known = packages_of_workspace(tree);
    let mut found: Vec<_> = house.crates().flat_map(|one| of_crate(tree, house, one, &known)).collect();
    for (path, _) in tree.files() {
        let folder = path.strip_suffix("/Cargo.toml").unwrap_or_default();
        if folder.split('/').next() == Some("host") && !house.host.iter().any(|one| one.folder == folder) {
            found.push(Violation::new(path, 1, format!("the crate in {folder} has no place in the order"), TABLE));
        }
    }
    found
}

/// The package that each key of the workspace's dependencies stands for, where it is another one.
fn packages_of_workspace(tree: &Tree) -> BTreeMap<String, String> {
    let text = tree.text("Cargo.toml").unwrap_or_default();
    let manifest: toml::Table = text.parse().unwrap();
    let dependencies = manifest.get("workspace").and_then(|workspace| workspace.get("dependencies")?.as_table());
    let renamed =
        |(key, value): (&String, &toml::Value)| Some((key.clone(), value.get("package")?.as_str()?.to_owned()));
    dependencies.into_iter().flatten().filter_map(renamed).collect()
}

fn of_crate(tree: &Tree, house: &House, one: &Crate, known: &BTreeMap<String, String>) -> Vec<Violation> {
    let path = format!("{}/Cargo.toml", one.folder);
    let Some(text) = tree.text(&path) else {
        return vec![Violation::new(&path, 1, format!("the crate {} is missing", one.package), TABLE)];
    };
    let mut found = Vec::new();
    let name = text.parse::<toml::Table>().unwrap()["package"]["name"].as_str().unwrap_or_default().to_owned();
    if name != one.package {
        let broken = format!("this package is named {name}, and {} is expected", one.package);
        found.push(Violation::new(&path, 1, broken, TABLE));
    }
    for dependency in dependencies(text, known) {
        let itself = dependency.is_for_tests && dependency.package == one.package;
        let is_ours = dependency.package.split('-').next() == Some("footbridge");
        if is_ours && !itself && !allowed(house, one).contains(&dependency.package.as_str()) {
            let broken = format!("{} may not depend on {}", one.package, dependency.package);
            found.push(Violation::new(&path, dependency.line, broken, ORDER));
        }
    }
    found
}

/// Our packages that a crate may depend on.
fn allowed(house: &House, one: &Crate) -> Vec<&'static str> {
    let before = house.host.iter().position(|other| other.folder == one.folder).unwrap_or_default();
    let contract = (one.folder != house.contract.folder).then_some(house.contract.package);
    let is_command =
        one.folder == house.guest.folder || house.host.last().is_some_and(|last| last.folder == one.folder);
    let commands = is_command.then_some(house.commands.package);
    let confines = one.folder == house.guest.folder || one.folder == house.processes;
    let domains = confines.then_some(house.domains.package);
    house.host[..before].iter().map(|other| other.package).chain(contract).chain(commands).chain(domains).collect()
}

struct Dependency {
    package: String,
    line: usize,
    is_for_tests: bool,
}

/// All dependencies of a manifest: of the code, of tests and of build scripts, on every platform.
fn dependencies(text: &str, known: &BTreeMap<String, String>) -> Vec<Dependency> {
    let manifest = DeTable::parse(text).unwrap();
    let platforms = manifest.get_ref().get("target").and_then(|target| target.get_ref().as_table());
    let platforms =
        platforms.into_iter().flat_map(DeTable::values).filter_map(|platform| platform.get_ref().as_table());
    let mut found = Vec::new();
    for table in platforms.chain([manifest.get_ref()]) {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let Some(listed) = table.get(kind).and_then(|listed| listed.get_ref().as_table()) else { continue };
            for (key, value) in listed {
                let name = key.get_ref().to_string();
                let own = value.get_ref().get("package").and_then(|package| package.get_ref().as_str());
                let package = own.map(str::to_owned).or_else(|| known.get(&name).cloned()).unwrap_or(name);
                let line = text[..key.span().start].matches('\n').count() + 1;
                found.push(Dependency { package, line, is_for_tests: kind == "dev-dependencies" });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HOUSE, report::places};

    /// What is found in the whole house, when one of its crates has this in its manifest.
    fn found(folder: &str, more: &str) -> Vec<String> {
        let workspace = "[workspace.dependencies]\nrenamed = { path = \"host/mcp\", package = \"footbridge-mcp\" }\n";
        let mut files = vec![("Cargo.toml".to_owned(), workspace.to_owned())];
        for one in HOUSE.crates() {
            let more = if one.folder == folder { more } else { "" };
            let manifest = format!("[package]\nname = \"{}\"\n{more}", one.package);
            files.push((format!("{}/Cargo.toml", one.folder), manifest));
        }
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        places(&check(&Tree::of(&files), &HOUSE))
    }

    #[test]
    fn a_crate_depends_on_earlier_ones_only() {
        for (folder, more) in [
            ("host/audit", "[dependencies]\nfootbridge-calls.workspace = true"),
            ("host/audit", "[dev-dependencies]\nfootbridge-calls = { workspace = true }"),
            ("host/audit", "[dependencies]\nrenamed = { workspace = true }"),
            ("host/audit", "[dependencies]\nx = { path = \"../mcp\", package = \"footbridge-mcp\" }"),
            ("host/audit", "[target.'cfg(unix)'.dependencies]\nfootbridge-mcp = { path = \"../mcp\" }"),
            ("host/audit", "[dependencies]\nfootbridge-audit = { path = \".\" }"),
            ("host/footbridge", "[dependencies]\nfootbridge-guest = { workspace = true }"),
            ("host/footbridge", "[build-dependencies]\nfootbridge-other = \"1\""),
            ("guest", "[dependencies]\nfootbridge-core = { workspace = true }"),
            ("proto/cli", "[dependencies]\nfootbridge-guest = { workspace = true }"),
            ("host/edge", "[dependencies]\nfootbridge-cli = { workspace = true }"),
            ("host/edge", "[dependencies]\nfootbridge-domains = { workspace = true }"),
            ("proto/domains", "[dependencies]\nfootbridge-cli = { workspace = true }"),
            ("proto", "[dev-dependencies]\nfootbridge-guest = { workspace = true }"),
        ] {
            assert_eq!(found(folder, more), [format!("{folder}/Cargo.toml:4")], "{more}");
        }
        for (folder, more) in [
            ("host/audit", "[dependencies]\nfootbridge-core = { workspace = true }\ntokio = \"1\""),
            ("host/audit", "[dev-dependencies]\nfootbridge-audit = { path = \".\", features = [\"testing\"] }"),
            ("host/footbridge", "[dependencies]\nrenamed = { workspace = true }\nfootbridge-proto = { path = \"x\" }"),
            ("guest", "[dependencies]\nfootbridge-proto = { workspace = true }\nfootbridge-cli = { workspace = true }"),
            ("host/footbridge", "[dependencies]\nfootbridge-cli = { workspace = true }"),
            ("guest", "[dependencies]\nfootbridge-domains = { workspace = true }"),
            ("host/processes", "[dependencies]\nfootbridge-domains = { workspace = true }"),
        ] {
            assert_eq!(found(folder, more), [] as [&str; 0], "{more}");
        }
    }

    #[test]
    fn crates_and_table_are_the_same() {
        let tree = Tree::of(&[
            ("proto/Cargo.toml", "[package]\nname = \"footbridge-proto\""),
            ("proto/cli/Cargo.toml", "[package]\nname = \"footbridge-cli\""),
            ("proto/domains/Cargo.toml", "[package]\nname = \"footbridge-domains\""),
            ("guest/Cargo.toml", "[package]\nname = \"guest\""),
            ("host/Cargo.toml", "[package]\nname = \"footbridge\""),
            ("host/more/Cargo.toml", "[package]\nname = \"footbridge-more\""),
        ]);
        let found = check(&tree, &House { host: &HOUSE.host[..1], ..HOUSE });
        let expected = ["guest/Cargo.toml:1", "host/core/Cargo.toml:1", "host/Cargo.toml:1", "host/more/Cargo.toml:1"];
        assert_eq!(places(&found), expected);
    }
}
