//! Integer codes of enums in the tables, and conversions of numbers. The comments in the migrations list the same
//! codes.

use grabd_domain::Timestamp;
use grabd_domain::accounts::Role;
use grabd_domain::credentials::{Environment, Scopes};
use grabd_domain::credits::{DisputeState, EntryKind, LotKind};
use grabd_domain::domains::DomainRule;
use grabd_domain::faults::ErrorCause;
use grabd_domain::grabs::Class;
use grabd_domain::oauth::{AuthMethod, OauthScopes};

use crate::{Error, Result};

/// `team.status` of an active team.
pub(crate) const ACTIVE: i16 = 0;
/// `team.status` of a suspended team.
pub(crate) const SUSPENDED: i16 = 1;

/// `grab.status` while a job exists. The job's lease tells pending from processing.
pub(crate) const OPEN: i16 = 0;
/// `grab.status` of a done grab.
pub(crate) const DONE: i16 = 2;
/// `grab.status` of a failed grab.
pub(crate) const FAILED: i16 = 3;

/// `env` of the live environment.
pub(crate) const LIVE: i16 = 0;

pub(crate) const fn environment(environment: Environment) -> i16 {
    match environment {
        Environment::Live => LIVE,
        Environment::Test => 1,
    }
}

pub(crate) fn read_environment(code: i16) -> Result<Environment> {
    [Environment::Live, Environment::Test]
        .into_iter()
        .find(|known| environment(*known) == code)
        .ok_or(Error::Inconsistent("unknown environment code"))
}

/// One bit for each scope.
pub(crate) fn scopes(scopes: Scopes) -> i16 {
    scopes.bits().into()
}

pub(crate) fn read_scopes(code: i16) -> Result<Scopes> {
    u8::try_from(code).ok().and_then(Scopes::from_bits).ok_or(Error::Inconsistent("unknown scopes of a key"))
}

/// One bit for each OAuth scope.
pub(crate) fn oauth_scopes(scopes: OauthScopes) -> i16 {
    scopes.bits().into()
}

pub(crate) fn read_oauth_scopes(code: i16) -> Result<OauthScopes> {
    u8::try_from(code).ok().and_then(OauthScopes::from_bits).ok_or(Error::Inconsistent("unknown scopes of an app"))
}

pub(crate) const fn class(class: Class) -> i16 {
    match class {
        Class::Sync => 0,
        Class::Async => 1,
    }
}

pub(crate) fn read_class(code: i16) -> Result<Class> {
    Class::ALL.into_iter().find(|known| class(*known) == code).ok_or(Error::Inconsistent("unknown class code"))
}

pub(crate) const fn error_cause(cause: ErrorCause) -> i16 {
    match cause {
        ErrorCause::Request => 0,
        ErrorCause::Target => 1,
        ErrorCause::Service => 2,
    }
}

pub(crate) fn read_error_cause(code: i16) -> Result<ErrorCause> {
    ErrorCause::ALL
        .into_iter()
        .find(|known| error_cause(*known) == code)
        .ok_or(Error::Inconsistent("unknown error cause code"))
}

/// Codes sort in spending order.
pub(crate) const fn lot_kind(kind: LotKind) -> i16 {
    match kind {
        LotKind::Subscription => 0,
        LotKind::Prepaid => 1,
    }
}

pub(crate) fn read_lot_kind(code: i16) -> Result<LotKind> {
    [LotKind::Subscription, LotKind::Prepaid]
        .into_iter()
        .find(|known| lot_kind(*known) == code)
        .ok_or(Error::Inconsistent("unknown lot kind code"))
}

pub(crate) const fn entry_kind(kind: EntryKind) -> i16 {
    match kind {
        EntryKind::Grant => 1,
        EntryKind::Spend => 2,
        EntryKind::Expire => 3,
        EntryKind::Adjust => 4,
    }
}

pub(crate) fn read_entry_kind(code: i16) -> Result<EntryKind> {
    [EntryKind::Grant, EntryKind::Spend, EntryKind::Expire, EntryKind::Adjust]
        .into_iter()
        .find(|known| entry_kind(*known) == code)
        .ok_or(Error::Inconsistent("unknown ledger entry kind code"))
}

/// `payment_reversal.kind` of a refund.
pub(crate) const REFUND: i16 = 0;
/// `payment_reversal.kind` of a dispute.
pub(crate) const DISPUTE: i16 = 1;

pub(crate) const fn dispute(state: DisputeState) -> i16 {
    match state {
        DisputeState::Open => 0,
        DisputeState::Won => 1,
        DisputeState::Lost => 2,
    }
}

pub(crate) const fn domain_rule(rule: DomainRule) -> i16 {
    match rule {
        DomainRule::Deny => 0,
        DomainRule::Allow => 1,
    }
}

pub(crate) fn read_domain_rule(code: i16) -> Result<DomainRule> {
    [DomainRule::Deny, DomainRule::Allow]
        .into_iter()
        .find(|known| domain_rule(*known) == code)
        .ok_or(Error::Inconsistent("unknown domain rule code"))
}

pub(crate) const fn role(role: Role) -> i16 {
    match role {
        Role::Owner => 0,
        Role::Member => 1,
        Role::Viewer => 2,
        Role::Billing => 3,
    }
}

pub(crate) fn read_role(code: i16) -> Result<Role> {
    Role::ALL.into_iter().find(|known| role(*known) == code).ok_or(Error::Inconsistent("unknown role code"))
}

pub(crate) const fn auth_method(method: AuthMethod) -> i16 {
    match method {
        AuthMethod::None => 0,
        AuthMethod::Basic => 1,
        AuthMethod::Post => 2,
    }
}

pub(crate) fn read_auth_method(code: i16) -> Result<AuthMethod> {
    AuthMethod::ALL
        .into_iter()
        .find(|known| auth_method(*known) == code)
        .ok_or(Error::Inconsistent("unknown client authentication method code"))
}

/// `oauth_token.kind` of an access token.
pub(crate) const ACCESS: i16 = 0;
/// `oauth_token.kind` of a refresh token.
pub(crate) const REFRESH: i16 = 1;

/// Reads a count that the schema keeps non-negative.
pub(crate) fn read_count(number: i32) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::Inconsistent("negative count"))
}

pub(crate) fn read_time(ms: Option<i64>) -> Option<Timestamp> {
    ms.map(Timestamp::from_ms)
}

/// Saturates; no file exceeds the range of the column.
pub(crate) fn size(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Saturates; no render exceeds the range of the column.
pub(crate) fn milliseconds(ms: u32) -> i32 {
    i32::try_from(ms).unwrap_or(i32::MAX)
}
