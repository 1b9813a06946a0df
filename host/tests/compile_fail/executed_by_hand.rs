//! An outcome for a call that was not carried out.

use footbridge::{
    audit::Receipt,
    servers::{Executed, Outcome},
};

fn written(receipt: Receipt, outcome: Outcome) -> Executed {
    Executed { receipt, outcome }
}

fn main() {}
