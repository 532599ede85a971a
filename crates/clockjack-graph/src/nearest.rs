//! Finds the name that was probably meant, for suggestions in reports.
//!
//! The sources are Damerau ("A technique for computer detection and correction of spelling errors",
//! 1964) and Ukkonen ("Algorithms for approximate string matching", 1985).
//!
//! The distance is the optimal string alignment distance (Damerau-Levenshtein without repeated
//! edits of a substring), computed only in a diagonal band (Ukkonen). The band bounds the cost, so
//! that a hostile file cannot waste much time with long names.

/// Names with more edits than this are unrelated.
const EDITS_MAX: usize = 3;

/// The candidate that is closest to `wanted`, if one is close enough; the first of several.
pub(crate) fn nearest<'a>(
    wanted: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let mut limit = (wanted.len() / 3).clamp(1, EDITS_MAX);
    let mut rows = Rows::default();
    let mut best = None;
    for candidate in candidates {
        if let Some(edits) = distance(wanted.as_bytes(), candidate.as_bytes(), limit, &mut rows) {
            best = Some(candidate);
            if edits == 0 {
                break;
            }
            limit = edits - 1;
        }
    }
    best
}

/// The last three rows of the distance table: the current one, and the two before it.
#[derive(Default)]
struct Rows([Vec<usize>; 3]);

/// The number of insertions, deletions, replacements and exchanges of adjacent bytes, if it is at
/// most `limit`. The comparison ignores case.
fn distance(a: &[u8], b: &[u8], limit: usize, Rows(rows): &mut Rows) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    let too_far = limit + 1;
    let is_same = |i: usize, j: usize| a[i - 1].eq_ignore_ascii_case(&b[j - 1]);
    let [row, above, above_that] = rows;
    for one in [&mut *row, &mut *above, &mut *above_that] {
        one.clear();
        one.extend(0..=b.len());
    }
    let mut least_above = 0;
    for i in 1..=a.len() {
        core::mem::swap(above, above_that);
        core::mem::swap(row, above);
        // Only this band can contain values within the limit; everything outside of it counts as
        // too far.
        let (from, to) = (i.saturating_sub(limit).max(1), (i + limit).min(b.len()));
        row[from - 1] = if from == 1 { i } else { too_far };
        let mut least = row[from - 1];
        for j in from..=to {
            let replaced = above[j - 1] + usize::from(!is_same(i, j));
            let removed = if j < i + limit { above[j] + 1 } else { too_far };
            row[j] = replaced.min(removed).min(row[j - 1] + 1);
            if i > 1 && j > 1 && is_same(i, j - 1) && is_same(i - 1, j) {
                row[j] = row[j].min(above_that[j - 2] + 1);
            }
            least = least.min(row[j]);
        }
        if least > limit && least_above > limit {
            return None;
        }
        least_above = least;
    }
    Some(row[b.len()]).filter(|edits| *edits <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same without a bound and without a band.
    fn plain(a: &[u8], b: &[u8]) -> usize {
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..=a.len() {
            for j in 0..=b.len() {
                let is_same = |i: usize, j: usize| a[i - 1].eq_ignore_ascii_case(&b[j - 1]);
                table[i][j] = match (i, j) {
                    (0, n) | (n, 0) => n,
                    _ => (table[i - 1][j - 1] + usize::from(!is_same(i, j)))
                        .min(table[i - 1][j] + 1)
                        .min(table[i][j - 1] + 1),
                };
                if i > 1 && j > 1 && is_same(i, j - 1) && is_same(i - 1, j) {
                    table[i][j] = table[i][j].min(table[i - 2][j - 2] + 1);
                }
            }
        }
        table[a.len()][b.len()]
    }

    #[test]
    fn the_closest_name_is_found_and_far_ones_are_not() {
        let names = ["sensor", "estimator", "controller"];
        assert_eq!(nearest("sensr", names), Some("sensor"));
        assert_eq!(nearest("Controler", names), Some("controller"));
        assert_eq!(nearest("mian", ["pool", "main"]), Some("main"), "two keys in the wrong order");
        assert_eq!(nearest("motor", names), None);
        assert_eq!(nearest("b", ["a", "c"]), Some("a"), "the first of equals");
        assert_eq!(nearest("abcdef", ["abcxyf", "abcdeg"]), Some("abcdeg"), "the closer one");
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config {
            failure_persistence: None,
            ..proptest::test_runner::Config::default()
        })]

        #[test]
        fn the_bounded_distance_is_the_distance(
            a in "[abC]{0,9}",
            b in "[abc]{0,9}",
            k in 0_usize..4,
        ) {
            let want = Some(plain(a.as_bytes(), b.as_bytes())).filter(|edits| *edits <= k);
            proptest::prop_assert_eq!(
                distance(a.as_bytes(), b.as_bytes(), k, &mut Rows::default()),
                want
            );
        }
    }
}
