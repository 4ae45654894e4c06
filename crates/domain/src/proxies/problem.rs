//! Why a proxy did not work.

use crate::ErrorCause;
use crate::grabs::{Failure, FailureReason};

/// Why no connection through a proxy was made. Nothing of what the proxy answered is part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProxyProblem {
    /// The guard refused the proxy's own address or port.
    NotPublic,
    /// The proxy's name has no address.
    Unresolved,
    /// No connection to the proxy could be made.
    Unreachable,
    /// The proxy did not answer in time.
    TimedOut,
    /// TLS with the proxy failed.
    Tls,
    /// The answer is not that of such a proxy.
    NotAProxy,
    /// The proxy did not accept the user name and password, or requires them.
    Login,
    /// The proxy refused to connect to the site.
    Refused,
    /// The proxy could not connect to the site.
    SiteUnreached,
    /// The connection ended before the proxy had answered, or while the page was loaded.
    Broken,
}

impl ProxyProblem {
    /// All problems.
    pub const ALL: [Self; 10] = [
        Self::NotPublic,
        Self::Unresolved,
        Self::Unreachable,
        Self::TimedOut,
        Self::Tls,
        Self::NotAProxy,
        Self::Login,
        Self::Refused,
        Self::SiteUnreached,
        Self::Broken,
    ];

    /// The word in the API and the database.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NotPublic => "not_public",
            Self::Unresolved => "unresolved",
            Self::Unreachable => "unreachable",
            Self::TimedOut => "timed_out",
            Self::Tls => "tls",
            Self::NotAProxy => "not_a_proxy",
            Self::Login => "login",
            Self::Refused => "refused",
            Self::SiteUnreached => "site_unreached",
            Self::Broken => "broken",
        }
    }

    /// Parses a word.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|problem| problem.as_str() == text)
    }

    /// What the proxy did, as the end of a sentence about it.
    pub const fn predicate(self) -> &'static str {
        match self {
            Self::NotPublic => "is not at a public address.",
            Self::Unresolved => "has a host name that could not be resolved.",
            Self::Unreachable => "could not be reached.",
            Self::TimedOut => "did not answer in time.",
            Self::Tls => "could not be reached over TLS.",
            Self::NotAProxy => "did not answer like a proxy of its kind.",
            Self::Login => "did not accept the user name and password.",
            Self::Refused => "refused to connect to the site.",
            Self::SiteUnreached => "could not connect to the site.",
            Self::Broken => "broke the connection.",
        }
    }

    /// Whether the proxy certainly does not work for any site. Otherwise the site that was asked for may be the reason:
    /// many proxies do not answer, or close the connection, when they cannot connect to a site.
    pub const fn is_of_proxy(self) -> bool {
        match self {
            Self::NotPublic | Self::Unresolved | Self::Unreachable | Self::Tls | Self::NotAProxy | Self::Login => true,
            Self::TimedOut | Self::Refused | Self::SiteUnreached | Self::Broken => false,
        }
    }

    /// The message of a grab that failed because of the proxy with this name.
    pub fn message(self, name: &str) -> String {
        format!("{PREFIX}{name}\" {}", self.predicate())
    }

    /// The failure of a grab because of the proxy with this name. The caller has chosen the proxy, so the request is
    /// the cause.
    pub fn failure(self, name: &str) -> Failure {
        let cause = match self {
            Self::SiteUnreached => ErrorCause::Target,
            Self::NotPublic
            | Self::Unresolved
            | Self::Unreachable
            | Self::TimedOut
            | Self::Tls
            | Self::NotAProxy
            | Self::Login
            | Self::Refused
            | Self::Broken => ErrorCause::Request,
        };
        Failure::new(FailureReason::RenderFailed, self.message(name)).caused_by(cause)
    }

    /// The problem that a message of [`Self::message`] is about. `None` for messages about anything else.
    pub fn of_message(message: &str) -> Option<Self> {
        let about = message.strip_prefix(PREFIX)?;
        Self::ALL.into_iter().find(|problem| about.ends_with(&format!("\" {}", problem.predicate())))
    }
}

const PREFIX: &str = "The proxy \"";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_messages_lead_back_to_the_problem() {
        for problem in ProxyProblem::ALL {
            assert_eq!(ProxyProblem::parse(problem.as_str()), Some(problem));
            assert_eq!(ProxyProblem::of_message(&problem.message("Office \" 2")), Some(problem));
        }
        assert_eq!(ProxyProblem::of_message("The site did not answer in time."), None);
        assert_eq!(ProxyProblem::parse("lost"), None);
    }

    #[test]
    fn failure_names_the_proxy_and_is_caused_by_the_request() {
        let failure = ProxyProblem::Login.failure("Office");
        assert_eq!(failure.message, "The proxy \"Office\" did not accept the user name and password.");
        assert_eq!((failure.reason, failure.cause), (FailureReason::RenderFailed, ErrorCause::Request));
        assert_eq!(ProxyProblem::SiteUnreached.failure("Office").cause, ErrorCause::Target);
    }
}
