//! The binary `footbridge`.

fn main() {
    footbridge::hidden::dispatch();
    let status = footbridge::cli::main();
    std::process::exit(status);
}
