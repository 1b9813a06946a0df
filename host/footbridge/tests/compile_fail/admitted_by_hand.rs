//! An admission that no audit stage gave.

use footbridge_calls::admit::Admitted;
use footbridge_audit::Receipt;
use footbridge_calls::provider::Outgoing;

fn admitted(outgoing: Outgoing, receipt: Receipt) -> Admitted {
    Admitted { outgoing, receipt }
}

fn main() {}
