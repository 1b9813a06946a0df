//! A copy of an admission, to use it again.

use footbridge::audit::Admitted;

fn copied(admitted: &Admitted) -> Admitted {
    admitted.clone()
}

fn main() {}
