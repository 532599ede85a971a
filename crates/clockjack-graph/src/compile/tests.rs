//! Graphs made in a few words for the tests of the compiler.
