//! The audit trail as CSV.

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt, future, stream};
use grabd_domain::{Day, Fault};
use grabd_engine::csv::cell;
use grabd_engine::trail::{MAX_EXPORTED, NamedEntry};
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};

use super::sentence::{Reader, plain, sentence};

/// The columns of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns {
    /// Everything that an entry has.
    All,
    /// What the owners of a team see.
    OfTeam,
}

impl Columns {
    const fn head(self) -> &'static str {
        match self {
            Self::All => "entry,at,sentence,actor,email,action,target,target_name,team_id,team,address,detail\r\n",
            Self::OfTeam => "entry,at,sentence,action\r\n",
        }
    }

    fn line(self, named: &NamedEntry) -> String {
        let reader = match self {
            Self::All => Reader::Operator,
            Self::OfTeam => Reader::Owner,
        };
        let (sentence, entry) = (plain(&sentence(named, reader)), &named.entry);
        let (id, at, sentence, action) = (entry.id, entry.at, cell(&sentence), cell(&entry.action));
        match self {
            Self::OfTeam => format!("{id},{at},{sentence},{action}\r\n"),
            Self::All => {
                let text = |text: &Option<String>| cell(text.as_deref().unwrap_or_default());
                let (actor, target) = (cell(&entry.actor), cell(&entry.target));
                let (email, address, detail) = (text(&entry.email), text(&entry.address), text(&entry.detail));
                let (target_name, team_name) = (text(&named.target_name), text(&named.team_name));
                let team = entry.team.map(|team| team.to_string()).unwrap_or_default();
                format!(
                    "{id},{at},{sentence},{actor},{email},{action},{target},{target_name},{team},{team_name},{address},\
                     {detail}\r\n"
                )
            }
        }
    }
}

/// A file with these entries. If reading them fails midway, the response is aborted. A file that is cut says so in its last
/// line.
pub(crate) fn csv_response<S>(name: &str, now: Day, columns: Columns, chunks: S) -> Response
where
    S: Stream<Item = Result<Vec<NamedEntry>, Fault>> + Send + 'static,
{
    let name = format!("attachment; filename=\"grabd-{name}-{now}.csv\"");
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8; header=present")),
        (CONTENT_DISPOSITION, HeaderValue::try_from(name).expect("a name and a day are visible ASCII")),
    ];
    (headers, Body::from_stream(file(columns, chunks))).into_response()
}

fn file<S>(columns: Columns, chunks: S) -> impl Stream<Item = Result<Bytes, Fault>> + Send + 'static
where
    S: Stream<Item = Result<Vec<NamedEntry>, Fault>> + Send + 'static,
{
    let max = usize::try_from(MAX_EXPORTED).unwrap_or(usize::MAX);
    let lines = chunks.scan(0_usize, move |written, chunk| {
        let lines = chunk.map(|entries| {
            *written += entries.len();
            let mut lines: String = entries.iter().map(|entry| columns.line(entry)).collect();
            if *written >= max {
                lines.push_str(&format!(
                    ",,The newest {max} entries. There may be earlier ones: choose a day to export those.\r\n"
                ));
            }
            Bytes::from(lines)
        });
        future::ready(Some(lines))
    });
    stream::once(future::ready(Ok(Bytes::from_static(columns.head().as_bytes())))).chain(lines)
}

#[cfg(test)]
mod tests {
    use futures::TryStreamExt;
    use grabd_domain::Timestamp;
    use grabd_engine::trail::AuditEntry;

    use super::*;

    fn entry(id: i64, detail: &str) -> NamedEntry {
        let entry = AuditEntry {
            id,
            at: Timestamp::from_ms(1_795_206_774_120),
            actor: "stripe".to_owned(),
            email: None,
            action: "team.rename".to_owned(),
            target: "=1+1".to_owned(),
            team: None,
            address: Some("192.0.2.1".to_owned()),
            detail: Some(detail.to_owned()),
        };
        NamedEntry { entry, team_name: Some("@Acme".to_owned()), target_name: None, is_by_operator: false }
    }

    async fn text(columns: Columns, chunks: Vec<Vec<NamedEntry>>) -> String {
        let parts: Vec<Bytes> = file(columns, stream::iter(chunks).map(Ok)).try_collect().await.unwrap();
        String::from_utf8(parts.concat()).unwrap()
    }

    #[tokio::test]
    async fn each_entry_is_a_line_and_formulas_are_escaped() {
        let all = text(Columns::All, vec![vec![entry(8, "-2,5")], vec![entry(7, "x")]]).await;
        let lines: Vec<&str> = all.lines().collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(
            lines[1],
            "8,2026-11-20T20:32:54.120Z,\"The payment provider renamed a team to “-2,5”\",stripe,,team.rename,'=1+1,,,\
             '@Acme,192.0.2.1,\"'-2,5\""
        );
        assert_eq!(lines[2].split(',').count(), Columns::All.head().split(',').count());
        let of_team = text(Columns::OfTeam, vec![vec![entry(7, "x")]]).await;
        let expected = "entry,at,sentence,action\r\n\
             7,2026-11-20T20:32:54.120Z,The payment provider renamed the team to “x”,team.rename\r\n";
        assert_eq!(of_team, expected);
        assert_eq!(text(Columns::OfTeam, Vec::new()).await, "entry,at,sentence,action\r\n");
    }

    #[tokio::test]
    async fn file_that_is_cut_says_so() {
        let chunk: Vec<NamedEntry> = (0..500).map(|id| entry(id, "x")).collect();
        let full = text(Columns::OfTeam, vec![chunk; 20]).await;
        assert!(full.ends_with("choose a day to export those.\r\n"), "{}", &full[full.len() - 200..]);
    }
}
