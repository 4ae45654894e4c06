//! OAuth scopes: what a user lets an app do.
//!
//! Every app gets [`OauthScope::Grabs`]. [`OauthScope::Manage`] is added only if the app asks for it and the user agrees.

use std::fmt;

use super::{Scope, Scopes};

/// What a user lets an app do, as one line of the consent page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OauthScope {
    /// Create, list and read grabs, and read the team's credit balance.
    Grabs,
    /// Everything else that an app may do: create webhooks and proxies of its own, and delete images.
    Manage,
}

impl OauthScope {
    /// All scopes, in the order in which they are listed.
    pub const ALL: [Self; 2] = [Self::Grabs, Self::Manage];

    /// The name in requests and responses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Grabs => "grabs",
            Self::Manage => "manage",
        }
    }

    /// Parses a name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == text)
    }

    /// The scope of an app that allows what this scope of an API key allows.
    pub const fn including(scope: Scope) -> Self {
        match scope {
            Scope::Read | Scope::Create => Self::Grabs,
            Scope::Manage => Self::Manage,
        }
    }

    const fn bit(self) -> u8 {
        match self {
            Self::Grabs => 1,
            Self::Manage => 2,
        }
    }
}

impl fmt::Display for OauthScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of OAuth scopes that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OauthScopes(u8);

impl OauthScopes {
    /// Only [`OauthScope::Grabs`].
    pub const GRABS: Self = Self(1);
    /// Every scope.
    pub const ALL: Self = Self(3);

    /// The scopes that an authorization request asks for. [`OauthScope::Grabs`] is always among them. Unknown scopes are
    /// ignored, because clients often request scopes of other services.
    ///
    /// # Errors
    /// If there is a `scope` field without any known scope.
    pub fn requested(field: Option<&str>) -> Result<Self, ScopeError> {
        let Some(field) = field else { return Ok(Self::GRABS) };
        let known = field.split(' ').filter_map(OauthScope::parse);
        let known = known.fold(0, |bits, scope| bits | scope.bit());
        if known == 0 { Err(ScopeError) } else { Ok(Self(known | Self::GRABS.0)) }
    }

    /// The scopes that a refresh asks for (RFC 6749 section 6). `None` without a field: all that were granted.
    ///
    /// # Errors
    /// If a requested scope is unknown, or there is none.
    pub fn of_refresh(field: Option<&str>) -> Result<Option<Self>, ScopeError> {
        let Some(field) = field else { return Ok(None) };
        let requested = field.split(' ').map(|scope| OauthScope::parse(scope).ok_or(ScopeError));
        let bits = requested.map(|scope| Ok(scope?.bit())).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(Self(bits.into_iter().fold(0, |all, bit| all | bit))))
    }

    /// The set with these bits, as returned by [`OauthScopes::bits`]. `None` if there are none or unknown ones.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits == 0 || bits > Self::ALL.0 { None } else { Some(Self(bits)) }
    }

    /// One bit for each scope, for storage: 1 grabs, 2 manage.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Whether the set includes a scope.
    pub const fn includes(self, scope: OauthScope) -> bool {
        self.0 & scope.bit() != 0
    }

    /// Whether the set includes all scopes of another one.
    pub const fn includes_all(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// The scopes that are in both sets. `None` if there are none.
    pub const fn and(self, other: Self) -> Option<Self> {
        Self::from_bits(self.0 & other.0)
    }

    /// The scopes of the API: what a token with these scopes may be used for.
    pub fn to_api(self) -> Scopes {
        let allowed = Scope::ALL.into_iter().filter(|scope| self.includes(OauthScope::including(*scope)));
        Scopes::new(allowed).expect("every OAuth scope includes a scope of the API")
    }
}

impl fmt::Display for OauthScopes {
    /// The names, separated by spaces.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for scope in OauthScope::ALL.into_iter().filter(|scope| self.includes(*scope)) {
            write!(f, "{separator}{scope}")?;
            separator = " ";
        }
        Ok(())
    }
}

/// No requested scope is known, or a refresh requests one that is unknown or was not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`scope` must name grabs, manage or both; in a refresh, only what was granted.")]
pub struct ScopeError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_gets_grabs_and_also_manage_if_it_asks_for_it() {
        for (requested, expected) in [
            (None, Some("grabs")),
            (Some("grabs"), Some("grabs")),
            (Some("grabs offline_access"), Some("grabs")),
            (Some("openid grabs profile"), Some("grabs")),
            (Some("grabs manage"), Some("grabs manage")),
            (Some("manage"), Some("grabs manage")),
            (Some("manage openid manage"), Some("grabs manage")),
            (Some(""), None),
            (Some(" "), None),
            (Some("openid"), None),
            (Some("Grabs"), None),
            (Some("Manage"), None),
            (Some("grabs:read"), None),
            (Some("grabs,manage"), None),
            (Some("grabs\tmanage"), None),
        ] {
            let granted = OauthScopes::requested(requested).ok().map(|scopes| scopes.to_string());
            assert_eq!(granted.as_deref(), expected, "{requested:?}");
        }
    }

    #[test]
    fn refresh_gets_exactly_the_scopes_that_it_names_and_refuses_unknown_ones() {
        for (requested, expected) in [
            (None, Ok(None)),
            (Some("grabs"), Ok(Some("grabs"))),
            (Some("grabs grabs"), Ok(Some("grabs"))),
            (Some("manage"), Ok(Some("manage"))),
            (Some("manage grabs"), Ok(Some("grabs manage"))),
            (Some("grabs offline_access"), Err(ScopeError)),
            (Some("openid"), Err(ScopeError)),
            (Some(""), Err(ScopeError)),
            (Some("grabs "), Err(ScopeError)),
            (Some("Grabs"), Err(ScopeError)),
        ] {
            let scopes = OauthScopes::of_refresh(requested).map(|scopes| scopes.map(|scopes| scopes.to_string()));
            assert_eq!(scopes, expected.map(|scopes| scopes.map(str::to_owned)), "{requested:?}");
        }
    }

    #[test]
    fn oauth_scopes_allow_their_part_of_the_api_and_together_all_of_it() {
        for (scopes, api) in [("grabs", "read, create"), ("manage", "manage"), ("grabs manage", "read, create, manage")]
        {
            let scopes = OauthScopes::of_refresh(Some(scopes)).unwrap().unwrap();
            assert_eq!(scopes.to_api().to_string(), api);
        }
    }

    #[test]
    fn sets_are_compared_and_survive_storage() {
        let (grabs, all) = (OauthScopes::GRABS, OauthScopes::ALL);
        let manage = OauthScopes::from_bits(2).unwrap();
        assert_eq!([grabs, manage, all].map(|set| OauthScopes::from_bits(set.bits())), [grabs, manage, all].map(Some));
        assert_eq!((OauthScopes::from_bits(0), OauthScopes::from_bits(4)), (None, None));
        assert!(all.includes_all(grabs) && all.includes_all(manage) && !grabs.includes_all(all));
        assert_eq!((all.and(grabs), grabs.and(manage)), (Some(grabs), None));
    }
}
