//! The actions that the audit trail records.
//!
//! Whatever writes an entry uses one of these names. To add an action, add a line to [`AuditAction::ALL`]; a test compares
//! it with the source of the store.

/// Prefix of the name of an actor who is a user, before the id.
pub const USER_ACTOR: &str = "user:";
/// Prefix of the name of an actor who ran a command, before the system user.
pub const COMMAND_ACTOR: &str = "command:";
/// The actor who reports payments.
pub const PAYMENTS_ACTOR: &str = "stripe";
/// The actor of what the service does by itself.
pub const SERVICE_ACTOR: &str = "service";

/// An action of the audit trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditAction {
    /// The name in the database, such as `key.create`.
    pub name: &'static str,
    /// What it is, for people.
    pub label: &'static str,
    /// Whether the owners of the team see it.
    pub visibility: AuditVisibility,
}

/// Who sees the entries of an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditVisibility {
    /// Only operators.
    Operators,
    /// The owners of the team, too, with who made the change.
    Owners,
    /// The owners of the team, too. It may be a change by an operator, whom they do not see.
    OwnersWithoutOperator,
}

impl AuditVisibility {
    /// Whether the owners of the team see the entries.
    pub const fn has_owners(self) -> bool {
        match self {
            Self::Operators => false,
            Self::Owners | Self::OwnersWithoutOperator => true,
        }
    }
}

impl AuditAction {
    /// All actions, in the order of the filter.
    pub const ALL: [Self; 66] = [
        owners("team.create", "Team created"),
        owners("team.rename", "Team renamed"),
        operators("team.delete", "Team deleted"),
        without_operator("team.suspend", "Team suspended"),
        without_operator("team.restore", "Team restored"),
        operators("team.limits", "Limits of a team changed"),
        owners("team.alert_below", "Balance alert changed"),
        owners("team.alert_recipients", "Recipients of alerts changed"),
        owners("member.invite", "Person invited"),
        owners("member.withdraw_invitation", "Invitation revoked"),
        owners("member.join", "Person joined a team"),
        owners("member.role", "Role changed"),
        owners("member.remove", "Member removed"),
        owners("member.leave", "Member left"),
        owners("key.create", "Key created"),
        owners("key.revoke", "Key revoked"),
        owners("key.link_secret", "Link secret shown"),
        owners("key.link_secret.replace", "Link secret replaced"),
        owners("webhook.secret", "Webhook secret replaced"),
        owners("monitor.create", "Monitor created"),
        owners("monitor.change", "Monitor changed"),
        owners("monitor.pause", "Monitor paused"),
        owners("monitor.resume", "Monitor resumed"),
        owners("monitor.accept", "Baseline of a monitor accepted"),
        owners("monitor.feed", "Address of a monitor's feed created"),
        owners("monitor.feed_off", "Feed of a monitor turned off"),
        owners("monitor.delete", "Monitor deleted"),
        owners("proxy.create", "Proxy created"),
        owners("proxy.change", "Proxy changed"),
        owners("proxy.password", "Password of a proxy replaced"),
        owners("proxy.delete", "Proxy deleted"),
        owners("site.create", "Site job created"),
        owners("site.cancel", "Site job canceled"),
        owners("site.delete", "Site job deleted"),
        without_operator("credits.grant", "Credits granted"),
        owners("subscription.cancel", "Subscription cancelled"),
        owners("payment.refunded", "Payment refunded"),
        owners("payment.disputed", "Payment disputed"),
        owners("payment.dispute_won", "Dispute of a payment won"),
        owners("payment.dispute_lost", "Dispute of a payment lost"),
        owners("payment.granted_after_reversal", "Credits of a reversed payment granted"),
        operators("user.create", "Account created"),
        operators("user.suspend", "Account suspended"),
        operators("user.restore", "Account restored"),
        operators("user.remove", "Account removed"),
        operators("user.delete", "Account deleted"),
        operators("user.expire", "Account expired"),
        operators("second_factor.on", "Second factor turned on"),
        operators("second_factor.off", "Second factor turned off"),
        operators("second_factor.app", "Authenticator app set"),
        operators("second_factor.recovery_codes", "Recovery codes replaced"),
        operators("second_factor.recovery_code_use", "Recovery code used"),
        operators("second_factor.remove", "Second factor removed"),
        operators("passkey.add", "Passkey added"),
        operators("passkey.rename", "Passkey renamed"),
        operators("passkey.remove", "Passkey removed"),
        operators("operator.sign_in", "Operator signed in"),
        operators("operator.set", "Operator role changed"),
        operators("domain.deny", "Domain denied"),
        operators("domain.allow", "Domain allowed"),
        operators("domain.remove", "Domain rule removed"),
        operators("images.forget", "Place of images removed"),
        operators("secrets.rotate", "Key of stored secrets replaced"),
        operators("identity.rotate", "Key of the service replaced"),
        operators("backup.create", "Backup made"),
        operators("evidence.rotate", "Key of evidence replaced"),
    ];

    /// The action with this name. `None` for one of a later version.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|action| action.name == name)
    }

    /// The actions that the owners of a team see.
    pub fn of_owners() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|action| action.visibility.has_owners())
    }
}

const fn operators(name: &'static str, label: &'static str) -> AuditAction {
    AuditAction { name, label, visibility: AuditVisibility::Operators }
}

const fn owners(name: &'static str, label: &'static str) -> AuditAction {
    AuditAction { name, label, visibility: AuditVisibility::Owners }
}

const fn without_operator(name: &'static str, label: &'static str) -> AuditAction {
    AuditAction { name, label, visibility: AuditVisibility::OwnersWithoutOperator }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_labels_are_unique() {
        let names: BTreeSet<&str> = AuditAction::ALL.iter().map(|action| action.name).collect();
        let labels: BTreeSet<&str> = AuditAction::ALL.iter().map(|action| action.label).collect();
        assert_eq!((names.len(), labels.len()), (AuditAction::ALL.len(), AuditAction::ALL.len()));
    }

    #[test]
    fn owners_do_not_see_what_operators_do_for_themselves() {
        for name in ["team.limits", "operator.sign_in", "domain.deny", "user.suspend", "second_factor.off"] {
            assert!(!AuditAction::find(name).unwrap().visibility.has_owners(), "{name}");
        }
        assert!(AuditAction::of_owners().any(|action| action.name == "team.suspend"));
        assert_eq!(AuditAction::find("team.sell"), None);
    }
}
