//! The decisions of routers: which routee gets a message, and how many routees a pool should have.
//!
//! The [`HashRing`] is consistent hashing (Karger and others, "Consistent hashing and random
//! trees", 1997).
//!
//! Routees are identified by their index, `0..n_routees`, and on a [`HashRing`] by a permanent id.
//! Nothing here sends, spawns or reads a clock, and all results are the same in every run and on
//! every machine: [`Random`] has a seed, and keys are hashed by [`StableHasher`].

use alloc::vec::Vec;
use core::{
    fmt,
    hash::{Hash, Hasher},
};

use clockjack_sync::splitmix::{STEP, mix};

/// Chooses the routees in rotation. The rotation continues at the same index if routees come or go.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    next_index: usize,
}

impl RoundRobin {
    /// Starts with the first routee.
    #[must_use]
    pub const fn new() -> Self {
        Self { next_index: 0 }
    }

    /// The next routee; `None` if there are no routees.
    pub fn pick(&mut self, n_routees: usize) -> Option<usize> {
        let index = if self.next_index < n_routees { self.next_index } else { 0 };
        self.next_index = index + 1;
        (index < n_routees).then_some(index)
    }
}

/// Chooses all routees.
#[derive(Clone, Copy, Debug, Default)]
pub struct Broadcast;

impl Broadcast {
    /// The indices of all routees, in order.
    #[must_use]
    pub fn pick(self, n_routees: usize) -> core::ops::Range<usize> {
        0..n_routees
    }
}

/// Chooses the routee with the fewest messages; routees with equal numbers are chosen in rotation.
#[derive(Clone, Debug, Default)]
pub struct SmallestMailbox {
    /// Where the search begins: after the routee that was chosen last.
    first_index: usize,
}

impl SmallestMailbox {
    /// Starts with the first routee among equals.
    #[must_use]
    pub const fn new() -> Self {
        Self { first_index: 0 }
    }

    /// The routee with the shortest mailbox; `None` if there are no routees.
    ///
    /// Each length is read at most once, because it may change concurrently. The search stops at an
    /// empty mailbox: none can be shorter.
    pub fn pick(
        &mut self,
        n_routees: usize,
        mut len_of: impl FnMut(usize) -> usize,
    ) -> Option<usize> {
        let first_index = if self.first_index < n_routees { self.first_index } else { 0 };
        let mut best: Option<(usize, usize)> = None;
        for index in (first_index..n_routees).chain(0..first_index) {
            let len = len_of(index);
            if best.is_none_or(|(best_len, _)| len < best_len) {
                best = Some((len, index));
            }
            if len == 0 {
                break;
            }
        }
        let (_, index) = best?;
        self.first_index = index + 1;
        Some(index)
    }
}

/// Chooses routees by a seeded pseudo-random sequence (`SplitMix64`, by Steele, Lea and Flood).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The chosen routee; `None` if there are no routees.
    pub fn pick(&mut self, n_routees: usize) -> Option<usize> {
        if n_routees == 0 {
            return None;
        }
        self.state = self.state.wrapping_add(STEP);
        // Multiply-shift: the high half of the product is less than the factor, and uniform to
        // within 2^-64 of it.
        let product = u128::from(mix(self.state)) * (n_routees as u128);
        Some(usize::try_from(product >> 64).expect("less than `n_routees`"))
    }
}

/// The default number of virtual nodes per routee on a [`HashRing`]. With it, the busiest of fifty
/// routees gets about a third more keys than the mean.
pub const VIRTUAL_NODES_DEFAULT: usize = 64;
/// The most virtual nodes per routee; more would only cost memory.
pub const VIRTUAL_NODES_MAX: usize = 4096;

/// A ring for consistent hashing: a key stays with its routee as long as the routee is on the ring,
/// and when a routee is added or removed, only the keys move that it gains or loses.
///
/// Each routee has a number of virtual nodes on a circle of hashes, and a key belongs to the next
/// node (Karger and others, "Consistent hashing and random trees", 1997).
///
/// # Examples
///
/// ```
/// use clockjack_actor::router_logic::{VIRTUAL_NODES_DEFAULT, HashRing, hash_of};
///
/// let mut ring = HashRing::new(VIRTUAL_NODES_DEFAULT);
/// ring.resize(8);
/// let routee = ring.pick(hash_of("customer 7"));
/// assert_eq!(ring.pick(hash_of("customer 7")), routee);
/// ```
#[derive(Clone, Debug)]
pub struct HashRing {
    /// Virtual nodes as pairs of hash and routee, sorted; equal hashes are sorted by routee.
    nodes: Vec<(u64, u64)>,
    nodes_each: usize,
}

impl HashRing {
    /// A ring without routees. `nodes_each` is clamped to `1..=VIRTUAL_NODES_MAX`.
    #[must_use]
    pub const fn new(nodes_each: usize) -> Self {
        let nodes_each = match nodes_each {
            0 => 1,
            n if n > VIRTUAL_NODES_MAX => VIRTUAL_NODES_MAX,
            n => n,
        };
        Self { nodes: Vec::new(), nodes_each }
    }

    /// The number of routees.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len() / self.nodes_each
    }

    /// Whether there are no routees.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether the routee is on the ring.
    #[must_use]
    pub fn contains(&self, routee: u64) -> bool {
        self.nodes.binary_search(&(node_hash(routee, 0), routee)).is_ok()
    }

    /// Adds a routee. Returns false if it is on the ring already.
    pub fn insert(&mut self, routee: u64) -> bool {
        let is_new = !self.contains(routee);
        if is_new {
            self.append(routee);
            self.nodes.sort_unstable();
        }
        is_new
    }

    /// Removes a routee. Returns false if it is not on the ring.
    pub fn remove(&mut self, routee: u64) -> bool {
        let was_there = self.contains(routee);
        self.nodes.retain(|(_, other)| *other != routee);
        was_there
    }

    /// Sets the routees to exactly `0..n_routees`, as a pool needs it.
    pub fn resize(&mut self, n_routees: usize) {
        let n_routees = n_routees as u64;
        self.nodes.retain(|(_, routee)| *routee < n_routees);
        let missing: Vec<_> = (0..n_routees).filter(|routee| !self.contains(*routee)).collect();
        missing.into_iter().for_each(|routee| self.append(routee));
        self.nodes.sort_unstable();
    }

    /// The routee of a key; `None` if there are no routees. Any hash is suitable, even the key
    /// itself.
    #[must_use]
    pub fn pick(&self, key_hash: u64) -> Option<u64> {
        let point = mix(key_hash ^ KEYS);
        let index = self.nodes.partition_point(|(node, _)| *node < point);
        let (_, routee) = self.nodes.get(index).or(self.nodes.first())?;
        Some(*routee)
    }

    fn append(&mut self, routee: u64) {
        self.nodes.extend((0..self.nodes_each as u64).map(|nth| (node_hash(routee, nth), routee)));
    }
}

/// The load of a routee, as a [`Resizer`] uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// The number of messages in the mailbox.
    pub mailbox_len: usize,
    /// Whether the routee is handling a message.
    pub is_busy: bool,
}

/// Decides how many routees a pool should have, from their load.
///
/// The pool grows when every routee is under pressure, and shrinks when only a small part is busy.
/// It always keeps one routee more than are busy, so that shrinking does not cause the next growth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resizer {
    /// The smallest number of routees.
    pub routees_min: usize,
    /// The largest number of routees.
    pub routees_max: usize,
    /// A routee is under pressure if it is busy and at least this many messages wait. With 0, being
    /// busy is enough.
    pub pressure_len: usize,
    /// The most routees by which the pool grows or shrinks at once.
    pub step: usize,
    /// The pool shrinks if less than this percentage of the routees is busy.
    pub busy_percent_min: u8,
}

/// The decision of a [`Resizer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resize {
    /// Keep the number of routees.
    Stay,
    /// Add this many routees.
    Grow(usize),
    /// Remove this many routees.
    Shrink(usize),
}

impl Resizer {
    /// Between 1 and 10 routees, changed by up to two at a time: more if each busy routee has a
    /// further message waiting, fewer if less than 30 % are busy.
    pub const DEFAULT: Self =
        Self { routees_min: 1, routees_max: 10, pressure_len: 1, step: 2, busy_percent_min: 30 };

    /// Checks the settings.
    ///
    /// # Errors
    ///
    /// If `routees_min` is 0 or greater than `routees_max`, if `step` is 0, or if
    /// `busy_percent_min` is greater than 100.
    pub fn validate(&self) -> Result<(), ResizerError> {
        let Self { routees_min, routees_max, step, busy_percent_min, .. } = *self;
        if routees_min == 0 {
            Err(ResizerError("`routees_min` is 0: there would be no receiver for messages"))
        } else if routees_min > routees_max {
            Err(ResizerError("`routees_min` is greater than `routees_max`"))
        } else if step == 0 {
            Err(ResizerError("`step` is 0: the pool would never change"))
        } else if busy_percent_min > 100 {
            Err(ResizerError("`busy_percent_min` is greater than 100"))
        } else {
            Ok(())
        }
    }

    /// Decides from the load of every routee. A pool outside of its bounds is brought to them at
    /// once.
    #[must_use]
    pub fn decide(&self, routees: impl IntoIterator<Item = Load>) -> Resize {
        let (mut n_routees, mut n_busy, mut n_pressed) = (0_usize, 0_usize, 0_usize);
        for load in routees {
            n_routees += 1;
            n_busy += usize::from(load.is_busy);
            n_pressed += usize::from(load.is_busy && load.mailbox_len >= self.pressure_len);
        }
        let target = if n_pressed == n_routees {
            n_routees.saturating_add(self.step)
        } else if self.is_slack(n_routees, n_busy) {
            n_routees.saturating_sub(self.step).max(n_busy + 1)
        } else {
            n_routees
        };
        let target = target.max(self.routees_min).min(self.routees_max);
        match target {
            target if target > n_routees => Resize::Grow(target - n_routees),
            target if target < n_routees => Resize::Shrink(n_routees - target),
            _ => Resize::Stay,
        }
    }

    fn is_slack(&self, n_routees: usize, n_busy: usize) -> bool {
        n_busy.saturating_mul(100) < n_routees.saturating_mul(usize::from(self.busy_percent_min))
    }
}

impl Default for Resizer {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The error of an invalid [`Resizer`]. Permanent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResizerError(&'static str);

impl fmt::Display for ResizerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl core::error::Error for ResizerError {}

/// A fast hash function without a seed, for distributing keys over routees. It is not resistant
/// against keys that are chosen to collide.
///
/// Numbers are hashed by their value, independent of the machine's byte order and word size; only
/// slices of multi-byte numbers reach a hasher as the bytes that they have in memory. Eight bytes
/// at a time are mixed in by a multiplication, and the result goes through the finalizer of
/// `SplitMix64`.
#[derive(Clone, Debug)]
pub struct StableHasher {
    state: u64,
}

impl StableHasher {
    /// A hasher without input.
    #[must_use]
    pub const fn new() -> Self {
        Self { state: STEP }
    }

    fn word(&mut self, word: u64) {
        // Multiplying by an odd factor loses no information. The rotation moves the high bits,
        // which depend on all others, to where the next multiplication spreads them.
        self.state = (self.state ^ word).wrapping_mul(FACTOR).rotate_left(29);
    }
}

impl Default for StableHasher {
    fn default() -> Self {
        Self::new()
    }
}

impl Hasher for StableHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, tail) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.word(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..tail.len()].copy_from_slice(tail);
        self.word(u64::from_le_bytes(last));
        // Distinguishes input that ends in zeros from shorter input.
        self.word(bytes.len() as u64);
    }

    fn write_u8(&mut self, n: u8) {
        self.word(n.into());
    }

    fn write_u16(&mut self, n: u16) {
        self.word(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.word(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        self.word(n);
    }

    fn write_u128(&mut self, n: u128) {
        self.write(&n.to_le_bytes());
    }

    fn write_usize(&mut self, n: usize) {
        self.word(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        // By its value, so that -1 has the same hash on 32-bit machines.
        self.word((n as i64).cast_unsigned());
    }

    fn finish(&self) -> u64 {
        mix(self.state)
    }
}

/// The hash of a key by [`StableHasher`].
#[must_use]
pub fn hash_of<K: Hash + ?Sized>(key: &K) -> u64 {
    let mut hasher = StableHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

/// The fractional part of the square root of 7 in 64 bits, which is odd.
const FACTOR: u64 = 0xa54f_f53a_5f1d_36f1;
/// The fractional part of the square root of 3; distinguishes keys from routees with the same
/// number.
const KEYS: u64 = 0xbb67_ae85_84ca_a73b;

/// The hash of the nth virtual node of a routee.
fn node_hash(routee: u64, nth: u64) -> u64 {
    mix(mix(routee.wrapping_add(STEP)).wrapping_add(nth.wrapping_mul(STEP)))
}

#[cfg(test)]
mod tests {
    use alloc::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn round_robin_wraps() {
        let mut logic = RoundRobin::new();
        let picks: Vec<_> = (0..7).filter_map(|_| logic.pick(3)).collect();
        assert_eq!(picks, [0, 1, 2, 0, 1, 2, 0]);
    }

    #[test]
    fn round_robin_goes_on_where_it_was_if_routees_come_or_go() {
        let mut logic = RoundRobin::new();
        let picks: Vec<_> =
            [2, 2, 3, 4, 4, 2, 1, 1].into_iter().map(|n| logic.pick(n).unwrap()).collect();
        assert_eq!(picks, [0, 1, 2, 3, 0, 1, 0, 0]);
        assert_eq!(logic.pick(0), None);
        assert_eq!(logic.pick(2), Some(1));
    }

    #[test]
    fn a_broadcast_reaches_all() {
        assert!(Broadcast.pick(3).eq([0, 1, 2]));
        assert!(Broadcast.pick(0).is_empty());
    }

    #[test]
    fn the_smallest_mailbox_is_chosen_and_equals_take_turns() {
        let mut logic = SmallestMailbox::new();
        let mut pick = |lens: &[usize]| logic.pick(lens.len(), |index| lens[index]);
        assert_eq!(pick(&[3, 1, 2]), Some(1));
        assert_eq!(pick(&[1, 1, 1]), Some(2));
        assert_eq!(pick(&[1, 1, 1]), Some(0));
        assert_eq!(pick(&[1, 5, 1]), Some(2));
        assert_eq!(pick(&[0, 0]), Some(0));
        assert_eq!(pick(&[0, 0]), Some(1));
        assert_eq!(pick(&[]), None);
    }

    #[test]
    fn the_same_seed_draws_the_same_routees() {
        let draw = |seed| {
            let mut logic = Random::new(seed);
            (0..100).map(|_| logic.pick(10).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert_eq!(draw(1)[..8], [5, 7, 9, 4, 4, 7, 8, 5]);
        assert_eq!(Random::new(1).pick(0), None);
    }

    #[test]
    fn random_draws_are_even() {
        let mut logic = Random::new(7);
        let mut counts = [0_u32; 10];
        (0..10_000).for_each(|_| counts[logic.pick(10).unwrap()] += 1);
        assert!(counts.iter().all(|count| (850..=1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn hashes_are_the_same_on_every_machine() {
        // Worked out by a second program. If they change, keys move to other routees when a
        // program is built again.
        assert_eq!(hash_of(&0_u64), 0x3da0_a0ba_39e5_c9a9);
        assert_eq!(hash_of("customer 7"), 0xad6c_bda9_0c4f_a969);
        assert_eq!(hash_of(&7_usize), hash_of(&7_u64));
        assert_eq!(hash_of(&-1_isize), hash_of(&-1_i64));
        assert_ne!(hash_of(&[0_u8; 3]), hash_of(&[0_u8; 4]));
        assert_ne!(hash_of("a\0"), hash_of("a"));
        assert_ne!(hash_of(&("ab", "c")), hash_of(&("a", "bc")));
    }

    #[test]
    fn each_bit_of_a_key_changes_half_of_the_hash() {
        let n_flips: u32 = (0..64)
            .flat_map(|bit| {
                (0..64_u64).map(move |key| hash_of(&key) ^ hash_of(&(key ^ (1 << bit))))
            })
            .map(u64::count_ones)
            .sum();
        let mean = f64::from(n_flips) / (64.0 * 64.0);
        assert!((31.0..33.0).contains(&mean), "{mean}");
    }

    fn ring(n_routees: usize) -> HashRing {
        let mut ring = HashRing::new(VIRTUAL_NODES_DEFAULT);
        ring.resize(n_routees);
        ring
    }

    #[test]
    fn a_ring_without_routees_picks_none() {
        let mut ring = HashRing::new(0);
        assert!(ring.is_empty());
        assert_eq!(ring.pick(1), None);
        assert!(ring.insert(9) && !ring.insert(9));
        assert_eq!((ring.len(), ring.pick(1), ring.pick(u64::MAX)), (1, Some(9), Some(9)));
        assert!(ring.remove(9) && !ring.remove(9));
        assert_eq!(ring.pick(1), None);
    }

    #[test]
    fn a_ring_spreads_even_keys_that_are_numbers_in_a_row() {
        let ring = ring(10);
        let mut counts = BTreeMap::new();
        (0..10_000).for_each(|key| *counts.entry(ring.pick(key).unwrap()).or_insert(0) += 1);
        assert_eq!(counts.len(), 10);
        assert!(counts.values().all(|count| (600..=1500).contains(count)), "{counts:?}");
    }

    #[test]
    fn keys_stay_with_their_routees_between_runs() {
        let ring = ring(5);
        let picks: Vec<_> = (0..8).map(|key| ring.pick(hash_of(&key)).unwrap()).collect();
        assert_eq!(picks, [1, 3, 2, 4, 2, 0, 2, 2]);
    }

    fn load(mailbox_len: usize, is_busy: bool) -> Load {
        Load { mailbox_len, is_busy }
    }

    #[test]
    fn a_pool_grows_if_all_are_under_pressure_and_shrinks_if_few_are_busy() {
        #[track_caller]
        fn check(loads: &[Load], expected: Resize) {
            assert_eq!(Resizer::DEFAULT.decide(loads.iter().copied()), expected, "{loads:?}");
        }
        let (pressed, busy, idle) = (load(1, true), load(0, true), load(0, false));
        check(&[pressed; 3], Resize::Grow(2));
        check(&[pressed; 9], Resize::Grow(1));
        check(&[pressed; 10], Resize::Stay);
        check(&[pressed, pressed, busy], Resize::Stay);
        // Not yet begun is not yet pressure.
        check(&[load(5, false), pressed], Resize::Stay);
        check(&[idle; 5], Resize::Shrink(2));
        check(&[idle; 2], Resize::Shrink(1));
        check(&[idle; 1], Resize::Stay);
        check(&[pressed, idle, idle], Resize::Stay);
        check(&[pressed, idle, idle, idle], Resize::Shrink(2));
        // Out of bounds.
        check(&[], Resize::Grow(2));
        check(&[pressed; 13], Resize::Shrink(3));
    }

    #[test]
    fn a_resizer_that_cannot_work_is_refused() {
        let good = Resizer::DEFAULT;
        good.validate().unwrap();
        let bad = [
            Resizer { routees_min: 0, ..good },
            Resizer { routees_min: 11, ..good },
            Resizer { step: 0, ..good },
            Resizer { busy_percent_min: 101, ..good },
        ];
        for resizer in bad {
            assert!(resizer.validate().is_err(), "{resizer:?}");
        }
    }

    proptest! {
        #[test]
        fn any_n_picks_in_a_row_reach_each_of_n_routees(
            n_routees in 1_usize..50,
            before in 0_usize..100,
            kind in any::<bool>(),
        ) {
            let (mut robin, mut smallest) = (RoundRobin::new(), SmallestMailbox::new());
            let mut pick = || {
                if kind { robin.pick(n_routees) } else { smallest.pick(n_routees, |_| 3) }
            };
            let mut picks: Vec<_> = (0..before + n_routees).filter_map(|_| pick()).collect();
            picks.drain(..before);
            picks.sort_unstable();
            prop_assert!(picks.into_iter().eq(0..n_routees));
        }

        #[test]
        fn no_mailbox_is_shorter_than_the_chosen_one(
            rounds in prop::collection::vec(prop::collection::vec(0_usize..4, 1..12), 1..20),
        ) {
            let mut logic = SmallestMailbox::new();
            for lens in rounds {
                let index = logic.pick(lens.len(), |index| lens[index]).unwrap();
                prop_assert_eq!(Some(&lens[index]), lens.iter().min());
            }
        }

        #[test]
        fn a_new_routee_takes_its_share_of_the_keys_and_moves_no_others(
            n_routees in 1_usize..24,
            salt in any::<u64>(),
        ) {
            let (small, large) = (ring(n_routees), ring(n_routees + 1));
            let mut n_moved = 0;
            for key in 0..4000 {
                let hash = hash_of(&(salt, key));
                let (before, after) = (small.pick(hash), large.pick(hash));
                if before != after {
                    prop_assert_eq!(after, Some(n_routees as u64));
                    n_moved += 1;
                }
            }
            let share = 4000 / (n_routees + 1);
            prop_assert!(n_moved > share / 2 && n_moved < share * 2, "{} of {}", n_moved, share);
        }

        #[test]
        fn a_pool_that_was_resized_is_as_if_it_had_always_been_so(
            sizes in prop::collection::vec(0_usize..20, 1..8),
            keys in prop::collection::vec(any::<u64>(), 50),
        ) {
            let mut resized = ring(0);
            for n_routees in sizes {
                resized.resize(n_routees);
                let fresh = ring(n_routees);
                prop_assert_eq!((resized.len(), fresh.len()), (n_routees, n_routees));
                for key in &keys {
                    prop_assert_eq!(resized.pick(*key), fresh.pick(*key));
                }
            }
        }

        #[test]
        fn a_ring_depends_only_on_who_is_on_it(
            steps in prop::collection::vec((0_u64..12, any::<bool>()), 0..40),
            keys in prop::collection::vec(any::<u64>(), 20),
        ) {
            let mut ring = HashRing::new(8);
            let mut there = BTreeSet::new();
            for (routee, is_in) in steps {
                if is_in {
                    prop_assert_eq!(ring.insert(routee), there.insert(routee));
                } else {
                    prop_assert_eq!(ring.remove(routee), there.remove(&routee));
                }
            }
            let mut fresh = HashRing::new(8);
            prop_assert!(there.iter().rev().all(|routee| fresh.insert(*routee)));
            prop_assert_eq!(ring.len(), there.len());
            for key in keys {
                let routee = ring.pick(key);
                prop_assert_eq!(routee, fresh.pick(key));
                prop_assert_eq!(routee.is_none(), there.is_empty());
                prop_assert!(routee.is_none_or(|routee| there.contains(&routee)));
            }
        }

        #[test]
        fn under_a_steady_load_a_pool_settles_within_its_bounds(
            (routees_min, routees_max) in (1_usize..20).prop_flat_map(|n| (Just(n), n..40)),
            step in 1_usize..12,
            busy_percent_min in 0_u8..=100,
            n_at_work in 0_usize..60,
            mut n_routees in 0_usize..60,
        ) {
            let resizer =
                Resizer { routees_min, routees_max, pressure_len: 2, step, busy_percent_min };
            resizer.validate().unwrap();
            let mut is_settled = false;
            for _ in 0..100 {
                let len = if n_at_work >= n_routees { 2 } else { 0 };
                let loads = (0..n_routees).map(|index| load(len, index < n_at_work));
                match resizer.decide(loads) {
                    Resize::Stay => is_settled = true,
                    Resize::Grow(n) => n_routees += n,
                    Resize::Shrink(n) => n_routees -= n,
                }
                prop_assert!((routees_min..=routees_max).contains(&n_routees));
            }
            prop_assert!(is_settled);
        }
    }
}
