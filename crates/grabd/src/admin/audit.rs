//! `grabd admin audit`.

use anyhow::Context;
use clap::Args;
use grabd_domain::Timestamp;
use grabd_store::Store;
use grabd_store::audit::AuditEntry;
use serde_json::{Value, json};
use time::format_description::well_known::{Iso8601, Rfc3339};
use time::{Date, OffsetDateTime, Time};

use super::output::CommandOutput;

/// Entries read from the database at a time.
const CHUNK: u32 = 500;

/// `grabd admin audit`.
#[derive(Debug, Args)]
pub(super) struct Command {
    /// Only entries from this day (UTC) or time on: 2026-11-20 or 2026-11-20T12:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<Timestamp>,
    /// Maximum number of entries; the newest are listed.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
}

pub(super) async fn run(store: &Store, command: &Command) -> anyhow::Result<CommandOutput> {
    let since = command.since.unwrap_or(Timestamp::from_ms(0));
    let (mut entries, mut before) = (Vec::new(), None);
    let limit = usize::try_from(command.limit)?;
    while entries.len() < limit {
        let wanted = u32::try_from(limit - entries.len())?.min(CHUNK);
        let chunk = store.audit().list_audit(since, before, wanted).await?;
        let Some(last) = chunk.last() else { break };
        before = Some(last.id);
        entries.extend(chunk);
    }
    let lines: Vec<String> = entries.iter().map(line).collect();
    let rows: Vec<Value> = entries.iter().map(row).collect();
    Ok(CommandOutput::ok(lines.join("\n"), json!({ "data": rows })))
}

fn line(entry: &AuditEntry) -> String {
    let AuditEntry { id: _, at, actor, email, action, target, team, address, detail } = entry;
    let who = email.as_deref().unwrap_or(actor);
    let team = team.map_or_else(String::new, |team| format!("  team {team}"));
    let address = address.as_deref().map_or_else(String::new, |address| format!("  from {address}"));
    let detail = detail.as_deref().map_or_else(String::new, |detail| format!("  ({detail})"));
    format!("{at}  {who}  {action}  {target}{team}{address}{detail}")
}

fn row(entry: &AuditEntry) -> Value {
    let AuditEntry { id, at, actor, email, action, target, team, address, detail } = entry;
    json!({
        "id": id, "at": at.to_string(), "actor": actor, "email": email, "action": action, "target": target,
        "team_id": team.map(|team| team.to_string()), "address": address, "detail": detail,
    })
}

/// Parses a date as the beginning of that day in UTC, or a timestamp.
fn parse_since(text: &str) -> anyhow::Result<Timestamp> {
    let invalid = || format!("{text:?} is not a date; write 2026-11-20 or 2026-11-20T12:00:00Z");
    // The date parser also accepts a timestamp, and ignores its time.
    let at = if text.len() == "2026-11-20".len() {
        OffsetDateTime::new_utc(Date::parse(text, &Iso8601::DATE).with_context(invalid)?, Time::MIDNIGHT)
    } else {
        OffsetDateTime::parse(text, &Rfc3339).with_context(invalid)?
    };
    Ok(Timestamp::from_ms(i64::try_from(at.unix_timestamp_nanos() / 1_000_000)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_a_day_or_a_time() {
        for (text, expected) in [
            ("2026-11-20", Some("2026-11-20T00:00:00.000Z")),
            ("2026-11-20T12:00:00+01:00", Some("2026-11-20T11:00:00.000Z")),
            ("20.11.2026", None),
            ("2026-11-20T12:00:00", None),
            ("", None),
        ] {
            assert_eq!(parse_since(text).ok().map(|at| at.to_string()).as_deref(), expected, "{text:?}");
        }
    }
}
