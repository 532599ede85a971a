//! The settings of a component.

use core::fmt;

use super::descriptor::ConfigKind;
use crate::describe::{ConfigMap, ConfigValue};

/// The settings of a component.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    map: ConfigMap,
}

impl Config {
    /// Creates settings from a map.
    #[must_use]
    pub fn new(map: ConfigMap) -> Self {
        Self { map }
    }

    /// These settings, overridden by others of the same name.
    #[must_use]
    pub(crate) fn with(&self, changes: &ConfigMap) -> Self {
        let mut map = self.map.clone();
        for (name, value, span) in &changes.entries {
            map.entries.retain(|(old, ..)| old != name);
            map.entries.push((name.clone(), value.clone(), *span));
        }
        Self { map }
    }

    /// The settings as a map.
    #[doc(hidden)]
    #[must_use]
    pub fn map(&self) -> &ConfigMap {
        &self.map
    }

    /// A setting, or `None` if it is not set.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], if its value has another type.
    pub fn get<T: FromConfig>(&self, name: &str) -> Result<Option<T>, ConfigError> {
        match self.map.get(name) {
            None | Some(ConfigValue::Null) => Ok(None),
            Some(value) => match T::from_config(value) {
                Some(found) => Ok(Some(found)),
                None => {
                    Err(ConfigError::new(name, format!("expected {}, found {value:?}", T::WANTED)))
                }
            },
        }
    }

    /// A required setting.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], if it is not set, or if its value has another type.
    pub fn need<T: FromConfig>(&self, name: &str) -> Result<T, ConfigError> {
        self.get(name)?.ok_or_else(|| ConfigError::new(name, "it is required"))
    }
}

/// A type that a setting can be converted to.
pub trait FromConfig: Sized {
    /// The name of the type in reports.
    const WANTED: &'static str;

    /// The type of the setting in files. A type that is parsed from a string keeps the default.
    const KIND: ConfigKind = ConfigKind::Text;

    /// The value, if it can be converted.
    fn from_config(value: &ConfigValue) -> Option<Self>;
}

impl FromConfig for f64 {
    const WANTED: &'static str = "a number";
    const KIND: ConfigKind = ConfigKind::Float;

    #[expect(clippy::cast_precision_loss, reason = "as every reader of such a file expects")]
    fn from_config(value: &ConfigValue) -> Option<Self> {
        match value {
            ConfigValue::Float(one) => Some(*one),
            ConfigValue::Int(one) => Some(*one as Self),
            _ => None,
        }
    }
}

macro_rules! ints {
    ($( $type:ty ),+) => { $(
        impl FromConfig for $type {
            const WANTED: &'static str = concat!("an integer that fits ", stringify!($type));
            const KIND: ConfigKind = ConfigKind::Int;

            fn from_config(value: &ConfigValue) -> Option<Self> {
                match value {
                    ConfigValue::Int(one) => Self::try_from(*one).ok(),
                    _ => None,
                }
            }
        }
    )+ };
}

ints!(u8, u32, u64, usize, i32, i64);

impl FromConfig for bool {
    const WANTED: &'static str = "true or false";
    const KIND: ConfigKind = ConfigKind::Bool;

    fn from_config(value: &ConfigValue) -> Option<Self> {
        match value {
            ConfigValue::Bool(one) => Some(*one),
            _ => None,
        }
    }
}

impl FromConfig for String {
    const WANTED: &'static str = "a string";

    fn from_config(value: &ConfigValue) -> Option<Self> {
        match value {
            ConfigValue::Text(one) => Some(one.clone()),
            _ => None,
        }
    }
}

/// A setting that a component does not accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The setting.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

impl ConfigError {
    /// Creates an error for a setting.
    #[must_use]
    pub fn new(field: &str, reason: impl ToString) -> Self {
        Self { field: field.into(), reason: reason.to_string() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "setting `{}`: {}", self.field, self.reason)
    }
}

impl core::error::Error for ConfigError {}
