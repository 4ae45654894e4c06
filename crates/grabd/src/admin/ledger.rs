//! `grabd admin ledger …`.

use clap::Subcommand;
use grabd_store::{Drift, Entry, Store};
use serde_json::{Value, json};

use super::{Answer, find_team};

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check every sum that must come out. Ends with a failure when one does not. Reads everything.
    Verify,
    /// Show a team's entries, the newest first.
    Show {
        /// The team's id or name.
        team: String,
        /// How many at most.
        #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
        limit: u32,
        /// Only those before this entry: the last one shown, for the next page.
        #[arg(long, value_name = "ENTRY")]
        before: Option<i64>,
    },
}

pub(super) async fn run(store: &Store, command: Command) -> anyhow::Result<Answer> {
    match command {
        Command::Verify => Ok(report(&store.verify_ledger().await?)),
        Command::Show { team, limit, before } => {
            let team = find_team(store, &team).await?;
            let entries = store.ledger(team, before, limit).await?;
            let lines: Vec<String> = entries.iter().map(line).collect();
            let rows: Vec<Value> = entries.iter().map(row).collect();
            Ok(Answer::good(lines.join("\n"), json!({ "team_id": team.to_string(), "data": rows })))
        }
    }
}

/// What must hold, in the order it is told.
const INVARIANTS: [(&str, &str); 8] = [
    ("remaining", "what a lot has left is the sum of its entries"),
    ("bounds", "no lot holds more than it has left, or less than nothing"),
    ("held", "every held credit is an open grab's, and every open grab has one"),
    ("spent", "every done live grab was paid once, and nothing else was"),
    ("balance", "a team's entries add up to what its lots have left"),
    ("append_only", "entries can be neither changed nor deleted"),
    ("open", "every open grab has a job, and every job an open grab"),
    ("images", "no image that a grab shows is about to be deleted"),
];

/// Which of them does not hold.
fn invariant(drift: &Drift) -> &'static str {
    match drift {
        Drift::Remaining { .. } => "remaining",
        Drift::Bounds { .. } => "bounds",
        Drift::Held { .. } => "held",
        Drift::Unpaid(_) | Drift::PaidTwice(_) | Drift::PaidForNothing(_) => "spent",
        Drift::Balance { .. } => "balance",
        Drift::Unguarded => "append_only",
        Drift::Orphaned(_) | Drift::Leftover(_) => "open",
        Drift::Doomed(_) => "images",
    }
}

fn finding(drift: &Drift) -> String {
    match drift {
        Drift::Remaining { lot, remaining, ledger } => {
            format!("lot {} has {remaining} left, its entries add up to {ledger}", lot.0)
        }
        Drift::Bounds { lot, remaining, held } => format!("lot {} holds {held} of {remaining}", lot.0),
        Drift::Held { lot, held, jobs } => format!("lot {} holds {held} for {jobs} open grabs", lot.0),
        Drift::Balance { team, remaining, ledger } => {
            format!("team {team} has {remaining} left, its entries add up to {ledger}")
        }
        Drift::Unguarded => "a trigger of the table `ledger` is gone or off".to_owned(),
        Drift::Unpaid(grab) => format!("grab {grab} is done and was not paid"),
        Drift::PaidTwice(grab) => format!("grab {grab} was paid more than once"),
        Drift::PaidForNothing(grab) => format!("grab {grab} was paid and is no done live grab"),
        Drift::Orphaned(grab) => format!("grab {grab} is open and has no job"),
        Drift::Leftover(grab) => format!("grab {grab} has a job and is not open"),
        Drift::Doomed(grab) => format!("grab {grab} shows an image that is about to be deleted"),
    }
}

fn report(drifts: &[Drift]) -> Answer {
    let mut lines = Vec::new();
    let mut rows = Vec::new();
    for (name, sentence) in INVARIANTS {
        let findings: Vec<String> = drifts.iter().filter(|drift| invariant(drift) == name).map(finding).collect();
        let holds = findings.is_empty();
        lines.push(format!("{:<6} {name:<12} {sentence}", if holds { "ok" } else { "DRIFT" }));
        lines.extend(findings.iter().map(|finding| format!("       {finding}")));
        rows.push(json!({ "invariant": name, "ok": holds, "findings": findings }));
    }
    let text = lines.join("\n");
    let json = json!({ "ok": drifts.is_empty(), "invariants": rows });
    Answer { text, json, success: drifts.is_empty() }
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
    fn each_drift_is_told_under_its_invariant_and_fails() {
        let clean = report(&[]);
        assert!(clean.success && clean.text.lines().all(|line| line.starts_with("ok ")), "{}", clean.text);
        assert_eq!(clean.text.lines().count(), INVARIANTS.len());
        let (lot, grab): (LotId, GrabId) = (LotId(7), "01993e1c-7b1a-7000-8000-0123456789ab".parse().expect("an id"));
        let drifts = [
            Drift::Remaining { lot, remaining: 2, ledger: 1 },
            Drift::Bounds { lot, remaining: 1, held: 2 },
            Drift::Held { lot, held: 1, jobs: 0 },
            Drift::Balance { team: TeamId(grab.0), remaining: 1, ledger: 2 },
            Drift::Unguarded,
            Drift::Unpaid(grab),
            Drift::PaidTwice(grab),
            Drift::PaidForNothing(grab),
            Drift::Orphaned(grab),
            Drift::Leftover(grab),
            Drift::Doomed(grab),
        ];
        for drift in drifts {
            let told = report(&[drift]);
            assert!(!told.success && told.json["ok"] == json!(false), "{drift:?}");
            let drifting: Vec<_> = told.text.lines().filter(|line| line.starts_with("DRIFT")).collect();
            assert!(matches!(&drifting[..], [one] if one.contains(invariant(&drift))), "{}", told.text);
            assert!(told.text.contains(&finding(&drift)), "{}", told.text);
        }
    }
}
