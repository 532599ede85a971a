//! Enums whose values have names in files.

/// Declares an enum of which each value has a name: `ALL`, `name()`, `from_name()`, `Display`.
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
            /// All of them, in the order of their declaration.
            $vis const ALL: &'static [Self] = &[$( Self::$variant, )+];

            /// Its name in files and in what is printed.
            #[must_use]
            $vis const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// The one with this name.
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
