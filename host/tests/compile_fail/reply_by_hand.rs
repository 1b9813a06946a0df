//! An answer that no record stands behind.

use footbridge::{audit::Reply, servers::RawResult};

fn written(result: RawResult) -> Reply {
    Reply { answer: Ok(result), admitted: true }
}

fn main() {}
