//! A verdict whose call is exchanged for another one.

use footbridge::{gate::Verdict, resolve::ResolvedCall};

fn exchanged(mut verdict: Verdict, other: ResolvedCall) -> Verdict {
    verdict.call = other;
    verdict
}

fn main() {}
