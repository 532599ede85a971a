//! [`Token`]: what a client over TCP shows, so that it may look.

use core::fmt;

use subtle::ConstantTimeEq as _;

/// Base 32 without letters that are easily confused with digits (Crockford's alphabet).
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// 128 bits of 5 bits each.
const LENGTH: usize = 26;

/// The shortest token that a program may choose: fewer characters can be guessed.
const LENGTH_MIN: usize = 16;

/// A secret that a client over TCP shows with every request. Neither `Display` nor `Debug` shows
/// it.
#[derive(Clone)]
pub struct Token(String);

/// A text that is no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenError(Reason);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    Missing,
    TooShort,
    Character,
    NoEntropy,
}

impl Token {
    /// A new token: 128 bits from the operating system.
    ///
    /// # Errors
    ///
    /// If the operating system has no random numbers.
    pub fn random() -> Result<Self, TokenError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|_| TokenError(Reason::NoEntropy))?;
        let mut bits = u128::from_be_bytes(bytes);
        let mut text = String::with_capacity(LENGTH);
        for _ in 0..LENGTH {
            text.push(char::from(DIGITS[(bits % 32) as usize]));
            bits /= 32;
        }
        Ok(Self(text))
    }

    /// The token in this environment variable.
    ///
    /// # Errors
    ///
    /// If the variable is not set, or its value is no [token](Self::of_text).
    pub fn from_env(name: &str) -> Result<Self, TokenError> {
        let text = std::env::var(name).map_err(|_| TokenError(Reason::Missing))?;
        Self::of_text(&text)
    }

    /// A token that was agreed upon elsewhere.
    ///
    /// # Errors
    ///
    /// If the text has fewer than 16 characters, or others than letters, digits, `-`, `.`, `_` and
    /// `~`.
    pub fn of_text(text: &str) -> Result<Self, TokenError> {
        if text.len() < LENGTH_MIN {
            return Err(TokenError(Reason::TooShort));
        }
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
        if !text.chars().all(is_allowed) {
            return Err(TokenError(Reason::Character));
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether this text is the token. The time of the comparison depends on the lengths only.
    #[must_use]
    pub fn ct_eq(&self, text: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(text).into()
    }

    /// The secret, for the header of a request or the fragment of an address.
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Reason::Missing => "the variable of the token is not set",
            Reason::TooShort => "a token has at least 16 characters",
            Reason::Character => "a token consists of letters, digits, `-`, `.`, `_` and `~`",
            Reason::NoEntropy => "the operating system has no random numbers",
        })
    }
}

impl core::error::Error for TokenError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_shown_and_equals_only_itself() {
        let token = Token::random().unwrap();
        assert_eq!(token.secret().len(), LENGTH);
        assert!(token.ct_eq(token.secret().as_bytes()));
        let other = Token::random().unwrap();
        assert!(!token.ct_eq(other.secret().as_bytes()));
        assert!(!token.ct_eq(&token.secret().as_bytes()[1..]));
        assert!(!token.ct_eq(b""));
        for shown in [format!("{token:?}"), token.to_string()] {
            assert!(!shown.contains(token.secret()), "{shown}");
        }
    }

    #[test]
    fn a_chosen_token_is_long_and_needs_no_quoting() {
        assert!(Token::of_text("0123456789abcdef").is_ok());
        assert!(Token::of_text("0123456789abcde").is_err());
        assert!(Token::of_text("0123456789abcde f").is_err());
        assert!(Token::of_text("0123456789abcde\n").is_err());
    }
}
