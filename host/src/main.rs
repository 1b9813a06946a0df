//! The binary `footbridge`. It exists so far only to carry the hidden subcommands.

fn main() {
    footbridge::hidden::dispatch();
}
