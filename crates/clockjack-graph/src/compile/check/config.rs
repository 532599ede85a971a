//! Checks the settings of a component against the fields that its type declares.

use crate::{
    compile::report::Report,
    component::{Descriptor, Need},
    describe::{ComponentSpec, ConfigValue, Span},
    diagnostic::{Code, Diagnostic},
};

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
                if let Some(text) = field.error_for(value) {
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
            let text = format!("the setting `{}` is required", field.name);
            let found = wrong(&field.name, component.spans.get("config"), text);
            report.push(found.help(format!("its type is `{}`", field.kind)));
        }
    }
}
