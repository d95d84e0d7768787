//! Commands in hosts, where there are no hosts.

use super::{Shape, ShapeError, Shaped};
use crate::error::Error;
use crate::permission::Permission;

impl Shape<'_> {
    /// Refuses.
    #[expect(clippy::unused_self, reason = "the shape that Linux has")]
    pub(super) fn play(&self) -> Result<Shaped, ShapeError> {
        match Permission::acquire().map_err(Error::from)? {}
    }
}
