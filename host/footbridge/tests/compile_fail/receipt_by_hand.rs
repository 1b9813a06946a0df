//! A receipt for an intent that was never written.

use std::time::Instant;

use footbridge_audit::Receipt;
use footbridge_core::names::ServerName;

fn receipt(server: ServerName) -> Receipt {
    Receipt { id: "forged".to_owned(), server, resource: None, since: Instant::now() }
}

fn main() {}
