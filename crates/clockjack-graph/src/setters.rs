//! Builder methods that set one field.

/// Declares builder methods: each changes the value that is named between the bars and returns it.
macro_rules! setters {
    ($(
        $(#[$meta:meta])*
        $name:ident($($arg:ident: $type:ty),*): |$this:ident| $set:expr;
    )+) => { $(
        $(#[$meta])*
        #[must_use]
        pub fn $name(mut self $(, $arg: $type)*) -> Self {
            let $this = &mut self;
            $set;
            self
        }
    )+ };
}

pub(crate) use setters;
