//! The table: every option, in the order in which they are checked, stored and shown.

#[macro_use]
mod declare;
#[macro_use]
mod later_rows;
#[macro_use]
mod first_rows;
mod devices;
mod members;
mod row;

use self::members::{BASIC_AUTH, COOKIE, GEOLOCATION, HIGHLIGHT, PDF, REQUEST_RULE, STEP, THUMBNAIL, VIEWPORT};
use self::row::{FORM, OPTION};
use crate::{CaptureOption, FormDetails, Group, Kind, LinkBar, Object, OptionType, Rectangle, Secret, Value};

first_rows! { $ }

/// The option with this name.
pub fn find(name: &str) -> Option<&'static CaptureOption> {
    TABLE.iter().find(|option| option.name == name)
}

#[cfg(test)]
mod tests;
