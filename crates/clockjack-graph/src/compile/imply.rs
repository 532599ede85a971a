//! The trigger of a component whose description has none.
//!
//! A component of a file without `event_sources` and `trigger_policy` is called in every epoch,
//! unless its type requires exactly one input and an `immediate` or `async` edge leads to that
//! input: then each message at this input makes a call, as with
//!
//! ```yaml
//! event_sources: [{ type: message, input: NAME }]
//! trigger_policy: { type: any_input }
//! ```
//!
//! An edge of kind `delay` or `state` implies no trigger: it closes cycles, and if the component
//! that begins the cycle waited for the message that ends it, nothing would ever be called. A graph
//! that is built in code says when each component is called.

use std::{borrow::Cow, collections::BTreeSet};

use super::TypeCatalog;
use crate::{
    component::{Descriptor, Need},
    describe::{
        ComponentSpec, EdgeKind, EdgeSpec, EventSourceSpec, GraphSpec, SourceType, TriggerType,
    },
};

/// The description with a trigger for each component.
pub(super) fn triggers<'s>(spec: &'s GraphSpec, catalog: &dyn TypeCatalog) -> Cow<'s, GraphSpec> {
    let mut implied = Vec::new();
    let mut connected: Option<BTreeSet<(&str, &str)>> = None;
    for (at, component) in spec.components.iter().enumerate() {
        if is_stated(component) {
            continue;
        }
        let Some(descriptor) = catalog.descriptor(at, component) else { continue };
        let Some(input) = only_required(&descriptor) else { continue };
        let triggers =
            |edge: &&EdgeSpec| matches!(edge.kind, EdgeKind::Immediate | EdgeKind::Async);
        let split = |edge: &'s EdgeSpec| EdgeSpec::split(&edge.to);
        let ends = || spec.edges.iter().filter(triggers).map(split).collect();
        if connected.get_or_insert_with(ends).contains(&(&*component.id, input)) {
            implied.push((at, String::from(input)));
        }
    }
    if implied.is_empty() {
        return Cow::Borrowed(spec);
    }
    let mut spec = spec.clone();
    for (at, input) in implied {
        let component = &mut spec.components[at];
        component.trigger.trigger_type = TriggerType::AnyInput;
        component.event_sources = vec![EventSourceSpec {
            source_type: SourceType::Message,
            inputs: vec![input],
            ..EventSourceSpec::default()
        }];
    }
    Cow::Owned(spec)
}

/// Whether the description says when the component is called.
fn is_stated(component: &ComponentSpec) -> bool {
    let spans = &component.spans;
    let has = |section: &str| {
        spans.fields.iter().any(|(field, _)| {
            field.strip_prefix(section).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    spans.item.is_none() || has("event_sources") || has("trigger_policy")
}

/// The only required input of a type.
fn only_required(descriptor: &Descriptor) -> Option<&str> {
    let mut required = descriptor.inputs.iter().filter(|port| port.need == Need::Required);
    let only = required.next()?;
    required.next().is_none().then_some(&only.name)
}
