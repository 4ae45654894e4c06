//! The numbers that stand for words in the tables. The migrations' comments name the same ones.

use grabd_domain::Timestamp;
use grabd_domain::accounts::Role;
use grabd_domain::credentials::Environment;
use grabd_domain::credits::{EntryKind, LotKind};
use grabd_domain::grabs::Class;
use grabd_domain::oauth::AuthMethod;

use crate::{Error, Result};

/// `team.status` of a team that may act.
pub(crate) const ACTIVE: i16 = 0;

/// `grab.status` while a job exists: pending or processing, as the job says.
pub(crate) const OPEN: i16 = 0;
/// `grab.status` of a grab with a picture.
pub(crate) const DONE: i16 = 2;
/// `grab.status` of a grab without one.
pub(crate) const FAILED: i16 = 3;

pub(crate) const fn environment(environment: Environment) -> i16 {
    match environment {
        Environment::Live => 0,
        Environment::Test => 1,
    }
}

pub(crate) fn read_environment(code: i16) -> Result<Environment> {
    [Environment::Live, Environment::Test]
        .into_iter()
        .find(|known| environment(*known) == code)
        .ok_or(Error::Inconsistent("an unknown environment"))
}

pub(crate) const fn class(class: Class) -> i16 {
    match class {
        Class::Sync => 0,
        Class::Async => 1,
    }
}

pub(crate) fn read_class(code: i16) -> Result<Class> {
    Class::ALL.into_iter().find(|known| class(*known) == code).ok_or(Error::Inconsistent("an unknown class"))
}

/// In the order of spending.
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
        .ok_or(Error::Inconsistent("an unknown kind of lot"))
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
        .ok_or(Error::Inconsistent("an unknown kind of ledger entry"))
}

pub(crate) const fn role(role: Role) -> i16 {
    match role {
        Role::Owner => 0,
        Role::Member => 1,
    }
}

pub(crate) fn read_role(code: i16) -> Result<Role> {
    Role::ALL.into_iter().find(|known| role(*known) == code).ok_or(Error::Inconsistent("an unknown role"))
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
        .ok_or(Error::Inconsistent("an unknown way for an app to prove who it is"))
}

/// `oauth_token.kind` of a token that opens something.
pub(crate) const ACCESS: i16 = 0;
/// `oauth_token.kind` of a token that gets the next ones.
pub(crate) const REFRESH: i16 = 1;

/// A count that the schema keeps from going below zero.
pub(crate) fn read_count(number: i32) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::Inconsistent("a count below zero"))
}

pub(crate) fn read_time(ms: Option<i64>) -> Option<Timestamp> {
    ms.map(Timestamp::from_ms)
}
