//! A call that nobody cleared.

use footbridge::{approval::Cleared, gate::Verdict};

fn cleared(verdict: Verdict) -> Cleared {
    Cleared { verdict, approval: None }
}

fn main() {}
