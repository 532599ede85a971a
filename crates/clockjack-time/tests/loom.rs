//! Races of this crate, explored by loom. Each model is run for every twin that it concerns.
#![cfg(loom)]

#[path = "loom/word.rs"]
mod word;
