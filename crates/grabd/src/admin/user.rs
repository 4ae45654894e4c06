//! `grabd admin user …`.

use anyhow::{Context, bail};
use clap::Subcommand;
use grabd_domain::Timestamp;
use grabd_domain::accounts::{Email, Role};
use grabd_domain::ids::TeamId;
use grabd_domain::permissions::Permission;
use grabd_engine::clock::Clock;
use grabd_engine::{accounts, random};
use grabd_store::Store;
use grabd_store::accounts::{InitialTeam, TeamRuleError, User};
use grabd_store::retention::DeleteUserOutcome;
use serde_json::json;

use super::find_team::find_team;
use super::known_secrets::{self, KnownSecrets};
use super::output::CommandOutput;

/// Length of a generated password, with six bits for each character.
const GENERATED_CHARS: usize = 22;
/// Teams without members that are named after a user was created.
const MAX_HINTS: u64 = 5;
/// Maximum bytes read for a password.
const PASSWORD_BYTES: u64 = 4096;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Create a user who can sign in. Without --password-stdin a password is generated, and shown only once.
    Create {
        /// The e-mail address.
        email: String,
        /// The team, by id or name. Its first member becomes its owner. By default a new team without keys or credits.
        #[arg(long)]
        team: Option<String>,
        /// Make the user an operator, who sees the state of the whole service and grants credits at /operator.
        #[arg(long)]
        operator: bool,
        /// Read the password from the first line of standard input.
        #[arg(long)]
        password_stdin: bool,
    },
    /// Add a user to a team. The first member of a team becomes its owner.
    Add {
        /// The e-mail address.
        email: String,
        /// The team, by id or name.
        #[arg(long)]
        team: String,
    },
    /// Change the role of a member, effective immediately. Apps of a member whose role allows none lose access to the team.
    SetRole {
        /// The e-mail address.
        email: String,
        /// The team, by id or name.
        #[arg(long)]
        team: String,
        /// owner, member, viewer or billing.
        #[arg(long, value_parser = parse_role)]
        role: Role,
    },
    /// Mark a user's e-mail address as verified, if the message to verify it does not arrive.
    Verify {
        /// The e-mail address.
        email: String,
    },
    /// List all users.
    List,
    /// Make a user an operator, who sees the state of the whole service and grants credits at /operator.
    Operator {
        /// The e-mail address.
        email: String,
        /// Revoke the operator role, effective immediately.
        #[arg(long)]
        revoke: bool,
    },
    /// Suspend an account: its sessions and apps stop working at once, and the user cannot sign in. Keys belong to
    /// teams and stay valid; suspend the teams too if they must not.
    Suspend {
        /// The e-mail address.
        email: String,
        /// The reason, for operators.
        #[arg(long)]
        reason: String,
    },
    /// Restore a suspended account.
    Restore {
        /// The e-mail address.
        email: String,
    },
    /// Remove the second factor of a user who has lost their device and their recovery codes, with all passkeys. Then
    /// the password is enough to sign in, so make sure who asks.
    RemoveSecondFactor {
        /// The e-mail address.
        email: String,
    },
    /// Delete an account, with the teams whose only member the user is, and erase its personal data.
    Delete {
        /// The e-mail address.
        email: String,
    },
    /// Remove a user from a team, or completely, and revoke the access of their apps to it. Teams remain.
    Remove {
        /// The e-mail address.
        email: String,
        /// The team, by id or name.
        #[arg(long)]
        team: Option<String>,
    },
}

impl Command {
    /// Whether it changes nothing.
    pub(super) const fn only_reads(&self) -> bool {
        matches!(self, Self::List)
    }
}

pub(super) async fn run(store: &Store, command: Command) -> anyhow::Result<CommandOutput> {
    match command {
        Command::Create { email, team, operator, password_stdin } => {
            let email = Email::parse(&email).with_context(|| format!("the e-mail address `{email}`"))?;
            let now = Clock::system().now();
            let place = match team {
                Some(team) => InitialTeam::Existing(find_team(store, &team).await?),
                None => {
                    let (id, name) = accounts::personal_team(&email, now);
                    InitialTeam::New(id, name)
                }
            };
            let generated =
                if password_stdin { None } else { Some(random::secret_text()[..GENERATED_CHARS].to_owned()) };
            let entered = if password_stdin { read_password()? } else { String::new() };
            let password = generated.as_deref().unwrap_or(&entered);
            create(store, &email, password, place, operator, generated.as_deref(), now).await
        }
        Command::Add { email, team } => add(store, &email, &team).await,
        Command::SetRole { email, team, role } => set_role(store, &email, &team, role).await,
        Command::Verify { email } => {
            let Some(user) = find_user(store, &email).await? else { bail!("no user has the address {email}") };
            store.accounts().set_verified(user.id, Clock::system().now()).await?;
            Ok(CommandOutput::ok(
                format!("The e-mail address {} is verified.", user.email),
                json!({ "user_id": user.id.to_string(), "email": user.email.as_str(), "verified": true }),
            ))
        }
        Command::List => list(store).await,
        Command::Operator { email, revoke } => {
            let Some(user) = find_user(store, &email).await? else { bail!("no user has the address {email}") };
            if !revoke && user.verified_at.is_none() {
                // Anybody can sign up with somebody else's address.
                bail!(
                    "{email} has not verified the e-mail address, so the account may belong to somebody else; if you \
                     know that it does not, run `grabd admin user verify {email}` first"
                );
            }
            store.accounts().set_operator(user.id, !revoke).await?;
            let text = match revoke {
                false => format!("{} is an operator from the next request on.", user.email),
                true => format!("{} is no longer an operator.", user.email),
            };
            let (id, email) = (user.id.to_string(), user.email.as_str());
            Ok(CommandOutput::ok(text, json!({ "user_id": id, "email": email, "operator": !revoke })))
        }
        Command::Suspend { email, reason } => {
            let Some(user) = find_user(store, &email).await? else { bail!("no user has the address {email}") };
            let Some(reason) = accounts::suspension_reason(&reason) else {
                let (min, max) = (accounts::SUSPENSION_REASON_CHARS.start(), accounts::SUSPENSION_REASON_CHARS.end());
                bail!("the reason must have {min} to {max} characters, without line breaks");
            };
            let known = known_secrets::find(store, user.id, None).await?;
            let changed = store.accounts().suspend_user(user.id, reason, Clock::system().now()).await?;
            let text = if changed { "is suspended" } else { "was suspended before" };
            Ok(suspension_output(&user, text, true, &known))
        }
        Command::Restore { email } => {
            let Some(user) = find_user(store, &email).await? else { bail!("no user has the address {email}") };
            let changed = store.accounts().restore_user(user.id, Clock::system().now()).await?;
            let text = if changed { "is restored" } else { "was not suspended" };
            Ok(suspension_output(&user, text, false, &[]))
        }
        Command::RemoveSecondFactor { email } => remove_second_factor(store, &email).await,
        Command::Delete { email } => delete(store, &email).await,
        Command::Remove { email, team } => {
            let Some(user) = find_user(store, &email).await? else { bail!("no user has the address {email}") };
            match team {
                Some(team) => {
                    let id = find_team(store, &team).await?;
                    let known = known_secrets::find(store, user.id, Some(id)).await?;
                    if !store.accounts().remove_member(id, user.id).await? {
                        bail!("{email} is not in the team {team}");
                    }
                    Ok(removal_output(
                        &user,
                        &format!("{email} was removed from the team {team}, and their apps have lost access to it."),
                        &known,
                    ))
                }
                None => {
                    let known = known_secrets::find(store, user.id, None).await?;
                    store.accounts().remove_user(user.id).await?;
                    Ok(removal_output(&user, &format!("{email} was removed, with all sessions and apps."), &known))
                }
            }
        }
    }
}

async fn add(store: &Store, email: &str, team: &str) -> anyhow::Result<CommandOutput> {
    let Some(user) = find_user(store, email).await? else { bail!("no user has the address {email}") };
    let id = find_team(store, team).await?;
    let Some(role) = store.accounts().add_member(id, user.id, Clock::system().now()).await? else {
        bail!("the team {team} is inactive");
    };
    let (role, name) = (role.as_str(), team_name(store, id).await?);
    Ok(CommandOutput::ok(
        format!("{} is in the team {name}, as {role}.", user.email),
        json!({
            "user_id": user.id.to_string(), "email": user.email.as_str(), "team_id": id.to_string(),
            "team_name": name, "role": role,
        }),
    ))
}

fn parse_role(name: &str) -> Result<Role, String> {
    let allowed = || Role::ALL.map(Role::as_str).join(", ");
    Role::parse(name).ok_or_else(|| format!("allowed are {}", allowed()))
}

async fn set_role(store: &Store, email: &str, team: &str, role: Role) -> anyhow::Result<CommandOutput> {
    let Some(user) = find_user(store, email).await? else { bail!("no user has the address {email}") };
    let id = find_team(store, team).await?;
    match store.accounts().set_role_as_operator(id, user.id, role).await? {
        Ok(()) => {}
        Err(TeamRuleError::NotFound) => bail!("{email} is not in the team {team}"),
        Err(TeamRuleError::LastOwner) => {
            bail!("{email} is the only owner of the team {team}; make another member an owner first")
        }
        Err(
            TeamRuleError::NotMember
            | TeamRuleError::NotOwner
            | TeamRuleError::NotAllowed
            | TeamRuleError::AlreadyMember
            | TeamRuleError::LimitReached,
        ) => bail!("the team {team} is inactive"),
    }
    let known = match role.allows(Permission::ManageKeys) {
        true => Vec::new(),
        false => known_secrets::find(store, user.id, Some(id)).await?,
    };
    let name = team_name(store, id).await?;
    let text = format!("{} is in the team {name}, as {}.{}", user.email, role.as_str(), known_secrets::text(&known));
    let json = json!({
        "user_id": user.id.to_string(), "email": user.email.as_str(), "team_id": id.to_string(), "team_name": name,
        "role": role.as_str(), "known_secrets": known_secrets::to_json(&known),
    });
    Ok(CommandOutput::ok(text, json))
}

async fn create(
    store: &Store,
    email: &Email,
    password: &str,
    place: InitialTeam,
    operator: bool,
    generated: Option<&str>,
    now: Timestamp,
) -> anyhow::Result<CommandOutput> {
    let is_new_team = matches!(place, InitialTeam::New(..));
    let (user, team, role) = accounts::create_user(store, email, password, place, now).await?;
    if operator {
        store.accounts().set_operator(user, true).await?;
    }
    let name = team_name(store, team).await?;
    let how = if is_new_team { "a new team without keys or credits" } else { "as requested" };
    let without_members =
        if is_new_team { store.accounts().list_teams_without_members(MAX_HINTS).await? } else { Vec::new() };
    // The command has the id, because a name may contain what a shell would run.
    let hint = without_members.first().map_or_else(String::new, |first| {
        let names: Vec<_> = without_members.iter().map(|team| format!("{}  {}", team.id, team.name)).collect();
        let program = std::env::args().next().unwrap_or_else(|| "grabd".to_owned());
        format!(
            "\n\nTeams without members:\n  {}\nTo make this user the owner of one:\n  \
             {program} admin user add {email} --team {}",
            names.join("\n  "),
            first.id,
        )
    });
    let without_members: Vec<_> =
        without_members.iter().map(|team| json!({ "team_id": team.id.to_string(), "name": team.name })).collect();
    let shown = generated
        .map_or_else(String::new, |password| format!("\npassword  {password}\nThe password is not shown again."));
    let role = role.as_str();
    let is = if operator { "\noperator  yes" } else { "" };
    Ok(CommandOutput::ok(
        format!("user      {user}\nemail     {email}\nteam      {team}  {name}, as {role} ({how}){is}{shown}{hint}"),
        json!({
            "user_id": user.to_string(), "email": email.as_str(), "team_id": team.to_string(), "team_name": name,
            "role": role, "operator": operator, "password": generated,
            "teams_without_members": without_members,
        }),
    ))
}

async fn list(store: &Store) -> anyhow::Result<CommandOutput> {
    let (mut lines, mut rows) = (Vec::new(), Vec::new());
    for User { id, email, created_at, operator, verified_at, suspension } in store.accounts().list_users().await? {
        let memberships = store.accounts().list_memberships(id).await?;
        let teams: Vec<String> =
            memberships.iter().map(|(_, name, role)| format!("{name} ({})", role.as_str())).collect();
        let is = if operator { "  OPERATOR" } else { "" };
        let unverified = if verified_at.is_none() { "  UNVERIFIED" } else { "" };
        let suspended = if suspension.is_some() { "  SUSPENDED" } else { "" };
        let has_factor = store.accounts().has_second_factor(id).await?;
        let factor = if has_factor { "  SECOND FACTOR" } else { "" };
        lines.push(format!("{id}  {created_at}  {email}  {}{is}{factor}{unverified}{suspended}", teams.join(", ")));
        let teams: Vec<_> = memberships
            .iter()
            .map(|(team, name, role)| json!({ "team_id": team.to_string(), "name": name, "role": role.as_str() }))
            .collect();
        rows.push(json!({
            "user_id": id.to_string(), "email": email.as_str(), "created_at": created_at.to_string(),
            "operator": operator, "verified": verified_at.is_some(), "second_factor": has_factor, "teams": teams,
            "suspended_at": suspension.as_ref().map(|suspension| suspension.at.to_string()),
            "suspended_reason": suspension.map(|suspension| suspension.reason),
        }));
    }
    Ok(CommandOutput::ok(lines.join("\n"), json!({ "data": rows })))
}

async fn find_user(store: &Store, email: &str) -> anyhow::Result<Option<User>> {
    let email = Email::parse(email).with_context(|| format!("the e-mail address `{email}`"))?;
    Ok(store.accounts().find_user(&email).await?)
}

fn suspension_output(user: &User, text: &str, suspended: bool, known: &[KnownSecrets]) -> CommandOutput {
    let email = user.email.as_str();
    let json = json!({
        "user_id": user.id.to_string(), "email": email, "suspended": suspended,
        "known_secrets": known_secrets::to_json(known),
    });
    CommandOutput::ok(format!("The account {email} {text}.{}", known_secrets::text(known)), json)
}

async fn remove_second_factor(store: &Store, email: &str) -> anyhow::Result<CommandOutput> {
    let Some(user) = find_user(store, email).await? else { bail!("no user has the address {email}") };
    let removed = store.accounts().remove_second_factor(user.id).await?;
    let text = match removed {
        true => format!("The second factor of {} is removed. They sign in with their password alone.", user.email),
        false => format!("{} has no second factor.", user.email),
    };
    let (id, email) = (user.id.to_string(), user.email.as_str());
    Ok(CommandOutput::ok(text, json!({ "user_id": id, "email": email, "removed": removed })))
}

async fn delete(store: &Store, email: &str) -> anyhow::Result<CommandOutput> {
    let Some(user) = find_user(store, email).await? else { bail!("no user has the address {email}") };
    let mut known = known_secrets::find(store, user.id, None).await?;
    match accounts::delete_user_as_operator(store, user.id, Clock::system().now()).await? {
        DeleteUserOutcome::Deleted { teams } => {
            known.retain(|known| !teams.contains(&known.team()));
            let ids: Vec<String> = teams.iter().map(ToString::to_string).collect();
            let also =
                if ids.is_empty() { String::new() } else { format!(" Teams deleted with it: {}.", ids.join(", ")) };
            let json = json!({
                "user_id": user.id.to_string(), "deleted": true, "deleted_teams": ids,
                "known_secrets": known_secrets::to_json(&known),
            });
            let text = known_secrets::text(&known);
            Ok(CommandOutput::ok(format!("The account {} is deleted.{also}{text}", user.email), json))
        }
        DeleteUserOutcome::OnlyOwner { teams } => bail!(
            "{} is the only owner of these teams, which have other members: {}; delete the teams first, or make \
             another member an owner",
            user.email,
            teams.join(", ")
        ),
        DeleteUserOutcome::UnknownUser => bail!("the account {} was deleted meanwhile", user.email),
    }
}

fn removal_output(user: &User, text: &str, known: &[KnownSecrets]) -> CommandOutput {
    let json = json!({
        "user_id": user.id.to_string(), "email": user.email.as_str(), "removed": true,
        "known_secrets": known_secrets::to_json(known),
    });
    CommandOutput::ok(format!("{text}{}", known_secrets::text(known)), json)
}

async fn team_name(store: &Store, team: TeamId) -> anyhow::Result<String> {
    Ok(store.accounts().find_team(team).await?.context("the team no longer exists")?.name)
}

/// Reads the first line, without its line ending.
fn read_password() -> anyhow::Result<String> {
    use std::io::{BufRead as _, Read as _};
    let mut line = String::new();
    std::io::stdin()
        .lock()
        .take(PASSWORD_BYTES)
        .read_line(&mut line)
        .context("the password cannot be read from standard input")?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
