//! Data of the usage and billing pages, which must be limited to the requesting team.

use anyhow::{Context, Result};
use futures::TryStreamExt;
use grabd_domain::Day;
use grabd_domain::credits::{EntryKind, LotKind};
use grabd_engine::accounts;
use grabd_engine::billing::{Captured, DAYS, EndedGrabs, grabs_by_day, holdings, ledger, ledger_csv};
use grabd_tests::harness::TestApp;
use serde_json::json;

use super::now;

#[tokio::test(flavor = "multi_thread")]
async fn team_sees_only_its_own_lots_captures_and_entries() -> Result<()> {
    let app = TestApp::start(3, &[]).await?;
    let (core, team) = (app.service.core(), app.team.team);
    let other = accounts::create_team(app.service.store(), "another", 7, now()).await?.team;
    let (grab, _) = app.capture("/tiny", json!({})).await?;
    assert_eq!(app.create(json!({ "url": app.site.url("/status/403") })).await?.0, 422);
    let body = json!({ "url": "https://example.com/" });
    let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test()).json(&body);
    assert_eq!(request.send().await?.status(), 200);

    let lots = holdings(core, team).await?;
    let [own] = &lots[..] else { anyhow::bail!("{lots:?}") };
    assert_eq!((own.lot.kind, own.lot.granted, own.lot.remaining, own.lot.held), (LotKind::Prepaid, 3, 2, 0));
    assert_eq!(own.source_ref, format!("team:{team}"));

    let days = grabs_by_day(core, team).await?;
    let today = days.last().context("today")?;
    assert_eq!((days.len(), today.day), (usize::from(DAYS), Day::of(now())));
    assert_eq!((today.live, today.test), (EndedGrabs { done: 1, failed: 1 }, EndedGrabs { done: 1, failed: 0 }));
    assert!(grabs_by_day(core, other).await?.iter().all(|day| day.live == EndedGrabs::default()));

    let page = ledger(core, team, None, 1).await?;
    let [spent] = &page.entries[..] else { anyhow::bail!("{page:?}") };
    let host = app.site.origin().trim_start_matches("http://").split(':').next().context("a host")?.to_owned();
    assert_eq!((spent.balance, &spent.captured, &spent.receipt), (2, &Some(Captured::Host(host.clone())), &None));
    let spend = &spent.entry;
    assert_eq!((spend.kind, spend.amount), (EntryKind::Spend, -1));
    assert_eq!(spend.grab.map(|id| json!(id.to_string())), Some(grab["id"].clone()));
    let rest = ledger(core, team, page.before, 1000).await?;
    assert_eq!((rest.entries.len(), rest.before), (1, None));
    let granted = &rest.entries[0].entry;
    assert_eq!((&granted.reference, rest.entries[0].balance), (&Some(own.source_ref.clone()), 3));
    assert_eq!(ledger(core, other, None, 9).await?.entries.len(), 1);
    // An entry id of another team is only a position in the list and reveals nothing.
    let theirs = ledger(core, other, Some(i64::MAX), 9).await?.entries[0].entry.id;
    assert!(ledger(core, team, Some(theirs), 9).await?.entries.iter().all(|row| row.entry.lot == own.lot.id));

    let file: Vec<_> = ledger_csv(core, team, true).try_collect().await?;
    let file = String::from_utf8(file.concat())?;
    let expected = [
        "entry,at,kind,credits,lot,grab_id,reference,host,balance".to_owned(),
        format!("{},{},spend,-1,{},{},,{host},2", spend.id, spend.at, own.lot.id.0, grab["id"].as_str().context("id")?),
        format!("{},{},grant,3,{},,team:{team},,3", granted.id, granted.at, own.lot.id.0),
    ];
    assert_eq!(file, expected.map(|line| line + "\r\n").concat());
    app.finish().await
}
