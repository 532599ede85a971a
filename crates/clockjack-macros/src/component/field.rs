//! The marks on the fields of a component: `#[input]`, `#[output]` and `#[config]`.
//!
//! A field without a mark is none of the derive's business, unless its type is that of a port: such
//! a port would never be bound, and nobody would be told.

use proc_macro2::Ident;
use syn::{
    Attribute, Error, Expr, ExprLit, ExprUnary, GenericArgument, Lit, LitStr, PathArguments,
    Result, Token, Type, UnOp, ext::IdentExt as _, parenthesized, parse::ParseStream,
    punctuated::Punctuated,
};

use super::options::{each_key, equals};
use crate::faults::Faults;

/// A marked field.
pub(crate) struct Field {
    /// The field itself.
    pub(crate) ident: Ident,
    /// Its name in files: that of the field, without `r#`.
    pub(crate) name: String,
    /// Its documentation.
    pub(crate) docs: Vec<Attribute>,
    /// What it is for the component.
    pub(crate) role: Role,
}

/// What a field is for the component.
pub(crate) enum Role {
    /// `#[input]`.
    Input { carries: Type, is_optional: bool, is_multiple: bool },
    /// `#[output]`.
    Output { carries: Type },
    /// `#[config]`.
    Setting(Box<Setting>),
}

/// What `#[config(..)]` says of a setting.
pub(crate) struct Setting {
    /// The type of its value; for an `Option<f64>` that is `f64`.
    pub(crate) value: Type,
    /// The field is an `Option`.
    pub(crate) is_option: bool,
    /// What stands for it if it is not given.
    pub(crate) fallback: Fallback,
    /// The least value.
    pub(crate) min: Option<Expr>,
    /// The greatest value.
    pub(crate) max: Option<Expr>,
    /// The texts that it may be; none: any.
    pub(crate) choices: Vec<LitStr>,
}

/// What stands for a setting that is not given.
pub(crate) enum Fallback {
    /// Nothing: it must be given.
    None,
    /// The default of its type.
    OfType,
    /// This.
    Given(Expr),
}

impl Field {
    /// Reads a field; `None` if it is not marked, or wrong.
    pub(crate) fn of(field: &syn::Field, faults: &mut Faults) -> Option<Self> {
        let ident = field.ident.clone()?;
        let is_mark = |attribute: &&Attribute| {
            ["input", "output", "config"].iter().any(|mark| attribute.path().is_ident(mark))
        };
        let mut marks = field.attrs.iter().filter(is_mark);
        let Some(mark) = marks.next() else {
            refuse_unmarked(field, faults);
            return None;
        };
        for more in marks {
            faults.add(more, "a field has one role: `#[input]`, `#[output]` or `#[config]`");
        }
        let role = if mark.path().is_ident("input") {
            input(mark, &field.ty, faults)
        } else if mark.path().is_ident("output") {
            output(mark, &field.ty, faults)
        } else {
            Setting::of(mark, &field.ty, faults).map(|setting| Role::Setting(Box::new(setting)))
        }?;
        let name = ident.unraw().to_string();
        if name.to_uppercase() == "SELF" {
            faults.add(&ident, "this name gives no constant for the port: call it otherwise");
        }
        let is_doc = |attribute: &&Attribute| attribute.path().is_ident("doc");
        let docs = field.attrs.iter().filter(is_doc).cloned().collect();
        Some(Self { ident, name, docs, role })
    }
}

fn refuse_unmarked(field: &syn::Field, faults: &mut Faults) {
    for (outer, mark) in [("Input", "#[input]"), ("Output", "#[output]")] {
        if argument_of(&field.ty, outer).is_some() {
            let what = format!("this port is never bound: write `{mark}` above it");
            faults.add(&field.ty, what);
        }
    }
}

fn input(mark: &Attribute, ty: &Type, faults: &mut Faults) -> Option<Role> {
    let (mut is_optional, mut is_multiple) = (false, false);
    let form = "write `#[input]`, `#[input(optional)]` or `#[input(multiple)]`";
    each_key(mark, form, faults, |key, _| {
        match key.to_string().as_str() {
            "optional" => is_optional = true,
            "multiple" => is_multiple = true,
            other => {
                let what = format!(
                    "`{other}` is no option of `#[input]`: there are `optional` and `multiple`"
                );
                return Err(Error::new(key.span(), what));
            }
        }
        Ok(())
    });
    let carries = argument_of(ty, "Input");
    if carries.is_none() {
        faults.add(ty, "an input is a key, the values are in the context: `Input<f64>`");
    }
    Some(Role::Input { carries: carries?, is_optional, is_multiple })
}

fn output(mark: &Attribute, ty: &Type, faults: &mut Faults) -> Option<Role> {
    each_key(mark, "`#[output]` takes no options", faults, |key, _| {
        Err(Error::new(key.span(), "`#[output]` takes no options: it may always be unconnected"))
    });
    let carries = argument_of(ty, "Output");
    if carries.is_none() {
        faults.add(ty, "an output is a key, values are published by the context: `Output<f64>`");
    }
    Some(Role::Output { carries: carries? })
}

impl Setting {
    fn of(mark: &Attribute, ty: &Type, faults: &mut Faults) -> Option<Self> {
        if argument_of(ty, "Input").or_else(|| argument_of(ty, "Output")).is_some() {
            faults.add(ty, "a port is no setting: mark it `#[input]` or `#[output]`");
            return None;
        }
        let inner = argument_of(ty, "Option");
        let mut setting = Self {
            is_option: inner.is_some(),
            value: inner.unwrap_or_else(|| ty.clone()),
            fallback: Fallback::None,
            min: None,
            max: None,
            choices: Vec::new(),
        };
        let form = "write `#[config]` or, say, `#[config(default = 1.0, min = 0.0)]`";
        if each_key(mark, form, faults, |key, input| setting.take(key, input)) {
            setting.refuse_contradictions(mark, faults);
        }
        Some(setting)
    }

    fn take(&mut self, key: &Ident, input: ParseStream<'_>) -> Result<()> {
        match key.to_string().as_str() {
            "default" if input.is_empty() || input.peek(Token![,]) => {
                self.fallback = Fallback::OfType;
            }
            "default" => {
                let wants = "`default` wants a value: `default = 1.0`";
                equals(key, input, wants)?;
                self.fallback = Fallback::Given(input.parse()?);
            }
            "min" => self.min = Some(bound(key, input, "`min` wants a number: `min = 0.0`")?),
            "max" => self.max = Some(bound(key, input, "`max` wants a number: `max = 1.0`")?),
            "one_of" => {
                let wants = "`one_of` wants texts: `one_of(\"sine\", \"saw\")`";
                self.choices = texts(input).map_err(|_| Error::new(key.span(), wants))?;
                if self.choices.is_empty() {
                    return Err(Error::new(key.span(), wants));
                }
            }
            other => {
                let what = format!(
                    "`{other}` is no option of `#[config]`: there are `default`, `min`, `max` and \
                     `one_of`"
                );
                return Err(Error::new(key.span(), what));
            }
        }
        Ok(())
    }

    /// What no value could satisfy, as far as it can be seen in the text.
    fn refuse_contradictions(&self, mark: &Attribute, faults: &mut Faults) {
        let is_bounded = self.min.is_some() || self.max.is_some();
        if is_bounded && is_any_of(&self.value, &["String", "bool"]) {
            faults.add(&self.value, "`min` and `max` are for numbers");
        }
        let numbers = ["f64", "u8", "u32", "u64", "usize", "i32", "i64", "bool"];
        if !self.choices.is_empty() && is_any_of(&self.value, &numbers) {
            faults.add(&self.value, "`one_of` is for texts: this is none");
        }
        if self.is_option && !matches!(self.fallback, Fallback::None) {
            faults.add(mark, "an `Option` is `None` if it is not given: it has no other default");
        }
        let (min, max) = (self.min.as_ref().and_then(number), self.max.as_ref().and_then(number));
        if let (Some(min), Some(max)) = (min, max)
            && min > max
        {
            faults.add(mark, format!("no number is at least {min} and at most {max}"));
        }
        let Fallback::Given(given) = &self.fallback else { return };
        if let Some(number) = number(given)
            && (min.is_some_and(|min| number < min) || max.is_some_and(|max| number > max))
        {
            faults.add(given, "the default lies outside `min` and `max`");
        }
        if let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = given
            && !self.choices.is_empty()
            && !self.choices.iter().any(|choice| choice.value() == text.value())
        {
            faults.add(given, "the default is not one of `one_of`");
        }
    }
}

/// Reads `= 1.0`. A whole number becomes one with a point, since bounds are `f64`.
fn bound(key: &Ident, input: ParseStream<'_>, wants: &str) -> Result<Expr> {
    let at = equals(key, input, wants)?;
    let expr: Expr = input.parse().map_err(|_| Error::new(at, wants))?;
    match &expr {
        Expr::Lit(ExprLit { lit: Lit::Int(_) | Lit::Float(_), .. }) | Expr::Unary(_) => {
            let value = number(&expr).ok_or_else(|| Error::new(at, wants))?;
            Ok(syn::parse_quote!(#value))
        }
        Expr::Lit(_) => Err(Error::new(at, wants)),
        _ => Ok(expr),
    }
}

/// Reads `("a", "b")`.
fn texts(input: ParseStream<'_>) -> Result<Vec<LitStr>> {
    let inner;
    parenthesized!(inner in input);
    Ok(Punctuated::<LitStr, Token![,]>::parse_terminated(&inner)?.into_iter().collect())
}

/// The value of a number that is written out.
fn number(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Lit(ExprLit { lit: Lit::Int(int), .. }) => int.base10_parse().ok(),
        Expr::Lit(ExprLit { lit: Lit::Float(float), .. }) => float.base10_parse().ok(),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => number(expr).map(|one| -one),
        _ => None,
    }
}

/// The one argument of a type called `outer`: `f64` of `clockjack_graph::Input<f64>`.
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
