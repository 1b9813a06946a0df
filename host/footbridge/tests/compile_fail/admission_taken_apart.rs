//! An admission taken apart, to send what is in it by other means.

use footbridge_calls::admit::Admitted;
use footbridge_audit::Receipt;
use footbridge_calls::provider::Outgoing;

fn taken_apart(admitted: Admitted) -> (Outgoing, Receipt) {
    admitted.depart()
}

fn main() {}
