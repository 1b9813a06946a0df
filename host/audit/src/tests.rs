//! Chains and their heads, written and read.

mod chain;
mod fields;
mod heads;
mod shared;
mod writer;
