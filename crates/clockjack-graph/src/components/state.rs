//! Snapshots of components as sequences of words. Not suitable for state that contains strings.
//!
//! A number is saved by its bits, so a restored component continues exactly where the snapshot was
//! taken.

use clockjack_exec::Failure;

use crate::component::{Component, Snapshot};

/// The format of all these snapshots: words of eight bytes, little-endian.
const VERSION: u32 = 1;

/// A snapshot of these words.
pub(super) fn snapshot_of<C: Component>(words: impl IntoIterator<Item = u64>) -> Snapshot {
    let payload = words.into_iter().flat_map(u64::to_le_bytes).collect();
    Snapshot { component_type: C::TYPE.into(), version: VERSION, payload }
}

/// The words of a snapshot; empty if the snapshot is empty.
///
/// # Errors
///
/// A failure, if the snapshot has another type or version, or is not a whole number of words.
pub(super) fn words_of<C: Component>(snapshot: &Snapshot) -> Result<Vec<u64>, Failure> {
    let Snapshot { component_type, version, payload } = snapshot;
    if component_type != C::TYPE {
        let wanted = C::TYPE;
        let text = format!("`{wanted}` cannot restore a snapshot of `{component_type}`");
        return Err(Failure::msg(text));
    }
    let (words, rest) = payload.as_chunks::<8>();
    if *version != VERSION || !rest.is_empty() {
        let n = payload.len();
        let text = format!("{n} bytes of version {version} are not a snapshot of `{}`", C::TYPE);
        return Err(Failure::msg(text));
    }
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// Exactly `N` words of a snapshot; `None` if the snapshot is empty.
///
/// # Errors
///
/// Like [`words_of`], and if the number of words differs.
pub(super) fn words_exact<C: Component, const N: usize>(
    snapshot: &Snapshot,
) -> Result<Option<[u64; N]>, Failure> {
    let words = words_of::<C>(snapshot)?;
    if words.is_empty() {
        return Ok(None);
    }
    let n = words.len();
    let wrong = |_| Failure::msg(format!("a snapshot of `{}` has {N} words, not {n}", C::TYPE));
    words.try_into().map(Some).map_err(wrong)
}

/// A value that fits into a word: a count, or a float by its bits.
pub(super) trait Word: Copy + Default {
    fn to_word(self) -> u64;
    fn from_word(word: u64) -> Self;
}

impl Word for u64 {
    fn to_word(self) -> u64 {
        self
    }

    fn from_word(word: u64) -> Self {
        word
    }
}

impl Word for f64 {
    fn to_word(self) -> u64 {
        self.to_bits()
    }

    fn from_word(word: u64) -> Self {
        Self::from_bits(word)
    }
}

/// Implements `reset`, `snapshot` and `restore` for the fields that are a component's whole state.
/// Each field is a [`Word`] that starts at zero; an empty snapshot restores the zeros.
macro_rules! snapshot_fields {
    ($( $field:ident ),+) => {
        fn reset(&mut self) -> Result<(), clockjack_exec::Failure> {
            $( self.$field = Default::default(); )+
            Ok(())
        }

        fn snapshot(
            &mut self,
        ) -> Result<Option<crate::component::Snapshot>, clockjack_exec::Failure> {
            use crate::components::state::{Word, snapshot_of};
            Ok(Some(snapshot_of::<Self>([$( Word::to_word(self.$field) ),+])))
        }

        fn restore(
            &mut self,
            snapshot: &crate::component::Snapshot,
        ) -> Result<(), clockjack_exec::Failure> {
            use crate::components::state::{Word, words_exact};
            const N: usize = [$( stringify!($field) ),+].len();
            let [$( $field ),+] = words_exact::<Self, N>(snapshot)?.unwrap_or([0; N]);
            $( self.$field = Word::from_word($field); )+
            Ok(())
        }
    };
}
pub(super) use snapshot_fields;
