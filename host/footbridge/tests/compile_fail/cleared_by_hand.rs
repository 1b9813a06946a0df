//! A call that nobody cleared.

use footbridge_calls::approval::Cleared;
use footbridge_calls::decide::Verdict;

fn cleared(verdict: Verdict) -> Cleared {
    Cleared { verdict, approval: None }
}

fn main() {}
