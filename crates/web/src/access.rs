//! Which members of a team may use a route, and how pages name the roles.
//!
//! Each route states it in the table of `routes.rs`. The extractors of a team's pages and forms check it against the role
//! of the user, and refuse routes that state nothing.
//!
//! Changes of members, keys, alerts, grants and the team itself check the role again in their transaction. Captures, webhooks,
//! link secrets and payments do not: a request that passed this check while the role changed is like one that came just before
//! the change, and what it made belongs to the team. Owners see which secrets people without access know.

use grabd_domain::accounts::Role;
use grabd_domain::permissions::Permission;
use http::Extensions;

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The route is not below a team. No member of a team gets anything from it.
    OutsideTeams,
    /// All members of the team in the path.
    Members,
    /// The members whose role has the permission.
    With(Permission),
}

impl Access {
    /// The access of the route that the router has chosen for a request.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or(Self::OutsideTeams)
    }

    /// Whether members with this role may use the route.
    pub(crate) const fn allows(self, role: Role) -> bool {
        match self {
            Self::OutsideTeams => false,
            Self::Members => true,
            Self::With(permission) => role.allows(permission),
        }
    }

    /// The names of the roles that may use the route: `Owner`, `Owner or Member`, or `Owner, Member or Viewer`.
    pub(crate) fn role_names(self) -> String {
        let mut names: Vec<&str> = Role::ALL.into_iter().filter(|role| self.allows(*role)).map(role_name).collect();
        let last = names.pop().unwrap_or_default();
        if names.is_empty() { last.to_owned() } else { format!("{} or {last}", names.join(", ")) }
    }
}

/// The display name of a role.
pub(crate) const fn role_name(role: Role) -> &'static str {
    match role {
        Role::Owner => "Owner",
        Role::Member => "Member",
        Role::Viewer => "Viewer",
        Role::Billing => "Billing",
    }
}

/// What a role allows, in a sentence.
pub(crate) const fn role_summary(role: Role) -> &'static str {
    match role {
        Role::Owner => "Can do everything, manages members, and can rename or delete the team.",
        Role::Member => "Captures pages, manages API keys and webhooks, connects apps, buys credits.",
        Role::Viewer => "Sees captures, usage and requests. Changes nothing, and sees no keys or webhooks.",
        Role::Billing => "Buys credits, sees usage, ledger and receipts, sets alerts. Sees no captures.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_without_access_are_for_nobody() {
        let access = Access::of(&Extensions::new());
        assert!(Role::ALL.into_iter().all(|role| !access.allows(role)));
        assert!(Role::ALL.into_iter().all(|role| Access::Members.allows(role)));
    }

    #[test]
    fn roles_are_listed_in_a_sentence() {
        for (permission, expected) in [
            (Permission::ManageTeam, "Owner"),
            (Permission::Capture, "Owner or Member"),
            (Permission::ViewCaptures, "Owner, Member or Viewer"),
            (Permission::ManageAlerts, "Owner or Billing"),
        ] {
            assert_eq!(Access::With(permission).role_names(), expected, "{permission:?}");
        }
    }
}
