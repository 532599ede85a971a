//! The marks on the methods of a block: `#[msg]`, `#[ask]`, `#[started]`, `#[signal]` and
//! `#[control]`.
//!
//! They mean something to `#[actor]` only, so they are taken off whatever else is wrong: one fault
//! must not be followed by "cannot find attribute".

use syn::{Attribute, Meta};

use crate::faults::Faults;

/// What a method is for the actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// `#[msg]`.
    Msg,
    /// `#[ask]`.
    Ask,
    /// `#[started]`.
    Started,
    /// `#[signal]`.
    Signal,
}

impl Role {
    /// How the mark is written.
    pub(crate) fn mark(self) -> &'static str {
        match self {
            Role::Msg => "#[msg]",
            Role::Ask => "#[ask]",
            Role::Started => "#[started]",
            Role::Signal => "#[signal]",
        }
    }

    fn of(attribute: &Attribute) -> Option<Role> {
        let all = [Role::Msg, Role::Ask, Role::Started, Role::Signal];
        let is_it =
            |role: &Role| attribute.path().is_ident(role.mark().trim_matches(['#', '[', ']']));
        all.into_iter().find(is_it)
    }
}

/// The marks of one item.
#[derive(Default)]
pub(crate) struct Marks {
    roles: Vec<(Role, Attribute)>,
    control: Option<Attribute>,
}

impl Marks {
    /// Takes the marks off an item's attributes.
    pub(crate) fn take(attributes: &mut Vec<Attribute>, faults: &mut Faults) -> Marks {
        let mut marks = Marks::default();
        for attribute in core::mem::take(attributes) {
            let role = Role::of(&attribute);
            let is_control = attribute.path().is_ident("control");
            if (role.is_some() || is_control) && !matches!(attribute.meta, Meta::Path(_)) {
                faults.add(&attribute, "this mark takes nothing in brackets");
            }
            match role {
                Some(role) => marks.roles.push((role, attribute)),
                None if is_control => marks.control = Some(attribute),
                None => attributes.push(attribute),
            }
        }
        marks
    }

    /// Refuses every mark: the item is no method.
    pub(crate) fn refuse(&self, faults: &mut Faults) {
        for attribute in self.roles.iter().map(|(_, attribute)| attribute).chain(&self.control) {
            faults.add(attribute, "only a method can be a message or a hook");
        }
    }

    /// The one role of a method, if it is marked, and whether its message takes the control lane.
    pub(crate) fn role(&self, faults: &mut Faults) -> Option<(Role, bool)> {
        for (_, attribute) in self.roles.iter().skip(1) {
            let what = "a method has one role: `#[msg]`, `#[ask]`, `#[started]` or `#[signal]`";
            faults.add(attribute, what);
        }
        let role = self.roles.first().map(|(role, _)| *role);
        if let Some(control) = &self.control
            && role != Some(Role::Msg)
        {
            let what = match role {
                Some(Role::Ask) => {
                    "an ask waits its turn: `#[control]` stands beside `#[msg]` only"
                }
                _ => "`#[control]` says how a message travels: write it beside `#[msg]`",
            };
            faults.add(control, what);
        }
        role.map(|role| (role, self.control.is_some()))
    }
}
