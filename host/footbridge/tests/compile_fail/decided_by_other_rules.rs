//! A call that is decided about by other rules than those its names were looked up with.

use footbridge_core::gate::SessionRules;
use footbridge_calls::decide::{Verdict, decide};
use footbridge_calls::resolve::ResolvedCall;

fn by_others(rules: &SessionRules, call: ResolvedCall) -> Verdict {
    decide(rules, call)
}

fn main() {}
