//! The tables of the documentation say what the code says.

use footbridge_proto::exit::ExitCode;

const TOOL_CLI: &str = include_str!("../../docs/tool-cli.md");

#[test]
fn the_documentation_lists_every_exit_code_in_order() {
    let rows: Vec<String> =
        ExitCode::TABLE.iter().map(|(code, what)| format!("| {} | {what} |", *code as u8)).collect();
    assert!(TOOL_CLI.contains(&rows.join("\n")), "the table should read:\n{}", rows.join("\n"));
}
