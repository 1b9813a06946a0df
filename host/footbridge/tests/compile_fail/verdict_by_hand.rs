//! A verdict that no policy gave.

use footbridge_core::gate::{Decided, Decision};
use footbridge_calls::decide::Verdict;
use footbridge_calls::resolve::ResolvedCall;

fn allowed(call: ResolvedCall) -> Verdict {
    Verdict { call, decided: Decided { decision: Decision::Allow, rule: None } }
}

fn main() {}
