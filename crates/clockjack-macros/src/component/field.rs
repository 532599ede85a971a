//! The marker attributes on the fields of a component: `#[input]`, `#[output]` and `#[config]`.
//!
//! The derive ignores a field without a marker attribute, unless its type is that of a port: such a
//! port would silently never be bound.

use proc_macro2::Ident;
use syn::{
    Attribute, Error, Expr, ExprLit, ExprUnary, GenericArgument, Lit, LitStr, PathArguments,
    Result, Token, Type, UnOp, ext::IdentExt as _, parenthesized, parse::ParseStream,
    punctuated::Punctuated,
};

use super::options::{each_key, equals};
use crate::errors::Errors;

/// A marked field.
pub(crate) struct Field {
    /// The field itself.
    pub(crate) ident: Ident,
    /// Its name in graph files: that of the field, without `r#`.
    pub(crate) name: String,
    /// Its documentation.
    pub(crate) docs: Vec<Attribute>,
    /// Its role.
    pub(crate) role: Role,
}

/// The role of a field.
pub(crate) enum Role {
    /// `#[input]`.
    Input { carries: Type, is_optional: bool, is_multiple: bool },
    /// `#[output]`.
    Output { carries: Type },
    /// `#[config]`.
    Setting(Box<Setting>),
}

/// The contents of `#[config(..)]`.
pub(crate) struct Setting {
    /// The type of the value; for an `Option<f64>`, that is `f64`.
    pub(crate) value: Type,
    /// Whether the field is an `Option`.
    pub(crate) is_option: bool,
    /// Its value if it is missing.
    pub(crate) default: DefaultValue,
    /// The minimum.
    pub(crate) min: Option<Expr>,
    /// The maximum.
    pub(crate) max: Option<Expr>,
    /// The allowed strings; if empty, any.
    pub(crate) choices: Vec<LitStr>,
}

/// The value of a setting that is missing.
pub(crate) enum DefaultValue {
    /// None: the setting is required.
    None,
    /// The default of its type.
    OfType,
    /// This expression.
    Given(Expr),
}

impl Field {
    /// Parses a field; `None` if it has no marker attribute, or after an error.
    pub(crate) fn of(field: &syn::Field, errors: &mut Errors) -> Option<Self> {
        let ident = field.ident.clone()?;
        let is_mark = |attribute: &&Attribute| {
            ["input", "output", "config"].iter().any(|mark| attribute.path().is_ident(mark))
        };
        let mut markers = field.attrs.iter().filter(is_mark);
        let Some(mark) = markers.next() else {
            refuse_unmarked(field, errors);
            return None;
        };
        for more in markers {
            errors.add(
                more,
                "a field can have only one role: `#[input]`, `#[output]` or `#[config]`",
            );
        }
        let role = if mark.path().is_ident("input") {
            input(mark, &field.ty, errors)
        } else if mark.path().is_ident("output") {
            output(mark, &field.ty, errors)
        } else {
            Setting::of(mark, &field.ty, errors).map(|setting| Role::Setting(Box::new(setting)))
        }?;
        let name = ident.unraw().to_string();
        if name.to_uppercase() == "SELF" {
            errors.add(
                &ident,
                "this name cannot be converted into a constant for the port: rename the field",
            );
        }
        let is_doc = |attribute: &&Attribute| attribute.path().is_ident("doc");
        let docs = field.attrs.iter().filter(is_doc).cloned().collect();
        Some(Self { ident, name, docs, role })
    }
}

fn refuse_unmarked(field: &syn::Field, errors: &mut Errors) {
    for (outer, mark) in [("Input", "#[input]"), ("Output", "#[output]")] {
        if argument_of(&field.ty, outer).is_some() {
            let what = format!("this port is never bound: mark it with `{mark}`");
            errors.add(&field.ty, what);
        }
    }
}

fn input(mark: &Attribute, ty: &Type, errors: &mut Errors) -> Option<Role> {
    let (mut is_optional, mut is_multiple) = (false, false);
    let form = "write `#[input]`, `#[input(optional)]` or `#[input(multiple)]`";
    each_key(mark, form, errors, |key, _| {
        match key.to_string().as_str() {
            "optional" => is_optional = true,
            "multiple" => is_multiple = true,
            other => {
                let what = format!(
                    "unknown option `{other}` of `#[input]`: the options are `optional` and \
                     `multiple`"
                );
                return Err(Error::new(key.span(), what));
            }
        }
        Ok(())
    });
    let carries = argument_of(ty, "Input");
    if carries.is_none() {
        errors.add(
            ty,
            "an input must have the type `Input<T>`, for example `Input<f64>`: the context holds \
             its values",
        );
    }
    Some(Role::Input { carries: carries?, is_optional, is_multiple })
}

fn output(mark: &Attribute, ty: &Type, errors: &mut Errors) -> Option<Role> {
    each_key(mark, "`#[output]` takes no options", errors, |key, _| {
        Err(Error::new(
            key.span(),
            "`#[output]` takes no options: an output may always be unconnected",
        ))
    });
    let carries = argument_of(ty, "Output");
    if carries.is_none() {
        errors.add(
            ty,
            "an output must have the type `Output<T>`, for example `Output<f64>`: the context \
             publishes its values",
        );
    }
    Some(Role::Output { carries: carries? })
}

impl Setting {
    fn of(mark: &Attribute, ty: &Type, errors: &mut Errors) -> Option<Self> {
        if argument_of(ty, "Input").or_else(|| argument_of(ty, "Output")).is_some() {
            errors.add(ty, "a port is not a setting: mark it `#[input]` or `#[output]`");
            return None;
        }
        let inner = argument_of(ty, "Option");
        let mut setting = Self {
            is_option: inner.is_some(),
            value: inner.unwrap_or_else(|| ty.clone()),
            default: DefaultValue::None,
            min: None,
            max: None,
            choices: Vec::new(),
        };
        let form = "write `#[config]` or, say, `#[config(default = 1.0, min = 0.0)]`";
        if each_key(mark, form, errors, |key, input| setting.take(key, input)) {
            setting.refuse_contradictions(mark, errors);
        }
        Some(setting)
    }

    fn take(&mut self, key: &Ident, input: ParseStream<'_>) -> Result<()> {
        match key.to_string().as_str() {
            "default" if input.is_empty() || input.peek(Token![,]) => {
                self.default = DefaultValue::OfType;
            }
            "default" => {
                let expected = "`default` expects a value: `default = 1.0`";
                equals(key, input, expected)?;
                self.default = DefaultValue::Given(input.parse()?);
            }
            "min" => self.min = Some(bound(key, input, "`min` expects a number: `min = 0.0`")?),
            "max" => self.max = Some(bound(key, input, "`max` expects a number: `max = 1.0`")?),
            "one_of" => {
                let expected = "`one_of` expects strings: `one_of(\"sine\", \"saw\")`";
                self.choices = texts(input).map_err(|_| Error::new(key.span(), expected))?;
                if self.choices.is_empty() {
                    return Err(Error::new(key.span(), expected));
                }
            }
            other => {
                let what = format!(
                    "unknown option `{other}` of `#[config]`: the options are `default`, `min`, \
                     `max` and `one_of`"
                );
                return Err(Error::new(key.span(), what));
            }
        }
        Ok(())
    }

    /// Reports constraints that no value can satisfy, as far as literals show it.
    fn refuse_contradictions(&self, mark: &Attribute, errors: &mut Errors) {
        let is_bounded = self.min.is_some() || self.max.is_some();
        if is_bounded && is_any_of(&self.value, &["String", "bool"]) {
            errors.add(&self.value, "`min` and `max` apply only to numbers");
        }
        let numbers = ["f64", "u8", "u32", "u64", "usize", "i32", "i64", "bool"];
        if !self.choices.is_empty() && is_any_of(&self.value, &numbers) {
            errors.add(&self.value, "`one_of` applies only to strings");
        }
        if self.is_option && !matches!(self.default, DefaultValue::None) {
            errors.add(
                mark,
                "an `Option` is `None` if it is missing: it cannot have another default",
            );
        }
        let (min, max) = (self.min.as_ref().and_then(number), self.max.as_ref().and_then(number));
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            errors.add(
                mark,
                format!(
                    "`min` is greater than `max`: no number is at least {min} and at most {max}"
                ),
            );
        }
        let DefaultValue::Given(given) = &self.default else { return };
        if let Some(number) = number(given)
            && (min.is_some_and(|min| number < min) || max.is_some_and(|max| number > max))
        {
            errors.add(given, "the default is not between `min` and `max`");
        }
        if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = given
            && !self.choices.is_empty()
            && !self.choices.iter().any(|choice| choice.value() == text.value())
        {
            errors.add(given, "the default is not one of the values in `one_of`");
        }
    }
}

/// Parses `= 1.0`. An integer becomes a float, since bounds are `f64`.
fn bound(key: &Ident, input: ParseStream<'_>, expected: &str) -> Result<Expr> {
    let at = equals(key, input, expected)?;
    let expr: Expr = input.parse().map_err(|_| Error::new(at, expected))?;
    match &expr {
        Expr::Lit(ExprLit { lit: Lit::Int(_) | Lit::Float(_), .. }) | Expr::Unary(_) => {
            let value = number(&expr).ok_or_else(|| Error::new(at, expected))?;
            Ok(syn::parse_quote!(#value))
        }
        Expr::Lit(_) => Err(Error::new(at, expected)),
        _ => Ok(expr),
    }
}

/// Parses `("a", "b")`.
fn texts(input: ParseStream<'_>) -> Result<Vec<LitStr>> {
    let inner;
    parenthesized!(inner in input);
    Ok(Punctuated::<LitStr, Token![,]>::parse_terminated(&inner)?.into_iter().collect())
}

/// The value of a numeric literal.
fn number(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(int), .. }) => int.base10_parse().ok(),
        Expr::Lit(ExprLit { lit: Lit::Float(float), .. }) => float.base10_parse().ok(),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => number(expr).map(|one| -one),
        _ => None,
    }
}

/// The single argument of a type named `outer`: `f64` of `clockjack_graph::Input<f64>`.
fn argument_of(ty: &Type, outer: &str) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first() {
        Some(GenericArgument::Type(inner)) if last.ident == outer && arguments.args.len() == 1 => {
            Some(inner.clone())
        }
        _ => None,
    }
}

fn is_any_of(ty: &Type, names: &[&str]) -> bool {
    let Type::Path(path) = ty else { return false };
    let last = path.path.segments.last();
    last.is_some_and(|last| names.iter().any(|name| last.ident == name))
}
