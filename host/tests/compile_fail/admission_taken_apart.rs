//! An admission taken apart, to send what is in it by other means.

use footbridge::{
    audit::{Admitted, Receipt},
    provider::Outgoing,
};

fn taken_apart(admitted: Admitted) -> (Outgoing, Receipt) {
    admitted.depart()
}

fn main() {}
