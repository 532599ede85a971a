//! The implementation of the commands about graph files, without their arguments.

pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod load;
pub(crate) mod plan;
