//! Blocks that `#[actor]` and `#[derive(Component)]` refuse, with the messages of the compiler.
//!
//! After a change of a message, `TRYBUILD=overwrite cargo test -p clockjack-macros --test ui`
//! writes the new texts; read them as a newcomer would before you commit them.

#[test]
fn what_is_refused_is_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
