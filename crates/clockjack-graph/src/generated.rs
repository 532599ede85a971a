//! Support for the code that `#[derive(Component)]` and `#[derive(Data)]` generate. Not for other
//! users.
//!
//! A [`ConfigField`] declares the bounds of a setting to the graph compiler. The bounds are checked
//! again when the component is configured, because settings can also come from code and change
//! while a graph runs.

pub use crate::component::config::FromConfig;
pub use crate::data::fields::{Fields, put_field, put_number};
pub use crate::describe::BoundaryRole;
use crate::{
    component::{Config, ConfigError, ConfigField},
    describe::ConfigValue,
};

/// Encoded bytes.
pub type Bytes = Vec<u8>;

/// The setting with these bounds.
#[must_use]
pub fn bounded(mut field: ConfigField, min: Option<f64>, max: Option<f64>) -> ConfigField {
    (field.min, field.max) = (min, max);
    field
}

/// Checks a number, if it is set.
///
/// # Errors
///
/// [`ConfigError`], if the number is not within these inclusive bounds. NaN is never within bounds.
pub fn check_bounds(
    config: &Config,
    name: &str,
    min: Option<f64>,
    max: Option<f64>,
) -> Result<(), ConfigError> {
    let Some(value) = config.map().get(name).and_then(f64::from_config) else { return Ok(()) };
    let least = min.unwrap_or(f64::NEG_INFINITY);
    let most = max.unwrap_or(f64::INFINITY);
    if least <= value && value <= most {
        return Ok(());
    }
    let wanted = match (min, max) {
        (Some(min), Some(max)) => format!("from {min} to {max}"),
        (Some(min), None) => format!("of at least {min}"),
        (None, Some(max)) => format!("of at most {max}"),
        (None, None) => "within bounds".into(),
    };
    Err(ConfigError::new(name, format!("expected a number {wanted}, found {value}")))
}

/// Checks a string, if it is set.
///
/// # Errors
///
/// [`ConfigError`], if it is none of these.
pub fn check_choice(config: &Config, name: &str, choices: &[&str]) -> Result<(), ConfigError> {
    match config.map().get(name) {
        Some(ConfigValue::Text(text)) if !choices.contains(&text.as_str()) => {
            let wanted = choices.join("`, `");
            let reason = format!("expected one of `{wanted}`, found `{text}`");
            Err(ConfigError::new(name, reason))
        }
        _ => Ok(()),
    }
}
