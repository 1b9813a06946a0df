//! An admission used up with nothing sent.

use footbridge_calls::admit::Admitted;
use footbridge_calls::{upstream::Executed, provider::{NoAnswer, Outcome}};

async fn pretended(admitted: Admitted) -> Executed {
    Executed::by(admitted, |_| async { Outcome::Unknown(NoAnswer::Timeout) }).await
}

fn main() {}
