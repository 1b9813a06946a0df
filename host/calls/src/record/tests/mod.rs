//! The record under a journal that fails, is slow, or is full: no call without a record, whatever happens.

mod asked;
mod disk;
mod faults;
mod fields;
mod journal;
mod ledger;
mod operations;
mod services;
mod world;

use journal::{Fault, Memory};
use ledger::Ledger;
use world::World;
