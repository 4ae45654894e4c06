//! The one scope there is.

/// Create, list and read screenshots, and read the team's credit balance.
pub const SCOPE: &str = "grabs";

/// Nothing that was asked for exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The only scope there is, is {SCOPE}.")]
pub struct ScopeError;

/// Does this `scope` field ask for something there is? Without one, everything is asked for. What nobody here knows is
/// left out of the answer, because clients like to ask for everything that some other service might have.
///
/// # Errors
/// When nothing is left.
pub fn check_scope(asked: Option<&str>) -> Result<(), ScopeError> {
    match asked {
        None => Ok(()),
        Some(asked) if asked.split(' ').any(|scope| scope == SCOPE) => Ok(()),
        Some(_) => Err(ScopeError),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn something_must_be_left() {
        for (asked, good) in [
            (None, true),
            (Some("grabs"), true),
            (Some("grabs offline_access"), true),
            (Some("openid grabs profile"), true),
            (Some(""), false),
            (Some(" "), false),
            (Some("openid"), false),
            (Some("Grabs"), false),
            (Some("grabs:read"), false),
            (Some("grabs,openid"), false),
            (Some("grabs\topenid"), false),
        ] {
            assert_eq!(check_scope(asked).is_ok(), good, "{asked:?}");
        }
    }
}
