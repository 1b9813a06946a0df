//! An outcome for a call that was not carried out.

use footbridge::{
    audit::Receipt,
    provider::{Executed, Outcome},
};

fn written(receipt: Receipt, outcome: Outcome) -> Executed {
    Executed { receipt, outcome }
}

fn main() {}
