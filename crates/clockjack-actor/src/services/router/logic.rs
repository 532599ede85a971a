//! The decisions of routers: which routee gets a message, and how many routees a pool should have.
//!
//! The [`HashRing`] is consistent hashing (Karger and others, "Consistent hashing and random
//! trees", 1997).
//!
//! Routees are identified by their index, `0..n_routees`, and on a [`HashRing`] by a permanent id.
//! Nothing here sends, spawns or reads a clock, and all results are the same in every run and on
//! every machine: [`Random`] has a seed, and keys are hashed by [`hash_of`].

use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use clockjack_sync::splitmix::{STEP, mix};

/// Chooses the routees in rotation. The rotation continues at the same index if routees come or go.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundRobin {
    next_index: usize,
}

impl RoundRobin {
    /// Starts with the first routee.
    pub(crate) const fn new() -> Self {
        Self { next_index: 0 }
    }

    /// The next routee; `None` if there are no routees.
    pub(crate) fn pick(&mut self, n_routees: usize) -> Option<usize> {
        let index = if self.next_index < n_routees { self.next_index } else { 0 };
        self.next_index = index + 1;
        (index < n_routees).then_some(index)
    }
}

/// Chooses the routee with the fewest messages; routees with equal numbers are chosen in rotation.
#[derive(Clone, Debug, Default)]
pub(crate) struct SmallestMailbox {
    /// Where the search begins: after the routee that was chosen last.
    first_index: usize,
}

impl SmallestMailbox {
    /// Starts with the first routee among equals.
    pub(crate) const fn new() -> Self {
        Self { first_index: 0 }
    }

    /// The routee with the shortest mailbox; `None` if there are no routees.
    ///
    /// Each length is read at most once, because it may change concurrently. The search stops at an
    /// empty mailbox: none can be shorter.
    pub(crate) fn pick(
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
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The sequence of this seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The chosen routee; `None` if there are no routees.
    pub(crate) fn pick(&mut self, n_routees: usize) -> Option<usize> {
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

/// The number of virtual nodes per routee on a [`HashRing`]. With it, the busiest of fifty routees
/// gets about a third more keys than the mean.
const VIRTUAL_NODES: u64 = 64;

/// A ring for consistent hashing: a key stays with its routee as long as the routee is on the ring,
/// and when a routee is added or removed, only the keys move that it gains or loses.
///
/// Each routee has a number of virtual nodes on a circle of hashes, and a key belongs to the next
/// node (Karger and others, "Consistent hashing and random trees", 1997).
#[derive(Clone, Debug)]
pub(crate) struct HashRing {
    /// Virtual nodes as pairs of hash and routee, sorted; equal hashes are sorted by routee.
    nodes: Vec<(u64, u64)>,
}

impl HashRing {
    /// The ring of these routees, which are all different.
    pub(crate) fn new(routees: &[u64]) -> Self {
        let nodes_of =
            |&routee| (0..VIRTUAL_NODES).map(move |nth| (node_hash(routee, nth), routee));
        let mut nodes: Vec<_> = routees.iter().flat_map(nodes_of).collect();
        nodes.sort_unstable();
        Self { nodes }
    }

    /// The routee of a key; `None` if there are no routees. Any hash is suitable, even the key
    /// itself.
    pub(crate) fn pick(&self, key_hash: u64) -> Option<u64> {
        let point = mix(key_hash ^ KEYS);
        let index = self.nodes.partition_point(|(node, _)| *node < point);
        let (_, routee) = self.nodes.get(index).or(self.nodes.first())?;
        Some(*routee)
    }
}

/// The load of a routee, as a [`Resizer`] uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Load {
    /// The number of messages in the mailbox.
    pub(crate) mailbox_len: usize,
    /// Whether the routee is handling a message.
    pub(crate) is_busy: bool,
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

impl Resizer {
    /// Between 1 and 10 routees, changed by up to two at a time: more if each busy routee has a
    /// further message waiting, fewer if less than 30 % are busy.
    pub const DEFAULT: Self =
        Self { routees_min: 1, routees_max: 10, pressure_len: 1, step: 2, busy_percent_min: 30 };

    /// Why a pool cannot work with these settings, if it cannot.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let Self { routees_min, routees_max, step, busy_percent_min, .. } = *self;
        if routees_min == 0 {
            Err("`routees_min` is 0: there would be no receiver for messages")
        } else if routees_min > routees_max {
            Err("`routees_min` is greater than `routees_max`")
        } else if step == 0 {
            Err("`step` is 0: the pool would never change")
        } else if busy_percent_min > 100 {
            Err("`busy_percent_min` is greater than 100")
        } else {
            Ok(())
        }
    }

    /// How many routees the pool should have, by the load of every routee. A pool outside of its
    /// bounds is brought to them at once.
    pub(crate) fn wanted(&self, routees: impl IntoIterator<Item = Load>) -> usize {
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
        target.max(self.routees_min).min(self.routees_max)
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

/// A fast hash function without a seed, for distributing keys over routees. It is not resistant
/// against keys that are chosen to collide.
///
/// Numbers are hashed by their value, independent of the machine's byte order and word size; only
/// slices of multi-byte numbers reach a hasher as the bytes that they have in memory. Eight bytes
/// at a time are mixed in by a multiplication, and the result goes through the finalizer of
/// `SplitMix64`.
struct StableHasher {
    state: u64,
}

impl StableHasher {
    fn word(&mut self, word: u64) {
        // Multiplying by an odd factor loses no information. The rotation moves the high bits,
        // which depend on all others, to where the next multiplication spreads them.
        self.state = (self.state ^ word).wrapping_mul(FACTOR).rotate_left(29);
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

/// A hash of a key for routers, without a seed: the same in every run and on every machine.
#[must_use]
pub fn hash_of<K: Hash + ?Sized>(key: &K) -> u64 {
    let mut hasher = StableHasher { state: STEP };
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
    use alloc::collections::BTreeMap;

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
        HashRing::new(&(0..n_routees as u64).collect::<Vec<_>>())
    }

    #[test]
    fn a_ring_without_routees_picks_none_and_one_with_one_picks_that() {
        assert_eq!(HashRing::new(&[]).pick(1), None);
        let ring = HashRing::new(&[9]);
        assert_eq!((ring.pick(1), ring.pick(u64::MAX)), (Some(9), Some(9)));
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
        fn check(loads: &[Load], expected: usize) {
            assert_eq!(Resizer::DEFAULT.wanted(loads.iter().copied()), expected, "{loads:?}");
        }
        let (pressed, busy, idle) = (load(1, true), load(0, true), load(0, false));
        check(&[pressed; 3], 5);
        check(&[pressed; 9], 10);
        check(&[pressed; 10], 10);
        check(&[pressed, pressed, busy], 3);
        // Not yet begun is not yet pressure.
        check(&[load(5, false), pressed], 2);
        check(&[idle; 5], 3);
        check(&[idle; 2], 1);
        check(&[idle; 1], 1);
        check(&[pressed, idle, idle], 3);
        check(&[pressed, idle, idle, idle], 2);
        // Out of bounds.
        check(&[], 2);
        check(&[pressed; 13], 10);
    }

    #[test]
    fn a_resizer_that_cannot_work_is_refused() {
        let good = Resizer::DEFAULT;
        good.check().unwrap();
        let bad = [
            Resizer { routees_min: 0, ..good },
            Resizer { routees_min: 11, ..good },
            Resizer { step: 0, ..good },
            Resizer { busy_percent_min: 101, ..good },
        ];
        for resizer in bad {
            assert!(resizer.check().is_err(), "{resizer:?}");
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
        fn a_ring_depends_only_on_who_is_on_it(
            routees in prop::collection::btree_set(any::<u64>(), 0..12),
            keys in prop::collection::vec(any::<u64>(), 20),
        ) {
            let mut routees: Vec<_> = routees.into_iter().collect();
            let ring = HashRing::new(&routees);
            routees.reverse();
            let reversed = HashRing::new(&routees);
            for key in keys {
                let routee = ring.pick(key);
                prop_assert_eq!(routee, reversed.pick(key));
                prop_assert_eq!(routee.is_none(), routees.is_empty());
                prop_assert!(routee.is_none_or(|routee| routees.contains(&routee)));
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
            resizer.check().unwrap();
            let mut is_settled = false;
            for _ in 0..100 {
                let len = if n_at_work >= n_routees { 2 } else { 0 };
                let loads = (0..n_routees).map(|index| load(len, index < n_at_work));
                let wanted = resizer.wanted(loads);
                is_settled |= wanted == n_routees;
                n_routees = wanted;
                prop_assert!((routees_min..=routees_max).contains(&n_routees));
            }
            prop_assert!(is_settled);
        }
    }
}
