//! The settings of a component against the fields that its type declares.

use alloc::format;
use alloc::string::String;

use crate::compile::report::Report;
use crate::component::{ConfigField, ConfigKind, Descriptor, Need};
use crate::describe::{ComponentSpec, ConfigValue, Span};
use crate::diagnostic::{Code, Diagnostic};

pub(super) fn check(component: &ComponentSpec, descriptor: &Descriptor, report: &mut Report<'_>) {
    let wrong = |key: &str, span: Span, text: String| {
        Diagnostic::new(
            Code::InvalidConfig,
            format!("components.{}.config.{key}", component.id),
            text,
        )
        .at(span)
        .component(&component.id)
    };
    for (key, value, span) in &component.config.entries {
        match descriptor.config.iter().find(|field| field.name == *key) {
            Some(field) => {
                if let Some(text) = fault(field, value) {
                    report.push(wrong(key, *span, format!("`{key}` {text}")));
                }
            }
            None if descriptor.open_config => {}
            None => {
                let text = format!("`{}` has no setting `{key}`", component.component_type);
                let found = wrong(key, *span, text);
                let all = descriptor.config.iter().map(|field| &*field.name);
                let found = match report.nearest(key, all) {
                    Some(meant) => found.help(format!("did you mean `{meant}`?")),
                    None => found,
                };
                report.push(found);
            }
        }
    }
    for field in descriptor.config.iter().filter(|field| field.need == Need::Required) {
        if matches!(component.config.get(&field.name), None | Some(ConfigValue::Null)) {
            let text = format!("the setting `{}` must be given", field.name);
            let found = wrong(&field.name, component.marks.get("config"), text);
            report.push(found.help(format!("it is of the type `{}`", field.kind)));
        }
    }
}

/// What is wrong with a value, if something is.
fn fault(field: &ConfigField, value: &ConfigValue) -> Option<String> {
    #[expect(clippy::cast_precision_loss, reason = "bounds of settings are numbers of this kind")]
    let number = match (field.kind, value) {
        (_, ConfigValue::Null) => return None,
        (_, ConfigValue::Nested(_)) => {
            return if field.allow_nested {
                None
            } else {
                Some(format!("must be of the type `{}`, not a list or a map", field.kind))
            };
        }
        (ConfigKind::Text, ConfigValue::Text(text)) => {
            if field.choices.is_empty() || field.choices.contains(text) {
                return None;
            }
            return Some(format!("is `{text}`, not one of `{}`", field.choices.join("`, `")));
        }
        (ConfigKind::Bool, ConfigValue::Bool(_)) => return None,
        (ConfigKind::Int | ConfigKind::Float, ConfigValue::Int(one)) => *one as f64,
        (ConfigKind::Float, ConfigValue::Float(one)) => *one,
        _ => return Some(format!("must be of the type `{}`", field.kind)),
    };
    // Written so that what is not a number is outside of any bounds.
    let is_inside = |min: f64, max: f64| number >= min && number <= max;
    let (min, max) = (field.min, field.max);
    if (min.is_some() || max.is_some())
        && !is_inside(min.unwrap_or(f64::NEG_INFINITY), max.unwrap_or(f64::INFINITY))
    {
        let bounds = match (min, max) {
            (Some(min), Some(max)) => format!("from {min} to {max}"),
            (Some(min), None) => format!("not less than {min}"),
            (None, Some(max)) => format!("not greater than {max}"),
            (None, None) => unreachable!("one of them is there"),
        };
        return Some(format!("is {number}, but must be {bounds}"));
    }
    None
}
