//! The walls between the stages: what other crates must not be able to write does not build, and for the right reason.
//!
//! Each file in `walls/` is code as any other crate would write it. A line that must not build ends with the code of
//! its error, `//~ E0624`; the line below may say what is allowed in its place, `//= ...`. A file is checked twice: as
//! it is, where exactly the marked errors are demanded, each on its line; and as its twin, without the marked lines,
//! which must build. So no wall is held up by a wrong path or by another mistake.
//!
//! One `cargo check` does it all, on a package that depends on every crate of the host.
//!
//! Failure paths: whatever is wrong in any file is reported at once, with rustc's text.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

#[path = "walls_check/case.rs"]
mod case;
#[path = "walls_check/checked.rs"]
mod checked;
#[path = "walls_check/manifest.rs"]
mod manifest;
#[path = "walls_check/package.rs"]
mod package;

use case::Case;
use package::Package;

#[test]
fn a_stage_can_be_neither_left_out_nor_repeated_nor_forged() {
    let (cases, mut wrong) = Case::all();
    let checked = Package::write(&cases).check();
    for case in &cases {
        wrong.extend(checked.wrong_about(case));
    }
    assert!(wrong.is_empty(), "{} found:\n\n{}", wrong.len(), wrong.join("\n\n"));
}
