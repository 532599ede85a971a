//! Descriptors of component types: ports, settings and boundary role.

use super::port::{InputPort, OutputPort};
use crate::{
    data::Data,
    describe::{BoundaryRole, ConfigValue},
    named::named,
    setters::setters,
};

/// Whether an input must be connected, or a setting must be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Required.
    Required,
    /// Optional.
    Optional,
}

/// How many edges may end at an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiplicity {
    /// One.
    Single,
    /// Any number.
    Multiple,
}

/// A port of a component type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortDescriptor {
    /// The name of the port.
    pub name: String,
    /// The name of its payload type; empty means any.
    pub schema: String,
    /// Whether it must be connected. Outputs are always optional.
    pub need: Need,
    /// How many edges may end at it.
    pub multiplicity: Multiplicity,
}

named! {
    /// The type of a setting.
    #[non_exhaustive]
    pub enum ConfigKind {
        /// A string.
        Text = "string",
        /// An integer.
        Int = "int",
        /// A number.
        Float = "double",
        /// `true` or `false`.
        Bool = "bool",
    }
}

/// A setting of a component type.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigField {
    /// The name of the setting.
    pub name: String,
    /// The type of the setting.
    pub kind: ConfigKind,
    /// Whether it must be set.
    pub need: Need,
    /// The minimum.
    pub min: Option<f64>,
    /// The maximum.
    pub max: Option<f64>,
    /// The allowed strings; empty means any.
    pub choices: Vec<String>,
    /// Whether a list or a map is allowed.
    pub allow_nested: bool,
}

impl ConfigField {
    /// Creates an optional setting.
    #[must_use]
    pub fn new(name: &str, kind: ConfigKind) -> Self {
        Self {
            name: name.into(),
            kind,
            need: Need::Optional,
            min: None,
            max: None,
            choices: Vec::new(),
            allow_nested: false,
        }
    }

    setters! {
        /// Makes the setting required.
        required(): |field| field.need = Need::Required;

        /// Sets the bounds, both inclusive.
        between(min: f64, max: f64): |field| (field.min, field.max) = (Some(min), Some(max));

        /// Sets the allowed strings.
        one_of(choices: &[&str]): |field|
            field.choices = choices.iter().map(|one| (*one).into()).collect();
    }

    /// What is wrong with a value, if anything.
    pub(crate) fn error_for(&self, value: &ConfigValue) -> Option<String> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "bounds of settings are numbers of this kind"
        )]
        let number = match (self.kind, value) {
            (_, ConfigValue::Null) => return None,
            (_, ConfigValue::Nested(_)) => {
                return if self.allow_nested {
                    None
                } else {
                    Some(format!("must be of the type `{}`, not a list or a map", self.kind))
                };
            }
            (ConfigKind::Text, ConfigValue::Text(text)) => {
                if self.choices.is_empty() || self.choices.contains(text) {
                    return None;
                }
                return Some(format!("is `{text}`, not one of `{}`", self.choices.join("`, `")));
            }
            (ConfigKind::Bool, ConfigValue::Bool(_)) => return None,
            (ConfigKind::Int | ConfigKind::Float, ConfigValue::Int(one)) => *one as f64,
            (ConfigKind::Float, ConfigValue::Float(one)) => *one,
            _ => return Some(format!("must be of the type `{}`", self.kind)),
        };
        // Written so that NaN is outside of any bounds.
        let is_inside = |min: f64, max: f64| number >= min && number <= max;
        let (min, max) = (self.min, self.max);
        if (min.is_some() || max.is_some())
            && !is_inside(min.unwrap_or(f64::NEG_INFINITY), max.unwrap_or(f64::INFINITY))
        {
            let bounds = match (min, max) {
                (Some(min), Some(max)) => format!("from {min} to {max}"),
                (Some(min), None) => format!("not less than {min}"),
                (None, Some(max)) => format!("not greater than {max}"),
                (None, None) => unreachable!("at least one bound is set"),
            };
            return Some(format!("is {number}, but must be {bounds}"));
        }
        None
    }
}

/// The descriptor of a component type.
#[derive(Clone, Debug, PartialEq)]
pub struct Descriptor {
    /// The name of the type.
    pub component_type: String,
    /// A human-readable name.
    pub title: String,
    /// The boundary role; `None` means any.
    pub role: Option<BoundaryRole>,
    /// The inputs.
    pub inputs: Vec<PortDescriptor>,
    /// The outputs.
    pub outputs: Vec<PortDescriptor>,
    /// The settings.
    pub config: Vec<ConfigField>,
    /// Whether settings that are not listed are accepted.
    pub open_config: bool,
    /// Whether invocations may overlap. The registry sets this for types that are registered as
    /// shared.
    pub reentrant: bool,
}

impl Descriptor {
    /// The reason why a setting cannot have this value, if so.
    pub(crate) fn refuses(&self, name: &str, value: &ConfigValue) -> Option<String> {
        let Some(field) = self.config.iter().find(|field| field.name == name) else {
            let text = || format!("`{}` has no setting `{name}`", self.component_type);
            return (!self.open_config).then(text);
        };
        if field.need == Need::Required && *value == ConfigValue::Null {
            return Some(format!("the setting `{name}` is required"));
        }
        field.error_for(value).map(|text| format!("`{name}` {text}"))
    }

    /// Creates a type without ports and settings.
    #[must_use]
    pub fn new(component_type: &str) -> Self {
        Self {
            component_type: component_type.into(),
            title: component_type.into(),
            role: None,
            inputs: Vec::new(),
            outputs: Vec::new(),
            config: Vec::new(),
            open_config: false,
            reentrant: false,
        }
    }

    setters! {
        /// Sets the human-readable name.
        title(title: &str): |descriptor| descriptor.title = title.into();

        /// Sets the boundary role.
        role(role: BoundaryRole): |descriptor| descriptor.role = Some(role);
    }

    /// Adds an input that takes one edge.
    #[must_use]
    pub fn input<T: Data>(mut self, port: InputPort<T>, need: Need) -> Self {
        self.inputs.push(PortDescriptor {
            name: port.name().into(),
            schema: T::SCHEMA.into(),
            need,
            multiplicity: Multiplicity::Single,
        });
        self
    }

    /// Adds an input that takes any number of edges.
    #[must_use]
    pub fn inputs<T: Data>(mut self, port: InputPort<T>, need: Need) -> Self {
        self = self.input(port, need);
        let last = self.inputs.last_mut().expect("it was just added");
        last.multiplicity = Multiplicity::Multiple;
        self
    }

    /// Adds an output.
    #[must_use]
    pub fn output<T: Data>(mut self, port: OutputPort<T>) -> Self {
        self.outputs.push(PortDescriptor {
            name: port.name().into(),
            schema: T::SCHEMA.into(),
            need: Need::Optional,
            multiplicity: Multiplicity::Multiple,
        });
        self
    }

    setters! {
        /// Adds a setting.
        config(field: ConfigField): |descriptor| descriptor.config.push(field);

        /// Accepts settings that are not listed.
        open_config(): |descriptor| descriptor.open_config = true;
    }
}
