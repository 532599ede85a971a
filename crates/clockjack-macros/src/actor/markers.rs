//! The marker attributes on the methods of a block: `#[msg]`, `#[ask]`, `#[started]`, `#[signal]`
//! and `#[control]`.
//!
//! Only `#[actor]` knows them, so they are always removed: otherwise another error would be
//! followed by "cannot find attribute".

use syn::{Attribute, Meta};

use crate::errors::Errors;

/// The role of a method.
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
    /// The attribute as it is written.
    pub(crate) fn attribute(self) -> &'static str {
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
            |role: &Role| attribute.path().is_ident(role.attribute().trim_matches(['#', '[', ']']));
        all.into_iter().find(is_it)
    }
}

/// The marker attributes of one item.
#[derive(Default)]
pub(crate) struct Markers {
    roles: Vec<(Role, Attribute)>,
    control: Option<Attribute>,
}

impl Markers {
    /// Removes the marker attributes from an item's attributes.
    pub(crate) fn take(attributes: &mut Vec<Attribute>, errors: &mut Errors) -> Markers {
        let mut markers = Markers::default();
        for attribute in core::mem::take(attributes) {
            let role = Role::of(&attribute);
            let is_control = attribute.path().is_ident("control");
            if (role.is_some() || is_control) && !matches!(attribute.meta, Meta::Path(_)) {
                errors.add(&attribute, "this attribute takes no arguments");
            }
            match role {
                Some(role) => markers.roles.push((role, attribute)),
                None if is_control => markers.control = Some(attribute),
                None => attributes.push(attribute),
            }
        }
        markers
    }

    /// Reports every marker attribute as an error: the item is not a method.
    pub(crate) fn refuse(&self, errors: &mut Errors) {
        for attribute in self.roles.iter().map(|(_, attribute)| attribute).chain(&self.control) {
            errors.add(attribute, "only a method can be a message or a hook");
        }
    }

    /// The role of a method, if it is marked, and whether its message is a control message.
    pub(crate) fn role(&self, errors: &mut Errors) -> Option<(Role, bool)> {
        for (_, attribute) in self.roles.iter().skip(1) {
            let what = "a method can have only one role: `#[msg]`, `#[ask]`, `#[started]` or \
                        `#[signal]`";
            errors.add(attribute, what);
        }
        let role = self.roles.first().map(|(role, _)| *role);
        if let Some(control) = &self.control
            && role != Some(Role::Msg)
        {
            let what = match role {
                Some(Role::Ask) => {
                    "an `#[ask]` cannot be a control message: use `#[control]` only together with \
                     `#[msg]`"
                }
                _ => {
                    "`#[control]` makes a message a control message: use it together with `#[msg]`"
                }
            };
            errors.add(control, what);
        }
        role.map(|role| (role, self.control.is_some()))
    }
}
