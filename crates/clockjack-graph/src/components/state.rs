//! The state of a component as words, for snapshots. Not for states that have a text in them.
//!
//! A number is kept by its bits, so what is restored goes on exactly as what was written down.

use clockjack_exec::Failure;

use crate::component::{Component, Snapshot};

/// The format of all snapshots here: words of eight bytes, the lowest byte first.
const VERSION: u32 = 1;

/// A snapshot of these words.
pub(super) fn snapshot_of<C: Component>(words: impl IntoIterator<Item = u64>) -> Snapshot {
    let payload = words.into_iter().flat_map(u64::to_le_bytes).collect();
    Snapshot { component_type: C::TYPE.into(), version: VERSION, payload }
}

/// The words of a snapshot; none, if it is empty.
///
/// # Errors
///
/// A failure, if it is of another type or version, or not of whole words.
pub(super) fn words_of<C: Component>(snapshot: &Snapshot) -> Result<Vec<u64>, Failure> {
    let Snapshot { component_type, version, payload } = snapshot;
    if component_type != C::TYPE {
        let wanted = C::TYPE;
        let text = format!("`{wanted}` cannot take the state of `{component_type}`");
        return Err(Failure::msg(text));
    }
    let (words, rest) = payload.as_chunks::<8>();
    if *version != VERSION || !rest.is_empty() {
        let n = payload.len();
        let text = format!("{n} bytes of version {version} are no state of `{}`", C::TYPE);
        return Err(Failure::msg(text));
    }
    Ok(words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}

/// The words of a snapshot, as many as are wanted; `None`, if it is empty.
///
/// # Errors
///
/// As [`words_of`], and if there are more or less.
pub(super) fn exact<C: Component, const N: usize>(
    snapshot: &Snapshot,
) -> Result<Option<[u64; N]>, Failure> {
    let words = words_of::<C>(snapshot)?;
    if words.is_empty() {
        return Ok(None);
    }
    let n = words.len();
    let wrong = |_| Failure::msg(format!("`{}` has {N} words, not {n}", C::TYPE));
    words.try_into().map(Some).map_err(wrong)
}

/// What fits a word, whole: a count, or a number by its bits.
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

/// Resets, writes down and takes back the fields that are a component's whole state. Each is a
/// [`Word`] that begins at zero, and an empty snapshot is that beginning.
macro_rules! keeps {
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
            use crate::components::state::{Word, exact};
            const N: usize = [$( stringify!($field) ),+].len();
            let [$( $field ),+] = exact::<Self, N>(snapshot)?.unwrap_or([0; N]);
            $( self.$field = Word::from_word($field); )+
            Ok(())
        }
    };
}
pub(super) use keeps;
