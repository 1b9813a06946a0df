//! A verdict whose call is exchanged for another one.

use footbridge_calls::decide::Verdict;
use footbridge_calls::resolve::ResolvedCall;

fn exchanged(mut verdict: Verdict, other: ResolvedCall) -> Verdict {
    verdict.call = other;
    verdict
}

fn main() {}
