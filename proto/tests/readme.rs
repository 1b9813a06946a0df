//! The README's tables say what the code says.

use footbridge_proto::exit::ExitCode;

const README: &str = include_str!("../../README.md");

#[test]
fn the_readme_lists_every_exit_code_in_order() {
    let rows: Vec<String> =
        ExitCode::TABLE.iter().map(|(code, what)| format!("| {} | {what} |", *code as u8)).collect();
    assert!(README.contains(&rows.join("\n")), "the table should read:\n{}", rows.join("\n"));
}
