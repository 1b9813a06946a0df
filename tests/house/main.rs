//! The house rules: what holds for the code as a whole and no compiler checks, read from its text.
//!
//! Which crates there are and in which order is [`HOUSE`]; each rule is a module with tests of its own on small trees.
//! It runs no cargo and needs no network: `cargo test -p footbridge-tests --test house`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod attributes;
mod circles;
mod code;
mod functions;
mod headers;
mod manifests;
mod modules;
mod names;
mod programs;
mod report;
mod resolve;
mod spawns;
mod tokens;
mod tree;
mod tuples;
mod words;

use std::sync::OnceLock;

use programs::Sources;
use report::none;
use tree::Tree;

/// A crate of the workspace.
#[derive(Debug, Clone, Copy)]
struct Crate {
    folder: &'static str,
    package: &'static str,
}

/// What the workspace consists of, and its measures.
#[derive(Debug, Clone, Copy)]
struct House {
    /// What both sides speak; it depends on nothing of ours.
    contract: Crate,
    /// What the commands of both sides share; it depends on the contract alone.
    commands: Crate,
    /// What programs of both sides confine by; it depends on the contract alone.
    domains: Crate,
    /// It depends on these three alone.
    guest: Crate,
    /// Each may depend on the contract and on those before it; the last one on what commands share, and one on domains.
    host: &'static [Crate],
    /// The one that starts programs.
    processes: &'static str,
    /// Where alone a database's types may be named.
    database: &'static str,
    /// A function has at most so many lines.
    lines: usize,
    /// A line that is longer than this counts as several.
    columns: usize,
    /// Files and functions with a parameter that is a pair by nature.
    pairs: &'static [(&'static str, &'static str)],
}

const HOUSE: House = House {
    contract: Crate { folder: "proto", package: "footbridge-proto" },
    commands: Crate { folder: "proto/cli", package: "footbridge-cli" },
    domains: Crate { folder: "proto/domains", package: "footbridge-domains" },
    guest: Crate { folder: "guest", package: "footbridge-guest" },
    host: &[
        Crate { folder: "host/core", package: "footbridge-core" },
        Crate { folder: "host/audit", package: "footbridge-audit" },
        Crate { folder: "host/processes", package: "footbridge-processes" },
        Crate { folder: "host/outbound", package: "footbridge-outbound" },
        Crate { folder: "host/calls", package: "footbridge-calls" },
        Crate { folder: "host/mcp", package: "footbridge-mcp" },
        Crate { folder: "host/services", package: "footbridge-services" },
        Crate { folder: "host/edge", package: "footbridge-edge" },
        Crate { folder: "host/footbridge", package: "footbridge" },
    ],
    processes: "host/processes",
    database: "host/footbridge/src/store/sqlite",
    lines: 60,
    columns: 100,
    // The name and the value of an argument.
    pairs: &[("guest/src/methods.rs", "complete")],
};

impl House {
    fn crates(&self) -> impl Iterator<Item = &Crate> {
        [&self.contract, &self.commands, &self.domains, &self.guest].into_iter().chain(self.host)
    }
}

fn tree() -> &'static Tree {
    static TREE: OnceLock<Tree> = OnceLock::new();
    TREE.get_or_init(|| Tree::read(&["proto", "guest", "host", "tests"]))
}

fn sources() -> &'static Sources {
    static SOURCES: OnceLock<Sources> = OnceLock::new();
    SOURCES.get_or_init(|| Sources::read(tree(), &HOUSE))
}

#[test]
fn crates_depend_on_earlier_ones_only() {
    none(&manifests::check(tree(), &HOUSE));
}

#[test]
fn every_module_is_found_and_understood() {
    none(&sources().left_out(&HOUSE));
}

#[test]
fn modules_use_each_other_in_no_circle() {
    none(&circles::check(sources()));
}

#[test]
fn functions_fit_on_a_page() {
    none(&functions::check(tree(), sources(), &HOUSE));
}

#[test]
fn no_parameter_is_a_tuple_of_several_things() {
    none(&tuples::check(sources(), &HOUSE));
}

#[test]
fn nothing_runs_or_waits_in_line_unaccounted() {
    none(&spawns::check(sources()));
}

#[test]
fn a_public_type_has_its_name_for_itself() {
    none(&names::check(sources()));
}

#[test]
fn every_file_says_what_it_is() {
    none(&headers::check(tree()));
}

#[test]
fn what_the_compiler_cannot_check_is_in_files_named_sys() {
    none(&words::unchecked(tree()));
}

#[test]
fn the_database_is_named_in_the_store_alone() {
    none(&words::database(tree(), &HOUSE));
}
