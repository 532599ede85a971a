//! What a component's type says of itself: its ports, its settings, where it may stand.

use super::port::{InputPort, OutputPort};
use crate::{
    data::Data,
    describe::{BoundaryRole, ConfigValue},
    named::named,
};

/// Whether an input must be connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It must.
    Required,
    /// It may.
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

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortDescriptor {
    /// Its name.
    pub name: String,
    /// The name of its payload's type; empty: any.
    pub schema: String,
    /// Whether it must be connected. Outputs need not be.
    pub need: Need,
    /// How many edges may end at it.
    pub multiplicity: Multiplicity,
}

named! {
    /// The type of a setting.
    #[non_exhaustive]
    pub enum ConfigKind {
        /// A text.
        Text = "string",
        /// A whole number.
        Int = "int",
        /// A number.
        Float = "double",
        /// `true` or `false`.
        Bool = "bool",
    }
}

/// A setting that a component takes.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigField {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: ConfigKind,
    /// Whether it must be given.
    pub need: Need,
    /// The least value.
    pub min: Option<f64>,
    /// The greatest value.
    pub max: Option<f64>,
    /// The texts that it may be; none: any.
    pub choices: Vec<String>,
    /// Whether a list or a map may stand there.
    pub allow_nested: bool,
}

impl ConfigField {
    /// A setting that need not be given.
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

    /// It must be given.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.need = Need::Required;
        self
    }

    /// It lies between these, both included.
    #[must_use]
    pub fn between(mut self, min: f64, max: f64) -> Self {
        (self.min, self.max) = (Some(min), Some(max));
        self
    }

    /// It is one of these.
    #[must_use]
    pub fn one_of(mut self, choices: &[&str]) -> Self {
        self.choices = choices.iter().map(|one| (*one).into()).collect();
        self
    }

    /// What is wrong with a value for it, if something is.
    pub(crate) fn fault(&self, value: &ConfigValue) -> Option<String> {
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
        // Written so that what is not a number is outside of any bounds.
        let is_inside = |min: f64, max: f64| number >= min && number <= max;
        let (min, max) = (self.min, self.max);
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
}

/// What a component's type says of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Descriptor {
    /// The key of the type.
    pub component_type: String,
    /// A name for people.
    pub title: String,
    /// Where it may stand; `None`: anywhere.
    pub role: Option<BoundaryRole>,
    /// Its inputs.
    pub inputs: Vec<PortDescriptor>,
    /// Its outputs.
    pub outputs: Vec<PortDescriptor>,
    /// Its settings.
    pub config: Vec<ConfigField>,
    /// Settings beyond these are let through.
    pub open_config: bool,
    /// Whether invocations may overlap. Set by the registry for what is registered as shared.
    pub reentrant: bool,
}

impl Descriptor {
    /// Why a setting cannot become this, if it cannot.
    pub(crate) fn refuses(&self, name: &str, value: &ConfigValue) -> Option<String> {
        let Some(field) = self.config.iter().find(|field| field.name == name) else {
            let text = || format!("`{}` has no setting `{name}`", self.component_type);
            return (!self.open_config).then(text);
        };
        if field.need == Need::Required && *value == ConfigValue::Null {
            return Some(format!("the setting `{name}` must be given"));
        }
        field.fault(value).map(|text| format!("`{name}` {text}"))
    }

    /// A type without ports and settings.
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

    /// A name for people.
    #[must_use]
    pub fn title(mut self, title: &str) -> Self {
        self.title = title.into();
        self
    }

    /// It stands at the border.
    #[must_use]
    pub fn role(mut self, role: BoundaryRole) -> Self {
        self.role = Some(role);
        self
    }

    /// An input at which one edge ends.
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

    /// An input at which any number of edges ends.
    #[must_use]
    pub fn inputs<T: Data>(mut self, port: InputPort<T>, need: Need) -> Self {
        self = self.input(port, need);
        let last = self.inputs.last_mut().expect("it was just added");
        last.multiplicity = Multiplicity::Multiple;
        self
    }

    /// An output.
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

    /// A setting.
    #[must_use]
    pub fn config(mut self, field: ConfigField) -> Self {
        self.config.push(field);
        self
    }

    /// Settings that are not listed are let through.
    #[must_use]
    pub fn open_config(mut self) -> Self {
        self.open_config = true;
        self
    }
}
