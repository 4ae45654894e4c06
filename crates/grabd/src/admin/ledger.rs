//! `grabd admin ledger …`.

use clap::Subcommand;
use grabd_store::Store;
use grabd_store::credits::{Drift, Entry};
use serde_json::{Value, json};

use super::find_team::find_team;
use super::output::CommandOutput;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check all invariants of the ledger. Fails if one is violated. Reads all data.
    Verify,
    /// Show a team's entries, newest first.
    Show {
        /// The team's id or name.
        team: String,
        /// Maximum number of entries.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Only entries before this one: the last one shown, for the next page.
        #[arg(long, value_name = "ENTRY")]
        before: Option<i64>,
    },
}

pub(super) async fn run(store: &Store, command: Command) -> anyhow::Result<CommandOutput> {
    match command {
        Command::Verify => Ok(report(&store.credits().verify_ledger().await?)),
        Command::Show { team, limit, before } => {
            let team = find_team(store, &team).await?;
            let entries = store.credits().ledger(team, before, limit).await?;
            let lines: Vec<String> = entries.iter().map(line).collect();
            let rows: Vec<Value> = entries.iter().map(row).collect();
            Ok(CommandOutput::ok(lines.join("\n"), json!({ "team_id": team.to_string(), "data": rows })))
        }
    }
}

/// The invariants, in output order.
const INVARIANTS: [(&str, &str); 8] = [
    ("remaining", "the remaining credits of a lot are the sum of its entries"),
    ("bounds", "the held credits of a lot are between 0 and its remaining credits"),
    ("held", "every held credit belongs to an open live grab, and every open live grab holds one"),
    ("spent", "every done live grab was paid exactly once, and no other grab was paid"),
    ("balance", "a team's entries add up to the remaining credits of its lots"),
    ("append_only", "entries cannot be changed or deleted"),
    ("open", "every open grab has a job, and every job has an open grab"),
    ("images", "no image of a grab is scheduled for deletion, and the recorded sizes of images are exact"),
];

/// The invariant that a describe violates.
fn invariant(drift: &Drift) -> &'static str {
    match drift {
        Drift::Remaining { .. } => "remaining",
        Drift::Bounds { .. } => "bounds",
        Drift::Held { .. } => "held",
        Drift::NotSpent(_) | Drift::SpentTwice(_) | Drift::SpentWithoutImage(_) => "spent",
        Drift::Balance { .. } => "balance",
        Drift::AppendOnlyDisabled => "append_only",
        Drift::JobMissing(_) | Drift::StaleJob(_) => "open",
        Drift::ImageScheduledForDeletion(_) | Drift::StoredBytes { .. } | Drift::RowBytes { .. } => "images",
    }
}

fn describe(drift: &Drift) -> String {
    match drift {
        Drift::Remaining { lot, remaining, ledger } => {
            format!("lot {} has {remaining} remaining, but its entries add up to {ledger}", lot.0)
        }
        Drift::Bounds { lot, remaining, held } => format!("lot {} holds {held} of {remaining}", lot.0),
        Drift::Held { lot, held, jobs } => format!("lot {} holds {held} for {jobs} open grabs", lot.0),
        Drift::Balance { team, remaining, ledger } => {
            format!("team {team} has {remaining} remaining, but its entries add up to {ledger}")
        }
        Drift::AppendOnlyDisabled => "a trigger of the table `ledger` is missing or disabled".to_owned(),
        Drift::NotSpent(grab) => format!("grab {grab} is done but was not paid"),
        Drift::SpentTwice(grab) => format!("grab {grab} was paid more than once"),
        Drift::SpentWithoutImage(grab) => format!("grab {grab} was paid but is not a done live grab"),
        Drift::JobMissing(grab) => format!("grab {grab} is open but has no job"),
        Drift::StaleJob(grab) => format!("grab {grab} has a job but is not open"),
        Drift::StoredBytes { team, recorded, images } => {
            format!("team {team} has images of {recorded} bytes on record, but they add up to {images}")
        }
        Drift::RowBytes { team, recorded, rows } => {
            format!("team {team} has rows of {recorded} weighted bytes on record, but they add up to {rows}")
        }
        Drift::ImageScheduledForDeletion(grab) => format!("the image of grab {grab} is scheduled for deletion"),
    }
}

fn report(drifts: &[Drift]) -> CommandOutput {
    let mut lines = Vec::new();
    let mut rows = Vec::new();
    for (name, description) in INVARIANTS {
        let findings: Vec<String> = drifts.iter().filter(|drift| invariant(drift) == name).map(describe).collect();
        let holds = findings.is_empty();
        lines.push(format!("{:<6} {name:<12} {description}", if holds { "ok" } else { "DRIFT" }));
        lines.extend(findings.iter().map(|finding| format!("       {finding}")));
        rows.push(json!({ "invariant": name, "ok": holds, "findings": findings }));
    }
    let text = lines.join("\n");
    let json = json!({ "ok": drifts.is_empty(), "invariants": rows });
    CommandOutput { text, json, success: drifts.is_empty() }
}

fn line(entry: &Entry) -> String {
    let Entry { id, lot, kind, amount, grab, reference, at } = entry;
    let what = match (grab, reference) {
        (Some(grab), _) => format!("grab {grab}"),
        (None, Some(reference)) => reference.clone(),
        (None, None) => String::new(),
    };
    format!("{id:>8}  {at}  {:<6} {amount:>+8}  lot {}  {what}", kind.as_str(), lot.0).trim_end().to_owned()
}

fn row(entry: &Entry) -> Value {
    let Entry { id, lot, kind, amount, grab, reference, at } = entry;
    json!({
        "entry": id, "at": at.to_string(), "kind": kind.as_str(), "amount": amount, "lot_id": lot.0,
        "grab_id": grab.map(|grab| grab.to_string()), "reference": reference,
    })
}

#[cfg(test)]
mod tests {
    use grabd_domain::ids::{GrabId, LotId, TeamId};

    use super::*;

    #[test]
    fn each_drift_is_reported_under_its_invariant() {
        let consistent = report(&[]);
        assert!(
            consistent.success && consistent.text.lines().all(|line| line.starts_with("ok ")),
            "{}",
            consistent.text
        );
        assert_eq!(consistent.text.lines().count(), INVARIANTS.len());
        let (lot, grab): (LotId, GrabId) = (LotId(7), "01993e1c-7b1a-7000-8000-0123456789ab".parse().expect("an id"));
        let drifts = [
            Drift::Remaining { lot, remaining: 2, ledger: 1 },
            Drift::Bounds { lot, remaining: 1, held: 2 },
            Drift::Held { lot, held: 1, jobs: 0 },
            Drift::Balance { team: TeamId(grab.0), remaining: 1, ledger: 2 },
            Drift::AppendOnlyDisabled,
            Drift::NotSpent(grab),
            Drift::SpentTwice(grab),
            Drift::SpentWithoutImage(grab),
            Drift::JobMissing(grab),
            Drift::StaleJob(grab),
            Drift::StoredBytes { team: TeamId(grab.0), recorded: 1, images: 2 },
            Drift::RowBytes { team: TeamId(grab.0), recorded: 1, rows: 2 },
            Drift::ImageScheduledForDeletion(grab),
        ];
        for drift in drifts {
            let output = report(&[drift]);
            assert!(!output.success && output.json["ok"] == json!(false), "{drift:?}");
            let drifting: Vec<_> = output.text.lines().filter(|line| line.starts_with("DRIFT")).collect();
            assert!(matches!(&drifting[..], [one] if one.contains(invariant(&drift))), "{}", output.text);
            assert!(output.text.contains(&describe(&drift)), "{}", output.text);
        }
    }
}
