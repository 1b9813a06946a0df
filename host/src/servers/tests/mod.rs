//! Tests of the whole stage against misbehaving servers.
