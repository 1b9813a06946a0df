//! A copy of an admission, to use it again.

use footbridge_calls::admit::Admitted;

fn copied(admitted: &Admitted) -> Admitted {
    admitted.clone()
}

fn main() {}
