//! Enums whose variants have names in files.

/// Declares an enum whose variants have names: `ALL`, `name()`, `from_name()`, `Display`.
macro_rules! named {
    (
        $(#[$meta:meta])*
        $vis:vis enum $enum:ident {
            $( $(#[$vmeta:meta])* $variant:ident = $name:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $enum {
            $( $(#[$vmeta])* $variant, )+
        }

        impl $enum {
            /// All variants, in the order of their declaration.
            $vis const ALL: &'static [Self] = &[$( Self::$variant, )+];

            /// The name in files and in output.
            #[must_use]
            $vis const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// The variant with this name.
            #[must_use]
            $vis fn from_name(name: &str) -> Option<Self> {
                match name { $( $name => Some(Self::$variant), )+ _ => None }
            }
        }

        impl core::fmt::Display for $enum {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

pub(crate) use named;
