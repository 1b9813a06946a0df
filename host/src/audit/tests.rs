//! The record under a journal that fails.
