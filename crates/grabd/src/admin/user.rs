//! `grabd admin user …`.

use anyhow::{Context, bail};
use clap::Subcommand;
use grabd_domain::Timestamp;
use grabd_domain::accounts::Email;
use grabd_domain::ids::TeamId;
use grabd_engine::clock::Clock;
use grabd_engine::{accounts, chance};
use grabd_store::{Person, Place, Store};
use serde_json::json;

use super::{Answer, find_team};

/// Characters of a password that we draw: six bits each.
const DRAWN_CHARS: usize = 22;
/// Most bytes that are read of a password.
const PASSWORD_BYTES: u64 = 4096;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Make a person who can sign in. Without --password-stdin a password is drawn, and shown this once.
    Create {
        /// The e-mail address.
        email: String,
        /// The team they work in, by id or name: as its owner if nobody is in it yet. Without it, the only team that
        /// nobody is in, such as that of the first start; if there are none or several, a new one of their own.
        #[arg(long)]
        team: Option<String>,
        /// Make them an operator, who sees how the whole service is and grants credits at /operator.
        #[arg(long)]
        operator: bool,
        /// Read the password from the first line of the standard input.
        #[arg(long)]
        password_stdin: bool,
    },
    /// Show everybody.
    List,
    /// Make a person an operator, who sees how the whole service is and grants credits at /operator.
    Operator {
        /// The e-mail address.
        email: String,
        /// Make the operator a person like others again, at once.
        #[arg(long)]
        revoke: bool,
    },
    /// Remove a person from a team, or altogether, and end what their apps may do there. Teams stay.
    Remove {
        /// The e-mail address.
        email: String,
        /// The team, by id or name.
        #[arg(long)]
        team: Option<String>,
    },
}

pub(super) async fn run(store: &Store, command: Command) -> anyhow::Result<Answer> {
    match command {
        Command::Create { email, team, operator, password_stdin } => {
            let email = Email::parse(&email).with_context(|| format!("the e-mail address `{email}`"))?;
            let now = Clock::system().now();
            let place = match team {
                Some(team) => Place::In(find_team(store, &team).await?),
                None => orphan_or_new(&email, now),
            };
            let drawn = if password_stdin { None } else { Some(chance::secret_text()[..DRAWN_CHARS].to_owned()) };
            let given = if password_stdin { read_password()? } else { String::new() };
            let password = drawn.as_deref().unwrap_or(&given);
            create(store, &email, password, place, operator, drawn.as_deref(), now).await
        }
        Command::List => list(store).await,
        Command::Operator { email, revoke } => {
            let Some(person) = find_person(store, &email).await? else { bail!("nobody has the address {email}") };
            store.set_operator(person.id, !revoke).await?;
            let text = match revoke {
                false => format!("{} is an operator from the next request on.", person.email),
                true => format!("{} is no operator any more.", person.email),
            };
            let (id, email) = (person.id.to_string(), person.email.as_str());
            Ok(Answer::good(text, json!({ "user_id": id, "email": email, "operator": !revoke })))
        }
        Command::Remove { email, team } => {
            let Some(person) = find_person(store, &email).await? else { bail!("nobody has the address {email}") };
            match team {
                Some(team) => {
                    let id = find_team(store, &team).await?;
                    if !store.remove_member(id, person.id).await? {
                        bail!("{email} is not in the team {team}");
                    }
                    Ok(removed(
                        &person,
                        format!("{email} has left the team {team}, and their apps can do nothing there."),
                    ))
                }
                None => {
                    store.remove_person(person.id).await?;
                    Ok(removed(&person, format!("{email} is removed, with all sessions and apps.")))
                }
            }
        }
    }
}

fn orphan_or_new(email: &Email, now: Timestamp) -> Place {
    let (id, name) = accounts::own_team(email, now);
    Place::OrphanOrNew(id, name)
}

async fn create(
    store: &Store,
    email: &Email,
    password: &str,
    place: Place,
    operator: bool,
    drawn: Option<&str>,
    now: Timestamp,
) -> anyhow::Result<Answer> {
    let new_team = match &place {
        Place::New(id, _) | Place::OrphanOrNew(id, _) => Some(*id),
        Place::In(_) => None,
    };
    let (user, team, role) = accounts::create_person(store, email, password, place, now).await?;
    if operator {
        store.set_operator(user, true).await?;
    }
    let name = team_name(store, team).await?;
    let how = match new_team {
        Some(new) if new == team => "a new team, which has neither keys nor credits",
        Some(_) => "the team that nobody was in",
        None => "as you said",
    };
    let shown =
        drawn.map_or_else(String::new, |password| format!("\npassword  {password}\nThe password is not shown again."));
    let role = role.as_str();
    let is = if operator { "\noperator  yes" } else { "" };
    Ok(Answer::good(
        format!("user      {user}\nemail     {email}\nteam      {team}  {name}, as {role} ({how}){is}{shown}"),
        json!({
            "user_id": user.to_string(), "email": email.as_str(), "team_id": team.to_string(), "team_name": name,
            "role": role, "operator": operator, "password": drawn,
        }),
    ))
}

async fn list(store: &Store) -> anyhow::Result<Answer> {
    let (mut lines, mut rows) = (Vec::new(), Vec::new());
    for Person { id, email, created_at, operator } in store.list_people().await? {
        let memberships = store.list_memberships(id).await?;
        let teams: Vec<String> =
            memberships.iter().map(|(_, name, role)| format!("{name} ({})", role.as_str())).collect();
        let is = if operator { "  OPERATOR" } else { "" };
        lines.push(format!("{id}  {created_at}  {email}  {}{is}", teams.join(", ")));
        let teams: Vec<_> = memberships
            .iter()
            .map(|(team, name, role)| json!({ "team_id": team.to_string(), "name": name, "role": role.as_str() }))
            .collect();
        rows.push(json!({
            "user_id": id.to_string(), "email": email.as_str(), "created_at": created_at.to_string(),
            "operator": operator, "teams": teams,
        }));
    }
    Ok(Answer::good(lines.join("\n"), json!({ "data": rows })))
}

async fn find_person(store: &Store, email: &str) -> anyhow::Result<Option<Person>> {
    let email = Email::parse(email).with_context(|| format!("the e-mail address `{email}`"))?;
    Ok(store.find_person(&email).await?)
}

fn removed(person: &Person, text: String) -> Answer {
    Answer::good(text, json!({ "user_id": person.id.to_string(), "email": person.email.as_str(), "removed": true }))
}

async fn team_name(store: &Store, team: TeamId) -> anyhow::Result<String> {
    Ok(store.find_team(team).await?.context("the team is gone")?.name)
}

/// The first line, without its end.
fn read_password() -> anyhow::Result<String> {
    use std::io::{BufRead as _, Read as _};
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .take(PASSWORD_BYTES)
        .read_line(&mut line)
        .context("the password cannot be read from the standard input")?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
