//! What each role of a team allows. Everything that a signed-in user does in a team is checked against this table.
//!
//! To add a permission, add a variant to [`Permission`] and a line to [`Role::allows`]; the test below has the whole table.

use crate::accounts::Role;

/// Something that the members of a team may do if their role allows it. Every member may see who is in the team, and leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permission {
    /// See captures, their images and files.
    ViewCaptures,
    /// Capture pages, and delete images.
    Capture,
    /// See the recorded requests of keys and apps.
    ViewRequests,
    /// See the balance, the usage and the ledger.
    ViewUsage,
    /// Buy credits.
    BuyCredits,
    /// Change the alerts about the balance.
    ManageAlerts,
    /// See, create and revoke API keys, and see secrets.
    ManageKeys,
    /// See, create, change and delete webhooks.
    ManageWebhooks,
    /// Connect apps, which can do what a restricted key can.
    ConnectApps,
    /// Invite and remove members, and change their roles.
    ManageMembers,
    /// Rename, export and delete the team, manage its proxies, and see its audit trail.
    ManageTeam,
}

impl Permission {
    /// All permissions.
    pub const ALL: [Self; 11] = [
        Self::ViewCaptures,
        Self::Capture,
        Self::ViewRequests,
        Self::ViewUsage,
        Self::BuyCredits,
        Self::ManageAlerts,
        Self::ManageKeys,
        Self::ManageWebhooks,
        Self::ConnectApps,
        Self::ManageMembers,
        Self::ManageTeam,
    ];

    /// The roles that allow it, in the order of [`Role::ALL`].
    pub fn roles(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| role.allows(self))
    }
}

impl Role {
    /// Whether members with this role have a permission.
    pub const fn allows(self, permission: Permission) -> bool {
        match self {
            Self::Owner => true,
            Self::Member => match permission {
                Permission::ViewCaptures
                | Permission::Capture
                | Permission::ViewRequests
                | Permission::ViewUsage
                | Permission::BuyCredits
                | Permission::ManageKeys
                | Permission::ManageWebhooks
                | Permission::ConnectApps => true,
                Permission::ManageAlerts | Permission::ManageMembers | Permission::ManageTeam => false,
            },
            Self::Viewer => match permission {
                Permission::ViewCaptures | Permission::ViewRequests | Permission::ViewUsage => true,
                Permission::Capture
                | Permission::BuyCredits
                | Permission::ManageAlerts
                | Permission::ManageKeys
                | Permission::ManageWebhooks
                | Permission::ConnectApps
                | Permission::ManageMembers
                | Permission::ManageTeam => false,
            },
            Self::Billing => match permission {
                Permission::ViewUsage | Permission::BuyCredits | Permission::ManageAlerts => true,
                Permission::ViewCaptures
                | Permission::Capture
                | Permission::ViewRequests
                | Permission::ManageKeys
                | Permission::ManageWebhooks
                | Permission::ConnectApps
                | Permission::ManageMembers
                | Permission::ManageTeam => false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_allows_exactly_its_permissions() {
        let of = |role: Role| -> Vec<Permission> {
            Permission::ALL.into_iter().filter(|permission| role.allows(*permission)).collect()
        };
        assert_eq!(of(Role::Owner), Permission::ALL);
        assert_eq!(
            of(Role::Member),
            [
                Permission::ViewCaptures,
                Permission::Capture,
                Permission::ViewRequests,
                Permission::ViewUsage,
                Permission::BuyCredits,
                Permission::ManageKeys,
                Permission::ManageWebhooks,
                Permission::ConnectApps,
            ]
        );
        assert_eq!(of(Role::Viewer), [Permission::ViewCaptures, Permission::ViewRequests, Permission::ViewUsage]);
        assert_eq!(of(Role::Billing), [Permission::ViewUsage, Permission::BuyCredits, Permission::ManageAlerts]);
    }

    #[test]
    fn whoever_may_connect_apps_may_do_what_apps_do() {
        // An app captures, sees captures and the balance, and with its second scope uses webhooks and deletes images.
        let of_apps =
            [Permission::ViewCaptures, Permission::Capture, Permission::ViewUsage, Permission::ManageWebhooks];
        for role in Permission::ConnectApps.roles() {
            for permission in of_apps {
                assert!(role.allows(permission), "{role:?} {permission:?}");
            }
        }
    }

    #[test]
    fn names_of_roles_are_parsed() {
        for role in Role::ALL {
            assert_eq!(Role::parse(role.as_str()), Some(role));
        }
        for name in ["", "Owner", "viewers", "admin"] {
            assert_eq!(Role::parse(name), None, "{name}");
        }
    }
}
