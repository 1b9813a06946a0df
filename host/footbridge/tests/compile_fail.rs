//! The order of the stages, pinned: what leaves one out, repeats one or forges its proof does not build.

#[test]
fn a_stage_can_be_neither_left_out_nor_repeated_nor_forged() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}
