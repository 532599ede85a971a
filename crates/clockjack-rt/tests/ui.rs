//! Programs that the compiler refuses, with its messages: they have to say what is wrong.
//!
//! After a change of a message, `TRYBUILD=overwrite cargo test -p clockjack-rt --test ui` writes
//! the new texts; read them as a newcomer would before you commit them.
#![cfg(not(loom))]

#[test]
fn what_the_compiler_refuses_is_explained() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
