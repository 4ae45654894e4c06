//! Pages cannot reach addresses that the guard has not allowed.

mod channels;
mod control;
mod failures;
mod names;
