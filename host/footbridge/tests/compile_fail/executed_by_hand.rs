//! An outcome for a call that was not carried out.

use footbridge_audit::Receipt;
use footbridge_calls::{upstream::Executed, provider::Outcome};

fn written(receipt: Receipt, outcome: Outcome) -> Executed {
    Executed { receipt, outcome }
}

fn main() {}
