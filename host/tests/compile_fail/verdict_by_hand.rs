//! A verdict that no policy gave.

use footbridge::{
    gate::{Decision, Policy, Verdict},
    resolve::ResolvedCall,
};

fn allowed(call: ResolvedCall) -> Verdict {
    Verdict { call, decision: Decision::Allow, policy: Policy::Open }
}

fn main() {}
