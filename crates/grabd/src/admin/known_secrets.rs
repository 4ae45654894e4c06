//! The secrets that a user knows and that stay in use when they leave, with the commands that replace them.

use std::fmt::Write as _;

use grabd_domain::ids::{TeamId, UserId};
use grabd_engine::accounts::{self, RemainingSecret, TeamSecret};
use grabd_engine::clock::Clock;
use grabd_store::Store;
use serde_json::{Value, json};

/// The secrets of a team that a user has seen, or may have seen.
pub(super) struct KnownSecrets {
    team: TeamId,
    team_name: String,
    secrets: Vec<RemainingSecret>,
}

/// The secrets that a user knows in all of their teams, or in one.
pub(super) async fn find(store: &Store, user: UserId, only: Option<TeamId>) -> anyhow::Result<Vec<KnownSecrets>> {
    let mut all = Vec::new();
    for (team, team_name, _) in store.accounts().list_memberships(user).await? {
        if only.is_none_or(|only| only == team) {
            let secrets = accounts::list_secrets_known_to(store, team, user, Clock::system().now()).await?;
            all.push(KnownSecrets { team, team_name, secrets });
        }
    }
    Ok(all)
}

/// The text for an operator, which begins with an empty line, or is empty.
pub(super) fn text(known: &[KnownSecrets]) -> String {
    let mut text = String::new();
    let program = std::env::args().next().unwrap_or_else(|| "grabd".to_owned());
    for KnownSecrets { team, team_name, secrets } in known.iter().filter(|known| !known.secrets.is_empty()) {
        let heading = "These secrets stay in use, and the user has seen them or may have";
        let _ = write!(text, "\n\n{heading}, in the team {team_name} ({team}):");
        for RemainingSecret { secret, environment, name, seen_at, .. } in secrets {
            let (kind, _, command) = describe(*secret);
            let seen = seen_at.map_or_else(|| "not recorded who saw it".to_owned(), |at| format!("seen {at}"));
            let environment = environment.as_str();
            let _ = write!(text, "\n  {kind}  {name} ({environment})  {seen}\n    {program} admin {command}");
        }
    }
    text
}

/// The same as JSON.
pub(super) fn to_json(known: &[KnownSecrets]) -> Value {
    let rows = known.iter().flat_map(|KnownSecrets { team, secrets, .. }| {
        secrets.iter().map(move |RemainingSecret { secret, environment, name, seen_at, .. }| {
            let (kind, id, _) = describe(*secret);
            json!({
                "team_id": team.to_string(), "kind": kind, "id": id, "environment": environment.as_str(),
                "name": name, "seen_at": seen_at.map(|at| at.to_string()),
            })
        })
    });
    rows.collect()
}

/// The kind of a secret, its id, and the command that replaces it.
fn describe(secret: TeamSecret) -> (&'static str, String, String) {
    match secret {
        TeamSecret::Key(id) => ("API key", id.to_string(), format!("key revoke {id}")),
        TeamSecret::Link(id) => ("link secret", id.to_string(), format!("key link {id} --replace")),
        TeamSecret::Webhook(id) => ("webhook secret", id.to_string(), format!("webhook rotate {id}")),
    }
}

impl KnownSecrets {
    /// The team that they are of.
    pub(super) const fn team(&self) -> TeamId {
        self.team
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_domain::accounts::Email;
    use grabd_domain::credentials::{Environment, Scopes};
    use grabd_domain::ids::KeyId;
    use grabd_store::accounts::{InitialTeam, NewKey, NewTeam, NewUser, ShownLinkSecret};

    use super::*;

    fn id(number: u8) -> String {
        format!("01993e1c-7b1a-7000-8000-{number:012}")
    }

    #[tokio::test]
    async fn secrets_are_listed_with_the_commands_that_replace_them() {
        let (store, now) = (Store::open("sqlite::memory:").await.unwrap(), Timestamp::from_ms(5));
        store.migrate().await.unwrap();
        let [team, other] = [1, 2].map(|number| id(number).parse::<TeamId>().unwrap());
        let (user, key) = (id(3).parse::<UserId>().unwrap(), id(4).parse::<KeyId>().unwrap());
        store.accounts().create_team(NewTeam { id: team, name: "A team".into(), now }).await.unwrap();
        let new = NewUser {
            id: user,
            email: Email::parse("bob@example.com").unwrap(),
            password_hash: "x".into(),
            initial_team: InitialTeam::Existing(team),
            verified: true,
            now,
        };
        store.accounts().create_user(new).await.unwrap();
        assert_eq!(text(&find(&store, user, None).await.unwrap()), "");
        let new = NewKey {
            id: key,
            team,
            environment: Environment::Live,
            name: "build server".into(),
            hash: [1; 32],
            last4: "abcd".into(),
            scopes: Scopes::ALL,
            expires_at: None,
            created_by: Some(user),
            now,
        };
        store.accounts().create_key(new).await.unwrap();
        let shown = ShownLinkSecret { team, key, sealed: vec![1], by: Some(user), now };
        store.accounts().set_link_secret(shown).await.unwrap();
        let known = find(&store, user, Some(team)).await.unwrap();
        let text = text(&known);
        for words in [
            "in the team A team".to_owned(),
            "API key  build server (live)  seen 1970-".to_owned(),
            format!("admin key revoke {key}"),
            format!("admin key link {key} --replace"),
        ] {
            assert!(text.contains(&words), "{words}: {text}");
        }
        let json = to_json(&known);
        assert_eq!((&json[0]["kind"], &json[1]["kind"]), (&json!("API key"), &json!("link secret")));
        assert!(find(&store, user, Some(other)).await.unwrap().is_empty());
        store.close().await;
    }
}
