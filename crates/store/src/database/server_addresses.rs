//! The servers that a database URL names: `postgres://user:password@first:5432,second:5432/name`, as for libpq.

use sea_orm::sqlx::postgres::PgConnectOptions;

use crate::error::connection_error;
use crate::{Error, Result};

/// Maximum number of servers.
const MAX_SERVERS: usize = 16;
/// The parameter that says which of the servers is used.
const TARGET: &str = "target_session_attrs";

/// The servers of a URL, in its order. Each may have a port.
///
/// The one that accepts writes is always used, so `target_session_attrs` may be left out.
///
/// # Errors
/// [`Error::InvalidUrl`] for an empty name, too many servers, or another target; [`Error::Unavailable`] for a URL that the
/// driver does not accept.
pub(super) fn servers(url: &str) -> Result<Vec<PgConnectOptions>> {
    let (scheme, rest) = url.split_once("://").ok_or(Error::Url)?;
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (user, names) = authority.rsplit_once('@').map_or((None, authority), |(user, names)| (Some(user), names));
    let user = user.map_or_else(String::new, |user| format!("{user}@"));
    let path = without_target(path)?;
    let names: Vec<&str> = names.split(',').collect();
    if names.len() > MAX_SERVERS {
        return Err(Error::InvalidUrl("it names more than 16 servers"));
    }
    if names.len() > 1 && names.contains(&"") {
        return Err(Error::InvalidUrl("a server has no name"));
    }
    names.iter().map(|name| format!("{scheme}://{user}{name}{path}").parse().map_err(connection_error)).collect()
}

/// Removes the parameter that the driver does not know.
fn without_target(path: &str) -> Result<String> {
    let Some((path, query)) = path.split_once('?') else { return Ok(path.to_owned()) };
    let mut kept = Vec::new();
    for parameter in query.split('&') {
        match parameter.split_once('=') {
            Some((TARGET, "read-write" | "primary")) => {}
            Some((TARGET, _)) => return Err(Error::InvalidUrl("target_session_attrs must be read-write")),
            Some(_) | None => kept.push(parameter),
        }
    }
    let separator = if kept.is_empty() { "" } else { "?" };
    Ok(format!("{path}{separator}{}", kept.join("&")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> Vec<(String, u16, Option<String>)> {
        let servers = servers(url).unwrap();
        servers.iter().map(|to| (to.get_host().into(), to.get_port(), to.get_database().map(Into::into))).collect()
    }

    #[test]
    fn url_names_one_server_or_several() {
        let database = Some("grabd".to_owned());
        assert_eq!(of("postgres://grabd@db:5433/grabd"), [("db".into(), 5433, database.clone())]);
        assert_eq!(
            of("postgres://grabd:a,b%40c@first,second:5433,[::1]:5434/grabd?target_session_attrs=read-write"),
            [
                ("first".into(), 5432, database.clone()),
                ("second".into(), 5433, database.clone()),
                ("[::1]".into(), 5434, database)
            ]
        );
    }

    #[test]
    fn other_parameters_are_kept() {
        let query = "sslmode=disable&target_session_attrs=primary&application_name=x";
        let servers = servers(&format!("postgres://u@a,b/n?{query}")).unwrap();
        assert!(servers.iter().all(|server| server.get_application_name() == Some("x")));
    }

    #[test]
    fn malformed_urls_are_refused() {
        for url in ["postgres://u@a,/n", "postgres://u@,a/n", "postgres://a/n?target_session_attrs=standby"] {
            assert!(matches!(servers(url), Err(Error::InvalidUrl(_))), "{url}");
        }
        let many = vec!["a"; MAX_SERVERS + 1].join(",");
        assert!(matches!(servers(&format!("postgres://{many}/n")), Err(Error::InvalidUrl(_))));
        assert!(matches!(servers("postgres:n"), Err(Error::Url)));
    }
}
