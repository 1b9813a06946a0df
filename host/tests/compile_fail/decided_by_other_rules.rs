//! A call that is decided about by other rules than those its names were looked up with.

use footbridge::{
    gate::{SessionRules, Verdict, decide},
    resolve::ResolvedCall,
};

fn by_others(rules: &SessionRules, call: ResolvedCall) -> Verdict {
    decide(rules, call)
}

fn main() {}
