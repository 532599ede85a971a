//! The selected part of a suite, from the command line; the same for every suite.

use crate::failure::Failure;
use crate::measure::Mode;
use crate::report::{Column, Facts, Reporter, Row};

/// The selected part of a suite.
#[derive(Clone, Debug)]
pub(crate) struct Selection<C> {
    pub(crate) effort: Effort,
    /// Timed rounds, instead of the default.
    pub(crate) n_rounds: Option<u32>,
    /// All cases if empty.
    pub(crate) cases: Vec<C>,
    /// The default sizes if `None`.
    pub(crate) n: Option<u32>,
    /// All subjects if empty.
    pub(crate) only: Vec<String>,
}

/// How long the comparison may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// Less than a minute.
    Quick,
    /// Some minutes.
    Full,
}

impl Effort {
    /// The default number of passes over the load within a run.
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

/// A subject with facts, which include its name.
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

    /// The selected subjects of `all`, in their order.
    ///
    /// # Errors
    ///
    /// If a name is unknown.
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

    /// The properties of the selected subjects of `all`.
    ///
    /// # Errors
    ///
    /// If a name is unknown.
    pub(crate) fn columns<S: Listed>(&self, all: &[S]) -> Result<Vec<Column>, Failure> {
        Ok(self.subjects(all)?.iter().map(|subject| subject.facts().column()).collect())
    }

    /// Reports the selected `cases`, each as soon as it is finished: `row` receives a case and the
    /// selected subjects that support it.
    ///
    /// # Errors
    ///
    /// If a name is unknown, a row fails or cannot be written.
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
