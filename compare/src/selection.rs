//! What of a suite is run, as the command line says it; the same for every suite.

use crate::failure::Failure;
use crate::measure::Mode;
use crate::report::{Column, Facts, Reporter, Row};

/// What of a suite is run.
#[derive(Clone, Debug)]
pub(crate) struct Selection<C> {
    pub(crate) effort: Effort,
    /// Timed rounds, in place of the effort's own number.
    pub(crate) n_rounds: Option<u32>,
    /// All cases if empty.
    pub(crate) cases: Vec<C>,
    /// The usual sizes if none.
    pub(crate) n: Option<u32>,
    /// All subjects if empty.
    pub(crate) only: Vec<String>,
}

/// How long one is willing to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Below a minute.
    Quick,
    /// Some minutes.
    Full,
}

impl Effort {
    /// Passes over the load within a run, where a suite does not know better.
    pub(crate) const fn n_passes(self, mode: Mode) -> u32 {
        match (mode, self) {
            (Mode::Counted, _) | (_, Self::Quick) => 1,
            (Mode::Timed, Self::Full) => 3,
        }
    }
}

/// A subject in the list of its suite.
pub(crate) trait Named: Copy {
    /// The name in tables, in JSON and after `--only`.
    fn name(&self) -> &'static str;
}

/// A subject of which there are facts, its name among them.
pub(crate) trait Listed: Copy {
    fn facts(&self) -> &Facts;
}

impl<S: Listed> Named for S {
    fn name(&self) -> &'static str {
        self.facts().name
    }
}

impl<C: Copy + PartialEq> Selection<C> {
    pub(crate) fn has(&self, case: &C) -> bool {
        self.cases.is_empty() || self.cases.contains(case)
    }

    /// Those of `all` subjects that are chosen, in their order.
    ///
    /// # Errors
    ///
    /// If a name is nobody's.
    pub(crate) fn subjects<S: Named>(&self, all: &[S]) -> Result<Vec<S>, Failure> {
        let matches =
            |subject: &S, wanted: &String| subject.name().eq_ignore_ascii_case(wanted.trim());
        for wanted in &self.only {
            if !all.iter().any(|subject| matches(subject, wanted)) {
                let known: Vec<&str> = all.iter().map(Named::name).collect();
                return Err(Failure::unknown("subject", wanted.clone(), known.join(", ")));
            }
        }
        let chosen = |subject: &&S| {
            self.only.is_empty() || self.only.iter().any(|name| matches(subject, name))
        };
        Ok(all.iter().filter(chosen).copied().collect())
    }

    /// What is known about the chosen of `all` subjects.
    ///
    /// # Errors
    ///
    /// If a name is nobody's.
    pub(crate) fn columns<S: Listed>(&self, all: &[S]) -> Result<Vec<Column>, Failure> {
        Ok(self.subjects(all)?.iter().map(|subject| subject.facts().column()).collect())
    }

    /// Reports the chosen of `cases`, each as soon as it is known: `row` is given a case and those
    /// of the chosen subjects that can do it.
    ///
    /// # Errors
    ///
    /// If a name is nobody's, no row comes out or it cannot be written.
    pub(crate) fn report<S: Named>(
        &self,
        cases: &[C],
        all: &[S],
        can: impl Fn(&S, C) -> bool,
        reporter: &mut Reporter<'_>,
        mut row: impl FnMut(C, &[S], &mut Reporter<'_>) -> Result<Row, Failure>,
    ) -> Result<(), Failure> {
        let subjects = self.subjects(all)?;
        for &case in cases.iter().filter(|case| self.has(case)) {
            let able: Vec<S> = subjects.iter().copied().filter(|one| can(one, case)).collect();
            let row = row(case, &able, reporter)?;
            reporter.report(row)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Effort, Named, Selection};

    impl Named for &'static str {
        fn name(&self) -> &'static str {
            self
        }
    }

    #[test]
    fn subjects_are_chosen_by_name_whatever_the_case_and_an_unknown_one_is_refused() {
        let select = |only: &[&str]| Selection::<u8> {
            effort: Effort::Quick,
            n_rounds: None,
            cases: Vec::new(),
            n: None,
            only: only.iter().map(|&name| name.to_owned()).collect(),
        };
        let all = ["nexus-timer", "DelayQueue", "BTreeMap"];
        let subjects = |only: &[&str]| select(only).subjects(&all);
        let chosen = subjects(&["btreemap", " nexus-timer"]).expect("both exist");
        assert_eq!(chosen, ["nexus-timer", "BTreeMap"]);
        assert_eq!(subjects(&[]).expect("nothing is asked for"), all);
        let failure = subjects(&["nexus"]).expect_err("no such subject");
        assert!(failure.is_usage(), "{failure}");
        assert!(failure.to_string().contains("DelayQueue"), "{failure}");
    }
}
