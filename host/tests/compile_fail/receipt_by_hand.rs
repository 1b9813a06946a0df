//! A receipt for an intent that was never written.

use std::time::Instant;

use footbridge::{audit::Receipt, servers::ServerName};

fn receipt(server: ServerName) -> Receipt {
    Receipt { id: "forged".to_owned(), server, resource: None, since: Instant::now() }
}

fn main() {}
