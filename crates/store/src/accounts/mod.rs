//! Teams, members, people, keys, sessions and passwords: one file for each kind of change, and the reads in `queries/`.

pub(crate) mod devices;
pub(crate) mod links;
pub(crate) mod operators;
pub(crate) mod passkeys;
pub(crate) mod passwords;
pub(crate) mod people;
pub(crate) mod queries;
pub(crate) mod second_factor;
pub(crate) mod suspend;
pub(crate) mod suspend_person;
pub(crate) mod team;
pub(crate) mod teams_and_keys;
pub(crate) mod verification;

pub use devices::NewDevice;
pub use passkeys::add::{AddPasskeyOutcome, NewPasskey};
pub use passkeys::challenge::Challenge;
pub use passkeys::remove::RemovePasskeyOutcome;
pub use passkeys::used::PasskeyUse;
pub use passwords::PasswordChange;
pub use people::{CreatePersonOutcome, InitialTeam, NewPerson, NewSession};
pub use queries::accounts::{Key, KeyCaller, Suspension, Team};
pub use queries::key_usage::KeyUsage;
pub use queries::links::LinkSigner;
pub use queries::passkeys::Passkey;
pub use queries::people::{Device, Login, OpenSession, Person};
pub use queries::second_factor::SecondFactor;
pub use queries::teams::{Invitation, Member, SessionInfo};
pub use second_factor::change::NewSecondFactor;
pub use second_factor::factor::FactorUse;
pub use second_factor::sign_in::{SecondFactorSignIn, SecondFactorSignInOutcome};
pub use suspend::SuspendOutcome;
pub use team::accept::{InvitedSignUp, SignUpOutcome};
pub use team::invite::NewInvitation;
pub use team::{TeamResult, TeamRuleError};
pub use teams_and_keys::{NewKey, NewTeam};
