//! A verdict that no policy gave.

use footbridge::{
    gate::{Decided, Decision, Verdict},
    resolve::ResolvedCall,
};

fn allowed(call: ResolvedCall) -> Verdict {
    Verdict { call, decided: Decided { decision: Decision::Allow, rule: None } }
}

fn main() {}
