//! `grabd admin subscription …`.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::{ArgGroup, Subcommand};
use grabd_domain::Timestamp;
use grabd_domain::credits::Plan;
use grabd_engine::clock::Clock;
use grabd_engine::{accounts, random};
use grabd_store::Store;
use grabd_store::credits::GrantOutcome;
use serde_json::json;
use time::format_description::well_known::{Iso8601, Rfc3339};
use time::{Date, OffsetDateTime, Time};

use super::find_team::find_team;
use super::output::CommandOutput;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Maximum term in days, which also keeps dates in the valid range.
const MAX_DAYS: i64 = 3660;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Grant the credits of one term. They expire at its end.
    #[command(group(ArgGroup::new("term").required(true).args(["ends", "days"])))]
    Start {
        /// The team's id or name.
        team: String,
        /// Number of credits.
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        credits: u32,
        /// End of the term: 2027-11-20 for the end of that day in UTC, or 2027-11-20T12:00:00Z.
        #[arg(long, value_name = "DATE")]
        ends: Option<String>,
        /// Length of the term in days, from now.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MAX_DAYS))]
        days: Option<u32>,
        /// An external reference, such as an invoice number. Each reference grants once.
        #[arg(long)]
        reference: Option<String>,
    },
    /// Cancel the current terms. Their credits remain until the terms end.
    Cancel {
        /// The team's id or name.
        team: String,
    },
}

pub(super) async fn run(store: &Store, command: Command) -> anyhow::Result<CommandOutput> {
    let now = Clock::system().now();
    match command {
        Command::Start { team, credits, ends, days, reference } => {
            let ends = term_end(ends.as_deref(), days, now)?;
            let team = find_team(store, &team).await?;
            let reference = reference.map_or_else(|| format!("hand:{:032x}", random::random()), |r| format!("ref:{r}"));
            let granted = accounts::start_subscription(store, team, credits, ends, &reference, now).await?;
            let (lot, new) = match granted {
                GrantOutcome::New(lot) => (lot, true),
                GrantOutcome::Repeated(lot) => (lot, false),
            };
            // For a repeated reference, show the expiry of the original grant.
            let lots = store.credits().lots(team).await?;
            let ends = lots.iter().find(|known| known.id == lot).and_then(|lot| lot.expires_at).unwrap_or(ends);
            let text = match new {
                true => format!("Granted {credits} credits until {ends} (lot {}).", lot.0),
                false => format!(
                    "Nothing granted: this reference was granted before, until {ends} (lot {}). That one is unchanged.",
                    lot.0
                ),
            };
            Ok(CommandOutput::ok(
                text,
                json!({
                    "team_id": team.to_string(), "lot_id": lot.0, "granted": if new { credits } else { 0 },
                    "expires_at": ends.to_string(),
                }),
            ))
        }
        Command::Cancel { team } => {
            let team = find_team(store, &team).await?;
            let cancelled = store.credits().cancel_subscriptions(team, now).await?;
            let Plan { name: _, status: _, expires_at } = Plan::of(&store.credits().lots(team).await?, now);
            let Some(ends) = expires_at else { bail!("this team has no active subscription") };
            let text = match cancelled {
                0 => format!("It was cancelled before; its credits remain until {ends}."),
                _ => format!("Cancelled; its credits remain until {ends}."),
            };
            Ok(CommandOutput::ok(
                text,
                json!({ "team_id": team.to_string(), "cancelled": cancelled, "expires_at": ends.to_string() }),
            ))
        }
    }
}

fn term_end(ends: Option<&str>, days: Option<u32>, now: Timestamp) -> anyhow::Result<Timestamp> {
    let end = match (ends, days) {
        (Some(text), _) => parse_end(text)?,
        (None, Some(days)) => now + DAY * days,
        (None, None) => bail!("set the end of the term with --ends DATE or its length with --days N"),
    };
    ensure!(end > now, "the term would have ended at {end}");
    ensure!(
        end <= now + DAY * u32::try_from(MAX_DAYS)?,
        "the term would last until {end}, longer than the maximum of {MAX_DAYS} days"
    );
    Ok(end)
}

/// Parses a date as the end of that day in UTC, or a timestamp.
fn parse_end(text: &str) -> anyhow::Result<Timestamp> {
    let invalid = || format!("{text:?} is not a date; write 2027-11-20 or 2027-11-20T12:00:00Z");
    // The date parser also accepts a timestamp, and ignores its time.
    let at = if text.len() == "2027-11-20".len() {
        let day = Date::parse(text, &Iso8601::DATE).with_context(invalid)?;
        OffsetDateTime::new_utc(day.next_day().context("that day is too far away")?, Time::MIDNIGHT)
    } else {
        OffsetDateTime::parse(text, &Rfc3339).with_context(invalid)?
    };
    Ok(Timestamp::from_ms(i64::try_from(at.unix_timestamp_nanos() / 1_000_000)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn term_ends_with_its_last_day_or_at_a_future_time() {
        // 2026-11-21T10:00:00Z.
        let now = Timestamp::from_ms(1_795_255_200_000);
        for (ends, days, expected) in [
            (Some("2027-11-20"), None, Some("2027-11-21T00:00:00.000Z")),
            (Some("2026-11-21"), None, Some("2026-11-22T00:00:00.000Z")),
            (Some("2027-02-03T04:05:06+01:00"), None, Some("2027-02-03T03:05:06.000Z")),
            (None, Some(365), Some("2027-11-21T10:00:00.000Z")),
            (Some("2026-11-20"), None, None),
            (Some("2026-11-21T10:00:00Z"), None, None),
            (Some("2127-11-20"), None, None),
            (Some("20.11.2027"), None, None),
            (Some("2027-02-03 and more"), None, None),
            (Some("2027-02-03T04:05:06"), None, None),
            (Some("2027-02-30"), None, None),
            (None, None, None),
        ] {
            let seen = term_end(ends, days, now).ok().map(|end| end.to_string());
            assert_eq!(seen.as_deref(), expected, "{ends:?} {days:?}");
        }
    }
}
