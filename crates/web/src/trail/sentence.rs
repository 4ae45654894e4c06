//! An entry of the audit trail as a sentence: who did what to whom.

use grabd_domain::accounts::Role;
use grabd_domain::audit::{COMMAND_ACTOR, PAYMENTS_ACTOR, SERVICE_ACTOR, USER_ACTOR};
use grabd_engine::trail::{NamedEntry, OPERATOR_ACTOR};

/// What replaced a personal name in the trail.
const ERASED: &str = "(erased)";

/// Who reads the sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// An operator: names are links.
    Operator,
    /// An owner of the team: the team is not named, and nothing is a link.
    Owner,
}

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) text: String,
    /// Whether it is a name or a text of somebody, rather than a word of the sentence.
    pub(crate) is_name: bool,
    /// The id that the name stands for.
    pub(crate) id: Option<String>,
    /// The page about it.
    pub(crate) href: Option<String>,
}

/// The sentence about an entry.
pub(crate) fn sentence(named: &NamedEntry, reader: Reader) -> Vec<Part> {
    let mut sentence = Sentence { named, reader, parts: Vec::new() };
    sentence.write();
    sentence.parts
}

/// The sentence as plain text.
pub(crate) fn plain(parts: &[Part]) -> String {
    parts.iter().map(|part| part.text.as_str()).collect()
}

/// A sentence that is being written.
struct Sentence<'a> {
    named: &'a NamedEntry,
    reader: Reader,
    parts: Vec<Part>,
}

impl Sentence<'_> {
    fn write(&mut self) {
        let named = self.named;
        let entry = &named.entry;
        let detail = entry.detail.as_deref();
        let is_own = entry.actor.strip_prefix(USER_ACTOR) == Some(entry.target.as_str());
        self.actor();
        match entry.action.as_str() {
            "team.create" => self.about_team(" created "),
            "team.rename" => {
                self.about_team(" renamed ");
                self.quoted(" to ", detail);
            }
            "team.delete" => self.about_team(" deleted "),
            "team.suspend" => {
                self.about_team(" suspended ");
                self.quoted(": ", detail);
            }
            "team.restore" => self.about_team(" restored "),
            "team.limits" => {
                self.about_team(" changed limits of ");
                self.plain(": ", detail);
            }
            "team.alert_below" => self.balance_alert(detail),
            "team.alert_recipients" => self.alert_recipients(detail),
            action if action.starts_with("member.") => self.member(action, detail),
            action if action.starts_with("key.") => self.key(action, detail),
            action if action.starts_with("monitor.") => self.monitor(action, detail),
            "proxy.create" => {
                self.quoted(" created the proxy ", detail);
                self.about_team(" of ");
            }
            "proxy.change" => self.about_team(" changed a proxy of "),
            "proxy.password" => self.about_team(" replaced the password of a proxy of "),
            "proxy.delete" => self.about_team(" deleted a proxy of "),
            action if action.starts_with("site.") => self.site(action, detail),
            "webhook.secret" => self.about_team(" replaced the secret of a webhook of "),
            "credits.grant" => self.grant(detail),
            "subscription.cancel" => self.about_team(" cancelled the subscription of "),
            action if action.starts_with("payment.") => self.payment(action, detail),
            action if action.starts_with("user.") => self.user(action, is_own, detail),
            action if action.starts_with("second_factor.") => self.second_factor(action, is_own),
            "passkey.add" => self.own_or_of(is_own, " added a passkey", " added a passkey to the account of "),
            "passkey.rename" => self.own_or_of(is_own, " renamed a passkey", " renamed a passkey of "),
            "passkey.remove" => self.own_or_of(is_own, " removed a passkey", " removed a passkey of "),
            "operator.sign_in" => self.text(" signed in as an operator"),
            "operator.set" if detail == Some("true") => {
                self.text(" made ");
                self.target_user();
                self.text(" an operator");
            }
            "operator.set" => {
                self.text(" removed the operator role of ");
                self.target_user();
            }
            "domain.deny" => self.about_target(" denied captures of "),
            "domain.allow" => self.about_target(" allowed captures of "),
            "domain.remove" => self.about_target(" removed the rule for "),
            "images.forget" => self.about_target(" removed the place of images "),
            "secrets.rotate" => self.text(" replaced the key of stored secrets"),
            "identity.rotate" => self.text(" replaced the key that signs requests to sites"),
            "evidence.rotate" => self.text(" replaced the key that signs evidence"),
            "backup.create" => self.text(" made a backup"),
            // An action of a later version.
            action => {
                self.text(&format!(": {action} "));
                self.target();
                self.plain(", ", detail);
            }
        }
    }

    fn text(&mut self, text: &str) {
        self.parts.push(Part { text: text.to_owned(), is_name: false, id: None, href: None });
    }

    fn name(&mut self, name: &str, id: Option<&str>, href: Option<String>) {
        let href = href.filter(|_| self.reader == Reader::Operator);
        self.parts.push(Part { text: name.to_owned(), is_name: true, id: id.map(str::to_owned), href });
    }

    /// What had this id was deleted.
    fn deleted(&mut self, text: &str, id: &str) {
        self.parts.push(Part { text: text.to_owned(), is_name: false, id: Some(id.to_owned()), href: None });
    }

    fn actor(&mut self) {
        let named = self.named;
        let entry = &named.entry;
        let actor = entry.actor.as_str();
        match (actor.strip_prefix(USER_ACTOR), entry.email.as_deref()) {
            (Some(id), Some(email)) => self.name(email, Some(id), Some(person(id))),
            (Some(id), None) => self.deleted("A deleted account", id),
            (None, _) if actor.starts_with(COMMAND_ACTOR) => self.deleted("A command", actor),
            (None, _) => match actor {
                OPERATOR_ACTOR => self.text("The operator"),
                PAYMENTS_ACTOR => self.text("The payment provider"),
                SERVICE_ACTOR => self.text("The service"),
                other => self.name(other, None, None),
            },
        }
    }

    /// Words, and the team.
    fn about_team(&mut self, words: &str) {
        self.text(words);
        self.team();
    }

    fn team(&mut self) {
        let named = self.named;
        match (self.reader, named.entry.team, named.team_name.as_deref()) {
            (Reader::Owner, _, _) => self.text("the team"),
            (Reader::Operator, Some(id), Some(name)) => {
                self.text("team ");
                self.name(name, Some(&id.to_string()), Some(format!("/operator/teams/{id}")));
            }
            (Reader::Operator, Some(id), None) => self.deleted("a deleted team", &id.to_string()),
            (Reader::Operator, None, _) => self.text("a team"),
        }
    }

    /// Words, and the target as it is.
    fn about_target(&mut self, words: &str) {
        self.text(words);
        self.target();
    }

    fn target(&mut self) {
        match self.named.entry.target.as_str() {
            ERASED => self.text("somebody whose data was erased"),
            target => self.name(target, None, None),
        }
    }

    /// The user whose id the target is.
    fn target_user(&mut self) {
        let (id, name) = (&self.named.entry.target, self.named.target_name.as_deref());
        match name {
            Some(email) => self.name(email, Some(id), Some(person(id))),
            None => self.deleted("a deleted account", id),
        }
    }

    /// Words for a change of an own thing; or words and its owner.
    fn own_or_of(&mut self, is_own: bool, own: &str, of: &str) {
        if is_own {
            self.text(own);
        } else {
            self.text(of);
            self.target_user();
        }
    }

    /// A text of somebody in quotes, after words.
    fn quoted(&mut self, words: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(&format!("{words}“"));
            self.name(text, None, None);
            self.text("”");
        }
    }

    /// A text of the service, after words.
    fn plain(&mut self, words: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(words);
            self.name(text, None, None);
        }
    }

    fn balance_alert(&mut self, detail: Option<&str>) {
        match detail {
            Some("0") => self.about_team(" turned off the balance alert of "),
            Some(credits) => {
                self.about_team(" set the balance alert of ");
                self.text(&format!(" to {credits} credits"));
            }
            None => self.about_team(" changed the balance alert of "),
        }
    }

    fn alert_recipients(&mut self, detail: Option<&str>) {
        self.about_team(" changed who gets the balance alerts of ");
        self.text(&match detail {
            Some("0") => ": all owners".to_owned(),
            Some("1") => ": 1 member".to_owned(),
            Some(members) => format!(": {members} members"),
            None => String::new(),
        });
    }

    fn member(&mut self, action: &str, detail: Option<&str>) {
        match action {
            "member.invite" => {
                self.about_target(" invited ");
                self.about_team(" to ");
                self.plain(" as ", detail);
            }
            "member.withdraw_invitation" => self.about_team(" revoked an invitation to "),
            "member.join" => self.about_team(" joined "),
            "member.leave" => self.about_team(" left "),
            "member.role" => {
                self.text(" made ");
                self.target_user();
                self.about_team(match detail.and_then(Role::parse) {
                    Some(Role::Owner) => " an owner of ",
                    Some(Role::Viewer) => " a viewer of ",
                    Some(Role::Billing) => " a billing member of ",
                    Some(Role::Member) | None => " a member of ",
                });
            }
            _ => {
                self.text(" removed ");
                self.target_user();
                self.about_team(" from ");
            }
        }
    }

    fn key(&mut self, action: &str, environment: Option<&str>) {
        let words = match action {
            "key.create" => format!(" created the {} key ", environment.unwrap_or("API")),
            "key.revoke" => " revoked the key ".to_owned(),
            "key.link_secret" => " was shown the link secret of the key ".to_owned(),
            _ => " replaced the link secret of the key ".to_owned(),
        };
        self.text(&words);
        let (id, name) = (&self.named.entry.target, self.named.target_name.as_deref());
        match name {
            Some(name) => self.name(&format!("“{name}”"), Some(id), None),
            None => self.deleted("(deleted)", id),
        }
        if self.named.entry.team.is_some() {
            self.about_team(" of ");
        }
    }

    /// The detail is the name of the monitor, if it was stored.
    fn monitor(&mut self, action: &str, name: Option<&str>) {
        let words = match action {
            "monitor.create" => " created",
            "monitor.pause" => " paused",
            "monitor.resume" => " resumed",
            "monitor.accept" => " accepted a capture of",
            "monitor.feed" => " created an address for the feed of",
            "monitor.feed_off" => " turned off the feed of",
            "monitor.delete" => " deleted",
            _ => " changed",
        };
        match name {
            Some(_) => self.quoted(&format!("{words} the monitor "), name),
            None => self.text(&format!("{words} a monitor")),
        }
        self.about_team(" of ");
    }

    /// The detail is the name of the site job, if it was stored.
    fn site(&mut self, action: &str, name: Option<&str>) {
        let words = match action {
            "site.create" => " created",
            "site.cancel" => " canceled",
            _ => " deleted",
        };
        match name {
            Some(_) => self.quoted(&format!("{words} the site job "), name),
            None => self.text(&format!("{words} a site job")),
        }
        self.about_team(" of ");
    }

    fn grant(&mut self, detail: Option<&str>) {
        let (credits, reason) = detail.unwrap_or("credits").split_once(": ").unzip();
        let credits = credits.or(detail).unwrap_or("credits");
        if self.named.entry.target.starts_with("trial:") {
            self.about_team(&format!(" verified an e-mail address, which gave {credits} to "));
            return;
        }
        self.about_team(&format!(" granted {credits} to "));
        self.quoted(": ", reason.map(|reason| reason.strip_prefix("ref:").unwrap_or(reason)));
    }

    fn payment(&mut self, action: &str, detail: Option<&str>) {
        self.about_team(match action {
            "payment.refunded" => " refunded a payment of ",
            "payment.disputed" => " reported a dispute about a payment of ",
            "payment.dispute_won" => " reported that the buyer lost a dispute about a payment of ",
            "payment.dispute_lost" => " reported that the buyer won a dispute about a payment of ",
            _ => " confirmed a payment that was reversed before, of ",
        });
        self.plain(": ", detail);
    }

    fn user(&mut self, action: &str, is_own: bool, detail: Option<&str>) {
        match action {
            "user.create" => self.about_target(" created the account "),
            "user.suspend" => {
                self.text(" suspended the account of ");
                self.target_user();
                self.quoted(": ", detail);
            }
            "user.restore" => {
                self.text(" restored the account of ");
                self.target_user();
            }
            "user.expire" => {
                let id = &self.named.entry.target;
                self.deleted(" deleted an account that was never verified", id);
            }
            _ if is_own => self.text(" deleted their account"),
            _ => {
                let id = &self.named.entry.target;
                self.deleted(" deleted an account", id);
            }
        }
    }

    fn second_factor(&mut self, action: &str, is_own: bool) {
        let (own, of) = match action {
            "second_factor.on" => (" turned on their second factor", " turned on the second factor of "),
            "second_factor.off" => (" turned off their second factor", " turned off the second factor of "),
            "second_factor.app" => (" set an authenticator app", " set an authenticator app of "),
            "second_factor.recovery_codes" => (" replaced their recovery codes", " replaced the recovery codes of "),
            "second_factor.recovery_code_use" => (" used a recovery code", " used a recovery code of "),
            _ => (" removed their second factor", " removed the second factor of "),
        };
        self.own_or_of(is_own, own, of);
    }
}

/// The page about a user.
fn person(id: &str) -> String {
    format!("/operator/people?q={id}")
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_domain::audit::AuditAction;
    use grabd_engine::trail::AuditEntry;

    use super::*;

    const ID: &str = "01993e1c-7b1a-7000-8000-0123456789ab";

    fn entry(actor: &str, action: &str, target: &str, detail: Option<&str>) -> NamedEntry {
        let entry = AuditEntry {
            id: 7,
            at: Timestamp::from_ms(1_795_206_774_120),
            actor: actor.to_owned(),
            email: actor.starts_with(USER_ACTOR).then(|| "anna@example.com".to_owned()),
            action: action.to_owned(),
            target: target.to_owned(),
            team: Some(ID.parse().unwrap()),
            address: None,
            detail: detail.map(str::to_owned),
        };
        NamedEntry { entry, team_name: Some("Acme".to_owned()), target_name: None, is_by_operator: false }
    }

    fn text(named: &NamedEntry, reader: Reader) -> String {
        plain(&sentence(named, reader))
    }

    #[test]
    fn entries_are_sentences_with_names() {
        let anna = format!("user:{ID}");
        for (named, expected) in [
            (entry(&anna, "team.suspend", ID, Some("phishing")), "anna@example.com suspended team Acme: “phishing”"),
            (entry("command:uid 0", "team.create", ID, None), "A command created team Acme"),
            (
                entry(&anna, "member.invite", "bob@example.com", Some("owner")),
                "anna@example.com invited bob@example.com to team Acme as owner",
            ),
            (
                entry(&anna, "member.invite", "(erased)", None),
                "anna@example.com invited somebody whose data was erased to team Acme",
            ),
            (
                entry(&anna, "member.invite", "bob@example.com", Some("billing")),
                "anna@example.com invited bob@example.com to team Acme as billing",
            ),
            (
                entry(&anna, "member.role", ID, Some("viewer")),
                "anna@example.com made a deleted account a viewer of team Acme",
            ),
            (
                entry(&anna, "member.role", ID, Some("billing")),
                "anna@example.com made a deleted account a billing member of team Acme",
            ),
            (
                entry(&anna, "credits.grant", "hand:operator:x:y", Some("25 credits: ref:sorry: again")),
                "anna@example.com granted 25 credits to team Acme: “sorry: again”",
            ),
            (
                entry("stripe", "credits.grant", "stripe:pi_1", Some("25 credits")),
                "The payment provider granted 25 credits to team Acme",
            ),
            (
                entry(&anna, "credits.grant", "trial:x", Some("50 credits")),
                "anna@example.com verified an e-mail address, which gave 50 credits to team Acme",
            ),
            (
                entry(&anna, "team.alert_below", ID, Some("0")),
                "anna@example.com turned off the balance alert of team Acme",
            ),
            (
                entry(&anna, "team.alert_below", ID, Some("90")),
                "anna@example.com set the balance alert of team Acme to 90 credits",
            ),
            (
                entry(&anna, "team.alert_recipients", ID, Some("2")),
                "anna@example.com changed who gets the balance alerts of team Acme: 2 members",
            ),
            (
                entry(&anna, "monitor.create", ID, Some("Shoes")),
                "anna@example.com created the monitor “Shoes” of team Acme",
            ),
            (entry(&anna, "monitor.accept", ID, None), "anna@example.com accepted a capture of a monitor of team Acme"),
            (entry(&anna, "site.cancel", ID, None), "anna@example.com canceled a site job of team Acme"),
            (entry(&anna, "second_factor.off", ID, None), "anna@example.com turned off their second factor"),
            (entry(&anna, "domain.deny", "example.com", None), "anna@example.com denied captures of example.com"),
            (entry("service", "user.expire", ID, None), "The service deleted an account that was never verified"),
            (entry(&anna, "team.sell", "x", Some("y")), "anna@example.com: team.sell x, y"),
        ] {
            assert_eq!(text(&named, Reader::Operator), expected);
        }
        let key = NamedEntry { target_name: Some("build".to_owned()), ..entry(&anna, "key.create", ID, Some("live")) };
        assert_eq!(text(&key, Reader::Operator), "anna@example.com created the live key “build” of team Acme");
        assert_eq!(text(&key, Reader::Owner), "anna@example.com created the live key “build” of the team");
    }

    #[test]
    fn what_was_deleted_is_named_as_deleted() {
        let mut named = entry(&format!("user:{ID}"), "member.remove", "01993e1c-7b1a-7000-8000-000000000000", None);
        (named.entry.email, named.team_name) = (None, None);
        let parts = sentence(&named, Reader::Operator);
        assert_eq!(plain(&parts), "A deleted account removed a deleted account from a deleted team");
        let ids: Vec<_> = parts.iter().filter_map(|part| part.id.as_deref()).collect();
        assert_eq!(ids, [ID, "01993e1c-7b1a-7000-8000-000000000000", ID]);
    }

    #[test]
    fn only_operators_get_links_and_the_operator_has_no_name() {
        let mut named = entry(&format!("user:{ID}"), "team.restore", ID, None);
        let links = |reader| sentence(&named, reader).into_iter().filter_map(|part| part.href).collect::<Vec<_>>();
        assert_eq!(links(Reader::Operator), [format!("/operator/people?q={ID}"), format!("/operator/teams/{ID}")]);
        assert_eq!(links(Reader::Owner), Vec::<String>::new());
        (named.entry.actor, named.entry.email) = (OPERATOR_ACTOR.to_owned(), None);
        assert_eq!(text(&named, Reader::Owner), "The operator restored the team");
    }

    #[test]
    fn each_action_has_a_sentence() {
        for action in AuditAction::ALL {
            let sentence = text(&entry("service", action.name, ID, None), Reader::Operator);
            assert!(!sentence.contains(action.name), "{sentence}");
        }
    }
}
