//! The OAuth scope.

/// The only scope: create, list and read grabs, and read the team's credit balance.
pub const SCOPE: &str = "grabs";

/// No requested scope is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("The only scope there is, is {SCOPE}.")]
pub struct ScopeError;

/// Checks a `scope` field. A missing field requests all scopes. Unknown scopes are ignored, because clients often
/// request scopes of other services.
///
/// # Errors
/// If no requested scope is known.
pub fn check_scope(requested: Option<&str>) -> Result<(), ScopeError> {
    match requested {
        None => Ok(()),
        Some(requested) if requested.split(' ').any(|scope| scope == SCOPE) => Ok(()),
        Some(_) => Err(ScopeError),
    }
}

/// Checks the `scope` field of a refresh, which must not ask for more than was granted (RFC 6749 section 6). A missing
/// field requests what was granted.
///
/// # Errors
/// If a requested scope is unknown, or there is none.
pub fn check_refresh_scope(requested: Option<&str>) -> Result<(), ScopeError> {
    match requested {
        Some(requested) if requested.split(' ').any(|scope| scope != SCOPE) => Err(ScopeError),
        None | Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_scope_requires_one_known_scope() {
        for (requested, good) in [
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
            assert_eq!(check_scope(requested).is_ok(), good, "{requested:?}");
        }
    }

    #[test]
    fn check_refresh_scope_refuses_unknown_scopes() {
        for (requested, good) in [
            (None, true),
            (Some("grabs"), true),
            (Some("grabs grabs"), true),
            (Some("grabs offline_access"), false),
            (Some("openid"), false),
            (Some(""), false),
            (Some("grabs "), false),
            (Some("Grabs"), false),
        ] {
            assert_eq!(check_refresh_scope(requested).is_ok(), good, "{requested:?}");
        }
    }
}
