//! An admission that no audit stage gave.

use footbridge::{
    audit::{Admitted, Receipt},
    provider::Outgoing,
};

fn admitted(outgoing: Outgoing, receipt: Receipt) -> Admitted {
    Admitted { outgoing, receipt }
}

fn main() {}
